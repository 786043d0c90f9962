// SPDX-License-Identifier: BSD-3-Clause
#include "tune/probes/job_probes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tune/probes/bound_thread.hpp"

namespace unisono::tools::tune {
namespace {

// One call; `number` counts the calls of the job. Returns the library's code.
using Call = std::function<int(unisono_comm_t comm, int rank, std::int64_t number)>;

class ThreadJob {
 public:
  ThreadJob(int ranks, Call call) : ranks_(ranks), call_(std::move(call)), meet_(ranks) {}

  base::Result<Sample> measure(std::int64_t budget_ns) {
    if (unisono_threads_create(ranks_, &job_) != UNISONO_OK) {
      return base::Error{base::Code::resources, unisono_last_error()};
    }
    const cpu_set_t usable = BoundThread::usable();
    const BoundThread bound(usable, 0);
    std::vector<std::thread> threads;
    for (int rank = 1; rank < ranks_; ++rank) {
      threads.emplace_back([this, rank, usable] {
        const BoundThread own(usable, rank);
        follow(rank);
      });
    }
    Sample result;
    if (join(0)) {
      result = sample(budget_ns, [this](std::int64_t calls) { together(calls); });
      calls_ = 0;
      meet_.arrive_and_wait();
      unisono_finalize(comms_[0]);
    }
    for (std::thread& thread : threads) thread.join();
    unisono_threads_free(job_);
    if (failed_) return base::Error{base::Code::system, "a job of threads: " + why_};
    return result;
  }

 private:
  // The first rank's error is the cause of the others'.
  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failed_) why_ = unisono_last_error();
    failed_ = true;
  }
  // Whether all ranks have joined.
  bool join(int rank) {
    if (unisono_init_thread(job_, rank, &comms_[static_cast<std::size_t>(rank)]) != UNISONO_OK) {
      fail();
    }
    meet_.arrive_and_wait();
    return !failed_;
  }
  void make_calls(int rank) {
    const std::int64_t calls = calls_, first = first_;
    for (std::int64_t i = 0; i < calls && !failed_; ++i) {
      if (call_(comms_[static_cast<std::size_t>(rank)], rank, first + i) != UNISONO_OK) {
        fail();
      }
    }
  }
  void together(std::int64_t calls) {
    calls_ = calls;
    meet_.arrive_and_wait();
    make_calls(0);
    meet_.arrive_and_wait();
    first_ += calls;
  }
  void follow(int rank) {
    if (!join(rank)) return;
    for (;;) {
      meet_.arrive_and_wait();
      if (calls_ == 0) break;
      make_calls(rank);
      meet_.arrive_and_wait();
    }
    unisono_finalize(comms_[static_cast<std::size_t>(rank)]);
  }

  int ranks_;
  Call call_;
  std::barrier<> meet_;
  unisono_threads_t job_ = nullptr;
  std::vector<unisono_comm_t> comms_ =
      std::vector<unisono_comm_t>(static_cast<std::size_t>(ranks_), nullptr);
  std::atomic<std::int64_t> calls_{0}, first_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string why_;
};

// A buffer of each rank.
std::vector<std::vector<double>> buffers(int ranks, std::int64_t bytes) {
  return std::vector<std::vector<double>>(
      static_cast<std::size_t>(ranks),
      std::vector<double>(static_cast<std::size_t>(bytes / 8), 0.0));
}

// A child's answer to its parent, over a pipe: bytes, so that no part of it needs memory.
struct Answer {
  Sample sample;
  bool has_failed = true;
  std::array<char, 240> why = {};
};
static_assert(sizeof(Answer) <= 512, "a pipe takes it whole");

Answer answer_of(const base::Result<Sample>& result) {
  Answer answer;
  answer.has_failed = !result.ok();
  if (result.ok()) {
    answer.sample = *result;
  } else {
    const std::string& why = result.error().message;
    std::copy_n(why.data(), std::min(why.size(), answer.why.size() - 1), answer.why.data());
  }
  return answer;
}

// In the child. An exception would go on in what is the parent's part of the program.
[[noreturn]] void answer_and_end(int pipe,
                                 const std::function<base::Result<Sample>()>& measure) noexcept {
  const Answer answer = answer_of(measure());
  _exit(write(pipe, &answer, sizeof answer) == sizeof answer ? 0 : 1);
}

// The value of a variable; empty: it is not set.
using Variables = std::vector<std::pair<const char*, std::string>>;

// Measures in a child, which has these environment variables.
base::Result<Sample> in_child(const std::string& what, const Variables& variables,
                              const std::function<base::Result<Sample>()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) return base::system_error("pipe", errno);
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return base::system_error("fork", error);
  }
  if (child == 0) {
    for (const auto& [name, value] : variables) {
      if (value.empty()) {
        ::unsetenv(name);
      } else {
        ::setenv(name, value.c_str(), 1);
      }
    }
    answer_and_end(ends[1], measure);
  }
  close(ends[1]);
  Answer answer;
  ssize_t got = 0;
  do got = read(ends[0], &answer, sizeof answer);
  while (got < 0 && errno == EINTR);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got != sizeof answer) {
    return base::Error{base::Code::system,
                       fmt::format("{}: the child that measures it ended early", what)};
  }
  if (answer.has_failed) return base::Error{base::Code::system, answer.why.data()};
  return answer.sample;
}

// How the last collective went: algorithm and engine.
unisono_comm_info_t info_of(unisono_comm_t comm) {
  unisono_comm_info_t info = {};
  info.size = sizeof info;
  unisono_comm_info(comm, &info);
  return info;
}

}  // namespace

base::Result<Sample> barrier(int ranks, std::int64_t budget_ns) {
  return ThreadJob(ranks,
                   [](unisono_comm_t comm, int, std::int64_t) { return unisono_barrier(comm); })
      .measure(budget_ns);
}

base::Result<Sample> broadcast(int ranks, std::int64_t bytes, std::int64_t budget_ns) {
  auto memory = buffers(ranks, bytes);
  return ThreadJob(ranks,
                   [&](unisono_comm_t comm, int rank, std::int64_t number) {
                     return unisono_broadcast(memory[static_cast<std::size_t>(rank)].data(),
                                              bytes / 8, UNISONO_FLOAT64,
                                              static_cast<int>(number % ranks), comm);
                   })
      .measure(budget_ns);
}

base::Result<Sample> serial_reduction(int ranks, std::int64_t bytes, std::int64_t budget_ns) {
  auto input = buffers(ranks, bytes), output = buffers(ranks, bytes);
  return ThreadJob(ranks,
                   [&](unisono_comm_t comm, int rank, std::int64_t number) {
                     const auto r = static_cast<std::size_t>(rank);
                     return unisono_reduce(input[r].data(), output[r].data(), bytes / 8,
                                           UNISONO_FLOAT64, UNISONO_SUM,
                                           static_cast<int>(number % ranks), comm);
                   })
      .measure(budget_ns);
}

base::Result<Sample> reduction_of_degree(int degree, int ranks, std::int64_t bytes,
                                         std::int64_t budget_ns) {
  const std::string algorithm = fmt::format("fnomial({})", degree);
  const std::string rule = "reduce:" + algorithm;
  return in_child(rule, {{"UNISONO_ALGORITHM", rule}}, [&]() -> base::Result<Sample> {
    auto input = buffers(ranks, bytes), output = buffers(ranks, bytes);
    std::atomic<bool> is_other{false};
    ThreadJob job(ranks, [&](unisono_comm_t comm, int rank, std::int64_t number) {
      const auto r = static_cast<std::size_t>(rank);
      const int code = unisono_reduce(input[r].data(), output[r].data(), bytes / 8, UNISONO_FLOAT64,
                                      UNISONO_SUM, static_cast<int>(number % ranks), comm);
      if (code == UNISONO_OK && number == 0 && info_of(comm).algorithm != algorithm)
        is_other = true;
      return code;
    });
    UNISONO_ASSIGN(const Sample one, job.measure(budget_ns));
    if (is_other) {
      return base::Error{base::Code::state, "reduce did not go by " + algorithm};
    }
    return one;
  });
}

base::Result<Sample> copied_broadcast(Copies copies, int ranks, std::int64_t bytes,
                                      std::int64_t budget_ns) {
  const bool is_one = copies == Copies::one;
  const std::string what = fmt::format("a broadcast of {} bytes with {} of its bytes", bytes,
                                       is_one ? "one copy" : "two copies");
  const Variables variables = {{"UNISONO_ALGORITHM", ""},
                               {"UNISONO_SINGLE_COPY", is_one ? "on" : "off"},
                               {"UNISONO_SINGLE_COPY_FROM", "64"}};
  return in_child(what, variables, [&]() -> base::Result<Sample> {
    auto memory = buffers(ranks, bytes);
    std::atomic<bool> is_other{false};
    ThreadJob job(ranks, [&](unisono_comm_t comm, int rank, std::int64_t number) {
      const int code = unisono_broadcast(memory[static_cast<std::size_t>(rank)].data(), bytes / 8,
                                         UNISONO_FLOAT64, static_cast<int>(number % ranks), comm);
      if (code == UNISONO_OK && number == 0) {
        const bool pulls = std::string_view(info_of(comm).engine).ends_with(", pull");
        if (pulls != is_one) is_other = true;
      }
      return code;
    });
    UNISONO_ASSIGN(const Sample one, job.measure(budget_ns));
    if (is_other) return base::Error{base::Code::state, what + " went otherwise"};
    return one;
  });
}

base::Result<Sample> many_messages(const MessageProbe& probe, int ranks, std::int64_t budget_ns) {
  using schedule::Collective;
  const std::int64_t count = probe.bytes / 8;
  auto input = buffers(ranks, probe.bytes * ranks), output = buffers(ranks, probe.bytes * ranks);
  ThreadJob job(ranks, [&](unisono_comm_t comm, int rank, std::int64_t number) {
    const auto r = static_cast<std::size_t>(rank);
    const int root = static_cast<int>(number % ranks);
    double *const in = input[r].data(), *const out = output[r].data();
    if (probe.collective == Collective::scatter) {
      return unisono_scatter(in, out, count, UNISONO_FLOAT64, root, comm);
    }
    if (probe.collective == Collective::gather) {
      return unisono_gather(in, out, count, UNISONO_FLOAT64, root, comm);
    }
    if (probe.collective == Collective::alltoall) {
      return unisono_alltoall(in, out, count, UNISONO_FLOAT64, comm);
    }
    if (probe.collective == Collective::broadcast) {
      return unisono_broadcast(in, count, UNISONO_FLOAT64, root, comm);
    }
    return unisono_barrier(comm);
  });
  return job.measure(budget_ns);
}

}  // namespace unisono::tools::tune
