// SPDX-License-Identifier: BSD-3-Clause
// Published: the numbers of the papers, paper/numbers.json, each by its place in that file. It
// remembers which ones were asked for, so that the report can name those without a claim. One
// thread at a time.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace unisono::tools {

class Published {
 public:
  static base::Result<Published> read(const std::string& path);

  // A number by its place, "/asci-q/barrier_us_1024_nodes/hardware". A place that holds no number
  // gives 1; fault() has the first such place.
  double at(const std::string& place);
  const std::string& fault() const { return fault_; }
  // The same where a table has gaps.
  std::optional<double> find(const std::string& place);

  // Numbers that nobody asked for, by their places.
  std::vector<std::string> unused() const;

 private:
  explicit Published(nlohmann::json numbers) : numbers_(std::move(numbers)) {}

  nlohmann::json numbers_;
  std::set<std::string> used_;
  std::string fault_;
};

// Why the number of a place has no claim: a parameter, or a fact that nothing simulates. Empty if
// there is no such reason.
std::string_view why_without_claim(std::string_view place);

}  // namespace unisono::tools
