// SPDX-License-Identifier: BSD-3-Clause
// Time and throughput of the reduction kernels: kernel/OPERATOR/TYPE/COUNT, with the scalar
// reference (reference/...) and copy/BYTES for comparison. bytes_per_second counts reads and
// writes: three streams for a kernel, two for a copy. The counts are tiny vectors, then operands
// that fit the first- and the second-level cache, then memory.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <new>
#include <string>

#include "arith/kernel.hpp"

namespace unisono::arith {
namespace {

constexpr std::size_t kLine = 64;

// Zeroed memory at some offset from a cache line. Zeros are valid and neutral in speed everywhere.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes, std::size_t offset = 0)
      : start_(static_cast<char*>(::operator new (bytes + kLine, std::align_val_t{kLine}))),
        offset_(offset) {
    std::memset(start_, 0, bytes + kLine);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete (start_, std::align_val_t{kLine}); }
  char* data() { return start_ + offset_; }

 private:
  char* start_;
  std::size_t offset_;
};

void run_kernel(benchmark::State& state, Kernel kernel, Type type, std::size_t offset) {
  const std::int64_t count = state.range(0);
  const std::size_t bytes = static_cast<std::size_t>(count) * type_size(type);
  Buffer target(bytes, offset);
  Buffer left(bytes, offset);
  Buffer right(bytes, offset);
  for (auto _ : state) {
    kernel(target.data(), left.data(), right.data(), count, nullptr);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * 3 *
                          static_cast<std::int64_t>(bytes));
}

void run_copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Buffer target(bytes);
  Buffer source(bytes);
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * 2 * state.range(0));
}

void add(const std::string& prefix, Kernel kernel, Operator op, Type type, std::size_t offset = 0) {
  std::string name = prefix;
  name.append("/").append(operator_name(op)).append("/").append(type_name(type));
  auto* row = benchmark::RegisterBenchmark(
      name.c_str(), [=](benchmark::State& state) { run_kernel(state, kernel, type, offset); });
  for (const std::int64_t count : {1, 2, 4, 8}) row->Arg(count);
  const auto size = static_cast<std::int64_t>(type_size(type));
  for (const std::int64_t kib : {1, 8, 64, 16384}) row->Arg(kib * 1024 / size);
}

// The most frequent reductions of applications, then one of each kind of kernel.
constexpr std::array<std::pair<Operator, Type>, 16> kMeasured = {{
    {Operator::sum, Type::float32},
    {Operator::sum, Type::float64},
    {Operator::sum, Type::int32},
    {Operator::sum, Type::int64},
    {Operator::sum, Type::uint8},
    {Operator::prod, Type::int8},
    {Operator::prod, Type::int64},
    {Operator::min, Type::float32},
    {Operator::max, Type::float64},
    {Operator::logical_and, Type::int32},
    {Operator::bitwise_or, Type::byte},
    {Operator::prod, Type::complex64},
    {Operator::sum, Type::float16},
    {Operator::sum, Type::bfloat16},
    {Operator::minloc, Type::float32_int32},
    {Operator::maxloc, Type::float64_int32},
}};

bool register_all() {
  benchmark::AddCustomContext("kernel target", kernel_target());
  benchmark::RegisterBenchmark("copy", run_copy)
      ->Arg(8)
      ->Arg(1024)
      ->Arg(8192)
      ->Arg(65536)
      ->Arg(16 << 20);
  for (const auto& [op, type] : kMeasured) {
    add("kernel", find_kernel(op, type), op, type);
    add("reference", find_reference_kernel(op, type), op, type);
  }
  add("kernel at 16 bytes", find_kernel(Operator::sum, Type::float32), Operator::sum, Type::float32,
      16);
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace unisono::arith
