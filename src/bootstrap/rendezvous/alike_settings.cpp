// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/alike_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "wire/key.hpp"

namespace unisono::bootstrap {
namespace {

using base::Setting;

constexpr std::array kAlike = {
    Setting::algorithm,     Setting::learn, Setting::learn_until, Setting::buffers,
    Setting::channels,      Setting::bulk,  Setting::single_copy, Setting::single_copy_from,
    Setting::first_sequence};
constexpr char kBetween = ';';
// UNISONO_ALGORITHM takes any number of rules; the others are short.
constexpr std::size_t kMostValueBytes = 160;
// Ranks that a message names in one list.
constexpr std::size_t kMostNamed = 8;

// Without kBetween, and short.
std::string value_text(std::string_view value) {
  std::string text(value.substr(0, kMostValueBytes));
  std::ranges::replace(text, kBetween, ',');
  if (value.size() > text.size()) {
    text += fmt::format("... ({:016x})", wire::hash(wire::Key{}, value));
  }
  return text;
}

std::vector<std::string_view> values_of(std::string_view text) {
  std::vector<std::string_view> values;
  for (std::size_t end = 0; (end = text.find(kBetween)) != std::string_view::npos;) {
    values.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return values;
}

std::string name_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {} has", ranks[0]);
  const std::span named = std::span(ranks).first(std::min(ranks.size(), kMostNamed));
  const std::size_t more = ranks.size() - named.size();
  return fmt::format("ranks {}{} have", fmt::join(named, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

// Empty if the value is the same in all.
std::string difference(Setting setting, std::size_t place,
                       std::span<const std::vector<std::string_view>> by_rank) {
  std::map<std::string_view, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    ranks[by_rank[rank][place]].push_back(static_cast<int>(rank));
  }
  if (ranks.size() < 2) return {};
  const auto size = [](const auto& group) { return group.second.size(); };
  const auto largest = std::ranges::max_element(ranks, {}, size);
  const bool has_majority = size(*largest) > by_rank.size() / 2;
  const auto shown = [setting](std::string_view value) {
    if (!value.empty()) return std::string(value);
    const std::string_view fallback = base::setting_row(setting).fallback;
    return fallback.empty() ? "not set it" : fmt::format("the default {}", fallback);
  };
  std::string text;
  for (auto group = ranks.begin(); group != ranks.end(); ++group) {
    if (has_majority && group == largest) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_ranks(group->second),
                        shown(group->first));
  }
  if (has_majority) text += fmt::format(", all others have {}", shown(largest->first));
  return fmt::format("{}: {}", base::setting_row(setting).name, text);
}

}  // namespace

std::string settings_text(const base::Settings& settings) {
  std::string text;
  for (const Setting setting : kAlike) {
    text += value_text(settings.as_written(setting));
    text += kBetween;
  }
  return text;
}

std::string differing_settings(std::span<const std::string_view> texts) {
  std::vector<std::vector<std::string_view>> by_rank;
  for (const std::string_view text : texts) {
    by_rank.push_back(values_of(text));
    if (by_rank.back().size() != kAlike.size()) return {};
  }
  std::string all;
  for (std::size_t place = 0; place < kAlike.size(); ++place) {
    const std::string one = difference(kAlike[place], place, by_rank);
    if (one.empty()) continue;
    if (!all.empty()) all += "; ";
    all += one;
  }
  return all;
}

}  // namespace unisono::bootstrap
