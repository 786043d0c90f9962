// SPDX-License-Identifier: BSD-3-Clause
// FaultyDatagrams: wraps any datagram transport and adds faults from a seed. A datagram may be
// lost, duplicated, or delayed and so reordered. It serves tests and users who want to see their
// program on a bad network, without kernel help (netem). A delayed datagram is sent at the first
// send() or receive() after its time. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "transport/datagrams.hpp"

namespace unisono::transport {

struct FaultOptions {
  double loss = 0;        // share of the datagrams, 0 to 1
  double duplicates = 0;  // share of the datagrams
  double reorder = 0;     // share of the datagrams, delayed by `delay_ns`
  std::int64_t delay_ns = 1'000'000;
  std::uint64_t seed = 1;  // each rank's generator starts from it and the rank
  bool operator==(const FaultOptions&) const = default;
};

// "loss=0.1%,duplicates=5%,reorder=1%,delay=200us,seed=7", in any order; faults not named are off.
base::Result<FaultOptions> parse_fault(std::string_view text);

// Reads the text as parse_fault() does and adds the rank to the seed. Errors: argument.
base::Result<std::unique_ptr<Datagrams>> wrap_with_faults(std::unique_ptr<Datagrams> inner,
                                                          const std::string& text);

struct FaultCounts {
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t held = 0;
  std::uint64_t dropped_late = 0;  // held, and at last there was no room
};

class FaultyDatagrams final : public Datagrams {
 public:
  using Clock = std::function<std::int64_t()>;

  FaultyDatagrams(std::unique_ptr<Datagrams> inner, const FaultOptions& options, Clock now_ns);

  const DatagramLimits& limits() const override { return inner_->limits(); }
  int rank() const override { return inner_->rank(); }
  std::size_t send(std::span<const Outgoing> datagrams) override;
  bool joins(int target) const override { return inner_->joins(target); }
  std::size_t receive(std::span<Incoming> datagrams) override;
  int descriptor() const override { return inner_->descriptor(); }
  bool may_sleep(bool only_urgent) override { return inner_->may_sleep(only_urgent); }
  void give_up_multicast(std::string note) override { inner_->give_up_multicast(std::move(note)); }
  const std::string& multicast_note() const override { return inner_->multicast_note(); }
  bool has_other_multicast() const override { return inner_->has_other_multicast(); }
  void take_other_multicast() override { inner_->take_other_multicast(); }
  std::uint64_t multicast_card() const override { return inner_->multicast_card(); }
  void meet_member(int rank, std::uint64_t card) override { inner_->meet_member(rank, card); }
  const std::string& multicast_loss() const override { return inner_->multicast_loss(); }
  DatagramCounts counts() const override { return inner_->counts(); }
  std::string last_error() const override { return inner_->last_error(); }

  const FaultCounts& faults() const { return faults_; }
  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    std::int64_t due_ns;
    int target;
    std::vector<std::byte> bytes;
    bool urgent;
  };

  bool chance(double share) { return share > 0 && prng_.unit() < share; }
  void release_due();

  std::unique_ptr<Datagrams> inner_;
  FaultOptions options_;
  Clock now_ns_;
  base::Prng prng_;
  std::vector<Held> held_;
  FaultCounts faults_;
};

}  // namespace unisono::transport
