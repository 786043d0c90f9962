// SPDX-License-Identifier: BSD-3-Clause
// Operands for the tests of arith/: for each type the values at which mistakes hide (limits, signed
// zeros, subnormals, infinities, NaN) and seeded random ones; and the comparison that the
// rules of arithmetic ask for. Elements are handled as bytes, as the kernels see them.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "arith/type.hpp"

namespace unisono::arith::test {

using Bytes = std::vector<unsigned char>;

// One line per operator that fits the type.
struct Case {
  Operator op;
  Type type;
};
std::vector<Case> all_cases();
std::string case_name(const Case& c);

// The special values of the type, one after another.
Bytes edge_elements(Type type);

// count elements: about half of them special, the others random, with many equal values.
Bytes random_elements(Type type, std::size_t count, std::uint64_t seed);

// Every pair of special values, then random ones: operands for one long call.
struct Operands {
  Bytes left;
  Bytes right;
  std::size_t count;
};
Operands edge_pairs(Type type);

// "" if the results agree: bit by bit, except that floating-point results that are NaN in both
// agree whatever their bits. Otherwise where the first difference is.
std::string difference(const Case& c, const unsigned char* actual, const unsigned char* expected,
                       std::size_t count);

template <class T>
T element(const Bytes& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
Bytes to_bytes(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace unisono::arith::test
