// GPT-2's byte alphabet: byte-level vocabularies spell each of the 256 bytes as one printable
// character, so that tokens are readable text ("Ġthe" is " the").
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cicada::tokenizer {

// Appends the character that stands for a byte, as UTF-8 (one or two bytes).
void append_spelled(std::uint8_t byte, std::string& out);

// Appends every byte of `text` as its character.
void append_spelled(std::string_view text, std::string& out);

// Appends the bytes that a token's spelling stands for; a character outside the alphabet stands for
// its own UTF-8 bytes.
void append_unspelled(std::string_view spelled, std::string& out);

// The byte of SPM's byte pieces, "<0x0A>"; nothing for any other text.
std::optional<std::uint8_t> parse_byte_piece(std::string_view token_text);

// What a note says of the bytes whose id is negative, "21 of 256 bytes (0x00, 0x01 and 19 more)";
// empty when every byte has one.
std::string describe_missing_bytes(std::span<const std::int32_t, 256> byte_ids);

}  // namespace cicada::tokenizer
