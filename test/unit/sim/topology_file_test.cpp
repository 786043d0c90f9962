// SPDX-License-Identifier: BSD-3-Clause
// Topology files of our own: read back as written, refused with the line of what is wrong.
#include "sim/topology_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace unisono::sim::topology_file_test {
namespace {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

std::string error_of(std::string_view members) {
  const std::string text =
      "{\"schema\": \"unisono-topology\", \"version\": 1,\n" + std::string(members) + "}";
  const auto placement = parse_topology(text, "t");
  return placement.ok() ? "accepted" : placement.error().message;
}

TEST(TopologyFile, ReadsBackWhatItWrites) {
  Placement placement = *place_around(*Tree::make(4, 3), std::vector<int>{7, 20});
  EXPECT_EQ(*parse_topology(topology_text(placement), "t"), placement);
  placement.names.assign(placement.leaves.size(), "a\"\\\n");
  EXPECT_EQ(*parse_topology(topology_text(placement), "t"), placement);
}

TEST(TopologyFile, TakesHolesInsteadOfLeaves) {
  const auto placement = parse_topology(
      "  {\"schema\": \"unisono-topology\", \"version\": 1, \"arity\": 2, \"levels\": 2, "
      "\"holes\": [1]}",
      "t");
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->leaves, (std::vector<int>{0, 2, 3}));
}

TEST(TopologyFile, TakesSlurmsAsWell) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("unisono-topology-" + std::to_string(::getpid()) + ".conf");
  std::ofstream(path) << "SwitchName=s Nodes=a,b\n";
  const auto placement = read_topology_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(read_topology_file(path).ok());
}

TEST(TopologyFile, RefusesWithLineAndExpectation) {
  EXPECT_EQ(error_of("\"arity\": 4"), "t:1: expected key \"levels\"");
  EXPECT_EQ(error_of("\"arity\": 1.5, \"levels\": 2"),
            "t:2: arity: expected a whole number from 2 to 1048576");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 2,\n\"holes\": [16]"),
            "t:3: node: expected a whole number from 0 to 15");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 2, \"leaves\": [1,\n1]"),
            "t:3: expected each node once, found 1 again");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 2, \"leaves\": []"), "t:2: expected a leaf");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 1, \"holes\": [0, 1, 2, 3]"),
            "t:1: expected a node: 0 nodes without the holes are not enough for 1 ranks");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 1, \"leaves\": [0],\n\"holes\": []"),
            "t:3: expected either \"leaves\" or \"holes\"");
  EXPECT_EQ(error_of("\"arity\": 4, \"levels\": 1, \"leaves\": [0], \"names\": []"),
            "t:2: expected an array of 1 names");
  EXPECT_NE(error_of("\"colour\": 4").find("found key \"colour\""), std::string::npos);
  EXPECT_NE(error_of("\"arity\": 1024, \"levels\": 3").find("more than 1048576 nodes"),
            std::string::npos);
  EXPECT_NE(parse_topology("{\"version\": 1}", "t").error().message.find("\"schema\""),
            std::string::npos);
}

}  // namespace
}  // namespace unisono::sim::topology_file_test
