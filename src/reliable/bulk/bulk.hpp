// SPDX-License-Identifier: BSD-3-Clause
// Bulk: long puts as writes to remote memory, beside a Reliable that carries everything else. A
// flag always goes by the Reliable, and is sent only when the write is known to have arrived. So it
// cannot be seen before its bytes, whatever order the provider keeps. A process writes it, in one
// piece, and it carries the job's tag (docs/decisions/0018). If some bytes of a message are written
// and others are not, the latter are kept until then, too.
//
// Where the remote memory raises flags itself, they go with the bytes (ordered_messages.hpp).
//
// A write that fails may still arrive later, so its bytes are not sent again another way: the peer
// counts as lost. So does a peer if no part of its transfers ends for as long as a rank of another
// host may be silent. Whether it answers datagrams does not matter: the provider alone would wait
// for much longer. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "reliable/bulk/bulk_messages.hpp"
#include "reliable/bulk/ordered_messages.hpp"
#include "reliable/reliable.hpp"
#include "transport/remote_memory.hpp"
#include "transport/transport.hpp"

namespace unisono::reliable {

struct BulkOptions {
  int rank = 0;
  int ranks = 1;
  std::byte* region = nullptr;
  std::size_t from_bytes = std::size_t{64} << 10;  // a put's least that is written
  // How long nothing may move with a rank; UNISONO_DETECT_TIMEOUT_HOSTS.
  std::int64_t silence_ns = 10 * base::kSecond;
  std::function<std::int64_t()> now_ns = base::now_ns;
  // The first time that a transfer with a rank fails, or no longer moves.
  std::function<void(int rank, const std::string& why)> failed = {};
};

class Bulk final : public transport::Transport {
 public:
  // `reliable` outlives it. `memory` has met every peer that may be put to.
  static base::Result<std::unique_ptr<Bulk>> over(Reliable& reliable,
                                                  std::unique_ptr<transport::RemoteMemory> memory,
                                                  BulkOptions options);

  // Those of the Reliable, with landings.
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  // Short puts without a flag are kept until the one with a flag.
  void put(const transport::Put& message) override;
  void get(const transport::Get& wanted) override;
  void put_to_all(const transport::Put& message) override { reliable_.put_to_all(message); }
  void awaits(int rank) override { reliable_.awaits(rank); }
  void awaits_multicast(int origin) override { reliable_.awaits_multicast(origin); }
  // The Reliable's, too.
  int progress() override;

  // Like those of the Reliable, which they also call.
  bool settle();
  void forget(int rank, Departure how = Departure::lost);
  // A transfer with that rank has failed, or makes no progress: its bytes will not arrive.
  bool has_lost(int rank) const { return peers_[static_cast<std::size_t>(rank)].lost; }
  // Why; empty if it has not. For this rank: why it can transfer nothing any more.
  std::string why_lost(int rank) const;

  // Readable when there is something to do, here or at the datagrams. Only after may_sleep(); even
  // then not for longer than longest_sleep_ns().
  int descriptor() const { return sleeper_.valid() ? sleeper_.get() : memory_->descriptor(); }
  bool may_sleep() { return memory_->may_sleep(); }
  std::int64_t longest_sleep_ns() const;

  const BulkCounts& counts() const { return counts_; }
  transport::RemoteMemory& memory() { return *memory_; }

 private:
  struct Peer {
    std::size_t open = kNone;   // message that waits for its flag
    std::size_t under_way = 0;  // messages
    std::size_t transfers = 0;
    std::optional<std::uint64_t> moved{};  // RemoteMemory's, at the last look; none: not looked yet
    std::int64_t still_ns = 0;             // how long it has not changed
    bool lost = false;
    bool forgotten = false;
    std::string why{};
    bool is_given_up() const { return lost || forgotten; }
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  Bulk(Reliable& reliable, std::unique_ptr<transport::RemoteMemory> memory, BulkOptions options);
  std::size_t take_message(int target);
  bool write(std::size_t index, const transport::Put& message);
  void look_for_failures();
  void begin_transfer(int rank);
  int collect();
  void look_for_stalls();
  bool has_stalled(int rank, std::int64_t passed_ns);
  void stop_watching_memory();
  bool is_settled() const;
  void complete(const transport::Completion& completion);
  void finish(std::size_t index);
  void lose(int rank, const std::string& why);

  Reliable& reliable_;
  std::unique_ptr<transport::RemoteMemory> memory_;
  BulkOptions options_;
  transport::Capabilities capabilities_;
  // epoll: the datagrams' descriptor and the remote memory's; none if the memory watches both
  base::Descriptor sleeper_;
  int watched_ = -1;            // the latter
  std::vector<Peer> peers_;     // by rank
  std::size_t transfers_ = 0;   // open transfers, without abandoned ones
  std::int64_t looked_ns_ = 0;  // for stalls
  std::uint64_t failures_ = 0;  // of the memory, as known
  BulkMessages messages_;
  BulkCounts counts_;
  OrderedMessages ordered_;  // where the memory raises flags
};

}  // namespace unisono::reliable
