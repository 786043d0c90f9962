// SPDX-License-Identifier: BSD-3-Clause
// All ranks of one operation on whole numbers. A test runs their programs by hand, over a transport
// that keeps each message until the test delivers it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "engine/interpreter.hpp"
#include "engine/size_queue.hpp"
#include "harness/collective_data.hpp"
#include "plan/bind/bind.hpp"

namespace unisono::engine::test {

using unisono::test::Bytes;

inline std::vector<schedule::Schedule> build_set(const algorithm::Algorithm& row,
                                                 const schedule::Shape& shape) {
  std::vector<schedule::Schedule> set;
  for (int r = 0; r < shape.ranks; ++r) {
    set.push_back(*algorithm::build(row, shape, algorithm::default_parameters(row, shape), r));
  }
  return set;
}

struct RanksOptions {
  topology::HostMap hosts{};
  std::int64_t land_from = 0;
  bool in_place = false;  // where the collective has such a form
};

class RanksByHand {
 public:
  // The transport carries all messages, and outlives it.
  RanksByHand(std::vector<schedule::Schedule> set, transport::Transport& transport,
              const RanksOptions& options = {})
      : set_(std::move(set)),
        transport_(transport),
        positions_(set_.size()),
        of_(unisono::test::material(kType, kSum)) {
    const schedule::Shape& shape = set_[0].shape;
    bind_.element_bytes = static_cast<std::int64_t>(of_.size);
    bind_.geometry = {
        .ranks = shape.ranks, .slot_indexes = 2, .lines = 1024, .data_bytes = 1 << 17};
    bind_.land_from = options.land_from;
    bind_.hosts = options.hosts;
    receive_buffers_.resize(at(bind_.geometry.total_bytes() + plan::kLineBytes));
    job_ranks_.resize(set_.size());
    std::iota(job_ranks_.begin(), job_ranks_.end(), 0);
    for (int r = 0; r < shape.ranks; ++r) {
      programs_.push_back(bind_schedules(set_, r, bind_)[at(r)]);
      lay_out(r, options.in_place);
    }
  }

  const plan::Program& program(int rank) const { return programs_[at(rank)]; }
  Bytes output(int rank) const {
    const Buffers& own = buffers_[at(rank)];
    return {own.output, own.output + at(schedule::output_count(set_[0].shape, rank)) * of_.size};
  }
  Bytes expected(int rank) const {
    return unisono::test::expected_output(set_[0].shape, of_, rank);
  }
  // The flag of a rank's n-th wait.
  const std::uint64_t* awaited_flag(int rank, int n) {
    const plan::Program& own = program(rank);
    const plan::Step& wait = own.steps[at(own.wait_segments[at(n)].begin)];
    return reinterpret_cast<const std::uint64_t*>(base() + wait.flag);
  }

  Outcome run(int rank) {
    Frame frame;
    frame.bases[static_cast<int>(plan::Space::input)] = buffers_[at(rank)].input;
    frame.bases[static_cast<int>(plan::Space::output)] = buffers_[at(rank)].output;
    frame.bases[static_cast<int>(plan::Space::receive_buffers)] = base();
    frame.bases[static_cast<int>(plan::Space::data)] = base();
    frame.tag = make_tag(3, 1);
    frame.kernel = arith::find_kernel(kSum, kType);
    const Machine machine{.router = network::Router(transport_, &transport_, bind_.hosts, rank),
                          .doorbells = &doorbells_,
                          .job_ranks = job_ranks_.data(),
                          .ranks = set_[0].shape.ranks,
                          .counters = &counters_};
    const plan::Program& own = program(rank);
    return engine::run(own, frame, machine, positions_[at(rank)],
                       static_cast<std::int32_t>(own.steps.size()));
  }

 private:
  static constexpr arith::Type kType = arith::Type::int32;
  static constexpr arith::Operator kSum = arith::Operator::sum;
  struct Buffers {
    Bytes memory;
    std::byte* input;
    std::byte* output;
  };

  void lay_out(int rank, bool in_place) {
    const schedule::Shape& shape = set_[0].shape;
    const Bytes input = of_.input(rank, schedule::input_count(shape, rank));
    const std::size_t output = at(schedule::output_count(shape, rank)) * of_.size;
    const auto shared = in_place ? schedule::in_place(shape, rank) : std::nullopt;
    Buffers& own = buffers_.emplace_back();
    own.memory.resize(input.size() + output + 1);
    own.input = own.memory.data() + (shared ? at(shared->input) * of_.size : 0);
    own.output = own.memory.data() + (shared ? at(shared->output) * of_.size : input.size());
    std::ranges::copy(input, own.input);
  }
  std::byte* base() {
    return receive_buffers_.data() + plan::kLineBytes -
           reinterpret_cast<std::uintptr_t>(receive_buffers_.data()) % plan::kLineBytes;
  }
  static std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

  std::vector<schedule::Schedule> set_;
  transport::Transport& transport_;
  std::vector<Position> positions_;
  unisono::test::Material of_;
  plan::BindOptions bind_;
  Bytes receive_buffers_;
  std::vector<int> job_ranks_;
  std::vector<plan::Program> programs_;
  std::vector<Buffers> buffers_;
  Counters counters_;
  wait::SleeperTable table_;
  std::vector<wait::Doorbell> bell_{1024};
  wait::Doorbells doorbells_{table_, bell_.data()};
};

}  // namespace unisono::engine::test
