// SPDX-License-Identifier: BSD-3-Clause
// Series: counters of calls of one kind, made in one form. Several threads add at once without a
// lock; a reader meanwhile may see a call in some of the counters only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "profile/histogram.hpp"

namespace unisono::profile {

// A call that has ended.
struct Sample {
  std::int64_t bytes = 0;
  std::int64_t ns = 0;             // from its start to its end
  std::int64_t waited_ns = -1;     // of these, after the rank found nothing to do; negative: none
  std::int64_t predicted_ns = -1;  // negative: there is no prediction
};

class Series {
 public:
  void add(const Sample& sample) {
    add(buckets_[bucket_of(sample.ns)], 1);
    add(ns_, sample.ns);
    if (sample.bytes != 0) add(bytes_, sample.bytes);
    if (sample.predicted_ns >= 0) [[likely]] {
      add(predicted_ns_, sample.predicted_ns);
    } else {
      add(unpredicted_, 1);
    }
    if (sample.waited_ns >= 0) {
      add(waits_, 1);
      add(waited_ns_, sample.waited_ns);
    }
    lower(least_bytes_, sample.bytes);
    raise(most_bytes_, sample.bytes);
    lower(least_ns_, sample.ns);
    raise(most_ns_, sample.ns);
  }

  struct Totals {
    std::int64_t calls = 0, bytes = 0, ns = 0, predicted_ns = 0, unpredicted = 0;
    std::int64_t waits = 0, waited_ns = 0;  // calls that waited, and how long
    std::int64_t least_bytes = 0, most_bytes = 0, least_ns = 0, most_ns = 0;
    std::array<std::int64_t, kBuckets> buckets{};
  };
  Totals totals() const {
    Totals totals;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      totals.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
      totals.calls += totals.buckets[i];
    }
    const auto get = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
    totals.bytes = get(bytes_);
    totals.ns = get(ns_);
    totals.predicted_ns = get(predicted_ns_);
    totals.unpredicted = get(unpredicted_);
    totals.waits = get(waits_);
    totals.waited_ns = get(waited_ns_);
    totals.least_bytes = get(least_bytes_);
    totals.most_bytes = get(most_bytes_);
    totals.least_ns = get(least_ns_);
    totals.most_ns = get(most_ns_);
    return totals;
  }

 private:
  using Counter = std::atomic<std::int64_t>;
  static void add(Counter& counter, std::int64_t more) {
    counter.fetch_add(more, std::memory_order_relaxed);
  }
  static void lower(Counter& least, std::int64_t value) {
    std::int64_t seen = least.load(std::memory_order_relaxed);
    while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  static void raise(Counter& most, std::int64_t value) {
    std::int64_t seen = most.load(std::memory_order_relaxed);
    while (value > seen && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  Counter ns_{0}, bytes_{0}, predicted_ns_{0}, unpredicted_{0}, waits_{0}, waited_ns_{0};
  Counter least_bytes_{std::numeric_limits<std::int64_t>::max()}, most_bytes_{0};
  Counter least_ns_{std::numeric_limits<std::int64_t>::max()}, most_ns_{0};
  std::array<Counter, kBuckets> buckets_{};  // their sum is the number of calls
};

}  // namespace unisono::profile
