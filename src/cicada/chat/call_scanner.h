// Reads one call as its bytes come: {"name": …, "arguments": {…}}.
//
// The name and the arguments are passed on as soon as it is certain that this is a call: when its
// name is known and its arguments begin. Arguments that stand before the name wait for it. Other
// members are read over; of two with one name the first counts.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cicada/chat/json_scanner.h"
#include "cicada/chat/reply_pieces.h"

namespace cicada::chat {

class CallScanner {
 public:
  struct Options {
    std::uint32_t call = 0;        // its number in the answer
    bool needs_arguments = false;  // an object without them is no call; else they are {}
  };
  explicit CallScanner(const Options& options) : options_(options) {}

  enum class State : std::uint8_t { kOpen, kDone, kFailed };
  // Reads up to the end of the object, or to the byte at which it turns out to be none (or beyond a
  // limit), and gives the number of bytes read; that byte is not among them.
  // Precondition: state() is kOpen; the first byte of all is '{'.
  std::size_t add(std::string_view text, ReplyPieces& out);

  State state() const { return state_; }
  bool is_announced() const { return is_announced_; }  // its name was passed on

 private:
  enum class Part : std::uint8_t { kNone, kKey, kName, kArguments };

  bool step(char c, ReplyPieces& out);
  bool begin_member(char c, ReplyPieces& out);
  bool end_key();
  bool end_name();
  bool take_argument(char c, ReplyPieces& out);
  bool complete(ReplyPieces& out);
  void announce(ReplyPieces& out);

  static constexpr std::size_t kMaxArgumentsDepth = 64;

  Options options_;
  JsonScanner json_{kMaxArgumentsDepth + 1};
  State state_ = State::kOpen;
  Part part_ = Part::kNone;
  std::size_t num_bytes_ = 0;
  std::size_t num_argument_bytes_ = 0;
  std::string text_;       // of the key or name, with its quotes and escapes
  std::string key_;        // the last one; empty where it is not one of ours
  std::string name_;       // empty: not known yet
  std::string arguments_;  // before the name is known
  bool has_arguments_ = false;
  bool is_announced_ = false;
};

}  // namespace cicada::chat
