// SPDX-License-Identifier: BSD-3-Clause
// Allreduces of all types and operators of the NIC path, with results that depend on the order of
// summation. A job reports the bits of its results, to be compared with another's.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/prng.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness {

// Any integers, and numbers of very different sizes: each order of summation has another result.
// No NaN, whose bits the standard leaves open.
template <class T>
std::vector<T> numbers_of(int seed, int rank, std::size_t count) {
  base::Prng random(static_cast<std::uint64_t>(seed * 1000 + rank));
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(random.unit() - 0.5) * static_cast<T>(1 << random.below(30));
    } else {
      value = static_cast<T>(random.next());
    }
  }
  return values;
}

// FNV-1a of results; it must be the same at all ranks.
struct Bits {
  std::uint64_t hash = 14695981039346656037U;
  template <class T>
  void add(const std::vector<T>& values) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) {
      hash = (hash ^ bytes[i]) * 1099511628211U;
    }
  }
};

// Elements that are one, a few, a packet, a little more, and two.
inline std::vector<std::size_t> counts_of(std::size_t element_bytes) {
  const std::size_t packet = 1400 / element_bytes;
  return {1, 5, packet, packet + 3, 2 * packet};
}

template <class T>
void add_allreduces(const NicRank& self, unisono_type_t type, unisono_op_t op, Bits& bits) {
  for (const std::size_t count : counts_of(sizeof(T))) {
    const auto n = static_cast<std::int64_t>(count);
    auto sum = numbers_of<T>(type * 100 + op, self.rank, count);
    ASSERT_TRUE(
        succeeded(unisono_allreduce(UNISONO_IN_PLACE, sum.data(), n, type, op, self.world)));
    bits.add(sum);
  }
}

// The same on every rank.
inline void all_allreduces(const NicRank& self, Bits& bits) {
  for (const unisono_op_t op : {UNISONO_SUM, UNISONO_MIN, UNISONO_MAX}) {
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::int32_t>(self, UNISONO_INT32, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::uint32_t>(self, UNISONO_UINT32, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::int64_t>(self, UNISONO_INT64, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::uint64_t>(self, UNISONO_UINT64, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<float>(self, UNISONO_FLOAT32, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<double>(self, UNISONO_FLOAT64, op, bits));
  }
  for (const unisono_op_t op : {UNISONO_BITWISE_AND, UNISONO_BITWISE_OR, UNISONO_BITWISE_XOR}) {
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::uint8_t>(self, UNISONO_UINT8, op, bits));
    ASSERT_NO_FATAL_FAILURE(add_allreduces<std::int64_t>(self, UNISONO_INT64, op, bits));
  }
}
// How many results that makes, packet by packet, if a vector with words for all of them goes in so
// many pieces of whole elements.
inline std::uint64_t results_of_bits(std::uint64_t pieces = 1) {
  std::uint64_t results = 0;
  for (const std::size_t bytes : {4U, 4U, 8U, 8U, 4U, 8U, 1U, 8U}) {
    for (const std::size_t count : counts_of(bytes)) {
      const std::size_t words = (count * bytes + 7) / 8;
      const std::size_t used = words >= pieces ? pieces : 1;
      for (std::size_t piece = 0; piece < used; ++piece) {
        const std::size_t elements = count / used + (piece < count % used ? 1 : 0);
        results += 3 * ((elements * bytes + 1399) / 1400);
      }
    }
  }
  return results;
}

inline void say_bits(const NicRank& self) {
  Bits bits;
  ASSERT_NO_FATAL_FAILURE(all_allreduces(self, bits));
  self.line.say(std::to_string(bits.hash));
  leave(self);
}

// The output of each rank.
inline std::vector<std::string> said_bits(std::vector<HostProcess> processes) {
  std::vector<std::string> said;
  for (const auto& process : processes) said.push_back(process.line().hear());
  for (auto& process : processes) EXPECT_EQ(process.wait(), 0);
  return said;
}

}  // namespace unisono::harness
