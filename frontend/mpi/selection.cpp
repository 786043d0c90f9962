// SPDX-License-Identifier: BSD-3-Clause
#include "selection.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

#include "log.hpp"

namespace unisono::mpi {
namespace {

constexpr const char* kNames[] = {
#define UNISONO_MPI_TEXT(name, ...) #name,
    UNISONO_MPI_COLLECTIVES(UNISONO_MPI_TEXT)
#undef UNISONO_MPI_TEXT
};
constexpr std::size_t kCount = sizeof kNames / sizeof kNames[0];
constexpr std::uint32_t kAll = (std::uint32_t{1} << kCount) - 1;

std::string lower(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

struct Selection {
  std::uint32_t collectives = kAll;
  Trying trying = Trying::none;
};

Selection parse(std::string_view text) {
  const std::string whole = lower(text);
  Selection selected;
  if (whole.empty() || whole == "on") return selected;
  if (whole == "auto") return {.trying = Trying::safe};
  if (whole == "off") return {.collectives = 0};
  for (std::size_t at = 0; at <= whole.size();) {
    const std::size_t end = std::min(whole.find(',', at), whole.size());
    const std::string name = whole.substr(at, end - at);
    if (const auto found = find_collective(name)) {
      selected.collectives &= ~bit_of(*found);
    } else if (name == "trial") {
      selected.trying = Trying::all;
    } else {
      log_warning(
          "UNISONO_MPI=\"%s\": there is no collective \"%s\"; give auto, on, off, trial, or names "
          "such as \"alltoall,scan\" of those that the host MPI shall do",
          std::string(text).c_str(), name.c_str());
    }
    at = end + 1;
  }
  return selected;
}

const Selection& selection() {
  static const Selection selected = [] {
    const char* const text = std::getenv("UNISONO_MPI");
    return parse(text == nullptr ? "" : text);
  }();
  return selected;
}

}  // namespace

const char* collective_name(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

std::string small_name(Collective collective) { return lower(collective_name(collective)); }

std::optional<Collective> find_collective(const std::string& small_name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (lower(kNames[i]) == small_name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::uint32_t selected_collectives() { return selection().collectives; }

Trying selected_trying() { return selection().trying; }

// Between two ranks each element of a reduction is one operation on two values, in either order. So
// MPI's operators give the same bits there. More ranks may be combined in another order. A barrier
// is no move either: programs expect of Unisono's that messages have arrived after it.
std::uint32_t tried_collectives(Trying trying, int ranks) {
  constexpr std::uint32_t kReductions = bit_of(Collective::Reduce) | bit_of(Collective::Allreduce) |
                                        bit_of(Collective::Reduce_scatter) |
                                        bit_of(Collective::Reduce_scatter_block) |
                                        bit_of(Collective::Scan) | bit_of(Collective::Exscan);
  if (trying == Trying::none) return 0;
  if (trying == Trying::all) return kAll;
  return kAll & ~bit_of(Collective::Barrier) & ~(ranks > 2 ? kReductions : 0);
}

bool keeps_bits() {
  const auto value_of = [](const char* name) {
    const char* const text = std::getenv(name);
    return lower(text == nullptr ? "" : text);
  };
  const std::string sums = value_of("UNISONO_REPRODUCIBLE");
  const std::string by_one = value_of("UNISONO_HETEROGENEOUS");
  return sums == "1" || sums == "ranks" || by_one == "on" || by_one == "yes" || by_one == "true" ||
         by_one == "1";
}

}  // namespace unisono::mpi
