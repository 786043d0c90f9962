// SPDX-License-Identifier: BSD-3-Clause
#include "bench/peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "commands.hpp"

namespace unisono::tools::bench {
namespace {

namespace fs = std::filesystem;

// From the folder of this binary: where it is installed, and in a build folder of the sources.
constexpr std::array kPlaces{"../share/unisono/bench/peers/compare.py",
                             "../../../bench/peers/compare.py"};

int failed(const std::string& message) {
  fmt::print(stderr, "unisono bench: --peers: {}\n", message);
  return kExitFailure;
}

}  // namespace

int compare_with_peers(const std::vector<std::string>& words) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return failed("cannot find this program: /proc/self/exe: " + error.message());
  for (const char* place : kPlaces) {
    const fs::path script = (self.parent_path() / place).lexically_normal();
    if (!fs::exists(script, error)) continue;
    std::vector<std::string> command{"python3", script.string(), "--unisono", self.string()};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<char*> pointers;
    pointers.reserve(command.size() + 1);
    for (std::string& word : command) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    return failed(fmt::format("cannot start python3: {}", std::strerror(errno)));
  }
  return failed(fmt::format(
      "its scripts are missing: there is neither {0}/{1} nor {0}/{2}; run the binary that "
      "`cmake --install` installed, or that of the sources' build folder",
      self.parent_path().string(), kPlaces[0], kPlaces[1]));
}

}  // namespace unisono::tools::bench
