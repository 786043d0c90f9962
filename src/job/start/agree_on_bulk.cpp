// SPDX-License-Identifier: BSD-3-Clause
// How a job decides to carry long messages by remote memory. Every rank tries to open it, and shows
// its result and its region's address to all other hosts. So all ranks know the same, and decide
// alike: all use it, or none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "job/loss/silence.hpp"
#include "job/start/exchanges.hpp"
#include "model/default_machine.hpp"
#include "model/machine.hpp"
#include "transport/table.hpp"

namespace unisono::job {
namespace {

// A rank's, in the shared memory of every host. Zero is its initial state.
struct alignas(64) BulkEntry {
  transport::RegionCard card;
  std::atomic<std::uint64_t> vote;  // a `Vote`; a word that a put can write, after the card
};

using base::Code;
using base::Error;

Vote vote_of(const BulkEntry& entry) {
  return static_cast<Vote>(entry.vote.load(std::memory_order_acquire));
}

using Opened = base::Result<std::unique_ptr<transport::RemoteMemory>>;

// A library may query the system for all networks that it knows, which may take as long as a rank
// may be silent. So a thread of its own does it, while this one answers. If it takes too long, the
// thread stays behind, with the memory that it may be registering.
std::future<Opened> start_opening(const transport::RemoteMemoryRow& row,
                                  const base::Settings& settings,
                                  const transport::RegionOptions& options,
                                  std::shared_ptr<memory::JobMemory> memory) {
  auto started = base::start_aside<Opened>("unisono-bulk",
                                           [&row, settings, options, memory = std::move(memory)] {
                                             return row.open(settings, options);
                                           });
  if (started.ok()) return std::move(*started);
  std::promise<Opened> none;
  none.set_value(
      Error{Code::resources, fmt::format("no thread to open it: {}", started.error().message)});
  return none.get_future();
}

base::Result<std::span<BulkEntry>> bulk_table(StartUp& start, memory::JobMemory& memory) {
  const Ranks& ranks = start.ranks();
  std::atomic<std::int64_t>& published = start.header().bulk_offset;
  if (ranks.is_first_here()) {
    const std::int64_t bytes = ranks.count() * static_cast<std::int64_t>(sizeof(BulkEntry));
    UNISONO_ASSIGN(const std::int64_t offset, memory.allocate(bytes));
    UNISONO_TRY(memory.commit(offset, bytes, "the table of remote memory"));
    published.store(offset, std::memory_order_release);
  }
  const auto there = [&] { return published.load(std::memory_order_acquire) != 0; };
  UNISONO_TRY(start.await(there, [&ranks] {
    return fmt::format("rank {} did not set up the table of remote memory",
                       ranks.hosts().first_here());
  }));
  return std::span(
      reinterpret_cast<BulkEntry*>(memory.at(published.load(std::memory_order_relaxed))),
      static_cast<std::size_t>(ranks.count()));
}

// Shows this rank's entry to all hosts, and returns when all ranks have done so.
base::Status exchange_votes(StartUp& start, std::span<BulkEntry> entries, Vote own_vote) {
  const Ranks& ranks = start.ranks();
  network::Network& network = *start.network();
  BulkEntry& own = entries[static_cast<std::size_t>(ranks.own())];
  own.vote.store(static_cast<std::uint64_t>(own_vote), std::memory_order_release);
  // Their memory belongs to their whole host.
  for (const int first : ranks.hosts().firsts_elsewhere()) {
    network.put({.target = first,
                 .source = reinterpret_cast<const std::byte*>(&own.card),
                 .place = reinterpret_cast<std::byte*>(&own.card),
                 .bytes = sizeof own.card,
                 .flag = reinterpret_cast<std::uint64_t*>(&own.vote),
                 .flag_value = static_cast<std::uint64_t>(own_vote)});
  }
  const auto all_voted = [&] {
    for (int r = 0; r < ranks.count(); ++r) {
      if (vote_of(entries[static_cast<std::size_t>(r)]) != Vote::unknown) continue;
      if (ranks.is_first_here() && !ranks.hosts().is_here(r)) network.awaits(r);
      return false;
    }
    return true;
  };
  return start.await(all_voted, [&] {
    return "these have not tried to open remote memory: " +
           ranks.names_of_late(std::views::iota(0, ranks.count()), [&](int r) {
             return vote_of(entries[static_cast<std::size_t>(r)]) != Vote::unknown;
           });
  });
}

// A machine file that does not say it leaves the choice to the default one.
std::size_t least_long_message(const base::Settings& settings, const model::Machine& machine) {
  const std::int64_t wanted = settings.bytes(base::Setting::bulk_from);
  if (wanted >= 0) return static_cast<std::size_t>(wanted);
  auto from = model::streams_from_bytes(machine);
  if (!from) from = model::streams_from_bytes(model::default_machine());
  return static_cast<std::size_t>(from.value_or(std::numeric_limits<std::int64_t>::max()));
}

base::Status use_bulk(const StartUp& start, memory::JobMemory& memory,
                      const model::Machine& machine,
                      std::unique_ptr<transport::RemoteMemory> remote,
                      std::span<const BulkEntry> entries) {
  const Ranks& ranks = start.ranks();
  for (const int r : ranks.hosts().elsewhere()) {
    UNISONO_TRY(remote->meet(r, entries[static_cast<std::size_t>(r)].card));
  }
  reliable::BulkOptions options;
  options.rank = ranks.own();
  options.ranks = ranks.count();
  options.region = memory.at(0);
  options.from_bytes = least_long_message(start.settings(), machine);
  options.silence_ns = SilenceLimits::of(start.settings()).lost_ns;
  options.failed = [](int rank, const std::string& why) {
    base::log(base::LogLevel::warn, "network", "rank {} is taken to be lost: {}", rank, why);
  };
  return start.network()->use_bulk(std::move(remote), std::move(options));
}

// A rank cannot use it: the reason is in `opened`, or at the first such rank.
base::Status go_without(const StartUp& start, const transport::RemoteMemoryRow& row, bool insists,
                        int first_without, const Opened& opened) {
  const int who = opened.ok() ? first_without : start.ranks().own();
  const std::string why = opened.ok() ? "it says why" : opened.error().message;
  if (insists) {
    return Error{
        Code::unsupported,
        fmt::format("rank {}: UNISONO_BULK is {}, but rank {} cannot use it ({}); leave it "
                    "at its default, or set it to auto to go without",
                    start.ranks().own(), row.name, who, why)};
  }
  base::log(base::LogLevel::info, "job", "long messages go as datagrams: rank {} cannot use {}: {}",
            who, row.name, why);
  return base::success();
}

}  // namespace

base::Status agree_on_bulk(StartUp& start, const bootstrap::JobInfo& info,
                           const std::shared_ptr<memory::JobMemory>& memory,
                           const model::Machine& machine) {
  const auto [row, insists] = transport::choose_remote_memory(start.settings());
  if (start.network() == nullptr || row == nullptr) return base::success();
  UNISONO_ASSIGN(const std::span entries, bulk_table(start, *memory));
  auto opening = start_opening(*row, start.settings(),
                               {.address = info.address,
                                .rank = info.rank,
                                .ranks = info.ranks,
                                .key = info.key,
                                .silence_ns = SilenceLimits::of(start.settings()).lost_ns,
                                .region = memory->at(0),
                                .region_bytes = static_cast<std::size_t>(info.memory_bytes)},
                               memory);
  using std::chrono_literals::operator""s;
  UNISONO_TRY(start.await(
      [&] { return opening.wait_for(0s) == std::future_status::ready; },
      [chosen = row] { return fmt::format("{} takes so long to open", chosen->name); }));
  auto opened = opening.get();
  if (opened.ok()) entries[static_cast<std::size_t>(info.rank)].card = (*opened)->card();
  UNISONO_TRY(exchange_votes(start, entries, opened.ok() ? Vote::yes : Vote::no));
  const auto without = std::ranges::find(entries, Vote::no, vote_of);
  if (without == entries.end()) {
    return use_bulk(start, *memory, machine, std::move(*opened), entries);
  }
  return go_without(start, *row, insists, static_cast<int>(without - entries.begin()), opened);
}

}  // namespace unisono::job
