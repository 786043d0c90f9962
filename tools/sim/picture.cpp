// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "picture/axis.hpp"
#include "picture/svg_text.hpp"

namespace unisono::tools {
namespace {

class EndsPicture {
 public:
  EndsPicture(std::vector<double> ends_us, std::size_t ranks)
      : ends_us_(std::move(ends_us)),
        ranks_(ranks),
        time_(Axis::from_zero(std::max(std::ranges::max(ends_us_), 1e-3))) {}

  std::string draw(std::string_view title) {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}")", kWidth,
        kTop + 2 * kPanel + kGap + 60);
    add(R"(  font-family="sans-serif" font-size="12">)");
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    add(R"(<text x="10" y="22" font-size="15">{}</text>)", svg_text(title));
    add(R"(<g id="ranks">)");
    by_rank(kTop);
    add(R"(</g>)");
    add(R"(<g id="ended">)");
    by_time(kTop + kPanel + kGap);
    add(R"(</g>)");
    add("</svg>");
    return std::move(text_);
  }

 private:
  static constexpr double kWidth = 720, kLeft = 90, kRight = 30;
  static constexpr double kTop = 60, kPanel = 200, kGap = 90;
  static constexpr double kAcross = kWidth - kLeft - kRight;
  static constexpr std::size_t kMostColumns = 600;  // a pixel each, at the usual size

  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  void frame(double top, std::string_view name, std::string_view across) {
    add(R"(<text x="10" y="{}">{}</text>)", top - 10, name);
    add(R"(<path d="M{0} {1}V{2}H{3}" fill="none" stroke="black"/>)", kLeft, top, top + kPanel,
        kWidth - kRight);
    add(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", kLeft + kAcross / 2,
        top + kPanel + 36, across);
  }
  void mark_across(double top, double share, const std::string& text) {
    add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", kLeft + kAcross * share,
        top + kPanel + 18, text);
  }
  void mark_up(double y, const std::string& text) {
    add(R"(<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}" stroke="#ddd"/>)", kLeft, y,
        kWidth - kRight, y);
    add(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 6, y + 4, text);
  }

  // Neighbouring ranks share a column: from the first that ends to the last, and their mean.
  void by_rank(double top) {
    const auto y_of = [&](double us) { return top + kPanel * (1 - time_.share(us)); };
    for (const double mark : time_.marks()) mark_up(y_of(mark), fmt::format("{:.4g} us", mark));
    frame(top, "When each rank ends", "rank");
    mark_across(top, 0, "0");
    mark_across(top, 1, fmt::format("{}", ranks_ - 1));
    const std::size_t columns = std::min(ends_us_.size(), kMostColumns);
    const double wide = kAcross / static_cast<double>(columns);
    std::string means;
    for (std::size_t i = 0; i < columns; ++i) {
      const auto begin = ends_us_.begin() + place(i, columns);
      const auto end = ends_us_.begin() + place(i + 1, columns);
      const auto [first, last] = std::minmax_element(begin, end);
      const double mean = std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
      const double x = kLeft + wide * static_cast<double>(i);
      add(R"(<rect class="range" x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" )"
          R"(fill="#a0cbe8"/>)",
          x, y_of(*last), wide, y_of(*first) - y_of(*last));
      means += fmt::format("{}{:.1f} {:.1f}H{:.1f}", i == 0 ? "M" : "L", x, y_of(mean), x + wide);
    }
    add(R"(<path class="mean" d="{}" fill="none" stroke="#4e79a7"/>)", means);
  }

  std::ptrdiff_t place(std::size_t column, std::size_t columns) const {
    return static_cast<std::ptrdiff_t>(column * ends_us_.size() / columns);
  }

  // The share of ranks that have ended, at the times when that changes.
  void by_time(double top) {
    const auto y_of = [&](double share) { return top + kPanel * (1 - share); };
    for (const int percent : {0, 50, 100})
      mark_up(y_of(percent / 100.0), fmt::format("{} %", percent));
    frame(top, "Ranks that have ended", "time");
    for (const double mark : time_.marks()) {
      mark_across(top, time_.share(mark), fmt::format("{:.4g} us", mark));
    }
    std::vector<double> sorted = ends_us_;
    std::ranges::sort(sorted);
    std::string way = fmt::format("M{} {}", kLeft, y_of(0));
    const std::size_t columns = std::min(sorted.size(), kMostColumns);
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t ended = static_cast<std::size_t>(place(i + 1, columns));
      way += fmt::format("H{:.1f}V{:.1f}", kLeft + kAcross * time_.share(sorted[ended - 1]),
                         y_of(static_cast<double>(ended) / static_cast<double>(sorted.size())));
    }
    add(R"(<path class="ended" d="{}H{}" fill="none" stroke="#4e79a7"/>)", way, kWidth - kRight);
  }

  std::vector<double> ends_us_;
  std::size_t ranks_;
  Axis time_;
  std::string text_;
};

}  // namespace

std::string ends_picture(std::string_view title, const sim::SimulationResult& result, int ranks) {
  std::vector<double> ends_us;
  for (const sim::Time end : result.by_rank) ends_us.push_back(sim::to_ns(end) / 1e3);
  if (ends_us.empty()) ends_us.push_back(sim::to_ns(result.finish) / 1e3);
  return EndsPicture(std::move(ends_us), static_cast<std::size_t>(ranks)).draw(title);
}

}  // namespace unisono::tools
