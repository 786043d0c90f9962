// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a host find out whether they can read each other's memory.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "job/start/exchanges.hpp"

namespace unisono::job {

ReachProbe::ReachProbe(const Ranks& ranks)
    : ranks_(ranks),
      word_((static_cast<std::uint64_t>(base::now_ns()) << 12) +
            static_cast<unsigned>(ranks.own())) {
  RankHeader& own = ranks.entry(ranks.own());
  own.probe_address.store(reinterpret_cast<std::uint64_t>(&word_), std::memory_order_relaxed);
  own.probe_value.store(word_, std::memory_order_relaxed);
}

// Kernel settings and containers may forbid it between some of the ranks only, and all have to
// agree, so every pair tries.
Reach ReachProbe::probe_others(transport::Transport& transport) const {
  for (const int r : ranks_.hosts().here()) {
    const RankHeader& other = ranks_.entry(r);
    std::uint64_t found = 0;
    const bool readable = transport.try_pull(ranks_.processes()[static_cast<std::size_t>(r)],
                                             other.probe_address.load(std::memory_order_relaxed),
                                             reinterpret_cast<std::byte*>(&found), sizeof found);
    if (!readable || found != other.probe_value.load(std::memory_order_relaxed)) {
      return Reach::not_all;
    }
  }
  return Reach::all;
}

base::Status ReachProbe::decide(StartUp& start, transport::Transport& transport) {
  const base::Toggle wish = start.settings().toggle(base::Setting::single_copy);
  const int here = ranks_.hosts().count_here();
  if (here == 1) return base::success();
  const Reach own = wish == base::Toggle::off ? Reach::not_all : probe_others(transport);
  ranks_.entry(ranks_.own())
      .reach.store(static_cast<std::uint32_t>(own), std::memory_order_release);
  const auto count = [this](Reach reach) {
    int n = 0;
    for (int r = 0; r < ranks_.count(); ++r) {
      n += ranks_.entry(r).reach.load(std::memory_order_acquire) ==
           static_cast<std::uint32_t>(reach);
    }
    return n;
  };
  UNISONO_TRY(
      start.await([&] { return count(Reach::all) + count(Reach::not_all) == here; },
                  [this] {
                    return "these have not tried whether they can read the others' memory: " +
                           ranks_.names_of_late(ranks_.hosts().here(), [this](int r) {
                             return ranks_.entry(r).reach.load(std::memory_order_acquire) !=
                                    static_cast<std::uint32_t>(Reach::unknown);
                           });
                  }));
  if (count(Reach::all) == here) {
    transport.allow_pulls(ranks_.processes());
  } else if (wish == base::Toggle::on) {
    return base::Error{
        base::Code::unsupported,
        fmt::format("rank {}: UNISONO_SINGLE_COPY is on, but {} of {} ranks may not read "
                    "the others' memory (see kernel.yama.ptrace_scope, and the "
                    "container's CAP_SYS_PTRACE). Leave it at auto to go through buffers",
                    ranks_.own(), count(Reach::not_all), here)};
  }
  return base::success();
}

}  // namespace unisono::job
