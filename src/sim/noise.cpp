// SPDX-License-Identifier: BSD-3-Clause
#include "sim/noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/prng.hpp"

namespace unisono::sim {
namespace {

constexpr std::size_t kMostDetours = std::size_t{1} << 22;  // 64 MiB
constexpr double kMostNs = 1e12;                            // a quarter of an hour

base::Error no_noise(std::string_view what) {
  return {base::Code::argument, fmt::format("noise: {}", what)};
}

std::optional<double> parse_ns(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0 && value <= kMostNs)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

base::Result<Noise> Noise::of(std::vector<Detour> detours, Time period) {
  Noise noise;
  noise.detours_ = std::move(detours);
  noise.period_ = period;
  if (!(noise.share() < 1)) return no_noise("detours have to leave some time between them");
  return noise;
}

base::Result<Noise> Noise::fixed(Time period, Time length) {
  if (!(period > 0 && length >= 0 && length < period)) {
    return no_noise("a detour has to be shorter than its period");
  }
  return of({{0, length}}, period);
}

base::Result<Noise> Noise::random(Time period, Time length, std::uint64_t seed) {
  if (!(period > 0 && length >= 0)) return no_noise("the period has to be more than 0");
  // So many that ranks at different places of the trace have nothing in common.
  constexpr int kDetours = 1 << 16;
  base::Prng prng(seed);
  std::vector<Detour> detours;
  Time at = 0;
  for (int i = 0; i < kDetours; ++i) {
    at += std::round(-std::log(1 - prng.unit()) * period);
    detours.push_back({at, length});
    at += length;
  }
  return of(std::move(detours), at + period);
}

base::Result<Noise> Noise::parse(std::string_view text, std::string_view file) {
  std::vector<Detour> detours;
  Time end = 0;
  for (int line = 1; !text.empty(); ++line) {
    const auto fail = [&](std::string_view what) {
      return base::Error{base::Code::argument, fmt::format("{}:{}: {}", file, line, what)};
    };
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    content = content.substr(0, content.find('#'));
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto start = parse_ns(content);
    const auto detour = start ? parse_ns(content) : std::nullopt;
    if (!detour || content.find_first_not_of(" \t\r") != std::string_view::npos) {
      return fail("expected start and length of a detour in nanoseconds");
    }
    if (to_time(*start) < end)
      return fail("expected detours in their order, apart from each other");
    if (detours.size() == kMostDetours) {
      return fail(fmt::format("expected at most {} detours", kMostDetours));
    }
    detours.push_back({to_time(*start), to_time(*detour)});
    end = to_time(*start) + to_time(*detour);
  }
  if (detours.empty()) {
    return base::Error{base::Code::argument, fmt::format("{}:1: expected a detour", file)};
  }
  return of(std::move(detours), end + 1);
}

double Noise::share() const {
  Time taken = 0;
  for (const Detour& detour : detours_) taken += detour.length;
  return detours_.empty() ? 0 : taken / period_;
}

Time Noise::end_of(Time start, Time work, Time offset) const {
  if (detours_.empty() || work <= 0) return start + work;
  Time at = std::fmod(start + offset, period_);  // in the trace
  const Time shift = start - at;
  auto next = std::ranges::upper_bound(detours_, at, {}, &Detour::start);
  Time whole_periods = 0;
  // A detour may be under way, that of the trace's end included.
  if (next != detours_.begin()) at = std::max(at, (next - 1)->start + (next - 1)->length);
  for (;;) {
    const Time free = (next == detours_.end() ? period_ : next->start) - at;
    if (work <= free) return shift + whole_periods + at + work;
    work -= free;
    if (next == detours_.end()) {
      whole_periods += period_;
      at = 0;
      next = detours_.begin();
    } else {
      at = next->start + next->length;
      ++next;
    }
  }
}

}  // namespace unisono::sim
