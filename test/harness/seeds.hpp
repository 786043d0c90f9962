// SPDX-License-Identifier: BSD-3-Clause
// The seeds that a program of random scenarios is asked for: `--seed N` runs that one alone,
// `--seeds N` many, `--from N` from that one on. For tests only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace unisono::test {

struct Seeds {
  std::uint64_t first = 1;
  int count = 0;

  // `argc` and `argv`: the arguments that googletest has left.
  void read(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
      if (std::string_view(argv[i]) == "--seed")
        *this = {std::strtoull(argv[i + 1], nullptr, 10), 1};
      if (std::string_view(argv[i]) == "--from") first = std::strtoull(argv[i + 1], nullptr, 10);
      if (std::string_view(argv[i]) == "--seeds") count = std::atoi(argv[i + 1]);
    }
  }
};

}  // namespace unisono::test
