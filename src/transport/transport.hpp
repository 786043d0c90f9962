// SPDX-License-Identifier: BSD-3-Clause
// Transport: how bytes and flags reach another rank's window. A window is the memory in which a
// rank receives; every rank has one per channel of a communicator (engine/lane.hpp). A put is
// one-sided: it writes bytes, then a flag word, and the reader who sees the flag sees the bytes.
// Flags and payload never share an address, whatever the operation, so a stale flag cannot be
// mistaken. One Transport object belongs to one rank; called by the thread that drives the
// communicator, or, with shared windows, by any rank that helps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace unisono::transport {

struct Capabilities {
  std::string_view name;
  bool one_sided = true;        // the target's processor takes no part
  bool reliable = true;         // nothing is lost or doubled
  bool ordered = true;          // puts between two ranks arrive in the order they were made
  bool multicast = false;       // a message to many is staged once, in the sender's window
  bool shared_windows = false;  // every rank can address every window, so others may help
  bool direct = false;          // a put is a store: the engine may write windows itself
  bool registration = false;    // user memory has to be registered before it can be sent from
  std::size_t max_message = 0;  // bytes of one put; 0: no limit
};

// `bytes` from `source` to `place` in the target's window, then `flag_value` to `flag` (flag may be
// null: bytes only, to be followed by a put with a flag). Addresses are in the caller's mapping.
struct Put {
  int target = -1;  // rank in the job
  const std::byte* source = nullptr;
  std::byte* place = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* flag = nullptr;
  std::uint64_t flag_value = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const Capabilities& capabilities() const = 0;
  // The source may be reused when put() returns. Never blocks.
  virtual void put(const Put& message) = 0;
  // Moves what is under way; returns the amount of work done.
  virtual int progress() = 0;
};

}  // namespace unisono::transport
