// SPDX-License-Identifier: BSD-3-Clause
#include "paper/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "paper/published.hpp"

namespace unisono::tools {
namespace {

// Whole numbers as such; others with two decimals below ten, and one above.
std::string number(double value) {
  if (value == std::round(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
}

std::string with_unit(double value, const std::string& unit) {
  return unit.empty() ? number(value) : fmt::format("{} {}", number(value), unit);
}

std::string percent(double value) {
  return std::abs(value) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", value);
}

std::string deviation(const Claim& claim) { return percent(claim.deviation_percent()); }

std::string published(const MeasuredRow& row) {
  return row.published ? with_unit(*row.published, row.unit) : "none";
}

std::string deviation(const MeasuredRow& row) {
  return row.published ? percent((row.measured / *row.published - 1) * 100) : "";
}

std::string tolerance(const Claim& claim) {
  if (claim.bound == Bound::at_least) {
    return fmt::format("at least, {:.0f} %", claim.tolerance_percent);
  }
  return claim.tolerance_percent == 0 ? "equal" : fmt::format("{:.0f} %", claim.tolerance_percent);
}

std::string result(const Claim& claim) {
  if (claim.holds()) return "holds";
  return fmt::format("deviates: {}", claim.why.empty() ? "the reason is not known" : claim.why);
}

std::size_t holding(const PaperReport& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.claims, &Claim::holds));
}

std::size_t holding_orders(const PaperReport& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.orders, &OrderClaim::holds));
}

std::string gap(const OrderClaim& order) {
  return order.published_gap_percent > 0 ? fmt::format("{:.1f} %", order.published_gap_percent)
                                         : "not published";
}

void append_measured(const PaperReport& report, std::string& page) {
  const auto out = std::back_inserter(page);
  const MeasuredPart& part = report.measured;
  fmt::format_to(out, "\n### {}: measured here\n\n{}\n", report.paper, part.without);
  if (part.rows.empty()) return;
  page += "\n| data | command | machine |\n| --- | --- | --- |\n";
  for (const MeasurementSource& source : part.sources) {
    fmt::format_to(out, "| [{0}](../bench/results/{0}) | `{1}` | {2} |\n", source.file,
                   source.command, source.machine);
  }
  page +=
      "\n| figure | published | measured | deviation | comparable |\n"
      "| --- | ---: | ---: | ---: | --- |\n";
  for (const MeasuredRow& row : part.rows) {
    fmt::format_to(out, "| {} | {} | {} | {} | {} |\n", row.what, published(row),
                   with_unit(row.measured, row.unit), deviation(row), row.comparable);
  }
}

void append_orders(const PaperReport& report, std::string& page) {
  if (report.orders.empty()) return;
  page += "\n| order | published gap | result |\n| --- | ---: | --- |\n";
  for (const OrderClaim& order : report.orders) {
    fmt::format_to(std::back_inserter(page), "| {} | {} | {} |\n", order.what, gap(order),
                   order.holds ? "holds" : "the other way");
  }
}

void append_section(const PaperReport& report, std::string& page) {
  const auto out = std::back_inserter(page);
  fmt::format_to(out, "\n## {}\n\n{}. {} of {} figures hold", report.paper, report.title,
                 holding(report), report.claims.size());
  if (!report.orders.empty()) {
    fmt::format_to(out, ", and {} of {} orders", holding_orders(report), report.orders.size());
  }
  page += ".\n\n";
  for (const std::string& parameter : report.parameters) fmt::format_to(out, "- {}\n", parameter);
  fmt::format_to(out,
                 "\n![Deviations of the simulated figures]({}.svg)\n\n"
                 "| claim | published | simulated | deviation | tolerance | result |\n"
                 "| --- | ---: | ---: | ---: | ---: | --- |\n",
                 report.paper);
  for (const Claim& claim : report.claims) {
    fmt::format_to(out, "| {} | {} | {} | {} | {} | {} |\n", claim.what,
                   with_unit(claim.published, claim.unit), with_unit(claim.simulated, claim.unit),
                   deviation(claim), tolerance(claim), result(claim));
  }
  append_orders(report, page);
  append_measured(report, page);
}

}  // namespace

std::string report_table(const PaperReport& report) {
  std::string text = fmt::format("{}: {}\n", report.paper, report.title);
  const auto out = std::back_inserter(text);
  for (const std::string& parameter : report.parameters) fmt::format_to(out, "  {}\n", parameter);
  fmt::format_to(out, "{:<54} {:>10} {:>10} {:>10} {:>14}  {}\n", "claim", "published", "simulated",
                 "deviation", "tolerance", "result");
  for (const Claim& claim : report.claims) {
    fmt::format_to(out, "{:<54} {:>10} {:>10} {:>10} {:>14}  {}\n", claim.what,
                   with_unit(claim.published, claim.unit), with_unit(claim.simulated, claim.unit),
                   deviation(claim), tolerance(claim), result(claim));
  }
  for (const OrderClaim& order : report.orders) {
    const std::string apart = order.published_gap_percent > 0
                                  ? fmt::format("{:.1f} % apart", order.published_gap_percent)
                                  : "";
    fmt::format_to(out, "{:<54} {:>21}  {}\n", order.what, apart,
                   order.holds ? "holds" : "the other way");
  }
  for (const MeasurementSource& source : report.measured.sources) {
    fmt::format_to(out, "measured: {}, {}, {}\n", source.file, source.command, source.machine);
  }
  for (const MeasuredRow& row : report.measured.rows) {
    fmt::format_to(out, "{:<80} {:>10} {:>10} {:>11}  {}\n", row.what, published(row),
                   with_unit(row.measured, row.unit), deviation(row), row.comparable);
  }
  fmt::format_to(out, "{}\n", report.measured.without);
  return text;
}

nlohmann::ordered_json report_json(const PaperReport& report) {
  nlohmann::ordered_json json{{"paper", report.paper}, {"parameters", report.parameters}};
  for (const Claim& claim : report.claims) {
    json["claims"].push_back({{"what", claim.what},
                              {"unit", claim.unit},
                              {"published", claim.published},
                              {"simulated", claim.simulated},
                              {"tolerance_percent", claim.tolerance_percent},
                              {"at_least", claim.bound == Bound::at_least},
                              {"holds", claim.holds()},
                              {"why", claim.holds() ? "" : claim.why}});
  }
  for (const OrderClaim& order : report.orders) {
    json["orders"].push_back({{"what", order.what},
                              {"published_gap_percent", order.published_gap_percent},
                              {"holds", order.holds}});
  }
  for (const MeasurementSource& source : report.measured.sources) {
    json["measurements"].push_back(
        {{"file", source.file}, {"command", source.command}, {"machine", source.machine}});
  }
  for (const MeasuredRow& row : report.measured.rows) {
    nlohmann::ordered_json measured{{"what", row.what}, {"unit", row.unit}};
    if (row.published) measured["published"] = *row.published;
    measured["measured"] = row.measured;
    measured["comparable"] = row.comparable;
    json["measured"].push_back(std::move(measured));
  }
  json["not_measured"] = report.measured.without;
  return json;
}

std::string report_page(std::span<const PaperReport> reports, std::span<const std::string> unused) {
  std::string page =
      "# Published figures beside simulated and measured ones\n\n"
      "This page compares the figures of five papers with those of the simulator, and with "
      "measured ones where a counterpart exists. "
      "Each claim has a tolerance. All were stated before anything was simulated, but for the 5 % "
      "of the best degree on 31 nodes. "
      "`unisono paper all --write paper` writes this page and its pictures "
      "([how to](../docs/howto/reproduce-the-papers.md)).\n\n"
      "| paper | figures | hold | orders | hold |\n| --- | ---: | ---: | ---: | ---: |\n";
  const auto out = std::back_inserter(page);
  for (const PaperReport& report : reports) {
    fmt::format_to(out, "| [{0}](#{0}) | {1} | {2} | {3} | {4} |\n", report.paper,
                   report.claims.size(), holding(report), report.orders.size(),
                   holding_orders(report));
  }
  page +=
      "\nA parameter is *published*, *published elsewhere* (by another of the papers), *assumed*, "
      "or "
      "*fitted*. A fit uses other figures than those that it is checked with.\n";
  page +=
      "\nMeasured figures come from hosts that are network namespaces of one virtual machine. "
      "They share its two cores, and between them are veth pairs and a bridge. The NIC path is "
      "eBPF, XDP in generic mode: the kernel runs the programs on those cores, not on a NIC's "
      "processor. So factors can be compared at best, and microseconds cannot. Measured figures "
      "have no tolerance. Means and deviations leave out the highest 1 % of the calls, as those "
      "of nic-reduce do. Factors from `2026-11-hosts.json` are medians of runs in pairs.\n";
  for (const PaperReport& report : reports) append_section(report, page);
  page +=
      "\n## Published numbers without a claim\n\n"
      "| number in [numbers.json](numbers.json) | why |\n| --- | --- |\n";
  for (const std::string& place : unused) {
    fmt::format_to(out, "| `{}` | {} |\n", place, why_without_claim(place));
  }
  return page;
}

std::string deviation_picture(const PaperReport& report) {
  constexpr double kName = 400, kPlot = 360, kLine = 18, kTop = 30, kMost = 60;  // percent
  const double height = kTop + kLine * static_cast<double>(report.claims.size()) + 30;
  const auto x = [&](double percent) {
    return kName + kPlot / 2 * (1 + std::clamp(percent, -kMost, kMost) / kMost);
  };
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='11'>\n"
      "<style>text{{fill:#222}} .band{{fill:#e4e4e4}} .holds{{fill:#208040}} "
      ".deviates{{fill:#c02020}} path{{stroke:#444}}</style>\n"
      "<rect width='100%' height='100%' fill='#fff'/>\n"
      "<text x='10' y='18'>{2}: simulated against published; grey: the tolerance</text>\n",
      kName + kPlot + 60, height, report.paper);
  const auto out = std::back_inserter(svg);
  double top = kTop;
  for (const Claim& claim : report.claims) {
    const double most = claim.bound == Bound::at_least ? kMost : claim.tolerance_percent;
    const double from = x(-claim.tolerance_percent), to = x(most);
    const double bar = x(claim.deviation_percent()), zero = x(0);
    fmt::format_to(out,
                   "<text x='{:.0f}' y='{:.0f}' text-anchor='end'>{}</text>\n"
                   "<rect class='band' x='{:.1f}' y='{:.0f}' width='{:.1f}' height='14'/>\n"
                   "<rect class='{}' x='{:.1f}' y='{:.0f}' width='{:.1f}' height='6'/>\n",
                   kName - 8, top + 11, claim.what, from, top, to - from,
                   claim.holds() ? "holds" : "deviates", std::min(bar, zero), top + 4,
                   std::max(std::abs(bar - zero), 1.0));
    top += kLine;
  }
  fmt::format_to(out, "<path d='M{0:.1f} {1:.0f}V{2:.0f}'/>\n", x(0), kTop, top);
  for (const double percent : {-kMost, -kMost / 2, 0.0, kMost / 2, kMost}) {
    fmt::format_to(out, "<text x='{:.1f}' y='{:.0f}' text-anchor='middle'>{:+.0f} %</text>\n",
                   x(percent), top + 16, percent);
  }
  return svg + "</svg>\n";
}

}  // namespace unisono::tools
