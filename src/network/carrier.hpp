// SPDX-License-Identifier: BSD-3-Clause
// Carrier: what carries a rank's puts to other hosts: reliable datagrams, and beside them remote
// memory for long messages if the job has it. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "reliable/bulk/bulk.hpp"
#include "reliable/reliable.hpp"

namespace unisono::network {

class Carrier {
 public:
  explicit Carrier(std::unique_ptr<reliable::Reliable> reliable) : reliable_(std::move(reliable)) {}

  // Long puts and gets go by remote memory from now on.
  base::Status use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                        reliable::BulkOptions options);
  std::string_view bulk_name() const { return bulk_ == nullptr ? "" : bulk_->memory().name(); }
  // Whether arrivals are counted: those by remote memory are only if it raises flags.
  bool counts_arrivals() const { return bulk_ == nullptr || bulk_->memory().raises_flags(); }
  // By packets, and messages by remote memory that raises flags: each counts as one of both.
  reliable::Reliable::Arrived arrived() const;

  // Multicast and acknowledgements concern the datagrams alone.
  reliable::Reliable& reliable() const { return *reliable_; }
  transport::Transport& transport() const;
  // Where long messages may go instead of their places; null: nowhere.
  transport::Landings* landings() const {
    return bulk_ == nullptr ? nullptr : bulk_->memory().landings();
  }
  // True if an awaited packet has come. No rank waits for questions whether it lives, nor for their
  // answers. Acknowledgements matter only to a rank with packets to send.
  bool progress();
  // Whether an awaited packet has come since the last call or the last progress(): a long put reads
  // what comes meanwhile.
  bool take_arrivals();

  // Whether long messages of this rank are under way.
  bool has_transfers() const { return bulk_ != nullptr && bulk_->memory().under_way() > 0; }

  // See Reliable and Bulk.
  std::int64_t silence_ns(int rank) const;
  std::string why_lost(int rank) const;
  std::string trouble() const { return bulk_ == nullptr ? "" : bulk_->memory().trouble(); }
  void forget(int rank, reliable::Departure how);
  bool settle();

  // The descriptor to sleep on, and until when; used only at that time.
  struct SleepTarget {
    int descriptor = -1;
    std::int64_t deadline_ns = 0;
    std::int64_t pause_ns = 0;  // first, without looking at the descriptor
  };
  // `idle`: no operation of this rank waits. If no other rank of its host may wait either, only
  // urgent datagrams end the sleep.
  SleepTarget sleep_target(bool idle);

 private:
  std::unique_ptr<reliable::Reliable> reliable_;
  std::unique_ptr<reliable::Bulk> bulk_;  // beside reliable_; null: there is none
  std::int64_t noticed_ = 0;              // of arrived()
};

}  // namespace unisono::network
