#include "cicada/tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cicada/tokenizer/fragment_encoder.h"
#include "cicada/tokenizer/special_tokens.h"
#include "cicada/tokenizer/vocabulary.h"

namespace cicada::tokenizer {
namespace {

// The bytes of every token, end to end: four bytes a token beside them instead of sixteen for a
// view.
class Pieces {
 public:
  static Result<Pieces> build(const Vocabulary& vocabulary, const FragmentEncoder& encoder) {
    Pieces pieces;
    pieces.ends_.reserve(vocabulary.texts.size());
    for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
      if (!is_special(vocabulary.types[id])) {
        encoder.append_bytes(TokenId(static_cast<std::int32_t>(id)), pieces.bytes_);
      }
      if (pieces.bytes_.size() > std::numeric_limits<std::uint32_t>::max()) {
        return fail(Code::kUnsupported, "vocabulary: more than 4 GiB of text");
      }
      pieces.ends_.push_back(static_cast<std::uint32_t>(pieces.bytes_.size()));
    }
    pieces.bytes_.shrink_to_fit();
    return pieces;
  }

  std::string_view at(std::size_t idx) const {
    const std::size_t begin = idx == 0 ? 0 : ends_[idx - 1];
    return std::string_view(bytes_).substr(begin, ends_[idx] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;  // [tokens] offsets into bytes_
};

class ModelTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const formats::Metadata& metadata) {
    CICADA_ASSIGN(Vocabulary loaded, load_vocabulary(metadata));
    auto tokenizer = std::unique_ptr<ModelTokenizer>(new ModelTokenizer(std::move(loaded)));
    Vocabulary& vocabulary = tokenizer->vocabulary_;
    if (vocabulary.kind == VocabularyKind::kByteBpe) {
      CICADA_ASSIGN(tokenizer->encoder_, make_bpe_encoder(metadata, vocabulary));
    } else {
      tokenizer->encoder_ = make_spm_encoder(vocabulary);
    }
    CICADA_ASSIGN(tokenizer->specials_, SpecialTokens::build(vocabulary));
    CICADA_ASSIGN(tokenizer->pieces_, Pieces::build(vocabulary, *tokenizer->encoder_));
    tokenizer->publish();
    return tokenizer;
  }

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    if (options.add_bos && bos_) ids.push_back(*bos_);
    bool after_special = true;
    for (const Fragment& fragment : specials_.partition(text, options)) {
      after_special = encode_fragment(fragment, after_special, ids);
    }
    // A text that spells BOS itself has it once all the same.
    if (options.add_bos && ids.size() >= 2 && ids[0] == bos_ && ids[1] == bos_) {
      ids.erase(ids.begin());
    }
    return ids;
  }

  std::string_view piece_bytes(TokenId id) const override {
    return contains(id) ? pieces_.at(static_cast<std::size_t>(id.value)) : std::string_view();
  }

  TokenId find(std::string_view token_text) const override {
    return TokenId(vocabulary_.table.find(token_text));
  }

 private:
  explicit ModelTokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  bool encode_fragment(const Fragment& fragment, bool after_special,
                       std::vector<TokenId>& ids) const {
    if (fragment.id >= 0) {
      ids.emplace_back(fragment.id);
      return true;
    }
    encoder_->encode(fragment.text, after_special, ids);
    return false;
  }

  // Shows the vocabulary in the interface, once nothing may add to it any more.
  void publish() {
    vocab_size_ = static_cast<std::int32_t>(vocabulary_.texts.size());
    texts_ = vocabulary_.texts;
    types_ = vocabulary_.types;
    wants_bos_ = vocabulary_.add_bos.value_or(false);
    bos_ = vocabulary_.bos;
    eos_ = vocabulary_.eos;
    unknown_ = vocabulary_.unknown;
    ends_ = vocabulary_.ends;
    notes_ = std::move(vocabulary_.notes);
    strips_leading_space_ = vocabulary_.add_space_prefix;
  }

  Vocabulary vocabulary_;
  std::unique_ptr<FragmentEncoder> encoder_;  // borrows vocabulary_
  SpecialTokens specials_;                    // borrows vocabulary_
  Pieces pieces_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const formats::ModelFile& file) {
  auto tokenizer = create(file.metadata());
  if (!tokenizer) return fail(std::move(tokenizer).error().with_context(file.path()));
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const formats::Metadata& metadata) {
  return ModelTokenizer::create(metadata);
}

bool Tokenizer::adds_space_after(std::optional<TokenId> previous) const {
  if (!strips_leading_space_) return false;
  if (!previous || !contains(*previous)) return true;
  const TokenType before = type(*previous);
  return is_special(before) || before == TokenType::kUserDefined;
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids, bool special) const {
  std::string text;
  std::optional<TokenId> previous;
  for (const TokenId id : ids) {
    if (!contains(id)) continue;
    std::string_view piece = piece_bytes(id);
    if (adds_space_after(previous) && type(id) != TokenType::kUserDefined &&
        piece.starts_with(' ')) {
      piece.remove_prefix(1);
    }
    text.append(special && is_special(type(id)) ? token_text(id) : piece);
    previous = id;
  }
  return text;
}

bool Tokenizer::is_end(TokenId id) const { return std::ranges::find(ends_, id) != ends_.end(); }

}  // namespace cicada::tokenizer
