// SPDX-License-Identifier: BSD-3-Clause
// RemoteMemory: writes to and reads from other ranks' regions without datagrams, as RDMA network
// interfaces (or their emulations) do. All regions have the same size and layout, so a position is
// an offset. There are two kinds. One reports a completion to the rank that wrote, never to the
// target, and the caller has to notify the reader (reliable/bulk/bulk.hpp). The other
// (raises_flags) takes the flag along with the bytes, and its target's side raises it behind them.
// One object belongs to one rank; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transport/transport.hpp"

namespace unisono::transport {

// The data that other ranks need to write to a rank's region. It is sent between the hosts of one
// job unchanged.
struct RegionCard {
  std::uint64_t key = 0;   // the region's key for remote access, from the provider
  std::uint64_t base = 0;  // added to each offset
  std::uint32_t address_bytes = 0;
  std::array<std::byte, 108> address{};  // address of the endpoint, in the provider's form
  bool operator==(const RegionCard&) const = default;
};

inline constexpr std::uint64_t kNoFlag = ~std::uint64_t{0};  // as Transfer::flag

struct Transfer {
  int rank = -1;                    // another rank of the job
  std::uint64_t offset = 0;         // in that rank's region
  const std::byte* from = nullptr;  // write: may be reused when write() returns
  std::byte* to = nullptr;          // read: in the own region, and left alone until it is complete
  std::size_t bytes = 0;
  std::uint64_t token = 0;  // comes back when it is complete
  // Only where raises_flags(), as in a Put: a word in that rank's region. It is raised when these
  // bytes are there, and those of the writes since the last one with a flag.
  std::uint64_t flag = kNoFlag;
  std::uint64_t flag_value = 0;
  bool forward = false;
};

// The end of a transfer. After a write, its bytes are in the target's region, visible to all
// processes there. After a read, its bytes are here. Without `arrived` it has failed, and its bytes
// may or may not arrive later; error_of() says why.
struct Completion {
  int rank = -1;
  std::uint64_t token = 0;
  bool arrived = true;
};

// The state of a descriptor that is not the memory's own, as a poll has found it.
enum class Beside : std::uint8_t { unknown, silent, readable };

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  explicit RemoteMemory(Landings* landings = nullptr) : landings_(landings) {}
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  virtual std::string_view name() const = 0;  // "ofi/tcp"
  virtual const RegionCard& card() const = 0;
  // Before the first transfer to or from that rank.
  virtual base::Status meet(int rank, const RegionCard& card) = 0;

  // False: not taken, for want of room or because nothing can be transferred any more; nothing was
  // done. Neither blocks. Where raises_flags(), a long write also reads what others have sent.
  virtual bool write(const Transfer& transfer) = 0;
  virtual bool read(const Transfer& transfer) = 0;
  // Makes progress on all transfers, also on those of other ranks to this one. Returns how many of
  // `completions` were filled.
  virtual std::size_t poll(std::span<Completion> completions) = 0;
  // Transfers that were begun and have not been reported complete.
  virtual std::size_t under_way() const = 0;
  // Parts of transfers with that rank that have ended, since the beginning. A transfer is made in
  // parts of bounded size, so this number grows as long as bytes move.
  virtual std::uint64_t moved(int rank) const = 0;

  // Whether writes raise flags. Then writes to one rank are made in their order, and no completion
  // is reported for them. under_way() counts ranks that may lack some of them.
  virtual bool raises_flags() const { return false; }
  // Only where raises_flags(): whether a message to that rank may begin now. If so, all its writes
  // are taken, up to the one with the flag. Otherwise it may be so later.
  virtual bool accepts_message(int /*rank*/) { return true; }
  // Flags of this rank that were raised by writes of others, since the beginning.
  virtual std::uint64_t flags_raised() const { return 0; }
  // Where messages to the own region may land (Transport::expect); null: nowhere else.
  Landings* landings() const { return landings_; }
  // That rank has left or is lost: nothing that was written to it need arrive.
  virtual void forget(int /*rank*/) {}

  // A descriptor to sleep on, right after may_sleep() has returned true. -1: there is none, or none
  // any more, so poll again after a short time.
  virtual int descriptor() const = 0;
  virtual bool may_sleep() = 0;
  // From now on the memory's descriptor is readable also while `descriptor` is, and polls tell of
  // that one. False: it cannot do that.
  virtual bool watch_beside(int /*descriptor*/) { return false; }
  // Whether the descriptor of watch_beside() was readable when the last poll(), or a call after it,
  // asked the kernel; unknown if none did.
  Beside beside() const { return beside_; }
  // Why transfers with that rank failed; empty if none did.
  virtual const std::string& error_of(int rank) const = 0;
  // How many ranks have an error; only where raises_flags().
  virtual std::uint64_t failures() const { return 0; }
  // Why this rank can transfer nothing any more, with any rank, in words for all ranks; empty while
  // it can.
  virtual std::string device_loss() const { return {}; }
  // For people: what was rejected or not possible; empty if nothing.
  virtual std::string trouble() const { return {}; }

 protected:
  Beside beside_ = Beside::unknown;

 private:
  Landings* landings_;
};

}  // namespace unisono::transport
