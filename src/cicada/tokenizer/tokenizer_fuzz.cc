// Any bytes through every kind of tokenizer, with a tiny vocabulary: decoding gives the bytes back,
// and the detokenizer, fed token by token, gives valid UTF-8.
// The first byte chooses options; the rest is the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/tokenizer/model_for_test.h"
#include "cicada/tokenizer/tokenizer.h"
#include "cicada/tokenizer/unicode.h"

namespace {

using cicada::TokenId;
using namespace std::string_view_literals;
using cicada::tokenizer::ByteRange;
using cicada::tokenizer::Detokenizer;
using cicada::tokenizer::EncodeOptions;
using cicada::tokenizer::TestModel;
using cicada::tokenizer::Tokenizer;

struct Subject {
  TestModel model;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::vector<Subject> make_subjects() {
  std::vector<Subject> subjects;
  for (const std::string_view kind :
       {"gpt-2"sv, "smollm"sv, "qwen2"sv, "llama-bpe"sv, "falcon"sv, "default"sv, "spm"sv}) {
    Subject& subject = subjects.emplace_back();
    subject.model =
        kind == "spm" ? cicada::tokenizer::chain_model() : cicada::tokenizer::bpe_model(kind);
    subject.model.add("\xE6\xBC"sv, cicada::tokenizer::TokenType::kUserDefined);
    subject.model.add("<c>", cicada::tokenizer::TokenType::kControl);
    subject.model.finish();
    subject.tokenizer = std::move(*subject.model.create());
  }
  return subjects;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t pos = 0; pos < text.size();) {
    const auto step = cicada::tokenizer::utf8_step(text, pos);
    if (step.state != cicada::tokenizer::Utf8State::kValid) return false;
    pos += step.size_bytes;
  }
  return true;
}

// SPM writes a space as U+2581 and cannot tell the two apart.
bool holds_visible_space(std::string_view text) {
  return text.find(cicada::tokenizer::kVisibleSpaceUtf8) != std::string_view::npos;
}

void check(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  CICADA_CHECK(tokenizer.decode(ids, true) == text || holds_visible_space(text),
               "decoding gives another text");
  Detokenizer detokenizer(tokenizer);
  for (const TokenId id : ids) {
    CICADA_CHECK(is_valid_utf8(detokenizer.add(id)), "a delta holds half a character");
  }
  CICADA_CHECK(is_valid_utf8(detokenizer.finish()), "the last delta holds half a character");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Subject> kSubjects = make_subjects();
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  EncodeOptions options;
  options.parse_special = (data[0] & 1U) != 0;
  const std::vector<ByteRange> ranges = {{text.size() / 3, text.size() / 2}};
  if ((data[0] & 2U) != 0 && ranges[0].begin < ranges[0].end) options.plain_ranges = ranges;
  for (const Subject& subject : kSubjects) check(*subject.tokenizer, text, options);
  return 0;
}
