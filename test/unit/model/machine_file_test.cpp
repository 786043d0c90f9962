// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "harness/temporary_folder.hpp"
#include "model/json_tree.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::machine_file_test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<fs::path> shipped() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(machines_folder())) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

std::string crescendo() { return bytes_of(machines_folder() / "crescendo.json"); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  if (at != text.npos) text.replace(at, from.size(), to);
  return text;
}

std::string refusal(std::string_view text) {
  const auto machine = parse_machine(text, "m.json");
  return machine.ok() ? "" : machine.error().message;
}

TEST(MachineFile, SaysWhereAnMpiIsFaster) {
  Machine machine = *parse_machine(crescendo(), "m.json");
  EXPECT_EQ(find_host_mpi(machine, "Some MPI v1", 2, 1), nullptr);
  replace_host_mpi(machine, {"Some MPI v1", 2, 1, {{"gather", 0, 16}, {"gather", 4096, 0}}});
  replace_host_mpi(machine, {"Some MPI v1", 4, 2, {}});
  const std::string text = machine_text(machine);
  const auto read = parse_machine(text, "m.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, machine);
  const HostMpi* const found = find_host_mpi(*read, "Some MPI v1", 2, 1);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->faster.size(), 2U);
  EXPECT_NE(refusal(replaced(text, R"("from_bytes": 0, "up_to_bytes": 16)",
                             R"("from_bytes": 17, "up_to_bytes": 16)"))
                .find("expected 0 or at least the 17 of \"from_bytes\""),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, R"("ranks": 2)", R"("ranks": 1)")).find("\"ranks\""),
            std::string::npos);
}

TEST(MachineFile, SaysFromWhichSizeStreamsAreFaster) {
  const std::string text = bytes_of(machines_folder() / "default.json");
  const auto machine = parse_machine(text, "m.json");
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  const auto from = streams_from_bytes(*machine);
  ASSERT_TRUE(from.has_value());
  EXPECT_GT(*from, 0);
  const auto without = parse_machine(crescendo(), "m.json");
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(streams_from_bytes(*without).has_value());
  EXPECT_EQ(refusal(replaced(text, R"("unit": "bytes")", R"("unit": "us")")).substr(0, 6),
            "m.json");
}

TEST(MachineFile, EveryFileInTheTreeIsReadAndHasTheWritersLayout) {
  std::vector<std::string> names;
  for (const fs::path& path : shipped()) {
    const auto machine = read_machine_file(path.string());
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    EXPECT_EQ(machine->name, path.stem());
    EXPECT_EQ(machine_text(*machine), bytes_of(path)) << path;
    names.push_back(machine->name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"alc", "asci-q", "crescendo", "default", "infiniband-16",
                                      "infiniband-8", "lemieux", "osu-myrinet"}));
}

TEST(MachineFile, EveryValueSaysWhereItIsFrom) {
  for (const fs::path& path : shipped()) {
    const std::string text = bytes_of(path);
    EXPECT_EQ(text.find("\"where\": \"\""), text.npos) << path;
    EXPECT_EQ(text.find("\"source\": \"published\"") == text.npos,
              path.stem() == "default" || path.stem() == "osu-myrinet")
        << path;
  }
}

TEST(MachineFile, ARefusalNamesFileLineAndWhatWasExpected) {
  const std::string text = crescendo();
  EXPECT_EQ(refusal(""),
            "m.json:1: expected JSON: syntax error while parsing value - unexpected end of "
            "input; expected '[', '{', or a literal");
  EXPECT_EQ(refusal("[]"), "m.json:1: machine file: expected an object, found an array");
  EXPECT_EQ(refusal("{\n \"schema\": \"other\"}"),
            "m.json:2: \"schema\": expected one of unisono-machine, found \"other\"");
  EXPECT_EQ(refusal("{\"schema\": \"unisono-machine\",\n \"version\": 2\n}"),
            "m.json:2: \"version\": expected a whole number from 1 to 1, found 2");
  EXPECT_EQ(refusal(replaced(text, "\"hosts\": 32", "\"host\": 32")),
            "m.json:1: machine file: expected key \"hosts\"");
  EXPECT_EQ(refusal(replaced(text, "\"about\"", "\"extra\": 1,\n  \"about\"")).substr(0, 50),
            "m.json:4: machine file: unknown key \"extra\"; known");
  EXPECT_EQ(refusal(replaced(text, "\"unit\": \"us\"", "\"unit\": \"ns/byte\"")).substr(0, 54),
            "m.json:6: \"unit\": expected one of ns, us, ms, s, found");
  EXPECT_EQ(
      refusal(replaced(text, "\"operator\": \"sum\"", "\"operator\": \"plus\"")).substr(0, 45),
      "m.json:59: \"operator\": expected any or an ope");
  EXPECT_EQ(refusal(replaced(text, "\"bytes\": 128", "\"bytes\": 64")),
            "m.json:44: \"bytes\": expected more than the 64 before");
  EXPECT_EQ(refusal(replaced(text, "\"number\": 2.1", "\"number\": -2.1")).substr(0, 46),
            "m.json:36: \"number\": expected a number from 0 ");
  EXPECT_EQ(refusal(replaced(text, "\"name\"", "\"version\": 1,\n\"name\"")),
            "m.json:3: key \"version\" is given twice");
}

TEST(MachineFile, ConstantsAreRefusedByNameAndUnit) {
  const std::string text = bytes_of(machines_folder() / "default.json");
  const std::string renamed = refusal(replaced(text, "\"few_ranks\"", "\"few_rank\""));
  EXPECT_NE(renamed.find("constants: unknown key \"few_rank\"; did you mean \"few_ranks\"?"),
            std::string::npos)
      << renamed;
  const std::string unit = refusal(replaced(text, "\"unit\": \"ranks\"", "\"unit\": \"bytes\""));
  EXPECT_NE(unit.find("\"unit\": expected one of ranks, found \"bytes\""), std::string::npos)
      << unit;
}

TEST(MachineFile, ConstantsThatAreNotThereAreNotWritten) {
  auto machine = parse_machine(bytes_of(machines_folder() / "default.json"), "default.json");
  ASSERT_TRUE(machine.ok());
  for (const ConstantRow& row : constant_rows()) {
    auto& constant = machine->constants[static_cast<std::size_t>(row.id)];
    EXPECT_TRUE(constant.has_value()) << row.name;
    if (row.id != Constant::nic_step) constant.reset();
  }
  const std::string text = machine_text(*machine);
  EXPECT_EQ(text.find("few_ranks"), text.npos);
  EXPECT_NE(text.find("nic_step"), text.npos);
  const auto again = parse_machine(text, "again");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *machine);
  machine->constants = {};
  EXPECT_EQ(machine_text(*machine).find("constants"), std::string::npos);
}

TEST(MachineFile, AHalfWrittenFileIsRefusedWhereverItEnds) {
  const std::string text = crescendo();
  for (std::size_t length = 0; length + 2 < text.size(); length += 7) {
    EXPECT_TRUE(refusal(std::string_view(text).substr(0, length)).starts_with("m.json:")) << length;
  }
}

TEST(MachineFile, DeepNestingAndLargeFilesAreRefused) {
  EXPECT_EQ(refusal(std::string(100'000, '[')), "m.json:1: expected at most 16 levels of nesting");
  EXPECT_EQ(refusal(std::string(kMostMachineFileBytes + 1, ' ')),
            "m.json: expected at most 1048576 bytes, found 1048577");
}

TEST(MachineFile, WritingReplacesTheWholeFile) {
  const test::TemporaryFolder folder;
  const std::string path = (fs::path(folder.path()) / "machine.json").string();
  Machine machine = *parse_machine(crescendo(), "crescendo");
  ASSERT_TRUE(write_machine_file(machine, path).ok());
  machine.about = "a \"quoted\" name\n\t\x01";
  ASSERT_TRUE(write_machine_file(machine, path).ok());
  const auto again = read_machine_file(path);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, machine);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);

  const auto nowhere = write_machine_file(machine, folder.path() + "/none/machine.json");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("/none/machine.json"), std::string::npos);
  EXPECT_FALSE(read_machine_file(folder.path() + "/none").ok());
}

TEST(JsonTree, NodesKnowTheirLine) {
  const auto tree = parse_json("{\n\"a\": 1\n,\n\"b\": [true,\nnull]}", "t.json");
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  ASSERT_EQ(tree->members.size(), 2U);
  EXPECT_EQ(tree->members[0].second.line, 2);
  EXPECT_EQ(tree->members[1].second.line, 4);
  EXPECT_EQ(tree->members[1].second.items[1].line, 5);
  EXPECT_EQ(tree->members[1].second.items[1].kind, JsonNode::Kind::null);
}

}  // namespace
}  // namespace unisono::model::machine_file_test
