// Text to token ids and back, from a model file's own vocabulary.
//
// Linear (or n log n) time on any input, no recursion, nothing allocated per character beyond a
// constant. Invalid UTF-8 is accepted byte by byte: decode(encode(x)) gives x back wherever the
// vocabulary has bytes. Control tokens are recognised in text only where asked.
// Lifetime: pieces are views into the ModelFile it was built from.
// Threads: const members may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"

namespace cicada::tokenizer {

enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct EncodeOptions {
  bool parse_special = false;  // read control tokens written in the text as those tokens
  bool add_bos = false;        // put BOS in front (once; the model's wish is wants_bos())
  // Bytes that no control token may touch although parse_special is set: where the text of one
  // overlaps a range (by one byte is enough) it is read as plain text there, as with parse_special
  // false; a shorter or later control token that keeps clear of the ranges still counts. Nothing
  // else changes: ids are those of the same text without special meaning at that place. Ascending,
  // not empty, not overlapping, inside the text; there may be as many as bytes, so walk them once.
  // Borrowed for the call.
  std::span<const ByteRange> plain_ranges = {};
};

class Tokenizer {
 public:
  // Errors, with the file's path: kUnsupported names a tokenizer model or pre-tokenizer that is not
  // known; kCorrupt.
  static Result<std::unique_ptr<Tokenizer>> create(const formats::ModelFile& file);
  // The same from metadata alone, which must live as long as what its values are views of. Errors
  // name no file.
  static Result<std::unique_ptr<Tokenizer>> create(const formats::Metadata& metadata);

  virtual ~Tokenizer() = default;

  virtual std::vector<TokenId> encode(std::string_view text,
                                      const EncodeOptions& options) const = 0;

  // The bytes of one token, as decode() writes them without `special`: nothing for control and
  // unknown tokens (their text is token_text()) and for ids outside the vocabulary.
  // SPM's leading-space rule is the caller's: use decode() or Detokenizer.
  virtual std::string_view piece_bytes(TokenId id) const = 0;

  // The bytes of ids, exactly: they need not be valid UTF-8. Control and unknown tokens are written
  // only with `special`; ids outside the vocabulary give nothing.
  std::string decode(const std::vector<TokenId>& ids, bool special) const;

  std::int32_t vocab_size() const { return vocab_size_; }
  bool contains(TokenId id) const { return id.value >= 0 && id.value < vocab_size_; }
  // Precondition of both: contains(id).
  TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id.value)]; }
  std::string_view token_text(TokenId id) const {  // as the file spells it
    return texts_[static_cast<std::size_t>(id.value)];
  }
  // The id of a token as the file spells it; negative when there is none.
  virtual TokenId find(std::string_view token_text) const = 0;

  bool wants_bos() const { return wants_bos_; }
  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> unknown() const { return unknown_; }
  // True for every token that ends a generation: EOS, end-of-turn, end-of-text of known families.
  bool is_end(TokenId id) const;
  const std::vector<TokenId>& end_tokens() const { return ends_; }

  // What a user should know about an imperfect file, a sentence each: "key tokenizer.ggml.pre is
  // missing, …". Empty for a good one.
  const std::vector<std::string>& notes() const { return notes_; }

  // True when encode() puts a space in front of text that begins here: at the start and after a
  // control or user-defined token, where the vocabulary wants that. decode() and Detokenizer take
  // it off again at the same places.
  bool adds_space_after(std::optional<TokenId> previous) const;

 protected:
  std::int32_t vocab_size_ = 0;
  // [vocab_size], owned by the subclass.
  std::span<const std::string_view> texts_;
  std::span<const TokenType> types_;
  bool wants_bos_ = false;
  std::optional<TokenId> bos_, eos_, unknown_;
  std::vector<TokenId> ends_;
  std::vector<std::string> notes_;
  // SPM: the space that encode() puts in front is taken off again by decode().
  bool strips_leading_space_ = false;
};

// Turns tokens into text as they come and never emits half a character: bytes of an unfinished
// UTF-8 sequence are held back until it is whole; bytes that can no longer become a character are
// passed on as U+FFFD, one for each maximal subpart (Unicode 15, section 3.9). What add() and
// finish() gave, joined, does not depend on how the bytes were spread over tokens.
// Threads: one thread. Lifetime: borrows the tokenizer.
class Detokenizer {
 public:
  // `previous` is the token before the first one that is added: the last of the prompt when the
  // tokens continue it, so that a space between the two is kept. Nothing: a text of its own.
  explicit Detokenizer(const Tokenizer& tokenizer, std::optional<TokenId> previous = std::nullopt)
      : tokenizer_(&tokenizer), previous_(previous) {}

  // The text that became certain with this token; often empty in the middle of a character.
  // Control tokens give nothing.
  std::string add(TokenId id);
  // What is still held back, as U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  std::optional<TokenId> previous_;
  std::string held_;  // a character's bytes so far, at most three
};

}  // namespace cicada::tokenizer
