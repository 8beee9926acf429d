// Messages as bytes (docs/formats/ipc.md). A frame is the length of its payload, 4 bytes, and the
// payload: version, kind, fields; everything little-endian. Each message has exactly one encoding.
//
// Decoding trusts nothing: counts are held against the bytes that are there before memory is taken.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/messages/messages.h"

namespace cicada::ipc {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kLengthBytes = 4;  // of the length before each payload
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{64} << 20;
// A list of texts; each takes more memory than bytes.
inline constexpr std::size_t kMaxTexts = std::size_t{1} << 16;

// Appends a message's frame. Errors: kOutOfCapacity for a payload or list of texts above the
// limits; nothing is appended then.
Result<void> encode(const messages::ToEngine& message, std::vector<std::byte>& out);
Result<void> encode(const messages::ToFront& message, std::vector<std::byte>& out);

// The message of a whole payload; Message is messages::ToEngine or messages::ToFront.
// Errors: kCorrupt for another version, a kind of the other direction or unknown, a payload that is
// cut short or goes on behind its message, and values that a field cannot have.
template <typename Message>
Result<Message> decode(std::span<const std::byte> payload);

template <>
Result<messages::ToEngine> decode(std::span<const std::byte> payload);
template <>
Result<messages::ToFront> decode(std::span<const std::byte> payload);

}  // namespace cicada::ipc
