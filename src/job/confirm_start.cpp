// SPDX-License-Identifier: BSD-3-Clause
// How a start that fails on one rank fails on all, and how all confirm one that succeeds.
#include <fmt/format.h>

#include "job/job.hpp"

namespace unisono::job {
namespace {

using base::Code;
using base::Error;

// A failure as sent to another host: a word that a put can write. The text is put before it, to an
// entry of the rank's own, so that texts of several ranks do not mix.
constexpr unsigned kCodeBit = 32;
std::uint64_t failure_word(int rank, Code code) {
  return static_cast<std::uint64_t>(code) << kCodeBit | static_cast<std::uint32_t>(rank + 1);
}

// Where the hosts' first ranks say that their hosts are ready.
constexpr int kStartJudge = 0;

}  // namespace

// The first failure is reported to all. A rank that fails because of it, or after it, reports
// nothing; if it has a reason of its own, it returns that.
Error Job::fail_start(const Error& why) {
  const bool is_own = why.code != Code::rank_lost && why.code != Code::timeout;
  if (const auto known = failed_start()) return is_own ? why : *known;
  // All see these for themselves.
  if (dead_rank() || why.code == Code::timeout) return why;
  if (!report_failure(header_->start_failure,
                      {.index = static_cast<std::uint64_t>(rank_), .error = why})) {
    return why;
  }
  if (network_ == nullptr) return why;
  const FailureNotice::Text text = notice_text({.error = why});
  for (const int first : hosts_.firsts()) {  // their memory belongs to their whole host
    if (hosts_.is_here(first)) continue;
    if (rank_headers_ != nullptr) {
      network_->put({.target = first,
                     .source = reinterpret_cast<const std::byte*>(&text),
                     .place = reinterpret_cast<std::byte*>(&rank_headers_[rank_].start_failure),
                     .bytes = sizeof text});
    }
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_->start_failed_elsewhere),
                   .flag_value = failure_word(rank_, why.code)});
  }
  network_->settle(settings_.time_ns(base::Setting::detect_timeout),
                   [this](int rank) { return rank_headers_ != nullptr && has_gone(rank); });
  return why;
}

std::optional<Error> Job::failed_start() const {
  const auto tell = [this](int rank, Code code, std::string_view why) {
    return Error{code, fmt::format("rank {}: the job cannot start, as {} failed: {}", rank_,
                                   hosts_.name_of(rank), why)};
  };
  if (const auto here = read_failure(header_->start_failure)) {
    return tell(static_cast<int>(here->cause), here->error.code, here->error.message);
  }
  const std::uint64_t word = header_->start_failed_elsewhere.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  const auto rank = static_cast<int>(static_cast<std::uint32_t>(word)) - 1;
  const char* const why = rank_headers_ == nullptr ? "" : rank_headers_[rank].start_failure.text;
  return tell(rank, static_cast<Code>(word >> kCodeBit), *why == '\0' ? "it says why" : why);
}

// The ranks of a host say it in its memory, its first one to the job's first, and that one to all.
base::Status Job::confirm_start() {
  rank_headers_[rank_].started.store(1, std::memory_order_release);
  const auto all_here = [this] {
    for (int r = 0; r < ranks_; ++r) {
      if (hosts_.is_here(r) && rank_headers_[r].started.load(std::memory_order_acquire) == 0) {
        return false;
      }
    }
    return true;
  };
  const auto missing = [] { return "not all ranks have what they need"; };
  if (network_ == nullptr) return await(all_here, missing);
  if (rank_ == hosts_.first_here()) {
    UNISONO_TRY(await(all_here, missing));
    UNISONO_TRY(rank_ == kStartJudge ? confirm_for_all() : tell_judge());
  }
  const auto told = [this] {
    if (rank_ == hosts_.first_here() && rank_ != kStartJudge) network_->awaits(kStartJudge);
    return header_->all_started.load(std::memory_order_acquire) != 0;
  };
  return await(told, missing);
}

base::Status Job::tell_judge() {
  network_->put({.target = kStartJudge,
                 .flag = reinterpret_cast<std::uint64_t*>(&rank_headers_[rank_].host_started),
                 .flag_value = 1});
  return base::success();
}

base::Status Job::confirm_for_all() {
  const auto all_hosts = [this] {
    for (const int first : hosts_.firsts()) {
      if (first == kStartJudge || rank_headers_[first].host_started.load() != 0) continue;
      network_->awaits(first);
      return false;
    }
    return true;
  };
  UNISONO_TRY(await(all_hosts, [] { return "not all hosts have what they need"; }));
  header_->all_started.store(1, std::memory_order_release);
  for (const int first : hosts_.firsts()) {
    if (first == kStartJudge) continue;
    network_->put({.target = first,
                   .flag = reinterpret_cast<std::uint64_t*>(&header_->all_started),
                   .flag_value = 1});
  }
  return base::success();
}

}  // namespace unisono::job
