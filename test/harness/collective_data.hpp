// SPDX-License-Identifier: BSD-3-Clause
// Inputs and naive results of collectives, for tests that compare engines with them. Values are
// chosen so that every order of combination is exact: comparing is bit for bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arith/kernel.hpp"
#include "arith/type.hpp"
#include "plan/call.hpp"
#include "schedule/shape.hpp"

namespace unisono::test {

using Bytes = std::vector<std::byte>;

// Element `i` of rank `r`: small whole numbers in every type's own form; 1 or 2 for products.
inline void write_element(arith::Type type, bool product, int r, std::int64_t i, std::byte* at) {
  const int value = product ? 1 + ((r + static_cast<int>(i)) % 5 == 0 ? 1 : 0)
                            : 1 + (r * 3 + static_cast<int>(i % 7)) % 6;
  const auto put = [at](auto number) { std::memcpy(at, &number, sizeof number); };
  switch (type) {
    case arith::Type::byte:
    case arith::Type::int8:
    case arith::Type::uint8:
      put(static_cast<std::int8_t>(value));
      break;
    case arith::Type::int16:
    case arith::Type::uint16:
      put(static_cast<std::int16_t>(value));
      break;
    case arith::Type::int32:
    case arith::Type::uint32:
      put(static_cast<std::int32_t>(value));
      break;
    case arith::Type::int64:
    case arith::Type::uint64:
      put(static_cast<std::int64_t>(value));
      break;
    case arith::Type::float16: {  // whole numbers up to 7 have their bits in the table
      constexpr std::uint16_t kBits[] = {0x0000, 0x3c00, 0x4000, 0x4200,
                                         0x4400, 0x4500, 0x4600, 0x4700};
      put(kBits[value]);
      break;
    }
    case arith::Type::bfloat16: {
      const auto number = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &number, 4);
      put(static_cast<std::uint16_t>(bits >> 16));
      break;
    }
    case arith::Type::float32:
      put(static_cast<float>(value));
      break;
    case arith::Type::float64:
      put(static_cast<double>(value));
      break;
    case arith::Type::complex64: {
      const float both[2] = {static_cast<float>(value), product ? 0.0F : 1.0F};
      std::memcpy(at, both, sizeof both);
      break;
    }
    case arith::Type::complex128: {
      const double both[2] = {static_cast<double>(value), product ? 0.0 : 1.0};
      std::memcpy(at, both, sizeof both);
      break;
    }
    case arith::Type::int16_int32: {
      struct {
        std::int16_t v;
        std::int32_t i;
      } pair;
      std::memset(&pair, 0, sizeof pair);
      pair.v = static_cast<std::int16_t>(value);
      pair.i = r;
      put(pair);
      break;
    }
    case arith::Type::int32_int32: {
      struct {
        std::int32_t v, i;
      } pair{value, r};
      put(pair);
      break;
    }
    case arith::Type::int64_int32: {
      struct {
        std::int64_t v;
        std::int32_t i;
      } pair;
      std::memset(&pair, 0, sizeof pair);
      pair.v = value;
      pair.i = r;
      put(pair);
      break;
    }
    case arith::Type::float32_int32: {
      struct {
        float v;
        std::int32_t i;
      } pair{static_cast<float>(value), r};
      put(pair);
      break;
    }
    case arith::Type::float64_int32: {
      struct {
        double v;
        std::int32_t i;
      } pair;
      std::memset(&pair, 0, sizeof pair);
      pair.v = value;
      pair.i = r;
      put(pair);
      break;
    }
  }
}

// The values of write_element come again after so many elements.
inline constexpr std::int64_t kPeriod = 5 * 7;

inline Bytes make_input(arith::Type type, bool product, int rank, std::int64_t count) {
  const std::size_t size = arith::type_size(type);
  Bytes bytes(static_cast<std::size_t>(count) * size);
  for (std::int64_t i = 0; i < std::min(count, kPeriod); ++i) {
    write_element(type, product, rank, i, bytes.data() + static_cast<std::size_t>(i) * size);
  }
  for (std::size_t done = static_cast<std::size_t>(kPeriod) * size; done < bytes.size();) {
    const std::size_t more = std::min(done, bytes.size() - done);
    std::memcpy(bytes.data() + done, bytes.data(), more);
    done += more;
  }
  return bytes;
}

// The same as ==, which compares byte by byte and takes most of a test's time with long vectors.
inline bool same_bytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// The elements of a test, and how two of them are combined.
struct Material {
  std::string name;
  std::int32_t type = 0, op = -1;  // the C API's numbers
  std::size_t size = 1;            // bytes of an element
  bool ordered = false;
  std::function<Bytes(int rank, std::int64_t count)> input;
  arith::Kernel combine = nullptr;
  // For a user-defined operator, the same as its function.
  decltype(plan::UserOperator::function) user = nullptr;
};

inline Material material(arith::Type type, arith::Operator op) {
  const bool product = op == arith::Operator::prod;
  return {
      .name = std::string(arith::type_name(type)) + ", " + std::string(arith::operator_name(op)),
      .type = static_cast<std::int32_t>(type),
      .op = static_cast<std::int32_t>(op),
      .size = arith::type_size(type),
      .ordered = false,
      .input = [=](int rank, std::int64_t count) { return make_input(type, product, rank, count); },
      .combine = arith::find_reference_kernel(op, type),
      .user = nullptr};
}

// The map x -> a x + b. Maps follow one another in one order only; numbers wrap, so that any
// grouping gives the same bits.
struct Affine {
  std::uint32_t a, b;
};

inline void follow(void* target, const void* left, const void* right, std::int64_t count,
                   const void*) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i) * sizeof(Affine);
    Affine l, r;
    std::memcpy(&l, static_cast<const std::byte*>(left) + at, sizeof l);
    std::memcpy(&r, static_cast<const std::byte*>(right) + at, sizeof r);
    const Affine both{l.a * r.a, l.a * r.b + l.b};
    std::memcpy(static_cast<std::byte*>(target) + at, &both, sizeof both);
  }
}

// An operator of the user's that does not commute, on a type of the user's.
inline Material affine_maps() {
  return {.name = "affine maps",
          .type = plan::kFirstUserNumber,
          .op = plan::kFirstUserNumber,
          .size = sizeof(Affine),
          .ordered = true,
          .input =
              [](int rank, std::int64_t count) {
                Bytes bytes(static_cast<std::size_t>(count) * sizeof(Affine));
                for (std::int64_t i = 0; i < count; ++i) {
                  const auto number = static_cast<std::uint32_t>(i);
                  const auto odd = static_cast<std::uint32_t>(2 * rank + 3);
                  const Affine map{odd + 2 * number, odd * 77 + number};
                  std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof map, &map,
                              sizeof map);
                }
                return bytes;
              },
          .combine = follow,
          .user = [](void* target, const void* left, const void* right, std::int64_t count,
                     std::int32_t, void*) { follow(target, left, right, count, nullptr); }};
}

// All of a rank's input.
using InputOf = std::function<std::span<const std::byte>(int rank)>;

// The required output of `rank`, by the collective's definition and the reference kernels.
inline Bytes expected_output(const schedule::Shape& shape, const Material& of, int rank,
                             const InputOf& input_of) {
  using schedule::Collective;
  if (schedule::output_count(shape, rank) == 0) return {};
  const auto input_part = [&](int r, const schedule::Block& part) {
    return input_of(r).subspan(static_cast<std::size_t>(part.offset) * of.size,
                               static_cast<std::size_t>(part.count) * of.size);
  };
  const auto copy_of = [&](std::span<const std::byte> part) {
    return Bytes(part.begin(), part.end());
  };
  const auto sum_of = [&](int ranks, const schedule::Block& part) {
    Bytes sum = copy_of(input_part(0, part));
    for (int r = 1; r < ranks; ++r) {
      const std::span<const std::byte> next = input_part(r, part);
      of.combine(sum.data(), sum.data(), next.data(), part.count, nullptr);
    }
    return sum;
  };
  switch (shape.collective) {
    case Collective::barrier:
      return {};
    case Collective::broadcast:
      return copy_of(input_part(shape.root, {0, shape.count}));
    case Collective::allgather:
    case Collective::gather:
    case Collective::many_to_many: {
      Bytes all;
      for (int r = 0; r < shape.ranks; ++r) {
        const std::span<const std::byte> block =
            input_part(r, {0, schedule::block(shape, r).count});
        all.insert(all.end(), block.begin(), block.end());
      }
      return all;
    }
    case Collective::scatter:
      return copy_of(input_part(shape.root, schedule::block(shape, rank)));
    case Collective::alltoall: {
      Bytes all;
      for (int r = 0; r < shape.ranks; ++r) {
        const std::span<const std::byte> block =
            input_part(r, schedule::sent_block(shape, r, rank));
        all.insert(all.end(), block.begin(), block.end());
      }
      return all;
    }
    case Collective::reduce:
    case Collective::allreduce:
      return sum_of(shape.ranks, {0, shape.count});
    case Collective::scan:
      return sum_of(rank + 1, {0, shape.count});
    case Collective::exscan:
      return sum_of(rank, {0, shape.count});
    case Collective::reduce_scatter:
      return sum_of(shape.ranks, schedule::block(shape, rank));
  }
  return {};
}

inline Bytes expected_output(const schedule::Shape& shape, const Material& of, int rank) {
  std::map<int, Bytes> inputs;
  return expected_output(shape, of, rank, [&](int r) -> std::span<const std::byte> {
    const auto [at, is_new] = inputs.try_emplace(r);
    if (is_new) at->second = of.input(r, schedule::input_count(shape, r));
    return at->second;
  });
}

}  // namespace unisono::test
