// SPDX-License-Identifier: BSD-3-Clause
// The schedules of five ranks, word for word: golden/<collective>-<name>[-variant].txt, and
// pictures of their messages, .dot. After an intended change, write them anew with
// UNISONO_UPDATE_GOLDEN=1 in the environment (of this test program) and read the difference. The
// same variable rewrites docs/reference/algorithms.md. The how-to's example is compared with the
// source it quotes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "schedule/text.hpp"
#include "unit/algorithm/schedule_set.hpp"

namespace unisono::algorithm::test::golden_test {
namespace {

std::filesystem::path here() { return std::filesystem::path(__FILE__).parent_path(); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_file(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("UNISONO_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(read_file(path), text)
      << path << " differs; if that is intended, run again with UNISONO_UPDATE_GOLDEN=1";
}

std::filesystem::path golden(const Algorithm& row, const std::string& ending) {
  return here() / "golden" /
         (std::string(schedule::collective_name(row.collective)) + "-" + std::string(row.name) +
          ending);
}

// Seven elements on five ranks: blocks of two lengths. Where hosts count, there are three.
Shape five_ranks(const Algorithm& row) {
  Shape shape{.collective = row.collective, .ranks = 5, .count = 7};
  if (row.collective == Collective::barrier) shape.count = 0;
  if (schedule::has_blocks(row.collective)) shape.count = 3;
  if (schedule::is_rooted(row.collective)) shape.root = 2;
  if (row.uses_hosts) shape.hosts = topology::HostMap::of_labels(std::vector{0, 0, 1, 1, 2});
  return shape;
}

// Trees of the least degree but one are the ones in the head comments.
Parameters two(const Algorithm& row, const Shape& shape) {
  Parameters parameters = default_parameters(row, shape);
  if (!row.parameters.empty() && row.parameters[0].names.empty()) parameters.values[0] = 2;
  return parameters;
}

TEST(Golden, FiveRanks) {
  for (const Algorithm& row : table()) {
    Shape shape = five_ranks(row);
    // Algorithms that refuse five ranks are shown for six.
    if (!why_illegal(row, shape, two(row, shape)).empty()) shape.ranks = 6;
    const auto set = build_set(row, shape, two(row, shape));
    expect_file(golden(row, ".txt"), schedule::print(set));
    expect_file(golden(row, ".dot"), schedule::graphviz_messages(set));
  }
}

TEST(Golden, FiveRanksOrderedWithAnotherRoot) {
  const Algorithm* row = find(Collective::reduce, "fnomial");
  ASSERT_NE(row, nullptr);
  Shape shape = five_ranks(*row);
  shape.ordered = true;
  expect_file(golden(*row, "-ordered.txt"),
              schedule::print(build_set(*row, shape, two(*row, shape))));
}

// The examples of the head comments, with ranks that send or receive nothing.
TEST(Golden, FiveRanksWithUnequalBlocks) {
  using schedule::Blocks;
  const Blocks pairs = *Blocks::of_pairs(
      5, {1, 2, 0, 0, 3, 0, 1, 0, 2, 0, 4, 0, 0, 1, 1, 0, 0, 0, 2, 0, 5, 1, 0, 0, 0});
  const Blocks some = *Blocks::of_ranks({1, 0, 2, 0, 0}, {true, true, false, false, true});
  for (const Algorithm& row : table()) {
    const bool many = row.collective == Collective::many_to_many;
    if (!many && (row.collective != Collective::alltoall || !row.unequal_blocks)) continue;
    Shape shape = five_ranks(row);
    shape.count = 0;
    shape.blocks = many ? some : pairs;
    expect_file(golden(row, "-unequal.txt"),
                schedule::print(build_set(row, shape, two(row, shape))));
  }
}

TEST(Golden, EveryFileBelongsToARow) {
  std::size_t texts = 0, pictures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(here() / "golden")) {
    const auto extension = entry.path().extension();
    texts += extension == ".txt";
    pictures += extension == ".dot";
    EXPECT_TRUE(extension == ".txt" || extension == ".dot") << entry.path();
  }
  const std::size_t variants = 1 + 4 + 3;  // ordered; unequal alltoall, many_to_many
  EXPECT_EQ(texts, table().size() + variants);
  EXPECT_EQ(pictures, table().size());
}

TEST(Golden, TheReferencePageIsTheTable) {
  expect_file(here() / "../../../docs/reference/algorithms.md", markdown());
}

// From the first line that begins with `first` to the one that ends with `last`, both included.
std::string quoted(const std::string& text, const std::string& first, const std::string& last) {
  const auto begin = text.find("\n" + first);
  if (begin == std::string::npos) return {};
  const auto end = text.find(last + "\n", begin);
  return end == std::string::npos ? std::string()
                                  : text.substr(begin + 1, end + last.size() - begin);
}

TEST(Golden, TheHowToQuotesTheSource) {
  const auto top = here() / "../../..";
  const std::string page = read_file(top / "docs/howto/add-an-algorithm.md");
  const std::string file = quoted(read_file(top / "src/algorithm/broadcast/flat.cpp"), "#include",
                                  "}  // namespace unisono::algorithm::broadcast");
  const std::string row = quoted(read_file(top / "src/algorithm/broadcast/rows.cpp"),
                                 "    {.name = \"flat\",", ".build = flat},");
  ASSERT_FALSE(row.empty());
  ASSERT_FALSE(file.empty());
  EXPECT_NE(page.find(row), std::string::npos) << "the page has to quote this row:\n" << row;
  EXPECT_NE(page.find(file), std::string::npos) << "the page has to quote this file:\n" << file;
}

}  // namespace
}  // namespace unisono::algorithm::test::golden_test
