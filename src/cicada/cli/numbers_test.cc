#include "cicada/cli/numbers.h"

#include <gtest/gtest.h>

namespace cicada::cli {
namespace {

TEST(WholeNumber, DigitsInTheRangeAreTaken) {
  const CLI::Validator check = whole_number(0, 4096);
  for (std::string text : {"0", "7", "4096"}) {
    const std::string before = text;
    EXPECT_EQ(check(text), "");
    EXPECT_EQ(text, before);
  }
  EXPECT_EQ(whole_number(0, UINT64_MAX)("18446744073709551615"), "");
}

TEST(WholeNumber, LeadingZerosDoNotMakeItOctal) {
  std::string text = "010";
  EXPECT_EQ(whole_number(0, 4096)(text), "");
  EXPECT_EQ(text, "10");
}

TEST(WholeNumber, OtherWordsAreRefusedWithTheRange) {
  for (std::string text :
       {"", " 1", "1 ", "-1", "+1", "0x10", "1.0", "4097", "18446744073709551616"}) {
    EXPECT_EQ(whole_number(1, 4096)(text),
              "is '" + text + "', a whole number from 1 to 4096 is needed");
  }
}

TEST(ByteSize, DigitsAndOneLetterAreBytes) {
  const auto bytes = [](std::string text) {
    EXPECT_EQ(byte_size()(text), "") << text;
    return text;
  };
  EXPECT_EQ(bytes("1"), "1");
  EXPECT_EQ(bytes("010"), "10");
  EXPECT_EQ(bytes("2k"), "2000");
  EXPECT_EQ(bytes("2K"), "2048");
  EXPECT_EQ(bytes("3m"), "3000000");
  EXPECT_EQ(bytes("512M"), "536870912");
  EXPECT_EQ(bytes("1g"), "1000000000");
  EXPECT_EQ(bytes("17179869183G"), "18446744072635809792");
  for (std::string text : {"", "0", "0G", "M", "1.5G", "-1", "1T", "1GB", "1 G", "17179869184G"}) {
    const std::string before = text;
    EXPECT_EQ(byte_size()(text),
              "is '" + before + "', a number of bytes is needed, as 536870912 or 512M");
  }
}

TEST(DecimalNumber, FiniteNumbersAreTakenAndOtherWordsRefused) {
  for (std::string text : {"0", "0.7", "1e-9", "-1", ".5"}) EXPECT_EQ(decimal_number()(text), "");
  for (std::string text : {"", "warm", "nan", "inf", "1e999", "0.7x"}) {
    EXPECT_EQ(decimal_number()(text), "is '" + text + "', a number is needed");
  }
}

}  // namespace
}  // namespace cicada::cli
