#include "cicada/cli/printable.h"

#include <gtest/gtest.h>

namespace cicada::cli {
namespace {

TEST(Printable, OrdinaryTextStays) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("tensor blk.0: 5 dims, größer als 漢🦙"),
            "tensor blk.0: 5 dims, größer als 漢🦙");
}

TEST(Printable, ControlCharactersAreSpelled) {
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f\n\t"), "\\x1b[31mred\\x07\\x7f\\x0a\\x09");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "U+009B begins a control sequence too";
}

TEST(Printable, MarksOfDirectionAreSpelled) {
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("\u2066\u2028\u061c"), "\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xd8\\x9c");
}

TEST(Printable, BytesThatAreNotUtf8AreSpelled) {
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a surrogate pair";
}

TEST(Printable, LinesKeepWhatRunningTextNeeds) {
  EXPECT_EQ(printable_lines("one\n\ttwo \u200f"), "one\n\ttwo \u200f");
  EXPECT_EQ(printable_lines("\x1b[2J\r\xc2\x9b\xff"), "\\x1b[2J\\x0d\\xc2\\x9b\\xff");
}

}  // namespace
}  // namespace cicada::cli
