#include "cicada/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "cicada/formats/quote.h"
#include "cicada/tokenizer/byte_alphabet.h"

namespace cicada::tokenizer {
namespace {

using formats::Metadata;

// Tokens that known families use as marks, by their text. Converters do not always declare them.
struct KnownMark {
  std::string_view text;
  bool ends = false;  // ends a generation
};

constexpr std::array<KnownMark, 25> kKnownMarks = {{
    {"<|im_end|>", true},
    {"<|endoftext|>", true},
    {"<|end_of_text|>", true},
    {"<|eot_id|>", true},
    {"<|eom_id|>", true},
    {"<|end|>", true},
    {"<end_of_turn>", true},
    {"<end_of_utterance>", true},
    {"<eos>", true},
    {"<EOT>", true},
    {"</s>", true},
    // Fill-in-the-middle. A coder that pads, or opens another file, has finished this one.
    {"<|fim_pad|>", true},
    {"<fim_pad>", true},
    {"<fim-pad>", true},
    {"<|repo_name|>", true},
    {"<|file_sep|>", true},
    {"<|fim_prefix|>", false},
    {"<|fim_suffix|>", false},
    {"<|fim_middle|>", false},
    {"<fim_prefix>", false},
    {"<fim_suffix>", false},
    {"<fim_middle>", false},
    {"<fim-prefix>", false},
    {"<fim-suffix>", false},
    {"<fim-middle>", false},
}};

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";

Result<VocabularyKind> read_kind(const Metadata& metadata) {
  CICADA_ASSIGN(const auto model, metadata.get_string(kModelKey));
  if (!model) {
    return fail(Code::kUnsupported,
                "key {}: missing, the file holds no tokenizer (gpt2 and llama are known)",
                kModelKey);
  }
  if (*model == "gpt2") return VocabularyKind::kByteBpe;
  if (*model == "llama") return VocabularyKind::kSpm;
  return fail(Code::kUnsupported, "key {}: '{}', gpt2 and llama are known", kModelKey,
              formats::quote(*model));
}

Result<void> read_texts(const Metadata& metadata, Vocabulary& vocabulary) {
  CICADA_ASSIGN(auto texts, metadata.get_strings(kTokensKey));
  if (!texts) return fail(Code::kCorrupt, "key {}: missing", kTokensKey);
  if (texts->empty() || texts->size() > kMaxVocabularyTokens) {
    return fail(Code::kCorrupt, "key {}: {} tokens, 1 to {} are allowed", kTokensKey, texts->size(),
                kMaxVocabularyTokens);
  }
  vocabulary.texts = std::move(*texts);
  CICADA_ASSIGN(vocabulary.table, TokenTable::build(vocabulary.texts));
  return {};
}

// Without types every token is normal, but for SPM's byte pieces, known by their text.
Result<void> read_types(const Metadata& metadata, Vocabulary& vocabulary) {
  const std::size_t tokens = vocabulary.texts.size();
  CICADA_ASSIGN(const auto types, metadata.get_ints(kTypesKey));
  vocabulary.types.assign(tokens, TokenType::kNormal);
  if (!types) {
    if (vocabulary.kind != VocabularyKind::kSpm) return {};
    for (std::size_t id = 0; id < tokens; ++id) {
      if (parse_byte_piece(vocabulary.texts[id])) vocabulary.types[id] = TokenType::kByte;
    }
    return {};
  }
  if (types->size() != tokens) {
    return fail(Code::kCorrupt, "key {}: {} entries, the vocabulary has {} tokens", kTypesKey,
                types->size(), tokens);
  }
  for (std::size_t id = 0; id < tokens; ++id) {
    const std::int64_t type = (*types)[id];
    if (type == 0) continue;  // "undefined" in old files
    if (type < 0 || type > 6) {
      return fail(Code::kCorrupt, "key {}: token {} has type {}, 0 to 6 are known", kTypesKey, id,
                  type);
    }
    vocabulary.types[id] = static_cast<TokenType>(type);
    if (vocabulary.types[id] == TokenType::kByte && !parse_byte_piece(vocabulary.texts[id])) {
      return fail(Code::kCorrupt, "token {}: '{}' is of type byte, its text must be like <0x0A>",
                  id, formats::quote(vocabulary.texts[id]));
    }
  }
  return {};
}

Result<void> read_scores(const Metadata& metadata, Vocabulary& vocabulary) {
  CICADA_ASSIGN(auto scores, metadata.get_floats(kScoresKey));
  if (!scores) {
    if (vocabulary.kind == VocabularyKind::kSpm) {
      vocabulary.notes.push_back(
          fmt::format("key {} is missing, pieces are joined from the left", kScoresKey));
    }
    return {};
  }
  if (scores->size() != vocabulary.texts.size()) {
    return fail(Code::kCorrupt, "key {}: {} entries, the vocabulary has {} tokens", kScoresKey,
                scores->size(), vocabulary.texts.size());
  }
  for (std::size_t id = 0; id < scores->size(); ++id) {
    if (std::isnan((*scores)[id])) {
      return fail(Code::kCorrupt, "key {}: token {} has no number for a score", kScoresKey, id);
    }
  }
  vocabulary.scores = std::move(*scores);
  return {};
}

// An id under `tokenizer.ggml.<name>_token_id`; nothing when the key is missing or says "none" (all
// bits set, which some converters write).
Result<std::optional<TokenId>> read_id(const Metadata& metadata, std::string_view name,
                                       std::size_t tokens) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  CICADA_ASSIGN(const auto id, metadata.get_u64(key));
  if (!id || *id == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  if (*id >= tokens) {
    return fail(Code::kCorrupt, "key {}: {}, the vocabulary has {} tokens", key, *id, tokens);
  }
  return TokenId(static_cast<std::int32_t>(*id));
}

// Where an SPM file does not say, <s>, </s> and <unk> are known by their text.
void default_ids(Vocabulary& vocabulary) {
  const auto known = [&](std::string_view text) -> std::optional<TokenId> {
    const std::int32_t id = vocabulary.table.find(text);
    if (id < 0) return std::nullopt;
    const TokenType type = vocabulary.types[static_cast<std::size_t>(id)];
    if (!is_special(type)) return std::nullopt;
    return TokenId(id);
  };
  if (!vocabulary.bos) vocabulary.bos = known("<s>");
  if (!vocabulary.eos) vocabulary.eos = known("</s>");
  if (!vocabulary.unknown) vocabulary.unknown = known("<unk>");
}

void add_end(Vocabulary& vocabulary, TokenId id) {
  if (std::ranges::find(vocabulary.ends, id) == vocabulary.ends.end()) {
    vocabulary.ends.push_back(id);
  }
}

// Known marks count where the file has them as control tokens. Some converters write them as
// user-defined tokens, or no types at all: then they become control tokens, so that text cannot
// forge them. "</s>" is HTML as well (Gemma has the tag as a user-defined token) and must be
// control.
void apply_known_marks(Vocabulary& vocabulary, bool has_types) {
  for (const KnownMark& mark : kKnownMarks) {
    const std::int32_t id = vocabulary.table.find(mark.text);
    if (id < 0) continue;
    TokenType& type = vocabulary.types[static_cast<std::size_t>(id)];
    const bool lenient = mark.text != "</s>" && (type == TokenType::kUserDefined || !has_types);
    if (type != TokenType::kControl && !lenient) continue;
    type = TokenType::kControl;
    if (mark.ends) add_end(vocabulary, TokenId(id));
  }
}

Result<void> read_special_ids(const Metadata& metadata, Vocabulary& vocabulary) {
  const std::size_t tokens = vocabulary.texts.size();
  CICADA_ASSIGN(vocabulary.bos, read_id(metadata, "bos", tokens));
  CICADA_ASSIGN(vocabulary.eos, read_id(metadata, "eos", tokens));
  CICADA_ASSIGN(vocabulary.unknown, read_id(metadata, "unknown", tokens));
  CICADA_ASSIGN(const std::optional<TokenId> end_of_turn, read_id(metadata, "eot", tokens));
  CICADA_ASSIGN(const std::optional<TokenId> end_of_message, read_id(metadata, "eom", tokens));
  if (vocabulary.kind == VocabularyKind::kSpm) default_ids(vocabulary);
  for (const auto& end : {vocabulary.eos, end_of_turn, end_of_message}) {
    if (end) add_end(vocabulary, *end);
  }
  apply_known_marks(vocabulary, metadata.find(kTypesKey) != nullptr);
  return {};
}

Result<void> read_flags(const Metadata& metadata, Vocabulary& vocabulary) {
  CICADA_ASSIGN(vocabulary.add_bos, metadata.get_bool("tokenizer.ggml.add_bos_token"));
  if (vocabulary.add_bos.value_or(false) && !vocabulary.bos) {
    return fail(
        Code::kCorrupt,
        "key tokenizer.ggml.add_bos_token: true, but tokenizer.ggml.bos_token_id is missing");
  }
  if (vocabulary.kind == VocabularyKind::kSpm) {
    CICADA_ASSIGN(const auto prefix, metadata.get_bool("tokenizer.ggml.add_space_prefix"));
    vocabulary.add_space_prefix = prefix.value_or(true);
  }
  // No file declares this; llama.cpp knows the family by its name as well.
  CICADA_ASSIGN(const auto name, metadata.get_string("general.name"));
  std::string lower(name.value_or(""));
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  vocabulary.specials_eat_spaces =
      lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
  return {};
}

}  // namespace

Result<Vocabulary> load_vocabulary(const Metadata& metadata) {
  Vocabulary vocabulary;
  CICADA_ASSIGN(vocabulary.kind, read_kind(metadata));
  CICADA_TRY(read_texts(metadata, vocabulary));
  CICADA_TRY(read_types(metadata, vocabulary));
  CICADA_TRY(read_scores(metadata, vocabulary));
  CICADA_TRY(read_special_ids(metadata, vocabulary));
  CICADA_TRY(read_flags(metadata, vocabulary));
  return vocabulary;
}

}  // namespace cicada::tokenizer
