// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loader/kernel.hpp"

#include <cstdio>
#include <utility>

namespace unisono::nic {
namespace {

constexpr std::pair kOldestKernel = {6, 6};  // TCX links
constexpr std::size_t kBeginning = 300;
constexpr std::size_t kEnd = 1000;
constexpr std::size_t kMostLog = 1500;

}  // namespace

std::optional<bool> kernel_suffices(const std::string& release) {
  std::pair version = {0, 0};
  if (std::sscanf(release.c_str(), "%d.%d", &version.first, &version.second) != 2) {
    return std::nullopt;
  }
  return version >= kOldestKernel;
}

std::string shorten_log(std::string_view text) {
  if (text.size() <= kMostLog) return std::string(text);
  const std::string_view end = text.substr(text.size() - kEnd);
  // Whole lines only.
  return std::string(text.substr(0, text.find_last_of('\n', kBeginning) + 1)) + "..." +
         std::string(end.substr(end.find('\n') == end.npos ? 0 : end.find('\n')));
}

}  // namespace unisono::nic
