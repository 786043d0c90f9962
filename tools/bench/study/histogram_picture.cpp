// SPDX-License-Identifier: BSD-3-Clause
#include "bench/study/histogram_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace unisono::tools::bench {
namespace {

constexpr double kPictureWidth = 640;
constexpr double kPanel = 200;  // high
constexpr double kLeft = 20;
constexpr double kRight = 20;
constexpr double kTop = 30;
constexpr double kBottom = 40;
constexpr int kMarks = 5;  // on the axis of times

// Draws a panel whose upper edge is at `top`.
std::string draw(const Panel& panel, double top) {
  const Histogram& histogram = panel.histogram;
  const double base = top + kPanel - kBottom;
  const double high = kPanel - kTop - kBottom;
  const double wide =
      (kPictureWidth - kLeft - kRight) / static_cast<double>(histogram.counts.size());
  const auto most =
      static_cast<double>(std::max<std::int64_t>(1, std::ranges::max(histogram.counts)));
  std::string svg = fmt::format("<text x='{}' y='{}'>{}</text>\n", kLeft, top + 18, panel.title);
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const double bar = static_cast<double>(histogram.counts[i]) / most * high;
    svg += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>\n",
                       kLeft + static_cast<double>(i) * wide, base - bar, wide - 1, bar);
  }
  svg += fmt::format("<path d='M{} {}H{}'/>\n", kLeft, base, kPictureWidth - kRight);
  for (int mark = 0; mark < kMarks; ++mark) {
    const double share = static_cast<double>(mark) / (kMarks - 1);
    const double us =
        histogram.from + histogram.bin * static_cast<double>(histogram.counts.size()) * share;
    const char* anchor = mark == 0 ? "start" : mark + 1 == kMarks ? "end" : "middle";
    svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='{}'>{:.2f} us</text>\n",
                       kLeft + share * (kPictureWidth - kLeft - kRight), base + 18, anchor, us);
  }
  return svg;
}

}  // namespace

std::string histogram_picture(const std::vector<Panel>& panels) {
  const double height = kPanel * static_cast<double>(panels.size());
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n"
      "<style>rect{{fill:#c02020}} path{{stroke:#444}} text{{fill:#222}}</style>\n"
      "<g><rect width='100%' height='100%' style='fill:#fff'/></g>\n",
      kPictureWidth, height);
  double top = 0;
  for (const Panel& panel : panels) {
    svg += draw(panel, top);
    top += kPanel;
  }
  return svg + "</svg>\n";
}

}  // namespace unisono::tools::bench
