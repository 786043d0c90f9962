// SPDX-License-Identifier: BSD-3-Clause
// The seeds that a program of random scenarios is asked for: `--seed N` runs that one alone,
// `--seeds N` many, `--from N` from that one on. For tests only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace unisono::test {

struct Seeds {
  std::uint64_t first = 1;
  int count = 0;

  // By the command line of this process, for a program whose main is that of googletest; so many
  // seeds where it says nothing.
  static Seeds asked(int ordinary_count) {
    Seeds seeds{.count = ordinary_count};
    std::ifstream line("/proc/self/cmdline");
    std::string name;
    for (std::string word; std::getline(line, word, '\0'); name = word)
      seeds.take(name, word.c_str());
    return seeds;
  }
  // `argc` and `argv`: the arguments that googletest has left.
  void read(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) take(argv[i], argv[i + 1]);
  }
  void take(std::string_view name, const char* value) {
    if (name == "--seed") *this = {std::strtoull(value, nullptr, 10), 1};
    if (name == "--from") first = std::strtoull(value, nullptr, 10);
    if (name == "--seeds") count = std::atoi(value);
  }
};

}  // namespace unisono::test
