// SPDX-License-Identifier: BSD-3-Clause
// The options of a benchmark. CLI11 stands behind them and is compiled once for all: a program that
// includes it takes several seconds to compile.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace unisono::bench {

// The greatest value of the type that fits the signed one, too.
template <std::integral Number>
inline constexpr std::int64_t kMost = static_cast<std::int64_t>(std::min<std::uint64_t>(
    std::numeric_limits<Number>::max(), std::numeric_limits<std::int64_t>::max()));

// Variables keep what they have if their option is not given; they have to live until parse().
class Options {
 public:
  explicit Options(const std::string& about);
  ~Options();

  // A number of this range.
  template <std::integral Number>
  void number(const std::string& name, Number& value, std::int64_t least,
              std::int64_t most = kMost<Number>) {
    add_number(name, least, most,
               [&value](std::int64_t given) { value = static_cast<Number>(given); });
  }
  void word(const std::string& name, std::string& value);
  // One of these words, or several with commas between.
  void word(const std::string& name, std::string& value, const std::vector<std::string>& allowed);
  void words(const std::string& name, std::vector<std::string>& values,
             const std::vector<std::string>& allowed);
  void flag(const std::string& name, bool& value, const std::string& about);

  // Sets the variables. Ends the program after --help, and with a message if an option is wrong.
  void parse(int count, char** arguments);

 private:
  void add_number(const std::string& name, std::int64_t least, std::int64_t most,
                  std::function<void(std::int64_t)> set);

  std::unique_ptr<CLI::App> app_;
};

}  // namespace unisono::bench
