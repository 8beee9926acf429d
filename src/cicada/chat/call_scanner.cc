#include "cicada/chat/call_scanner.h"

#include "cicada/json/parse.h"

namespace cicada::chat {
namespace {

constexpr std::size_t kMaxArgumentBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxCallBytes = kMaxArgumentBytes + (std::size_t{64} << 10);
constexpr std::size_t kMaxNameBytes = 1024;  // as written, with quotes and escapes
constexpr std::size_t kMaxKeyBytes = 64;     // longer ones are none of ours

// What a JSON string stands for; empty where it is not UTF-8.
std::string unquoted(std::string_view quoted) {
  const auto document = json::parse(quoted);
  if (!document) return {};
  const auto text = json::as_string(document->root(), "text");
  return text ? std::string(*text) : std::string();
}

}  // namespace

std::size_t CallScanner::add(std::string_view text, ReplyPieces& out) {
  std::size_t pos = 0;
  for (; pos < text.size() && state_ == State::kOpen; ++pos) {
    if (!step(text[pos], out)) {
      state_ = State::kFailed;
      break;
    }
  }
  return pos;
}

// False when the byte cannot be part of a call.
bool CallScanner::step(char c, ReplyPieces& out) {
  using Step = JsonScanner::Step;
  if (++num_bytes_ > kMaxCallBytes) return false;
  const bool is_member_level = json_.depth() == 1;
  const Step step = json_.add(c);
  if (step == Step::kError) return false;
  switch (part_) {
    case Part::kKey:
      if (text_.size() <= kMaxKeyBytes) text_ += c;
      return step != Step::kKeyEnd || end_key();
    case Part::kName:
      text_ += c;
      if (text_.size() > kMaxNameBytes) return false;
      return json_.in_string() || end_name();
    case Part::kArguments:
      return take_argument(c, out);
    case Part::kNone:
      break;
  }
  if (step == Step::kDone) return complete(out);
  if (step == Step::kKeyBegin && is_member_level) {
    part_ = Part::kKey;
    text_ = c;
  }
  return step != Step::kValueBegin || !is_member_level || begin_member(c, out);
}

bool CallScanner::end_key() {
  part_ = Part::kNone;
  key_ = text_.size() <= kMaxKeyBytes ? unquoted(text_) : std::string();
  return true;
}

bool CallScanner::end_name() {
  part_ = Part::kNone;
  name_ = unquoted(text_);
  return !name_.empty();
}

// `c` begins the value of the member key_.
bool CallScanner::begin_member(char c, ReplyPieces& out) {
  if (key_ == "name" && name_.empty()) {
    part_ = Part::kName;
    text_ = c;
    return c == '"';
  }
  if ((key_ == "arguments" || key_ == "parameters") && !has_arguments_) {
    if (c != '{') return false;
    part_ = Part::kArguments;
    has_arguments_ = true;
    if (!name_.empty()) announce(out);
    return take_argument(c, out);
  }
  return true;
}

bool CallScanner::take_argument(char c, ReplyPieces& out) {
  if (++num_argument_bytes_ > kMaxArgumentBytes) return false;
  if (is_announced_) {
    out.add(ReplyPiece::Kind::kToolArguments, {&c, 1}, options_.call);
  } else {
    arguments_ += c;
  }
  if (json_.depth() == 1) part_ = Part::kNone;
  return true;
}

bool CallScanner::complete(ReplyPieces& out) {
  if (!is_announced_) {
    if (name_.empty() || (!has_arguments_ && options_.needs_arguments)) return false;
    announce(out);
    out.add(ReplyPiece::Kind::kToolArguments, has_arguments_ ? arguments_ : "{}", options_.call);
  }
  state_ = State::kDone;
  return true;
}

void CallScanner::announce(ReplyPieces& out) {
  is_announced_ = true;
  out.add(ReplyPiece::Kind::kToolCall, name_, options_.call);
}

}  // namespace cicada::chat
