// SPDX-License-Identifier: BSD-3-Clause
#include "ranges/host_ranges.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

}  // namespace

void HostRanges::read(unisono_comm_t comm, const std::string& name) {
  const auto add = [](const char* collective, std::int64_t from, std::int64_t up_to, void* user) {
    auto& own = *static_cast<HostRanges*>(user);
    const auto found = find_collective(collective);
    if (!found) {
      log_warning("the machine file names a collective \"%s\", which MPI does not have",
                  collective);
      return;
    }
    own.all_.push_back({*found, from, up_to == 0 ? kMostBytes : up_to});
    own.collectives_ |= bit_of(*found);
  };
  if (library().faster_by_mpi(comm, name.c_str(), add, this) != UNISONO_OK) {
    log_warning("%s", library().last_error());
  }
  std::ranges::sort(all_, {},
                    [](const Range& each) { return std::tuple(each.collective, each.from_bytes); });
}

void HostRanges::set_all(bool all) {
  all_.clear();
  collectives_ = all ? ~std::uint32_t{0} : 0;
  for (unsigned i = 0; all && i < 32; ++i) {
    all_.push_back({static_cast<Collective>(i), 0, kMostBytes});
  }
}

bool HostRanges::Range::contains(std::int64_t bytes) const {
  return (bytes >= from_bytes && bytes <= up_to_bytes) ||
         (from_bytes == 0 && up_to_bytes == kMostBytes);
}

bool HostRanges::contain(Collective collective, std::int64_t bytes) const {
  return std::ranges::any_of(all_, [&](const Range& each) {
    return each.collective == collective && each.contains(bytes);
  });
}

std::string HostRanges::text() const {
  std::string text;
  const Range* before = nullptr;
  for (const Range& each : all_) {
    if (before != nullptr) text += ", ";
    if (before == nullptr || before->collective != each.collective) {
      text += small_name(each.collective) + " ";
    }
    text += std::to_string(each.from_bytes) + "-";
    if (each.up_to_bytes != kMostBytes) text += std::to_string(each.up_to_bytes);
    before = &each;
  }
  return text;
}

}  // namespace unisono::mpi
