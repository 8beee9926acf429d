#include "cicada/platform/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cicada::platform {
namespace {

// A made-up /sys/fs/cgroup and /proc/self/cgroup.
class Groups : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "cicada_groups_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> quota() {
    return cgroup_cpu_quota(
        {.root = root_.string(), .membership = (root_ / "membership").string()});
  }

  std::filesystem::path root_;
};

TEST_F(Groups, NoFileIsNoQuota) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(Groups, HalfACoreOfVersion2IsOneThread) {
  write("membership", "0::/user.slice/shell\n");
  write("user.slice/shell/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
  EXPECT_EQ(usable_threads(8, quota()), 1U);
}

TEST_F(Groups, TheSmallestQuotaOfTheGroupsAboveWins) {
  write("membership", "0::/a/b\n");
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  write("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  EXPECT_EQ(usable_threads(8, quota()), 2U);
  EXPECT_EQ(usable_threads(1, quota()), 1U);
}

TEST_F(Groups, Version1IsReadFromTheProcesssOwnGroup) {
  write("membership", "4:memory:/other\n2:cpuset,cpu,cpuacct:/box\n0::/\n");
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("cpu/box/cpu.cfs_quota_us", "50000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  write("cpu/other/cpu.cfs_quota_us", "1000\n");
  write("cpu/other/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Groups, APathOfTheHostInAContainerFallsBackToTheRoot) {
  write("membership", "1:cpu:/docker/0123\n");
  write("cpu/cpu.cfs_quota_us", "150000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(Groups, NonsenseIsNoQuota) {
  for (const char* line : {"", "nonsense", "0::", "::", "0::a/../..", "-1 100000", "inf 100000",
                           "nan 100000", "50000 0"}) {
    write("membership", std::string(line) + "\n");
    write("cpu.max", std::string(line) + "\n");
    EXPECT_EQ(quota(), std::nullopt) << line;
  }
}

TEST(Topology, QuotaLinesAreParsed) {
  EXPECT_EQ(parse_cpu_max("50000 100000"), 0.5);
  EXPECT_EQ(parse_cpu_max("max 100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
}

TEST(Topology, AtLeastOneThreadIsUsable) {
  EXPECT_GE(usable_threads(), 1U);
  EXPECT_LE(usable_threads(), affinity_cpus());
}

TEST(Topology, WithoutAQuotaEveryCpuIsUsable) {
  EXPECT_EQ(usable_threads(3, std::nullopt), 3U);
  EXPECT_EQ(usable_threads(3, 1e300), 3U);
}

}  // namespace
}  // namespace cicada::platform
