// Byte-level BPE: words of the pre-tokenizer, each byte a symbol, merged by rank.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include "cicada/formats/quote.h"
#include "cicada/tokenizer/byte_alphabet.h"
#include "cicada/tokenizer/fragment_encoder.h"
#include "cicada/tokenizer/pre_tokenizer.h"
#include "cicada/tokenizer/symbol_merger.h"

namespace cicada::tokenizer {
namespace {

// Longer stretches are cut into pieces of this size, so that positions fit in 32 bits.
constexpr std::size_t kMaxStretchBytes = std::size_t{1} << 30;

// Whether merging a token's own text gives that one token back.
enum class Wholeness : std::uint8_t { kNotTried, kWhole, kSplit };

class BpeEncoder final : public FragmentEncoder {
 public:
  BpeEncoder(const Vocabulary& vocabulary, const PreTokenizer& pre, MergeTable merges)
      : vocabulary_(&vocabulary),
        pre_(&pre),
        merges_(std::move(merges)),
        wholeness_(vocabulary.texts.size()) {
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      std::string spelled;
      append_spelled(static_cast<std::uint8_t>(byte), spelled);
      byte_ids_[byte] = plain_token(spelled);
    }
  }

  // As describe_missing_bytes().
  std::string missing_bytes() const { return describe_missing_bytes(byte_ids_); }

  void encode(std::string_view fragment, bool after_special,
              std::vector<TokenId>& out) const override {
    static_cast<void>(after_special);
    std::vector<std::string_view> words;
    SymbolMerger merger;
    std::string spelled;
    for (; !fragment.empty(); fragment.remove_prefix(std::min(fragment.size(), kMaxStretchBytes))) {
      words.clear();
      split_words(pre_->splitter, fragment.substr(0, kMaxStretchBytes), words);
      for (const std::string_view word : words) encode_word(word, merger, spelled, out);
    }
  }

  void append_bytes(TokenId id, std::string& out) const override {
    const auto idx = static_cast<std::size_t>(id.value);
    const std::string_view text = vocabulary_->texts[idx];
    const TokenType type = vocabulary_->types[idx];
    if (type == TokenType::kByte) {
      out.push_back(static_cast<char>(parse_byte_piece(text).value_or(0)));
    } else if (is_special(type) || type == TokenType::kUserDefined) {
      out.append(text);
    } else {
      append_unspelled(text, out);
    }
  }

 private:
  // The id of a token that plain text may become; -1 when there is none.
  std::int32_t plain_token(std::string_view spelled) const {
    const std::int32_t id = vocabulary_->table.find(spelled);
    return id < 0 || is_special(vocabulary_->types[static_cast<std::size_t>(id)]) ? -1 : id;
  }

  // Most words are tokens, and merging a token's text nearly always gives the token. Whether it
  // does is found out once for each. Relaxed order is enough: the answer follows from constants, so
  // that two threads can only write the same one.
  void encode_word(std::string_view word, SymbolMerger& merger, std::string& spelled,
                   std::vector<TokenId>& out) const {
    std::int32_t id = -1;
    if (word.size() <= vocabulary_->table.max_token_bytes()) {
      spelled.clear();
      append_spelled(word, spelled);
      id = plain_token(spelled);
    }
    if (id < 0) return merge_word(word, merger, out);
    std::atomic<Wholeness>& known = wholeness_[static_cast<std::size_t>(id)];
    Wholeness whole =
        pre_->ignore_merges ? Wholeness::kWhole : known.load(std::memory_order_relaxed);
    if (whole == Wholeness::kWhole) {
      out.emplace_back(id);
      return;
    }
    const std::size_t before = out.size();
    merge_word(word, merger, out);
    if (whole == Wholeness::kNotTried) {
      whole = out.size() == before + 1 && out.back().value == id ? Wholeness::kWhole
                                                                 : Wholeness::kSplit;
      known.store(whole, std::memory_order_relaxed);
    }
  }

  // Bytes that have no token give nothing: there is nothing that could stand for them.
  void merge_word(std::string_view word, SymbolMerger& merger, std::vector<TokenId>& out) const {
    merger.clear();
    for (const char byte : word) merger.add(1, byte_ids_[static_cast<std::uint8_t>(byte)]);
    merger.merge([this](const Symbol& left, const Symbol& right) -> std::optional<PairResult> {
      const std::int32_t rank = merges_.find(left.id, right.id);
      if (rank < 0) return std::nullopt;
      return PairResult{static_cast<std::uint32_t>(rank), merges_.at(rank).result};
    });
    merger.for_each([&out](const Symbol& symbol) {
      if (symbol.id >= 0) out.emplace_back(symbol.id);
    });
  }

  const Vocabulary* vocabulary_;
  const PreTokenizer* pre_;
  MergeTable merges_;
  std::array<std::int32_t, 256> byte_ids_{};
  mutable std::vector<std::atomic<Wholeness>> wholeness_;  // [tokens]
};

Result<const PreTokenizer*> read_pre_tokenizer(const formats::Metadata& metadata,
                                               Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  CICADA_ASSIGN(const auto name, metadata.get_string(kKey));
  if (!name || name->empty()) {
    vocabulary.notes.push_back(fmt::format(
        "key {} is missing, words are cut by the default rules, which may not be the model's own",
        kKey));
    return find_pre_tokenizer("default");
  }
  const PreTokenizer* known = find_pre_tokenizer(*name);
  if (known == nullptr) {
    return fail(Code::kUnsupported, "key {}: '{}' is not known, known are {}", kKey,
                formats::quote(*name), known_pre_tokenizers());
  }
  return known;
}

// A merge is two tokens' texts with a space between; the second may hold further spaces.
std::optional<Merge> parse_merge(std::string_view text, const Vocabulary& vocabulary,
                                 std::string& joined) {
  const std::size_t space = text.find(' ', 1);
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view left = text.substr(0, space);
  const std::string_view right = text.substr(space + 1);
  joined.assign(left).append(right);
  const Merge merge{vocabulary.table.find(left), vocabulary.table.find(right),
                    vocabulary.table.find(joined)};
  for (const std::int32_t id : {merge.left, merge.right, merge.result}) {
    if (id < 0 || is_special(vocabulary.types[static_cast<std::size_t>(id)])) return std::nullopt;
  }
  return merge;
}

Result<MergeTable> read_merges(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  CICADA_ASSIGN(const auto texts, metadata.get_strings(kKey));
  if (!texts) return fail(Code::kCorrupt, "key {}: missing, a gpt2 tokenizer needs it", kKey);
  MergeTable merges(texts->size());
  std::size_t ignored = 0;
  std::string joined;
  for (const std::string_view text : *texts) {
    if (const auto merge = parse_merge(text, vocabulary, joined)) {
      merges.insert(*merge);
    } else {
      ++ignored;
    }
  }
  if (ignored != 0) {
    vocabulary.notes.push_back(fmt::format(
        "key {}: {} of {} merges name tokens that are not in the vocabulary or are control "
        "tokens, and are ignored",
        kKey, ignored, texts->size()));
  }
  return merges;
}

}  // namespace

Result<std::unique_ptr<FragmentEncoder>> make_bpe_encoder(const formats::Metadata& metadata,
                                                          Vocabulary& vocabulary) {
  CICADA_ASSIGN(const PreTokenizer* pre, read_pre_tokenizer(metadata, vocabulary));
  if (!vocabulary.add_bos && pre->wants_bos && vocabulary.bos) vocabulary.add_bos = true;
  CICADA_ASSIGN(MergeTable merges, read_merges(metadata, vocabulary));
  auto encoder = std::make_unique<BpeEncoder>(vocabulary, *pre, std::move(merges));
  if (const std::string missing = encoder->missing_bytes(); !missing.empty()) {
    vocabulary.notes.push_back(
        fmt::format("the vocabulary has no token for {}, which are left out of prompts", missing));
  }
  return encoder;
}

}  // namespace cicada::tokenizer
