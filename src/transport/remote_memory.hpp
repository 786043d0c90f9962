// SPDX-License-Identifier: BSD-3-Clause
// RemoteMemory: writes to and reads from other ranks' regions without datagrams, as network
// interfaces (or what stands for them) do it by themselves. All regions have the same size and
// layout, so a place is an offset. Nothing here tells the other side that something has come: what
// has arrived is said to who wrote it, and telling the reader is the caller's business
// (reliable/bulk.hpp). One object belongs to one rank; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::transport {

// What the others have to know to write to a rank's region. Goes between hosts of one job as it is.
struct RegionCard {
  std::uint64_t key = 0;   // of the region, as the provider names it to the others
  std::uint64_t base = 0;  // what an offset is added to
  std::uint32_t address_bytes = 0;
  std::array<std::byte, 108> address{};  // of the endpoint, in the provider's form
  bool operator==(const RegionCard&) const = default;
};

struct Transfer {
  int rank = -1;                    // of the job, not the own one
  std::uint64_t offset = 0;         // in that rank's region
  const std::byte* from = nullptr;  // write: may be reused when write() returns
  std::byte* to = nullptr;          // read: in the own region, and left alone until it is complete
  std::size_t bytes = 0;
  std::uint64_t token = 0;  // comes back when it is complete
};

// Of a write: its bytes are in the other's region, for everybody there to see. Of a read: they are
// here. Not `arrived`: they are not, and may or may not be later; error_of() says why.
struct Completion {
  int rank = -1;
  std::uint64_t token = 0;
  bool arrived = true;
};

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  RemoteMemory() = default;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  virtual std::string_view name() const = 0;  // "ofi/tcp"
  virtual const RegionCard& card() const = 0;
  // Before the first transfer to or from that rank.
  virtual base::Status meet(int rank, const RegionCard& card) = 0;

  // False: not taken, for want of room or because nothing can be transferred any more; nothing was
  // done. Neither blocks.
  virtual bool write(const Transfer& transfer) = 0;
  virtual bool read(const Transfer& transfer) = 0;
  // Moves what is under way, also what others write here, and returns how many of `completions`
  // were filled.
  virtual std::size_t poll(std::span<Completion> completions) = 0;
  // Transfers that were begun and have not been reported complete.
  virtual std::size_t under_way() const = 0;
  // Parts of transfers with that rank that have ended, since the beginning. A transfer is made in
  // parts of bounded size, so this number grows as long as bytes move.
  virtual std::uint64_t moved(int rank) const = 0;

  // To sleep on, after may_sleep() has said so and before anything else is called; -1: nothing, or
  // nothing any more, so look again after a short time.
  virtual int descriptor() const = 0;
  virtual bool may_sleep() = 0;
  // Why transfers with that rank failed; empty if none did.
  virtual const std::string& error_of(int rank) const = 0;
};

}  // namespace unisono::transport
