// SPDX-License-Identifier: BSD-3-Clause
// Slurm's topology.conf: its meaning, and the errors of damaged files.
#include "topology/fat_tree/slurm_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace unisono::topology::fat_tree::slurm_file_test {
namespace {

std::string error_of(std::string_view text) {
  const auto placement = parse_slurm(text, "t.conf");
  return placement.ok() ? "accepted" : placement.error().message;
}

// The example of Slurm's manual page.
TEST(SlurmFile, PutsNodesBelowTheirSwitches) {
  const auto placement = parse_slurm(
      "# topology.conf\n"
      "SwitchName=s0 Nodes=tux[0-1]\n"
      "SwitchName=s1 Nodes=tux[2-3] LinkSpeed=900\r\n"
      "\n"
      "switchname=s2 nodes=tux[4-5]  # comment\n"
      "SwitchName=s3 Switches=s[0-2]\n",
      "topology.conf");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->tree, *Tree::make(3, 2));
  EXPECT_EQ(placement->leaves, (std::vector<int>{0, 1, 3, 4, 6, 7}));
  EXPECT_EQ(placement->holes(), (std::vector<int>{2, 5, 8}));
  EXPECT_EQ(placement->names.back(), "tux5");
}

TEST(SlurmFile, TakesBranchesOfUnequalHeight) {
  const auto placement = parse_slurm(
      "SwitchName=top Switches=a,b\nSwitchName=a Nodes=x,y08,z[08-10]\n"
      "SwitchName=b Switches=c\nSwitchName=c Nodes=w\n",
      "t");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->tree, *Tree::make(5, 3));
  EXPECT_EQ(placement->leaves, (std::vector<int>{0, 1, 2, 3, 4, 25}));
  EXPECT_EQ(placement->names, (std::vector<std::string>{"x", "y08", "z08", "z09", "z10", "w"}));
}

TEST(SlurmFile, RefusesWithLineAndExpectation) {
  EXPECT_EQ(error_of(""), "t.conf:1: expected a line SwitchName=... Nodes=...");
  EXPECT_EQ(error_of("\nNodes=a"), "t.conf:2: expected SwitchName=");
  EXPECT_EQ(error_of("SwitchName=s"), "t.conf:1: expected either Switches= or Nodes=");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a Switches=b"),
            "t.conf:1: expected either Switches= or Nodes=");
  EXPECT_EQ(error_of("SwitchName=s[0-1] Nodes=a"), "t.conf:1: expected one SwitchName");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a[3-1]"),
            "t.conf:1: expected a range as in 0-3, found '3-1'");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a[1"), "t.conf:1: expected ] after [");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a[1][2]"),
            "t.conf:1: expected one pair of brackets in 'a[1][2]'");
  EXPECT_EQ(error_of("SwitchName=s Nodes="), "t.conf:1: expected a list of names, as in n[0-3]");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a\xff"),
            "t.conf:1: expected names of printable ASCII characters");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a,"), "t.conf:1: expected a name after the last comma");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a[0-99999999]"),
            "t.conf:1: expected at most 1048576 names");
  EXPECT_EQ(error_of("SwitchName=s Switches=u"), "t.conf:1: expected a line for switch 'u'");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a\nSwitchName=s Nodes=b"),
            "t.conf:2: expected each switch once, found 's' again");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a\nSwitchName=t Nodes=a"),
            "t.conf:2: expected each node once, found 'a' again");
  EXPECT_EQ(error_of("SwitchName=s Nodes=a\nSwitchName=t Nodes=b"),
            "t.conf:2: expected one switch at the top, found 't' beside 's'");
  EXPECT_EQ(error_of("SwitchName=s Switches=s"), "t.conf:1: expected a switch at the top");
  EXPECT_EQ(error_of("SwitchName=s Switches=t\nSwitchName=t Switches=s\nSwitchName=r Nodes=a"),
            "t.conf:3: expected all switches below it, found a ring of some");
  EXPECT_EQ(error_of("SwitchName=s Switches=t,t\nSwitchName=t Nodes=a"),
            "t.conf:1: expected one switch above each, found 't' again");
  EXPECT_NE(error_of("SwitchName=s Nodes=a Color=red").find("'Color=red'"), std::string::npos);
}

TEST(SlurmFile, RefusesTreesThatAreTooDeepOrTooWide) {
  std::string chain = "SwitchName=s30 Nodes=a\n";
  for (int i = 0; i < 30; ++i) {
    chain += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i + 1) + "\n";
  }
  EXPECT_NE(error_of(chain).find("expected at most 20 levels"), std::string::npos);
  EXPECT_NE(
      error_of("SwitchName=a Nodes=n[1-2000]\nSwitchName=b Switches=a").find("at most 1048576"),
      std::string::npos);
}

}  // namespace
}  // namespace unisono::topology::fat_tree::slurm_file_test
