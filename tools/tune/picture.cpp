// SPDX-License-Identifier: BSD-3-Clause
#include "tune/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "picture/axis.hpp"

namespace unisono::tools::tune {
namespace {

constexpr double kPictureWidth = 720, kPictureLeft = 80, kPictureRight = 150;
constexpr double kFirstPanel = 40, kPanelHeight = 230, kPanelGap = 80;
constexpr const char* kSeriesColours[] = {"#4e79a7", "#e15759", "#59a14f", "#f28e2b",
                                          "#b07aa1", "#76b7b2", "#9c755f", "#edc948"};

struct PlotPoint {
  double x = 0;
  std::string label;  // of x
  Comparison times;
};

struct Series {
  std::string name;
  std::vector<PlotPoint> points;  // by ascending x
};

double highest_us(const Comparison& each) {
  return std::max(each.measured_ns + each.plus_minus, each.predicted_ns) / 1e3;
}

// The times of all series: from 0 in round steps, or from one power of ten to another.
Axis time_axis(const std::vector<Series>& all, bool is_log) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Series& series : all) {
    for (const PlotPoint& each : series.points) {
      low = std::min({low, each.times.measured_ns / 1e3, each.times.predicted_ns / 1e3});
      high = std::max(high, highest_us(each.times));
    }
  }
  if (high <= 0) return {.low = is_log ? 1.0 : 0.0, .high = 10, .is_log = is_log};
  if (!is_log) return Axis::from_zero(high);
  low = std::pow(10, std::floor(std::log10(std::max(low, 1e-3))));
  return {.low = low,
          .high = std::max(low * 10, std::pow(10, std::ceil(std::log10(high)))),
          .is_log = true};
}

Axis place_axis(const std::vector<Series>& all, bool is_log) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Series& series : all) {
    for (const PlotPoint& each : series.points) {
      low = std::min(low, each.x);
      high = std::max(high, each.x);
    }
  }
  if (is_log) return {.low = low / 2, .high = high * 2, .is_log = true};
  return {.low = low - 0.5, .high = high + 0.5, .is_log = false};
}

class TuningPicture {
 public:
  std::string draw(const Tuning& tuning) {
    constexpr double kHeight = kFirstPanel + 2 * kPanelHeight + kPanelGap + 50;
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}")", kPictureWidth, kHeight);
    add(R"(  font-family="sans-serif" font-size="12">)");
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    panel("degrees", degrees_title(tuning), "degree of the f-nomial tree", degrees_of(tuning),
          false);
    top_ += kPanelHeight + kPanelGap;
    panel("sizes", "Serial reduce over sizes", "bytes", sizes_of(tuning), true);
    add("</svg>");
    return std::move(text_);
  }

 private:
  static std::string degrees_title(const Tuning& tuning) {
    if (tuning.degrees.empty()) return "Reduce over the degree: not measured";
    const Comparison& first = tuning.degrees.front();
    return fmt::format("Reduce of {} bytes, {} ranks, over the degree", first.bytes, first.ranks);
  }
  static std::vector<Series> degrees_of(const Tuning& tuning) {
    if (tuning.degrees.empty()) return {};
    Series series{.name = "", .points = {}};
    for (const Comparison& each : tuning.degrees) {
      series.points.push_back(
          {static_cast<double>(each.degree), std::to_string(each.degree), each});
    }
    return {std::move(series)};
  }
  // A series for each number of ranks.
  static std::vector<Series> sizes_of(const Tuning& tuning) {
    std::map<int, Series> by_ranks;
    for (const Comparison& each : tuning.comparisons) {
      if (each.bytes == 0) continue;
      Series& series = by_ranks[each.ranks];
      series.name = fmt::format("{} ranks", each.ranks);
      series.points.push_back(
          {static_cast<double>(each.bytes), base::format_size(each.bytes), each});
    }
    std::vector<Series> all;
    for (auto& [ranks, series] : by_ranks) all.push_back(std::move(series));
    return all;
  }

  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  double x_of(double value) const {
    return kPictureLeft + (kPictureWidth - kPictureLeft - kPictureRight) * across_.share(value);
  }
  double y_of(double us) const { return top_ + kPanelHeight * (1 - up_.share(us)); }

  void panel(std::string_view id, std::string_view title, std::string_view x_name,
             const std::vector<Series>& all, bool is_log) {
    add(R"(<g id="{}">)", id);
    add(R"(<text x="10" y="{}" font-size="15">{}</text>)", top_ - 16, title);
    if (!all.empty()) {
      across_ = place_axis(all, is_log);
      up_ = time_axis(all, is_log);
      axes(all.front(), x_name);
      std::size_t number = 0;
      for (const Series& each : all) series(each, number++);
    }
    add("</g>");
  }

  void axes(const Series& first, std::string_view x_name) {
    const double bottom = top_ + kPanelHeight, right = kPictureWidth - kPictureRight;
    for (const double mark : up_.marks()) {
      add(R"(<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}" stroke="#ddd"/>)", kPictureLeft,
          y_of(mark), right, y_of(mark));
      add(R"(<text x="{}" y="{:.1f}" text-anchor="end">{:.4g} us</text>)", kPictureLeft - 6,
          y_of(mark) + 4, mark);
    }
    add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="black"/>)", kPictureLeft, bottom, right,
        bottom);
    for (const PlotPoint& each : first.points) {
      add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x_of(each.x), bottom + 16,
          each.label);
    }
    add(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", (kPictureLeft + right) / 2,
        bottom + 32, x_name);
  }

  void series(const Series& series, std::size_t number) {
    const char* const colour = kSeriesColours[number % std::size(kSeriesColours)];
    std::string way;
    for (const PlotPoint& each : series.points) {
      way += fmt::format("{}{:.1f} {:.1f}", way.empty() ? "M" : "L", x_of(each.x),
                         y_of(each.times.predicted_ns / 1e3));
    }
    add(R"(<path class="predicted" d="{}" fill="none" stroke="{}"/>)", way, colour);
    for (const PlotPoint& each : series.points) {
      const Comparison& times = each.times;
      const double x = x_of(each.x), us = times.measured_ns / 1e3, range = times.plus_minus / 1e3;
      add(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="{3}"/>)", x,
          y_of(std::max(us - range, up_.low)), y_of(us + range), colour);
      add(R"(<circle class="measured" cx="{:.1f}" cy="{:.1f}" r="4" fill="{}">)"
          R"(<title>{}: measured {:.4g} us +- {:.2g}, predicted {:.4g} us</title></circle>)",
          x, y_of(us), colour, times.what, us, range, times.predicted_ns / 1e3);
    }
    legend(series.name, number, colour);
  }

  void legend(const std::string& name, std::size_t number, const char* colour) {
    const double x = kPictureWidth - kPictureRight + 12;
    const double y = top_ + 10 + 40 * static_cast<double>(number);
    const std::string of = name.empty() ? "" : ", " + name;
    add(R"(<circle cx="{}" cy="{}" r="4" fill="{}"/>)", x + 10, y - 4, colour);
    add(R"(<text x="{}" y="{}">measured{}</text>)", x + 26, y, of);
    add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}"/>)", x, y + 12, x + 20, y + 12,
        colour);
    add(R"(<text x="{}" y="{}">predicted</text>)", x + 26, y + 16);
  }

  std::string text_;
  double top_ = kFirstPanel;
  Axis across_, up_;  // of the panel that is drawn
};

}  // namespace

std::string tuning_picture(const Tuning& tuning) { return TuningPicture().draw(tuning); }

}  // namespace unisono::tools::tune
