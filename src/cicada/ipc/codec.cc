#include "cicada/ipc/codec.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "cicada/ipc/fields.h"

namespace cicada::ipc {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they are kept");

// The kind of a variant's first message; the others follow. Far apart, so that a message that went
// the wrong way is not taken for another.
template <typename Message>
constexpr std::uint8_t kFirstKind = std::same_as<Message, messages::ToEngine> ? 1 : 65;

// What is kept as it is sent. A truth value is not: not every byte is one.
template <typename T>
concept Number = (std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>;

// The largest value of the enumerations that are sent.
constexpr messages::Finish last_of(messages::Finish /*any*/) {
  return messages::Finish::kCancelled;
}
constexpr Code last_of(Code /*any*/) { return Code::kInternal; }

// The fewest bytes that an entry of a list takes.
template <typename T>
constexpr std::size_t kLeastBytes = 8;  // a token and a float
template <>
constexpr std::size_t kLeastBytes<TokenId> = 4;
template <>
constexpr std::size_t kLeastBytes<std::uint32_t> = 4;
template <>
constexpr std::size_t kLeastBytes<std::string> = 4;  // its length

template <typename T>
constexpr std::size_t kMostEntries = kMaxPayloadBytes / kLeastBytes<T>;
template <>
constexpr std::size_t kMostEntries<std::string> = kMaxTexts;

static_assert(sizeof(TokenId) == 4 && std::is_trivially_copyable_v<TokenId>,
              "lists of tokens are sent as they are kept");

class Writer {
 public:
  // Appends a payload.
  explicit Writer(std::vector<std::byte>& out) : out_(out), begin_(out.size()) {}

  template <typename... Fields>
  void operator()(const Fields&... values) {
    (put(values), ...);
  }
  bool is_too_long() const { return is_too_long_; }

 private:
  template <Number T>
  void put(T number) {
    append(&number, sizeof number);
  }
  void put(bool truth) { put(static_cast<std::uint8_t>(truth ? 1 : 0)); }
  template <typename T>
    requires std::is_enum_v<T>
  void put(T value) {
    put(static_cast<std::uint8_t>(value));
  }
  void put(TokenId token) { put(token.value); }
  void put(const std::string& text) {
    put_count(text.size(), kMaxPayloadBytes);
    append(text.data(), text.size());
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put_count(list.size(), kMostEntries<T>);
    if (is_too_long_) return;
    for (const T& entry : list) put(entry);
  }
  // At once: prompts are long.
  void put(const std::vector<TokenId>& tokens) {
    put_count(tokens.size(), kMostEntries<TokenId>);
    append(tokens.data(), tokens.size() * sizeof(TokenId));
  }
  template <typename T>
    requires std::is_class_v<T>
  void put(const T& message) {
    fields(*this, message);
  }

  void put_count(std::size_t count, std::size_t most) {
    is_too_long_ = is_too_long_ || count > most;
    put(static_cast<std::uint32_t>(std::min(count, most)));
  }
  void append(const void* data, std::size_t size) {
    is_too_long_ = is_too_long_ || size > kMaxPayloadBytes - (out_.size() - begin_);
    if (is_too_long_) return;
    const auto* bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }

  std::vector<std::byte>& out_;
  const std::size_t begin_;
  bool is_too_long_ = false;  // something is beyond a limit; what was appended is of no use
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename... Fields>
  void operator()(Fields&... values) {
    (take(values), ...);
  }
  // Empty as long as everything was as it should be.
  std::string_view problem() const { return problem_; }
  bool is_at_end() const { return left_.empty(); }

 private:
  template <Number T>
  void take(T& number) {
    const auto bytes = take_bytes(sizeof number);
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof number);
  }
  void take(bool& truth) {
    std::uint8_t byte = 0;
    take(byte);
    if (byte > 1) complain("a truth value is neither 0 nor 1");
    truth = byte == 1;
  }
  template <typename T>
    requires std::is_enum_v<T>
  void take(T& value) {
    std::uint8_t byte = 0;
    take(byte);
    if (byte > static_cast<std::uint8_t>(last_of(value))) {
      complain("a value is beyond the last of its kind");
    } else {
      value = static_cast<T>(byte);
    }
  }
  void take(TokenId& token) { take(token.value); }
  void take(std::string& text) {
    const auto bytes = take_bytes(take_count(1, kMaxPayloadBytes));
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <typename A, typename B>
  void take(std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename T>
  void take(std::vector<T>& list) {
    list.resize(take_count(kLeastBytes<T>, kMostEntries<T>));
    for (T& entry : list) {
      if (!problem_.empty()) return;
      take(entry);
    }
  }
  void take(std::vector<TokenId>& tokens) {
    tokens.resize(take_count(kLeastBytes<TokenId>, kMostEntries<TokenId>));
    const auto bytes = take_bytes(tokens.size() * sizeof(TokenId));
    if (!bytes.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  }
  template <typename T>
    requires std::is_class_v<T>
  void take(T& message) {
    fields(*this, message);
  }

  // 0 when so many entries cannot be there.
  std::size_t take_count(std::size_t least_bytes, std::size_t most) {
    std::uint32_t count = 0;
    take(count);
    if (count <= most && count <= left_.size() / least_bytes) return count;
    complain("a list or text is longer than the message");
    return 0;
  }
  // Empty when they are not there.
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (!problem_.empty()) return {};
    if (count > left_.size()) {
      complain("is cut short");
      return {};
    }
    const auto bytes = left_.first(count);
    left_ = left_.subspan(count);
    return bytes;
  }
  // The first problem counts; what is read after it is of no use.
  void complain(std::string_view problem) {
    if (problem_.empty()) problem_ = problem;
  }

  std::span<const std::byte> left_;
  std::string_view problem_;
};

template <typename Message>
Result<void> encode_frame(const Message& message, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + kLengthBytes);
  Writer writer(out);
  writer(kVersion, static_cast<std::uint8_t>(kFirstKind<Message> + message.index()));
  std::visit([&writer](const auto& one) { fields(writer, one); }, message);
  if (writer.is_too_long()) {
    out.resize(begin);
    return fail(Code::kOutOfCapacity,
                "message of kind {}: longer than {} bytes or a list of more than {} texts",
                kFirstKind<Message> + message.index(), kMaxPayloadBytes, kMaxTexts);
  }
  const auto length = static_cast<std::uint32_t>(out.size() - begin - kLengthBytes);
  std::memcpy(out.data() + begin, &length, kLengthBytes);
  return {};
}

// Makes `message` an empty one of the kind; false when there is none.
template <typename Message, std::size_t... kIndex>
bool make_empty(std::size_t index, Message& message, std::index_sequence<kIndex...> /*all*/) {
  const auto make = [&]<std::size_t kOne>() {
    message.template emplace<kOne>();
    return true;
  };
  return ((index == kIndex && make.template operator()<kIndex>()) || ...);
}

template <typename Message>
Result<Message> decode_payload(std::span<const std::byte> payload) {
  Reader reader(payload);
  std::uint8_t version = 0;
  std::uint8_t kind = 0;
  reader(version, kind);
  if (!reader.problem().empty()) return fail(Code::kCorrupt, "a message has no kind");
  if (version != kVersion) {
    return fail(Code::kCorrupt, "a message of version {}, {} is known", version, kVersion);
  }
  constexpr std::size_t kKinds = std::variant_size_v<Message>;
  Message message;
  if (kind < kFirstKind<Message> ||
      !make_empty(kind - kFirstKind<Message>, message, std::make_index_sequence<kKinds>())) {
    return fail(Code::kCorrupt, "a message of kind {}, {} to {} are known here", kind,
                kFirstKind<Message>, kFirstKind<Message> + kKinds - 1);
  }
  std::visit([&reader](auto& one) { fields(reader, one); }, message);
  if (!reader.problem().empty()) {
    return fail(Code::kCorrupt, "message of kind {}: {}", kind, reader.problem());
  }
  if (!reader.is_at_end()) {
    return fail(Code::kCorrupt, "message of kind {}: bytes follow behind its end", kind);
  }
  return message;
}

}  // namespace

Result<void> encode(const messages::ToEngine& message, std::vector<std::byte>& out) {
  return encode_frame(message, out);
}

Result<void> encode(const messages::ToFront& message, std::vector<std::byte>& out) {
  return encode_frame(message, out);
}

template <>
Result<messages::ToEngine> decode(std::span<const std::byte> payload) {
  return decode_payload<messages::ToEngine>(payload);
}

template <>
Result<messages::ToFront> decode(std::span<const std::byte> payload) {
  return decode_payload<messages::ToFront>(payload);
}

}  // namespace cicada::ipc
