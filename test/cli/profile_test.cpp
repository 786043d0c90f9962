// SPDX-License-Identifier: BSD-3-Clause
// unisono profile: files of ranks (rank_file), those of one job (job_files), their sum (merge), and
// what is shown (report).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/temporary_folder.hpp"
#include "profile/job_files.hpp"
#include "profile/merge.hpp"
#include "profile/report.hpp"
#include "profile/text.hpp"

namespace unisono::tools::profile_test {
namespace {

using nlohmann::json;
using profile::Form;
using profile::Kind;
using profile::Origin;
using profile::Row;

Kind kind(const std::string& collective) {
  Kind kind;
  kind.collective = collective;
  kind.op = "sum";
  kind.type = "float64";
  kind.bytes_class = 8;
  kind.ranks = 2;
  kind.algorithm = "ring(2)";
  kind.engine = "inline";
  return kind;
}

Origin origin(int rank, int ranks = 2) {
  return {.rank = rank, .ranks = ranks, .job = "j", .machine = "m"};
}

// A file as a rank writes it, of calls that took these times.
std::string text_of(const Origin& who, const std::string& collective,
                    const std::vector<std::int64_t>& times) {
  Row row;
  row.kind = kind(collective);
  for (const std::int64_t ns : times) {
    row.of(Form::blocking).add({.bytes = 8, .ns = ns, .waited_ns = ns / 2, .predicted_ns = 50});
  }
  std::size_t rows = 0;
  std::string text = profile::first_line(who, "host", 1);
  text += profile::lines_of(row, rows);
  return text + profile::last_line(rows);
}

RankFile parsed(const std::string& text, const std::string& file) {
  const auto result = parse_rank_file(text, file);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : RankFile();
}

std::string refusal(const std::string& text) {
  const auto result = parse_rank_file(text, "p.0");
  return result.ok() ? "" : result.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return place == std::string::npos ? text : text.replace(place, what.size(), by);
}

TEST(RankFile, IsReadAsItWasWritten) {
  const RankFile file = parsed(text_of(origin(1), "allreduce", {100, 300}), "p.1");
  EXPECT_TRUE(file.is_complete);
  EXPECT_EQ(file.origin.rank, 1);
  EXPECT_EQ(file.origin.ranks, 2);
  EXPECT_EQ(file.host, "host");
  ASSERT_EQ(file.rows.size(), 1U);
  EXPECT_EQ(file.rows[0].kind, kind("allreduce"));
  EXPECT_EQ(file.rows[0].totals.calls, 2);
  EXPECT_EQ(file.rows[0].totals.ns, 400);
  EXPECT_EQ(file.rows[0].totals.waited_ns, 200);
  EXPECT_EQ(file.rows[0].totals.predicted_ns, 100);
  EXPECT_EQ(file.rows[0].totals.buckets[profile::bucket_of(300)], 1);
}

// Wherever it was cut, behind the first line.
TEST(RankFile, TheLastLineNamesLearnedAlgorithms) {
  const std::string first = profile::first_line(origin(0, 2), "host", 1);
  const std::string second = profile::first_line(origin(1, 2), "host", 2);
  const std::vector<std::string> texts = {"allreduce: ring in place of \"pairwise\"", "scan: x"};
  const RankFile one = parsed(first + profile::last_line(0, texts), "p.0");
  EXPECT_EQ(one.learned, texts);
  const RankFile other = parsed(second + profile::last_line(0, {"scan: x", "scan: y"}), "p.1");
  const auto merged = merge_profiles({one, other});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->learned, (std::vector<std::string>{texts[0], "scan: x", "scan: y"}));
  EXPECT_EQ(nlohmann::json::parse(profile_json(*merged)).at("learned").size(), 3U);
  EXPECT_TRUE(parsed(first + profile::last_line(0), "p.0").learned.empty());
  const std::string end = R"({"end":true,"rows":0,"learned":)";
  EXPECT_NE(refusal(first + end + "7}\n").find(":2: learned is no list"), std::string::npos);
  EXPECT_NE(refusal(first + end + "[7]}\n").find(":2: learned has an entry"), std::string::npos);
  const std::vector<std::string> many(profile::Profile::kMostLearned + 1, "x");
  EXPECT_NE(refusal(first + profile::last_line(0, many)).find(":2: learned is"), std::string::npos);
}

TEST(RankFile, APartIsIncompleteAndNotDamaged) {
  const std::string whole = text_of(origin(0), "allreduce", {100, 300});
  for (std::size_t bytes = whole.find('\n') + 1; bytes + 1 < whole.size(); ++bytes) {
    const auto part = parse_rank_file(whole.substr(0, bytes), "p.0");
    ASSERT_TRUE(part.ok()) << bytes << ": " << part.error().message;
    ASSERT_FALSE(part->is_complete) << bytes;
  }
}

TEST(RankFile, DamageIsNamedWithItsLine) {
  const std::string whole = text_of(origin(0), "allreduce", {100, 300});
  EXPECT_EQ(refusal(""), "p.0:1: the file is empty");
  EXPECT_EQ(refusal("x"), "p.0:1: no JSON object");
  EXPECT_EQ(refusal("{}\n"), "p.0:1: schema is missing");
  EXPECT_EQ(refusal(replaced(whole, "unisono-profile-rank", "other")),
            "p.0:1: not the profile of a rank");
  EXPECT_EQ(refusal(replaced(whole, "\"version\":1", "\"version\":2")),
            "p.0:1: version 2, this unisono reads 1");
  EXPECT_EQ(refusal(replaced(whole, "\"rank\":0", "\"rank\":2")),
            "p.0:1: rank is no number of 0 .. 1");
  EXPECT_EQ(refusal(replaced(whole, "\"calls\":2", "\"calls\":-2")),
            "p.0:2: calls is no number of 1 .. 9223372036854775807");
  EXPECT_EQ(refusal(replaced(whole, "\"calls\":2", "\"calls\":2e9")),
            "p.0:2: calls is no number of 1 .. 9223372036854775807");
  EXPECT_EQ(refusal(replaced(whole, "\"calls\":2", "\"calls\":18446744073709551615")),
            "p.0:2: calls is no number of 1 .. 9223372036854775807");
  EXPECT_EQ(refusal(replaced(whole, "[96,", "[97,")),
            "p.0:2: no bucket of the histogram begins at 97");
  EXPECT_EQ(refusal(replaced(whole, "\"rows\":1", "\"rows\":2")),
            "p.0:3: 2 rows were written, and 1 are here");
  EXPECT_EQ(refusal(whole + whole), "p.0:4: text behind the last line");
}

TEST(Merge, AddsTheRanks) {
  const auto merged = merge_profiles({parsed(text_of(origin(1), "allreduce", {100, 300}), "p.1"),
                                      parsed(text_of(origin(0), "allreduce", {500}), "p.0")});
  ASSERT_TRUE(merged.ok());
  EXPECT_TRUE(merged->left_out.empty());
  ASSERT_EQ(merged->rows.size(), 1U);
  EXPECT_EQ(merged->rows[0].totals.calls, 3);
  EXPECT_EQ(merged->rows[0].totals.least_ns, 100);
  EXPECT_EQ(merged->rows[0].totals.most_ns, 500);
  EXPECT_EQ(merged->ns, 900);
  ASSERT_EQ(merged->ranks.size(), 2U);
  EXPECT_EQ(merged->ranks[0].file, "p.0");
}

TEST(Merge, SortsByTime) {
  const auto merged = merge_profiles({parsed(text_of(origin(0), "allreduce", {100}), "p.0"),
                                      parsed(text_of(origin(1), "reduce", {200}), "p.1")});
  ASSERT_TRUE(merged.ok());
  ASSERT_EQ(merged->rows.size(), 2U);
  EXPECT_EQ(merged->rows[0].kind.collective, "reduce");
}

TEST(Merge, NamesWhatItLeavesOut) {
  const std::string cut = profile::first_line(origin(2, 5), "host", 1);
  const auto merged = merge_profiles(
      {parsed(text_of(origin(0, 5), "allreduce", {100}), "p.0"), parsed(cut, "p.2")});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->left_out,
            (std::vector<std::string>{"p.2 has no last line: rank 2 was killed, or still runs",
                                      "no file was given of ranks 1, 3, 4"}));
  EXPECT_EQ(merged->rows[0].totals.calls, 1);
  EXPECT_EQ(merged->ranks.size(), 1U);
}

TEST(Merge, TakesWhatAKilledRankHasSavedAndNamesIt) {
  const std::string saved =
      replaced(text_of(origin(1), "allreduce", {100, 300}), R"("end":true)", R"("end":false)");
  const RankFile file = parsed(saved, "p.1");
  EXPECT_TRUE(file.is_complete);
  EXPECT_FALSE(file.has_ended);
  const auto merged = merge_profiles({parsed(text_of(origin(0), "allreduce", {500}), "p.0"), file});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->rows.at(0).totals.calls, 3);
  EXPECT_TRUE(merged->left_out.empty());
  EXPECT_EQ(merged->unfinished, std::vector<std::string>{"p.1: rank 1 was killed, or still runs"});
  EXPECT_EQ(json::parse(profile_json(*merged)).at("unfinished").size(), 1U);
  EXPECT_NE(refusal(replaced(saved, R"("end":false)", R"("end":0)")).find(":3: end is neither"),
            std::string::npos);
}

TEST(Merge, RefusesFilesThatDoNotBelongTogether) {
  EXPECT_EQ(merge_profiles({}).error().message, "no file is given");
  Origin other = origin(1);
  other.job = "k";
  EXPECT_EQ(merge_profiles({parsed(text_of(origin(0), "reduce", {1}), "p.0"),
                            parsed(text_of(other, "reduce", {1}), "q.1")})
                .error()
                .message,
            "p.0 is of the job j of 2 ranks, q.1 of the job k of 2");
  EXPECT_EQ(merge_profiles({parsed(text_of(origin(1), "reduce", {1}), "p.1"),
                            parsed(text_of(origin(1), "reduce", {1}), "q.1")})
                .error()
                .message,
            "p.1 and q.1 are both of rank 1");
}

TEST(Totals, SumsStayAtTheLimit) {
  profile::Series::Totals sum, more;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  sum.calls = more.calls = 1;
  sum.ns = kMost;
  more.ns = 1;
  add_totals(sum, more);
  EXPECT_EQ(sum.ns, kMost);
}

// The times are known exactly; the histogram's answer is an eighth away at most.
TEST(Totals, PercentilesAreNearTheExactOnes) {
  profile::Series series;
  for (std::int64_t ns = 1; ns <= 100'000; ++ns) series.add({.bytes = 8, .ns = ns});
  const auto totals = series.totals();
  EXPECT_NEAR(static_cast<double>(percentile_ns(totals, 0.5)), 50'000, 50'000 / 8.0);
  EXPECT_NEAR(static_cast<double>(percentile_ns(totals, 0.99)), 99'000, 99'000 / 8.0);
  profile::Series one;
  one.add({.bytes = 8, .ns = 77});
  EXPECT_EQ(percentile_ns(one.totals(), 0.5), 77);
  EXPECT_EQ(percentile_ns({}, 0.5), 0);
}

TEST(Report, JsonHasAllRanksAndEach) {
  const auto merged = merge_profiles({parsed(text_of(origin(0), "allreduce", {100, 300}), "p.0"),
                                      parsed(text_of(origin(1), "allreduce", {500}), "p.1")});
  ASSERT_TRUE(merged.ok());
  const json out = json::parse(profile_json(*merged));
  EXPECT_EQ(out.at("schema"), "unisono-profile");
  EXPECT_EQ(out.at("version"), 1);
  ASSERT_EQ(out.at("rows").size(), 1U);
  const json& row = out.at("rows")[0];
  EXPECT_EQ(row.at("calls"), 3);
  EXPECT_EQ(row.at("measured_ns").at("mean"), 300);
  EXPECT_EQ(row.at("measured_ns").at("most"), 500);
  EXPECT_EQ(row.at("predicted_ns"), 50);
  EXPECT_EQ(row.at("waited_ns"), 450);
  EXPECT_EQ(row.at("reason"), nullptr);
  ASSERT_EQ(out.at("ranks").size(), 2U);
  EXPECT_EQ(out.at("ranks")[1].at("rows")[0].at("calls"), 1);
}

TEST(Report, TheTableSaysHowManyRowsItLeavesOut) {
  const auto merged = merge_profiles({parsed(text_of(origin(0), "allreduce", {100}), "p.0"),
                                      parsed(text_of(origin(1), "reduce", {200}), "p.1")});
  ASSERT_TRUE(merged.ok());
  const std::string table = profile_table(merged->rows, 1);
  EXPECT_NE(table.find("reduce"), std::string::npos) << table;
  EXPECT_NE(table.find("and 1 more rows"), std::string::npos) << table;
  EXPECT_EQ(profile_table(merged->rows, 0).find("more rows"), std::string::npos);
}

TEST(Report, ThePictureEscapesNames) {
  Row row;
  row.kind = kind("a<b>&");
  row.of(Form::blocking).add({.bytes = 8, .ns = 10});
  std::size_t rows = 0;
  std::string text = profile::first_line(origin(0, 1), "host", 1) + profile::lines_of(row, rows);
  const auto merged = merge_profiles({parsed(text + profile::last_line(rows), "p.0")});
  ASSERT_TRUE(merged.ok());
  const std::string picture = profile_picture(*merged);
  EXPECT_NE(picture.find("a&lt;b&gt;&amp; sum float64"), std::string::npos) << picture;
  EXPECT_EQ(picture.find("a<b"), std::string::npos);
}

// Beside the axis there is room for ten characters.
TEST(Report, ThePictureWritesLargeNumbersWithoutExponent) {
  Row row;
  row.kind = kind("allreduce");
  row.of(Form::blocking).add({.bytes = 8, .ns = 50'410'000'000});
  std::size_t rows = 0;
  const std::string text =
      profile::first_line(origin(0, 1), "host", 1) + profile::lines_of(row, rows);
  const auto merged = merge_profiles({parsed(text + profile::last_line(rows), "p.0")});
  ASSERT_TRUE(merged.ok());
  const std::string picture = profile_picture(*merged);
  EXPECT_NE(picture.find(">50410</text>"), std::string::npos) << picture;
  EXPECT_EQ(picture.find("e+"), std::string::npos);
}

// A job of two ranks where one of three wrote before: the file of rank 2 is not of this job.
TEST(JobFiles, AreThoseWrittenSince) {
  namespace fs = std::filesystem;
  const unisono::test::TemporaryFolder folder;
  const fs::path file = fs::path(folder.path()) / "p";
  const auto name = [&](const char* end) { return file.string() + end; };
  for (const char* end : {".0", ".1", ".2"}) {
    std::ofstream(name(end)) << "before";
    fs::last_write_time(name(end), fs::last_write_time(name(end)) - std::chrono::hours(1));
  }
  const JobFiles files(file.string());
  EXPECT_EQ(files.written(), std::vector<std::string>());
  for (const char* end : {".0", ".1", ".svg", ".1.next", ".", "q.3"}) {
    std::ofstream(name(end)) << "now";
  }
  EXPECT_EQ(files.written(), (std::vector{name(".0"), name(".1")}));
  std::ofstream(name(".10")) << "now";
  EXPECT_EQ(files.written(), (std::vector{name(".0"), name(".1"), name(".10")}));
}

TEST(JobFiles, OfAFolderThatIsNotThereAreNone) {
  EXPECT_EQ(JobFiles("/nowhere/p").written(), std::vector<std::string>());
}

}  // namespace
}  // namespace unisono::tools::profile_test
