// SPDX-License-Identifier: BSD-3-Clause
#include "ranges/measurement.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#include "calls/buffers.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

constexpr std::array<std::int64_t, 11> kBytes = {4,     16,    64,     256,     1024,   4096,
                                                 16384, 65536, 262144, 1 << 20, 4 << 20};
// Longer buffers of all ranks' blocks are not measured.
constexpr std::int64_t kMostBufferBytes = std::int64_t{1} << 26;
constexpr int kRounds = 5;
constexpr int kMoreRounds = 10;          // where the host MPI seems to be faster
constexpr int kMostCalls = 2000;         // of a loop
constexpr double kLoopNs = 1e6;          // what a loop should take
constexpr int kWarmUps = 3, kTrial = 3;  // the first call of a shape makes its plan

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One collective with blocks of one length, as the program would call it.
class Subject {
 public:
  Subject(const Communicator& comm, Collective collective, std::int64_t bytes)
      : comm_(comm),
        collective_(collective),
        count_(static_cast<int>(bytes / static_cast<std::int64_t>(sizeof(float)))) {
    const std::int64_t all = bytes * comm.size;
    input_ = static_cast<void*>(input_memory_.allocate(all));
    output_ = static_cast<void*>(output_memory_.allocate(all));
    std::memset(input_, 0, static_cast<std::size_t>(all));
    std::memset(output_, 0, static_cast<std::size_t>(all));
    types_.resize(static_cast<std::size_t>(comm.size));
    for (int rank = 0; rank < comm.size; ++rank) {
      counts_.push_back(count_);
      displacements_.push_back(rank * count_);
      byte_displacements_.push_back(rank * static_cast<int>(bytes));
      const Handle type = host().constants.float_type;
      std::memcpy(host().place_at(types_.data(), rank), &type, host().handle_bytes);
    }
  }

  void call() {
    const Handle type = host().constants.float_type, sum = host().constants.sum;
    const Handle comm = comm_.handle;
    constexpr int kRoot = 0;
    switch (collective_) {
      case Collective::Barrier:
        ours::narrow::Barrier(comm);
        return;
      case Collective::Bcast:
        ours::narrow::Bcast(output_, count_, type, kRoot, comm);
        return;
      case Collective::Reduce:
        ours::narrow::Reduce(input_, output_, count_, type, sum, kRoot, comm);
        return;
      case Collective::Allreduce:
        ours::narrow::Allreduce(input_, output_, count_, type, sum, comm);
        return;
      case Collective::Scan:
        ours::narrow::Scan(input_, output_, count_, type, sum, comm);
        return;
      case Collective::Exscan:
        ours::narrow::Exscan(input_, output_, count_, type, sum, comm);
        return;
      case Collective::Reduce_scatter_block:
        ours::narrow::Reduce_scatter_block(input_, output_, count_, type, sum, comm);
        return;
      case Collective::Reduce_scatter:
        ours::narrow::Reduce_scatter(input_, output_, counts_.data(), type, sum, comm);
        return;
      case Collective::Allgather:
        ours::narrow::Allgather(input_, count_, type, output_, count_, type, comm);
        return;
      case Collective::Allgatherv:
        ours::narrow::Allgatherv(input_, count_, type, output_, counts_.data(),
                                 displacements_.data(), type, comm);
        return;
      case Collective::Gather:
        ours::narrow::Gather(input_, count_, type, output_, count_, type, kRoot, comm);
        return;
      case Collective::Scatter:
        ours::narrow::Scatter(input_, count_, type, output_, count_, type, kRoot, comm);
        return;
      case Collective::Alltoall:
        ours::narrow::Alltoall(input_, count_, type, output_, count_, type, comm);
        return;
      case Collective::Gatherv:
        ours::narrow::Gatherv(input_, count_, type, output_, counts_.data(), displacements_.data(),
                              type, kRoot, comm);
        return;
      case Collective::Scatterv:
        ours::narrow::Scatterv(input_, counts_.data(), displacements_.data(), type, output_, count_,
                               type, kRoot, comm);
        return;
      case Collective::Alltoallv:
        ours::narrow::Alltoallv(input_, counts_.data(), displacements_.data(), type, output_,
                                counts_.data(), displacements_.data(), type, comm);
        return;
      case Collective::Alltoallw:
        ours::narrow::Alltoallw(input_, counts_.data(), byte_displacements_.data(), types_.data(),
                                output_, counts_.data(), byte_displacements_.data(), types_.data(),
                                comm);
        return;
    }
  }

 private:
  const Communicator& comm_;
  Collective collective_;
  int count_;
  Scratch input_memory_, output_memory_;
  void* input_;
  void* output_;
  std::vector<int> counts_, displacements_, byte_displacements_;
  std::vector<Handle> types_;  // an array as the program's, of handles that may be ints
};

// Nanoseconds of a call by Unisono and by the host MPI.
struct Times {
  double loop = 0, host_loop = 0;      // in a row
  double single = 0, host_single = 0;  // behind a barrier
};

// The geometric means.
Times mean(const std::vector<Times>& all) {
  const auto mean_of = [&all](double Times::*part) {
    double logarithms = 0;
    for (const Times& each : all) logarithms += std::log(each.*part);
    return std::exp(logarithms / static_cast<double>(all.size()));
  };
  return {mean_of(&Times::loop), mean_of(&Times::host_loop), mean_of(&Times::single),
          mean_of(&Times::host_single)};
}

class Measurement {
 public:
  explicit Measurement(Communicator& comm) : comm_(comm) {}

  void write(std::ostream& lines) {
    int hosts = 1;
    library().comm_hosts(comm_.unisono.get(), &hosts);
    lines << "library " << library_name() << "\nranks " << comm_.size << "\nhosts " << hosts
          << "\n";
    for (unsigned i = 0; i <= static_cast<unsigned>(Collective::Alltoallw); ++i) {
      const auto collective = static_cast<Collective>(i);
      if (!comm_.does(collective)) continue;
      if (collective == Collective::Barrier) {
        write_line(lines, collective, 0, times_of(collective, 0));
        continue;
      }
      // One line for all lengths if no rank knows the other ranks' blocks.
      const bool is_one = comm_.size > 2 && !is_known_to_all(collective);
      std::vector<Times> all;
      for (const std::int64_t bytes : kBytes) {
        if (bytes * comm_.size > kMostBufferBytes) continue;
        all.push_back(times_of(collective, bytes));
        if (!is_one) write_line(lines, collective, bytes, all.back());
      }
      if (is_one) write_line(lines, collective, 0, mean(all));
    }
    comm_.host_ranges.set_all(false);
  }

 private:
  static bool is_known_to_all(Collective collective) {
    constexpr std::uint32_t kUnknown = bit_of(Collective::Gatherv) | bit_of(Collective::Scatterv) |
                                       bit_of(Collective::Alltoallv) |
                                       bit_of(Collective::Alltoallw);
    return (kUnknown & bit_of(collective)) == 0;
  }

  struct Side {
    bool is_host;
    int calls = 1;
    std::vector<double> loops = {}, singles = {};
  };

  static void write_line(std::ostream& lines, Collective collective, std::int64_t bytes,
                         const Times& times) {
    lines << small_name(collective) << " " << bytes << " " << times.loop << " " << times.host_loop
          << " " << times.single << " " << times.host_single << "\n";
  }

  Times times_of(Collective collective, std::int64_t bytes) {
    Subject subject(comm_, collective, bytes);
    std::array<Side, 2> sides = {Side{false}, Side{true}};
    for (Side& side : sides) {
      choose(side);
      for (int i = 0; i < kWarmUps; ++i) subject.call();
      side.calls = kTrial;
      const double each = loop(subject, side);
      side.calls = static_cast<int>(std::clamp(kLoopNs / each, 1.0, double{kMostCalls}));
    }
    const auto& [own, other] = sides;
    take_turns(subject, sides, kRounds);
    if (median(other.loops) * median(other.singles) < median(own.loops) * median(own.singles)) {
      take_turns(subject, sides, kMoreRounds);
    }
    return {median(own.loops), median(other.loops), median(own.singles), median(other.singles)};
  }

  void take_turns(Subject& subject, std::array<Side, 2>& sides, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < sides.size(); ++i) {
        Side& side = sides[(static_cast<std::size_t>(round) + i) % 2];
        choose(side);
        side.loops.push_back(loop(subject, side));
        side.singles.push_back(single(subject, side));
      }
    }
  }

  void choose(const Side& side) {
    comm_.host_ranges.set_all(side.is_host);
    comm_.last_calls = {};  // they go past the ranges
  }

  double loop(Subject& subject, const Side& side) {
    host().Barrier(comm_.handle);
    const double begin = now_ns();
    for (int i = 0; i < side.calls; ++i) subject.call();
    return std::ranges::max(of_all((now_ns() - begin) / side.calls));
  }

  double single(Subject& subject, const Side& side) {
    double sum = 0;
    for (int i = 0; i < side.calls; ++i) {
      host().Barrier(comm_.handle);
      const double begin = now_ns();
      subject.call();
      sum += now_ns() - begin;
    }
    const std::vector<double> all = of_all(sum / side.calls);
    return std::accumulate(all.begin(), all.end(), 0.0) / comm_.size;
  }

  // All ranks get the same numbers, and so decide alike how often to call.
  std::vector<double> of_all(double own) {
    std::vector<double> all(static_cast<std::size_t>(comm_.size));
    const Handle byte = host().constants.byte;
    host().Allgather(&own, sizeof own, byte, all.data(), sizeof own, byte, comm_.handle);
    return all;
  }

  Communicator& comm_;
};

}  // namespace

std::string measurement_file() {
  const char* const path = std::getenv("UNISONO_MPI_TUNE");
  return path == nullptr ? "" : path;
}

void measure(Communicator& comm, const std::string& file) {
  std::ofstream lines;
  if (comm.rank == 0) lines.open(file, std::ios::trunc);
  Measurement(comm).write(lines);
  if (comm.rank != 0) return;
  lines.close();
  if (!lines) log_warning("UNISONO_MPI_TUNE: %s cannot be written", file.c_str());
}

}  // namespace unisono::mpi
