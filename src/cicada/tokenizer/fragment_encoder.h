// How a family turns plain text (no special tokens in it) into tokens, and a token into bytes.
// Threads: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/tokenizer/vocabulary.h"

namespace cicada::tokenizer {

class FragmentEncoder {
 public:
  virtual ~FragmentEncoder() = default;

  // Appends the tokens of a stretch of text. `after_special`: nothing or a special token is before
  // it.
  virtual void encode(std::string_view fragment, bool after_special,
                      std::vector<TokenId>& out) const = 0;

  // Appends the bytes that a token stands for, special or not.
  virtual void append_bytes(TokenId id, std::string& out) const = 0;
};

// Both borrow `vocabulary` for their life and may add notes to it.
// Errors of BPE: kUnsupported names a pre-tokenizer that is not known and those that are; kCorrupt
// when the merges are missing or no array of strings.
Result<std::unique_ptr<FragmentEncoder>> make_bpe_encoder(const formats::Metadata& metadata,
                                                          Vocabulary& vocabulary);
std::unique_ptr<FragmentEncoder> make_spm_encoder(Vocabulary& vocabulary);

}  // namespace cicada::tokenizer
