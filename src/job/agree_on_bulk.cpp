// SPDX-License-Identifier: BSD-3-Clause
// How a job decides to carry long messages by remote memory. Every rank tries to open it, and shows
// its result and its region's address to all other hosts. So all ranks know the same, and decide
// alike: all use it, or none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "job/job.hpp"
#include "transport/table.hpp"

namespace unisono::job {

// A rank's, in the shared memory of every host. Zero is its initial state.
struct alignas(64) BulkEntry {
  transport::RegionCard card;
  std::atomic<std::uint64_t> verdict;  // a `Verdict`; a word that a put can write, after the card
};

namespace {

using base::Code;
using base::Error;

Verdict verdict_of(const BulkEntry& entry) {
  return static_cast<Verdict>(entry.verdict.load(std::memory_order_acquire));
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

}  // namespace

base::Result<std::byte*> Job::bulk_table() {
  if (rank_ == hosts_.first_here()) {
    const std::int64_t bytes = ranks_ * static_cast<std::int64_t>(sizeof(BulkEntry));
    UNISONO_ASSIGN(const std::int64_t offset, memory_->allocate(bytes));
    UNISONO_TRY(memory_->commit(offset, bytes, "the table of remote memory"));
    header_->bulk_offset.store(offset, std::memory_order_release);
  }
  const auto there = [&] { return header_->bulk_offset.load(std::memory_order_acquire) != 0; };
  UNISONO_TRY(await(there, [this] {
    return fmt::format("rank {} did not set up the table of remote memory", hosts_.first_here());
  }));
  return memory_->at(header_->bulk_offset.load(std::memory_order_relaxed));
}

base::Status Job::agree_on_bulk(const bootstrap::JobInfo& info) {
  const auto [row, insists] = transport::choose_remote_memory(settings_);
  if (network_ == nullptr || row == nullptr) return base::success();
  UNISONO_ASSIGN(std::byte* const table, bulk_table());
  const std::span entries(reinterpret_cast<BulkEntry*>(table), static_cast<std::size_t>(ranks_));
  auto opening = start_opening(*row, settings_,
                               {.address = info.address,
                                .ranks = ranks_,
                                .region = memory_->at(0),
                                .region_bytes = static_cast<std::size_t>(info.memory_bytes)},
                               memory_);
  using std::chrono_literals::operator""s;
  UNISONO_TRY(
      await([&] { return opening.wait_for(0s) == std::future_status::ready; },
            [chosen = row] { return fmt::format("{} takes so long to open", chosen->name); }));
  auto opened = opening.get();
  if (opened.ok()) entries[static_cast<std::size_t>(rank_)].card = (*opened)->card();
  UNISONO_TRY(exchange_bulk(entries, opened.ok() ? Verdict::yes : Verdict::no));
  const auto without = std::ranges::find(entries, Verdict::no, verdict_of);
  if (without == entries.end()) {
    std::vector<transport::RegionCard> cards;
    for (const BulkEntry& entry : entries) cards.push_back(entry.card);
    return use_bulk(std::move(*opened), cards);
  }
  const auto who = opened.ok() ? without - entries.begin() : rank_;
  const std::string why = opened.ok() ? "it says why" : opened.error().message;
  if (insists) {
    return Error{
        Code::unsupported,
        fmt::format("rank {}: UNISONO_BULK is {}, but rank {} cannot use it ({}); leave it "
                    "at its default, or set it to auto to go without",
                    rank_, row->name, who, why)};
  }
  base::log(base::LogLevel::info, "job", "long messages go as datagrams: rank {} cannot use {}: {}",
            who, row->name, why);
  return base::success();
}

// Shows this rank's entry to all hosts, and returns when all ranks have done so.
base::Status Job::exchange_bulk(std::span<BulkEntry> entries, Verdict own_verdict) {
  BulkEntry& own = entries[static_cast<std::size_t>(rank_)];
  own.verdict.store(static_cast<std::uint64_t>(own_verdict), std::memory_order_release);
  for (const int first : hosts_.firsts()) {  // their memory belongs to their whole host
    if (hosts_.is_here(first)) continue;
    network_->put({.target = first,
                   .source = reinterpret_cast<const std::byte*>(&own.card),
                   .place = reinterpret_cast<std::byte*>(&own.card),
                   .bytes = sizeof own.card,
                   .flag = reinterpret_cast<std::uint64_t*>(&own.verdict),
                   .flag_value = static_cast<std::uint64_t>(own_verdict)});
  }
  const bool is_first = rank_ == hosts_.first_here();
  const auto heard_all = [&] {
    for (int r = 0; r < ranks_; ++r) {
      if (verdict_of(entries[static_cast<std::size_t>(r)]) != Verdict::unknown) continue;
      if (is_first && !hosts_.is_here(r)) network_->awaits(r);
      return false;
    }
    return true;
  };
  return await(heard_all, [] { return "not every rank has tried to open remote memory"; });
}

base::Status Job::use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                           std::span<const transport::RegionCard> cards) {
  for (int r = 0; r < ranks_; ++r) {
    if (hosts_.is_here(r)) continue;
    UNISONO_TRY(memory->meet(r, cards[static_cast<std::size_t>(r)]));
  }
  reliable::BulkOptions options;
  options.rank = rank_;
  options.ranks = ranks_;
  options.region = memory_->at(0);
  options.from_bytes = static_cast<std::size_t>(settings_.bytes(base::Setting::bulk_from));
  options.silence_ns = SilenceLimits::of(settings_).lost_ns;
  options.failed = [](int rank, const std::string& why) {
    base::log(base::LogLevel::warn, "network", "rank {} is taken to be lost: {}", rank, why);
  };
  return network_->use_bulk(std::move(memory), std::move(options));
}

}  // namespace unisono::job
