#include "cicada/chat/reply_parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "cicada/chat/call_form.h"
#include "cicada/chat/call_scanner.h"
#include "cicada/chat/reply_pieces.h"

namespace cicada::chat {
namespace {

using Kind = ReplyPiece::Kind;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

enum class Mode : std::uint8_t {
  kText,
  kThinking,
  kBeforeCall,  // after what opens a call; its '{' is to come
  kCall,
  kAfterCall,  // what closes it, or another call, may come
};

}  // namespace

struct ReplyParser::Impl {
  explicit Impl(ReplySyntax reply_syntax)
      : syntax(std::move(reply_syntax)), form(call_form(syntax.tools)) {
    if (syntax.begins_thinking) enter(Mode::kThinking);
  }

  ReplySyntax syntax;
  CallForm form;
  Mode mode = Mode::kText;
  ReplyPieces out;
  std::string marker;  // held: the beginning of what may become a marker
  std::string space;   // held: whitespace that is dropped when a marker follows
  std::string raw;     // a call that is not passed on yet, as the model wrote it
  CallScanner call{CallScanner::Options()};  // kCall
  bool drops_space = false;                  // a marker was just read
  bool is_at_start = true;                   // no text has come yet
  bool awaits_list = false;                  // kBeforeCall: the list's '[' is to come
  bool awaits_a_close = false;  // a call ended without its `close`, which may still come
  std::uint32_t next_call = 0;
  std::uint32_t num_calls = 0;

  void add(std::string_view text);
  void finish();

  // Each reads from the front of `text` (not empty) and gives the number of bytes read; none only
  // when the mode has changed.
  std::size_t read(std::string_view text);
  std::size_t read_text(std::string_view text);
  std::size_t read_before_call(std::string_view text);
  std::size_t read_call(std::string_view text);
  std::size_t read_after_call(std::string_view text);

  void enter(Mode next) {
    mode = next;
    drops_space = true;
    space.clear();
  }
  void begin_call(std::string_view opening);
  void give_up_call();

  // What may stand in text and thoughts, and where it leads.
  struct Marker {
    std::string_view text;
    Mode next = Mode::kText;
  };
  std::array<Marker, 3> markers() const;
  std::size_t hold(std::string_view text) {
    marker = text;
    return text.size();
  }
};

std::array<ReplyParser::Impl::Marker, 3> ReplyParser::Impl::markers() const {
  if (mode == Mode::kThinking) return {{{syntax.think_close, Mode::kText}, {}, {}}};
  const bool may_close = awaits_a_close && form.close.size() > 1;
  return {{{syntax.think_open, Mode::kThinking},
           {form.open, Mode::kBeforeCall},
           {may_close ? form.close : std::string_view(), Mode::kText}}};
}

void ReplyParser::Impl::add(std::string_view text) {
  std::string joined;
  if (!marker.empty()) {
    joined = std::exchange(marker, {}).append(text);
    text = joined;
  }
  while (!text.empty()) text.remove_prefix(read(text));
}

std::size_t ReplyParser::Impl::read(std::string_view text) {
  switch (mode) {
    case Mode::kBeforeCall:
      return read_before_call(text);
    case Mode::kCall:
      return read_call(text);
    case Mode::kAfterCall:
      return read_after_call(text);
    case Mode::kText:
    case Mode::kThinking:
      break;
  }
  return read_text(text);
}

// Text or a thought: whitespace, a marker, or a run of anything else.
std::size_t ReplyParser::Impl::read_text(std::string_view text) {
  if (is_space(text.front())) {
    if (!drops_space) space += text.front();
    return 1;
  }
  const bool is_text = mode == Mode::kText;
  if (is_text && is_at_start && form.may_be_bare && text.front() == '{') {
    begin_call({});
    return 0;
  }
  const auto candidates = markers();
  for (const Marker& candidate : candidates) {
    if (candidate.text.empty()) continue;
    if (text.starts_with(candidate.text)) {
      if (candidate.next == Mode::kBeforeCall) {
        begin_call(candidate.text);
      } else {
        if (is_text && candidate.next == Mode::kText) awaits_a_close = false;
        enter(candidate.next);
      }
      return candidate.text.size();
    }
    if (candidate.text.starts_with(text)) return hold(text);
  }
  const auto may_begin = [&](char c) {
    return is_space(c) || std::ranges::any_of(candidates, [c](const Marker& candidate) {
             return !candidate.text.empty() && candidate.text.front() == c;
           });
  };
  const auto* const end = std::find_if(text.begin() + 1, text.end(), may_begin);
  const auto size = static_cast<std::size_t>(end - text.begin());
  const Kind kind = is_text ? Kind::kText : Kind::kThinking;
  out.add(kind, space);
  out.add(kind, text.substr(0, size));
  space.clear();
  drops_space = false;
  if (is_text) is_at_start = false;
  return size;
}

void ReplyParser::Impl::begin_call(std::string_view opening) {
  raw = std::exchange(space, {}).append(opening);
  awaits_list = form.is_list && mode == Mode::kText;
  awaits_a_close = false;
  mode = Mode::kBeforeCall;
}

// It was none: what was read of it is text.
void ReplyParser::Impl::give_up_call() {
  out.add(Kind::kText, raw);
  raw.clear();
  mode = Mode::kText;
  drops_space = false;
  is_at_start = false;
}

std::size_t ReplyParser::Impl::read_before_call(std::string_view text) {
  const char c = text.front();
  if (is_space(c) || (awaits_list && c == '[')) {
    awaits_list = awaits_list && c != '[';
    raw += c;
    return 1;
  }
  if (awaits_list || c != '{') {
    give_up_call();
    return 0;
  }
  call = CallScanner({.call = next_call, .needs_arguments = form.may_be_bare});
  mode = Mode::kCall;
  return 0;
}

std::size_t ReplyParser::Impl::read_call(std::string_view text) {
  const std::size_t size = call.add(text, out);
  if (call.is_announced()) {
    raw.clear();
  } else {
    raw += text.substr(0, size);
  }
  if (call.state() == CallScanner::State::kOpen) return size;
  if (call.is_announced()) {
    ++next_call;
    awaits_a_close = true;
  }
  if (call.state() == CallScanner::State::kFailed) {
    give_up_call();
    return size;
  }
  ++num_calls;
  is_at_start = false;
  enter(Mode::kAfterCall);
  return size;
}

std::size_t ReplyParser::Impl::read_after_call(std::string_view text) {
  const char c = text.front();
  if (is_space(c)) return 1;
  if (form.separator != '\0' && c == form.separator) {
    begin_call({&c, 1});
    return 1;
  }
  if (form.may_be_bare && c == '{') {
    begin_call({});
    return 0;
  }
  if (!form.close.empty()) {
    if (text.starts_with(form.close)) {
      awaits_a_close = false;
      enter(Mode::kText);
      return form.close.size();
    }
    if (form.close.starts_with(text)) return hold(text);
  }
  enter(Mode::kText);
  return 0;
}

void ReplyParser::Impl::finish() {
  switch (mode) {
    case Mode::kText:
    case Mode::kAfterCall:
      out.add(Kind::kText, space);
      out.add(Kind::kText, marker);
      break;
    case Mode::kThinking:
      out.add(Kind::kThinking, space);
      out.add(Kind::kThinking, marker);
      break;
    case Mode::kBeforeCall:
    case Mode::kCall:
      out.add(Kind::kText, raw);
      break;
  }
  marker.clear();
  space.clear();
  raw.clear();
}

ReplyParser::ReplyParser(ReplySyntax syntax) : impl_(std::make_unique<Impl>(std::move(syntax))) {}
ReplyParser::~ReplyParser() = default;
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;
ReplyParser& ReplyParser::operator=(ReplyParser&&) noexcept = default;

std::vector<ReplyPiece> ReplyParser::add(std::string_view text) {
  impl_->add(text);
  return impl_->out.take();
}

std::vector<ReplyPiece> ReplyParser::finish() {
  impl_->finish();
  return impl_->out.take();
}

std::uint32_t ReplyParser::num_calls() const { return impl_->num_calls; }

}  // namespace cicada::chat
