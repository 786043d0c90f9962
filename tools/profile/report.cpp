// SPDX-License-Identifier: BSD-3-Clause
#include "profile/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.hpp"

namespace unisono::tools {
namespace {

using nlohmann::ordered_json;
using Totals = profile::Series::Totals;

double mean(std::int64_t sum, std::int64_t calls) {
  return calls == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(calls);
}

// nullopt: some calls have no prediction.
std::optional<double> predicted_ns(const Totals& totals) {
  if (totals.unpredicted != 0) return std::nullopt;
  return mean(totals.predicted_ns, totals.calls);
}

std::string us(double ns) { return fmt::format("{:.1f}", ns / 1000); }

std::string bytes_of(const Totals& totals) {
  if (totals.least_bytes == totals.most_bytes) return fmt::format("{}", totals.most_bytes);
  return fmt::format("{}-{}", totals.least_bytes, totals.most_bytes);
}

std::string collective_of(const ProfileRow& row) {
  return row.kind.collective + (row.form == profile::Form::started ? " (started)" : "");
}

std::string way_of(const profile::Kind& kind) {
  if (!kind.reason.empty()) return fmt::format("{}: {}", kind.engine, kind.reason);
  if (kind.algorithm.empty()) return "-";
  return fmt::format("{}, {}", kind.algorithm, kind.engine);
}

std::string line_of(const ProfileRow& row, double all_ns) {
  const Totals& totals = row.totals;
  const auto predicted = predicted_ns(totals);
  const double mean_ns = mean(totals.ns, totals.calls);
  const auto dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  const std::string ranks = row.kind.hosts > 1
                                ? fmt::format("{}/{}", row.kind.ranks, row.kind.hosts)
                                : fmt::format("{}", row.kind.ranks);
  return fmt::format(
      "{:>5.1f}% {:>10.2f}  {:<22} {:<8} {:<12} {:>17} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}  "
      "{}\n",
      all_ns == 0 ? 0.0 : 100 * static_cast<double>(totals.ns) / all_ns,
      static_cast<double>(totals.ns) / 1e6, collective_of(row), dash(row.kind.op),
      dash(row.kind.type), bytes_of(totals), ranks, totals.calls, us(mean_ns),
      us(static_cast<double>(percentile_ns(totals, 0.5))),
      us(static_cast<double>(percentile_ns(totals, 0.99))), predicted ? us(*predicted) : "-",
      row.form == profile::Form::started || !row.kind.reason.empty()
          ? "-"
          : fmt::format("{:.0f}%",
                        100 * mean(totals.waited_ns, std::max<std::int64_t>(1, totals.ns))),
      way_of(row.kind));
}

ordered_json json_of(const ProfileRow& row) {
  const profile::Kind& kind = row.kind;
  const Totals& totals = row.totals;
  ordered_json out;
  out["collective"] = kind.collective;
  out["form"] = form_name(row.form);
  out["operator"] = kind.op.empty() ? ordered_json(nullptr) : ordered_json(kind.op);
  out["type"] = kind.type.empty() ? ordered_json(nullptr) : ordered_json(kind.type);
  out["size_class"] = kind.bytes_class;
  out["ranks"] = kind.ranks;
  out["hosts"] = kind.hosts;
  out["algorithm"] = kind.algorithm.empty() ? ordered_json(nullptr) : ordered_json(kind.algorithm);
  out["engine"] = kind.engine;
  out["reason"] = kind.reason.empty() ? ordered_json(nullptr) : ordered_json(kind.reason);
  out["calls"] = totals.calls;
  out["bytes"] = {{"least", totals.least_bytes},
                  {"mean", mean(totals.bytes, totals.calls)},
                  {"most", totals.most_bytes},
                  {"sum", totals.bytes}};
  const auto predicted = predicted_ns(totals);
  out["predicted_ns"] = predicted ? ordered_json(*predicted) : ordered_json(nullptr);
  out["measured_ns"] = {{"sum", totals.ns},
                        {"mean", mean(totals.ns, totals.calls)},
                        {"least", totals.least_ns},
                        {"p50", percentile_ns(totals, 0.5)},
                        {"p99", percentile_ns(totals, 0.99)},
                        {"most", totals.most_ns}};
  const bool is_known = row.form == profile::Form::blocking && kind.reason.empty();
  out["waited_calls"] = is_known ? ordered_json(totals.waits) : ordered_json(nullptr);
  out["waited_ns"] = is_known ? ordered_json(totals.waited_ns) : ordered_json(nullptr);
  return out;
}

}  // namespace

std::string profile_head(const MergedProfile& profile) {
  const std::string& machine =
      profile.ranks.empty() ? std::string("-") : profile.ranks.front().origin.machine;
  return fmt::format("{} of {} ranks, predicted with the machine file {}\n", profile.ranks.size(),
                     profile.job_ranks, machine);
}

std::string profile_table(const std::vector<ProfileRow>& rows, std::size_t most) {
  double all_ns = 0;
  for (const ProfileRow& row : rows) all_ns += static_cast<double>(row.totals.ns);
  std::string out = fmt::format(
      "{:>6} {:>10}  {:<22} {:<8} {:<12} {:>17} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}  {}\n",
      "share", "ms", "collective", "operator", "type", "bytes", "ranks", "calls", "mean us",
      "p50 us", "p99 us", "predicted", "waited", "by");
  const std::size_t shown = most == 0 ? rows.size() : std::min(most, rows.size());
  for (std::size_t i = 0; i < shown; ++i) out += line_of(rows[i], all_ns);
  if (shown < rows.size()) out += fmt::format("and {} more rows\n", rows.size() - shown);
  return out;
}

std::string profile_json(const MergedProfile& profile) {
  ordered_json out;
  out["schema"] = "unisono-profile";
  out["version"] = 1;
  out["job_ranks"] = profile.job_ranks;
  out["left_out"] = profile.left_out;
  out["unfinished"] = profile.unfinished;
  out["learned"] = profile.learned;
  out["rows"] = ordered_json::array();
  for (const ProfileRow& row : profile.rows) out["rows"].push_back(json_of(row));
  out["ranks"] = ordered_json::array();
  for (const RankFile& each : profile.ranks) {
    std::vector<ProfileRow> rows = each.rows;
    sort_by_time(rows);
    ordered_json of_rank;
    of_rank["rank"] = each.origin.rank;
    of_rank["host"] = each.host;
    of_rank["machine"] = each.origin.machine;
    of_rank["rows"] = ordered_json::array();
    for (const ProfileRow& row : rows) of_rank["rows"].push_back(json_of(row));
    out["ranks"].push_back(of_rank);
  }
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace unisono::tools
