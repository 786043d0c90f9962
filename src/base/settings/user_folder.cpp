// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings/user_folder.hpp"

namespace unisono::base {

std::string user_cache_folder(const Environment& environment) {
  // The specification says that relative paths are invalid and ignored.
  const auto absolute = [&](std::string_view name) -> std::string {
    const auto found = environment.find(name);
    if (found == environment.end() || !found->second.starts_with('/')) return {};
    return found->second;
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/unisono";
  }
  const std::string home = absolute("HOME");
  return home.empty() ? std::string{} : home + "/.cache/unisono";
}

}  // namespace unisono::base
