// SPDX-License-Identifier: BSD-3-Clause
// unisono paper: stored measurements. Of damaged and foreign files, the error names the file and
// what was expected.
#include "paper/measurements.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "text_file.hpp"

namespace unisono::tools::paper_measurements_test {
namespace {

using nlohmann::json;

constexpr const char* kWhole =
    R"({"tool": "nic/compare.py", "command": "bench/nic/compare.py", "machine": "two cores",
        "results": [{"collective": "barrier", "hosts": 4, "name": "nic", "mean_us": 12.5},
                    {"collective": "barrier", "hosts": 4, "name": "udp", "mean_us": 25},
                    {"collective": "barrier", "hosts": 8, "name": "nic", "mean_us": 0},
                    {"collective": "barrier", "hosts": 8, "name": "udp", "mean_us": "25"},
                    {"collective": "allreduce", "hosts": 4, "mean_us": 1},
                    {"collective": "allreduce", "hosts": 4, "mean_us": 2}]})";

class PaperMeasurements : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("unisono-measurements-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/" + std::string(kNicPath.name); }
  Measurements holding(const std::string& text) const {
    EXPECT_TRUE(write_text_file(path(), text).ok());
    return Measurements(folder_);
  }
  // The error without the path, with which it must begin.
  std::string refusal(const std::string& text, const json& row = {{"hosts", 4}, {"name", "nic"}},
                      const std::string& place = "/mean_us") const {
    const auto number = holding(text).at(kNicPath, row, place);
    if (number.ok()) return "no refusal";
    const std::string message = number.error().message;
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  std::string folder_;
};

TEST_F(PaperMeasurements, GiveTheFigureOfTheOnlyResultWithAllMembers) {
  Measurements measurements = holding(kWhole);
  EXPECT_EQ(*measurements.at(kNicPath, {{"hosts", 4}, {"name", "nic"}}, "/mean_us"), 12.5);
  EXPECT_EQ(*measurements.at(kNicPath, {{"hosts", 4}, {"name", "udp"}}, "/mean_us"), 25);
  const auto source = measurements.source(kNicPath);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->file, kNicPath.name);
  EXPECT_EQ(source->command, "bench/nic/compare.py");
  EXPECT_EQ(source->machine, "two cores");
}

TEST_F(PaperMeasurements, JoinSeveralCommandsAndNameAProcessor) {
  json whole = json::parse(kWhole);
  whole.erase("command");
  whole["commands"] = {"one", "two"};
  whole["machine"] = {{"processor", "EPYC"}, {"usable_cores", 2}};
  const auto source = holding(whole.dump()).source(kNicPath);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->command, "one; two");
  EXPECT_EQ(source->machine, "2 cores of an EPYC");
}

TEST_F(PaperMeasurements, RefuseDamagedAndForeignFiles) {
  const std::string whole = kWhole;
  EXPECT_EQ(refusal(whole.substr(0, whole.size() / 2)), "expected a JSON object");
  EXPECT_EQ(refusal(""), "expected a JSON object");
  EXPECT_EQ(refusal("[]"), "expected a JSON object");
  const std::vector<std::pair<std::string, std::string>> needed = {
      {"tool", R"(expected "tool": "nic/compare.py")"},
      {"command", R"(expected a text in "command", or a list of texts in "commands")"},
      {"machine", R"(expected a text in "machine", or "processor" and "usable_cores" in it)"},
      {"results", R"(expected a list of objects in "results")"}};
  for (const auto& [name, message] : needed) {
    for (const json& damaged : {json(nullptr), json(7), json({1, 2})}) {
      json content = json::parse(kWhole);
      content[name] = damaged;
      EXPECT_EQ(refusal(content.dump()), message) << damaged;
    }
    json content = json::parse(kWhole);
    content.erase(name);
    EXPECT_EQ(refusal(content.dump()), message);
  }
  json foreign = json::parse(kWhole);
  foreign["tool"] = "peers/compare.py";
  EXPECT_EQ(refusal(foreign.dump()), R"(expected "tool": "nic/compare.py")");
}

TEST_F(PaperMeasurements, RefuseMissingAndAmbiguousResultsAndFiguresThatAreNoNumbers) {
  EXPECT_EQ(refusal(kWhole, {{"hosts", 16}}), R"(expected one result with {"hosts":16}, found 0)");
  EXPECT_EQ(refusal(kWhole, {{"collective", "allreduce"}}),
            R"(expected one result with {"collective":"allreduce"}, found 2)");
  const std::string at = "expected a positive number at ";
  EXPECT_EQ(refusal(kWhole, {{"hosts", 8}, {"name", "nic"}}),
            at + R"(/mean_us of the result with {"hosts":8,"name":"nic"}, found 0)");
  EXPECT_EQ(refusal(kWhole, {{"hosts", 8}, {"name", "udp"}}),
            at + R"(/mean_us of the result with {"hosts":8,"name":"udp"}, found string)");
  EXPECT_EQ(refusal(kWhole, {{"hosts", 4}, {"name", "udp"}}, "/ratios/mpi"),
            at + R"(/ratios/mpi of the result with {"hosts":4,"name":"udp"}, found null)");
}

TEST_F(PaperMeasurements, NameAFileThatIsMissing) {
  const auto number = Measurements(folder_).at(kNicPath, {{"hosts", 4}}, "/mean_us");
  ASSERT_FALSE(number.ok());
  EXPECT_TRUE(number.error().message.starts_with(path())) << number.error().message;
}

}  // namespace
}  // namespace unisono::tools::paper_measurements_test
