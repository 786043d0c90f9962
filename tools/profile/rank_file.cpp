// SPDX-License-Identifier: BSD-3-Clause
#include "profile/rank_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "profile/text.hpp"

namespace unisono::tools {
namespace {

using nlohmann::json;
using profile::Form;
using profile::kBuckets;
using Totals = profile::Series::Totals;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostText = 1024;
constexpr std::size_t kMostRows = (profile::Profile::kMostKinds + 1) * profile::kFormCount;
constexpr std::int64_t kMostRanks = 4096;

// Reads the members of one line. The first one that is missing or wrong is the error.
class Line {
 public:
  explicit Line(const json& object) : object_(object) {}

  std::int64_t number(const char* key, std::int64_t least = 0, std::int64_t most = kMost) {
    const json* const found = find(key);
    if (found == nullptr) return least;
    if (found->is_number_integer()) {
      const bool fits = !found->is_number_unsigned() ||
                        found->get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost);
      const std::int64_t value = fits ? found->get<std::int64_t>() : -1;
      if (fits && value >= least && value <= most) return value;
    }
    fail(fmt::format("{} is no number of {} .. {}", key, least, most));
    return least;
  }

  std::string text(const char* key) {
    const json* const found = find(key);
    if (found == nullptr) return {};
    const auto* const value = found->get_ptr<const std::string*>();
    if (value != nullptr && value->size() <= kMostText) return *value;
    fail(fmt::format("{} is no text of at most {} bytes", key, kMostText));
    return {};
  }

  void histogram(Totals& totals) {
    const json* const found = find("histogram");
    if (found == nullptr) return;
    if (!found->is_array() || found->size() > kBuckets) {
      return fail("histogram is no list of buckets");
    }
    for (const json& entry : *found) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() ||
          !entry[1].is_number_unsigned()) {
        return fail("a bucket of the histogram is no pair of numbers");
      }
      const auto begin = entry[0].get<std::uint64_t>();
      const auto calls = entry[1].get<std::uint64_t>();
      if (begin > static_cast<std::uint64_t>(kMost) || calls > static_cast<std::uint64_t>(kMost)) {
        return fail("a bucket of the histogram is too large");
      }
      const std::size_t bucket = profile::bucket_of(static_cast<std::int64_t>(begin));
      if (profile::bucket_begin(bucket) != static_cast<std::int64_t>(begin)) {
        return fail(fmt::format("no bucket of the histogram begins at {}", begin));
      }
      if (totals.buckets[bucket] != 0) return fail("a bucket of the histogram stands twice");
      totals.buckets[bucket] = static_cast<std::int64_t>(calls);
    }
  }

  // An optional list of texts.
  std::vector<std::string> texts(const char* key, std::size_t most) {
    std::vector<std::string> all;
    const auto found = object_.find(key);
    if (found == object_.end()) return all;
    if (!found->is_array() || found->size() > most) {
      fail(fmt::format("{} is no list of at most {} texts", key, most));
      return all;
    }
    for (const json& each : *found) {
      const auto* const value = each.get_ptr<const std::string*>();
      if (value == nullptr || value->size() > kMostText) {
        fail(fmt::format("{} has an entry that is no text of at most {} bytes", key, kMostText));
        return all;
      }
      all.push_back(*value);
    }
    return all;
  }

  void fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  const std::string& why() const { return why_; }

 private:
  const json* find(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    fail(fmt::format("{} is missing", key));
    return nullptr;
  }

  const json& object_;
  std::string why_;
};

void read_first(Line& line, RankFile& result) {
  if (line.text("schema") != "unisono-profile-rank") return line.fail("not the profile of a rank");
  const std::int64_t version = line.number("version");
  if (version != profile::kFileVersion) {
    return line.fail(
        fmt::format("version {}, this unisono reads {}", version, profile::kFileVersion));
  }
  result.origin.ranks = static_cast<int>(line.number("ranks", 1, kMostRanks));
  result.origin.rank = static_cast<int>(line.number("rank", 0, result.origin.ranks - 1));
  result.origin.job = line.text("job");
  result.origin.machine = line.text("machine");
  result.host = line.text("host");
}

Form read_form(Line& line) {
  const std::string name = line.text("form");
  if (name == form_name(Form::started)) return Form::started;
  if (name != form_name(Form::blocking)) line.fail("form is neither blocking nor started");
  return Form::blocking;
}

ProfileRow read_row(Line& line) {
  ProfileRow row;
  row.kind = {.collective = line.text("collective"),
              .op = line.text("operator"),
              .type = line.text("type"),
              .bytes_class = line.number("size_class"),
              .ranks = static_cast<int>(line.number("ranks", 0, kMostRanks)),
              .hosts = static_cast<int>(line.number("hosts", 0, kMostRanks)),
              .algorithm = line.text("algorithm"),
              .engine = line.text("engine"),
              .reason = line.text("reason")};
  row.form = read_form(line);
  Totals& totals = row.totals;
  totals.calls = line.number("calls", 1);
  totals.bytes = line.number("bytes");
  totals.least_bytes = line.number("least_bytes");
  totals.most_bytes = line.number("most_bytes", totals.least_bytes);
  totals.predicted_ns = line.number("predicted_ns");
  totals.unpredicted = line.number("unpredicted");
  totals.ns = line.number("ns");
  totals.least_ns = line.number("least_ns");
  totals.most_ns = line.number("most_ns", totals.least_ns);
  totals.waits = line.number("waits");
  totals.waited_ns = line.number("waited_ns");
  line.histogram(totals);
  return row;
}

void add(std::int64_t& sum, std::int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = kMost;
}

// One line; true: it was the last one.
bool read_line(Line& line, const json& object, RankFile& result) {
  if (object.contains("end")) {
    const auto rows = static_cast<std::size_t>(line.number("rows"));
    if (rows != result.rows.size()) {
      line.fail(fmt::format("{} rows were written, and {} are here", rows, result.rows.size()));
    }
    result.learned = line.texts("learned", profile::Profile::kMostLearned);
    if (!object["end"].is_boolean()) line.fail("end is neither true nor false");
    result.has_ended = object["end"] == true;
    return true;
  }
  if (result.rows.size() == kMostRows) line.fail(fmt::format("more than {} rows", kMostRows));
  result.rows.push_back(read_row(line));
  return false;
}

}  // namespace

const char* form_name(Form form) { return form == Form::blocking ? "blocking" : "started"; }

void add_totals(Totals& sum, const Totals& more) {
  const bool is_first = sum.calls == 0;
  sum.least_bytes = is_first ? more.least_bytes : std::min(sum.least_bytes, more.least_bytes);
  sum.least_ns = is_first ? more.least_ns : std::min(sum.least_ns, more.least_ns);
  sum.most_bytes = std::max(sum.most_bytes, more.most_bytes);
  sum.most_ns = std::max(sum.most_ns, more.most_ns);
  add(sum.calls, more.calls);
  add(sum.bytes, more.bytes);
  add(sum.ns, more.ns);
  add(sum.predicted_ns, more.predicted_ns);
  add(sum.unpredicted, more.unpredicted);
  add(sum.waits, more.waits);
  add(sum.waited_ns, more.waited_ns);
  for (std::size_t i = 0; i < kBuckets; ++i) add(sum.buckets[i], more.buckets[i]);
}

std::int64_t percentile_ns(const Totals& totals, double share) {
  if (totals.calls == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(totals.calls));
  double seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBuckets; ++bucket) {
    seen += static_cast<double>(totals.buckets[bucket]);
    if (seen >= wanted) break;
  }
  const std::int64_t begin = profile::bucket_begin(bucket);
  const std::int64_t end = profile::bucket_begin(bucket + 1);
  return std::clamp(begin + (end - 1 - begin) / 2, totals.least_ns, totals.most_ns);
}

base::Result<RankFile> parse_rank_file(std::string_view text, const std::string& file) {
  RankFile result;
  result.file = file;
  std::size_t number = 0;
  while (!text.empty() && !result.is_complete) {
    ++number;
    const std::size_t end = text.find('\n');
    // The rest of a line that was not written.
    if (end == std::string_view::npos && number > 1) break;
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const json object = json::parse(content.begin(), content.end(), nullptr, false);
    Line line(object);
    if (!object.is_object()) {
      line.fail("no JSON object");
    } else if (number == 1) {
      read_first(line, result);
    } else {
      result.is_complete = read_line(line, object, result);
    }
    if (!line.why().empty()) {
      return base::Error{base::Code::argument, fmt::format("{}:{}: {}", file, number, line.why())};
    }
  }
  if (number == 0) return base::Error{base::Code::argument, file + ":1: the file is empty"};
  if (!text.empty() && result.is_complete) {
    return base::Error{base::Code::argument,
                       fmt::format("{}:{}: text behind the last line", file, number + 1)};
  }
  return result;
}

}  // namespace unisono::tools
