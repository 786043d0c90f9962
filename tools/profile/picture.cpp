// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "picture/svg_text.hpp"
#include "profile/report.hpp"

namespace unisono::tools {
namespace {

constexpr double kWidth = 960, kLeft = 90, kRight = 190, kTop = 50, kPanel = 190, kGap = 60;
constexpr const char* kColours[] = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f",
                                    "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac"};

// At most ten characters, which fit beside the axis.
std::string axis_label(double value) {
  if (value < 1000) return fmt::format("{:.4g}", value);
  return value < 1e10 ? fmt::format("{:.0f}", value) : fmt::format("{:.3e}", value);
}

// Rows of one name share a colour: the collective and the operator with its type.
std::string name_of(const ProfileRow& row) {
  std::string name = row.kind.collective;
  if (!row.kind.op.empty()) name += fmt::format(" {} {}", row.kind.op, row.kind.type);
  if (!row.kind.reason.empty()) name += ", host MPI";
  return name;
}

// Two panels of stacked bars, one bar for each size class: the time in calls, and their number.
class Picture {
 public:
  explicit Picture(const MergedProfile& profile) : profile_(profile) {
    std::map<std::string, double> times;
    for (const ProfileRow& row : profile.rows) {
      classes_.insert(row.kind.bytes_class);
      times[name_of(row)] += static_cast<double>(row.totals.ns);
    }
    for (auto& [name, ns] : times) names_.emplace_back(ns, name);
    std::ranges::sort(names_, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
  }

  std::string draw() {
    const double legend = kTop + 20 * static_cast<double>(std::min(names_.size(), kMostNames) + 1);
    const double height = std::max(kTop + 2 * kPanel + kGap + 60, legend);
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}")", kWidth, height);
    add(R"(  font-family="sans-serif" font-size="12">)");
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    add(R"(<text x="10" y="22" font-size="15">Collectives of {} ranks: {:.1f} ms in calls, all)"
        R"( ranks together</text>)",
        profile_.job_ranks, static_cast<double>(profile_.ns) / 1e6);
    panel(kTop, "ms in calls",
          [](const ProfileRow& row) { return static_cast<double>(row.totals.ns) / 1e6; });
    panel(kTop + kPanel + kGap, "calls",
          [](const ProfileRow& row) { return static_cast<double>(row.totals.calls); });
    names();
    add("</svg>");
    return std::move(text_);
  }

 private:
  static constexpr std::size_t kMostNames = std::size(kColours);

  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  // The names beyond the colours share the last one.
  std::size_t place_of(std::string_view name) const {
    const auto found =
        std::ranges::find(names_, name, [](const auto& each) { return each.second; });
    return std::min(static_cast<std::size_t>(found - names_.begin()), kMostNames - 1);
  }

  template <class Value>
  void panel(double top, std::string_view title, const Value& value) {
    // By class and colour.
    std::map<std::int64_t, std::vector<double>> bars;
    for (const std::int64_t each : classes_) bars[each].resize(kMostNames);
    for (const ProfileRow& row : profile_.rows) {
      bars[row.kind.bytes_class][place_of(name_of(row))] += value(row);
    }
    double greatest = 0;
    for (const auto& [size, parts] : bars) {
      double sum = 0;
      for (const double part : parts) sum += part;
      greatest = std::max(greatest, sum);
    }
    const double bottom = top + kPanel;
    add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="black"/>)", kLeft, bottom, kWidth - kRight,
        bottom);
    add(R"(<text x="10" y="{}">{}</text>)", top - 8, title);
    add(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 6, top + 10,
        axis_label(greatest));
    add(R"(<text x="{}" y="{}" text-anchor="end">0</text>)", kLeft - 6, bottom);
    const double step =
        (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
    double x = kLeft;
    for (const auto& [size, parts] : bars) {
      bar(x + step * 0.1, step * 0.8, bottom, greatest == 0 ? 0 : kPanel / greatest, parts);
      add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x + step / 2, bottom + 16,
          base::format_size(size));
      x += step;
    }
    add(R"(<text x="{}" y="{}" text-anchor="middle">bytes, from</text>)",
        (kLeft + kWidth - kRight) / 2, bottom + 32);
  }

  void bar(double x, double width, double bottom, double scale, const std::vector<double>& parts) {
    double y = bottom;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == 0) continue;
      const double height = parts[i] * scale;
      y -= height;
      add(R"(<rect x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}" fill="{}">)"
          R"(<title>{}: {:.6g}</title></rect>)",
          x, y, width, height, kColours[i], svg_text(label(i)), parts[i]);
    }
  }

  std::string label(std::size_t place) const {
    const bool is_shared = place + 1 == kMostNames && names_.size() > kMostNames;
    return is_shared ? fmt::format("{} others", names_.size() - kMostNames + 1)
                     : names_[place].second;
  }

  void names() {
    double y = kTop;
    for (std::size_t i = 0; i < std::min(names_.size(), kMostNames); ++i, y += 20) {
      add(R"(<rect x="{}" y="{}" width="14" height="14" fill="{}"/><text x="{}" y="{}">{}</text>)",
          kWidth - kRight + 16, y, kColours[i], kWidth - kRight + 36, y + 12, svg_text(label(i)));
    }
  }

  const MergedProfile& profile_;
  std::set<std::int64_t> classes_;
  std::vector<std::pair<double, std::string>> names_;  // by time
  std::string text_;
};

}  // namespace

std::string profile_picture(const MergedProfile& profile) { return Picture(profile).draw(); }

}  // namespace unisono::tools
