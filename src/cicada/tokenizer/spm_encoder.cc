// SentencePiece as llama files hold it: characters merged by score over the whole stretch of text,
// spaces as U+2581, and what is no piece as its bytes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>

#include "cicada/tokenizer/byte_alphabet.h"
#include "cicada/tokenizer/fragment_encoder.h"
#include "cicada/tokenizer/symbol_merger.h"
#include "cicada/tokenizer/unicode.h"

namespace cicada::tokenizer {
namespace {

// Longer stretches are cut into pieces of about this size; a space grows to three bytes, so that
// positions still fit in 31 bits.
constexpr std::size_t kMaxStretchBytes = std::size_t{1} << 29;

// Orders scores from high to low as unsigned integers; both zeros are equal.
std::uint32_t priority_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000U);
}

class SpmEncoder final : public FragmentEncoder {
 public:
  explicit SpmEncoder(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {
    byte_ids_.fill(-1);
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      byte_ids_[byte] = vocabulary.table.find(fmt::format("<0x{:02X}>", byte));
      if (byte_ids_[byte] < 0) {
        byte_ids_[byte] = plain_piece(std::string(1, static_cast<char>(byte)));
      }
    }
  }

  // As describe_missing_bytes().
  std::string missing_bytes() const { return describe_missing_bytes(byte_ids_); }

  void encode(std::string_view fragment, bool after_special,
              std::vector<TokenId>& out) const override {
    bool prefix = after_special && vocabulary_->add_space_prefix;
    SymbolMerger merger;
    std::string text;
    while (!fragment.empty()) {
      const std::string_view stretch = fragment.substr(0, kMaxStretchBytes);
      text.assign(prefix ? kVisibleSpaceUtf8 : "");
      for (const char c : stretch) {
        if (c == ' ') {
          text.append(kVisibleSpaceUtf8);
        } else {
          text.push_back(c);
        }
      }
      encode_stretch(text, merger, out);
      fragment.remove_prefix(stretch.size());
      prefix = false;
    }
  }

  void append_bytes(TokenId id, std::string& out) const override {
    const auto idx = static_cast<std::size_t>(id.value);
    std::string_view text = vocabulary_->texts[idx];
    const TokenType type = vocabulary_->types[idx];
    if (type == TokenType::kByte) {
      out.push_back(static_cast<char>(parse_byte_piece(text).value_or(0)));
      return;
    }
    if (is_special(type) || type == TokenType::kUserDefined) {
      out.append(text);
      return;
    }
    while (!text.empty()) {
      const bool space = text.starts_with(kVisibleSpaceUtf8);
      out.push_back(space ? ' ' : text[0]);
      text.remove_prefix(space ? kVisibleSpaceUtf8.size() : 1);
    }
  }

 private:
  // The id of a piece that plain text may become; -1 when there is none. A byte piece is spelled
  // "<0x0A>", and text that reads so is not the byte.
  std::int32_t plain_piece(std::string_view text) const {
    const std::int32_t id = vocabulary_->table.find(text);
    if (id < 0) return -1;
    const TokenType type = vocabulary_->types[static_cast<std::size_t>(id)];
    return is_special(type) || type == TokenType::kByte ? -1 : id;
  }

  std::uint32_t priority(std::int32_t id) const {
    return vocabulary_->scores.empty()
               ? 0
               : priority_of(vocabulary_->scores[static_cast<std::size_t>(id)]);
  }

  // Symbols do not carry ids: a pair is joined when its text is a piece, whatever the two were.
  void encode_stretch(std::string_view text, SymbolMerger& merger,
                      std::vector<TokenId>& out) const {
    merger.clear();
    for (std::size_t pos = 0; pos < text.size();) {
      const Utf8Step step = utf8_step(text, pos);
      const std::uint8_t size_bytes = step.state == Utf8State::kValid ? step.size_bytes : 1;
      merger.add(size_bytes, -1);
      pos += size_bytes;
    }
    merger.merge(
        [this, text](const Symbol& left, const Symbol& right) -> std::optional<PairResult> {
          const std::int32_t id =
              plain_piece(text.substr(left.begin_bytes, left.size_bytes + right.size_bytes));
          if (id < 0) return std::nullopt;
          return PairResult{priority(id), id};
        });
    merger.for_each([&](const Symbol& symbol) {
      emit(symbol.id, text.substr(symbol.begin_bytes, symbol.size_bytes), out);
    });
  }

  // A symbol that was never joined is one character: a piece, or its bytes, or unknown.
  void emit(std::int32_t id, std::string_view text, std::vector<TokenId>& out) const {
    if (id < 0) id = plain_piece(text);
    if (id >= 0) {
      out.emplace_back(id);
      return;
    }
    for (const char c : text) {
      const std::int32_t byte_id = byte_ids_[static_cast<std::uint8_t>(c)];
      if (byte_id >= 0) {
        out.emplace_back(byte_id);
      } else if (vocabulary_->unknown) {
        out.push_back(*vocabulary_->unknown);
      }
    }
  }

  const Vocabulary* vocabulary_;
  std::array<std::int32_t, 256> byte_ids_{};
};

}  // namespace

std::unique_ptr<FragmentEncoder> make_spm_encoder(Vocabulary& vocabulary) {
  auto encoder = std::make_unique<SpmEncoder>(vocabulary);
  if (!vocabulary.add_bos) vocabulary.add_bos = vocabulary.bos.has_value();
  if (const std::string missing = encoder->missing_bytes(); !missing.empty()) {
    vocabulary.notes.push_back(
        fmt::format("the vocabulary has no piece for {}, text that needs them {}", missing,
                    vocabulary.unknown ? "becomes the unknown token" : "is left out of prompts"));
  }
  return encoder;
}

}  // namespace cicada::tokenizer
