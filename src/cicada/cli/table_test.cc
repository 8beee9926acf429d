#include "cicada/cli/table.h"

#include <gtest/gtest.h>

namespace cicada::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"name"}, {"size", Align::kRight}, {"note"}});
  table.add({"a", "1", ""});
  table.add({"longer", "12345", "x"});
  EXPECT_EQ(table.text(),
            "name     size  note\n"
            "a           1\n"
            "longer  12345  x\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"a"}, {"b"}});
  table.add({"x…", "1"});
  table.add({"xyz", "2"});
  EXPECT_EQ(table.text(), "a    b\nx…   1\nxyz  2\n");
}

TEST(Table, ALineOfEmptyCellsIsAnEmptyLine) {
  Table table({{"a"}, {"b"}});
  table.add({"", ""});
  EXPECT_EQ(table.text(), "a  b\n\n");
}

TEST(Grouped, SetsACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(134515008), "134,515,008");
  EXPECT_EQ(grouped(18446744073709551615ULL), "18,446,744,073,709,551,615");
}

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(1200, "tensor"), "1,200 tensors");
}

}  // namespace
}  // namespace cicada::cli
