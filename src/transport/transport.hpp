// SPDX-License-Identifier: BSD-3-Clause
// Transport: how bytes and flags reach another rank's receive buffer. Every rank has one for each
// slot index of a communicator (engine/size_queue.hpp). A put is one-sided: it writes bytes, then a
// flag word, and the reader who sees the flag sees the bytes. Flags and payload never share an
// address, whatever the operation, so a stale flag cannot be mistaken. One Transport object belongs
// to one rank; called by the thread that drives the communicator, or, with shared receive buffers,
// by any rank that helps.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "transport/shm/long_store.hpp"

namespace unisono::transport {

struct Capabilities {
  std::string_view name;
  bool one_sided = true;                // the target's processor takes no part
  bool reliable = true;                 // nothing is lost or duplicated
  bool ordered = true;                  // puts between two ranks arrive in the order they were made
  bool multicast = false;               // a message to many is staged once, in the sender's buffer
  bool shared_receive_buffers = false;  // every rank can address all of them, so others may help
  bool direct = false;                  // a put is a store: the engine may write itself
  bool pull = false;                    // a rank can read another's memory
  bool get = false;             // a rank can have bytes of another host's shared memory sent
  bool registration = false;    // user memory has to be registered before it can be sent from
  std::size_t max_message = 0;  // bytes of one put; 0: no limit
  std::size_t lands_from = 0;   // messages of so many bytes or more may land; 0: none does
};

// `bytes` from `source` to `place` in the target's receive buffer, then `flag_value` to `flag`. A
// null flag means bytes only; a put with a flag follows. With `forward` the flag's word is a
// counter and keeps its value if that is larger. So puts may overtake each other, and several to
// one word may be under way. Addresses are in the caller's mapping.
struct Put {
  int target = -1;  // rank in the job
  const std::byte* source = nullptr;
  std::byte* place = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* flag = nullptr;
  std::uint64_t flag_value = 0;
  bool forward = false;
  bool long_round = false;  // what went there before has left the inner caches (plan::Rotation)
};

// The last step of a put.
inline void raise(std::uint64_t* flag, std::uint64_t value, bool forward) {
  const std::atomic_ref word(*flag);
  if (!forward) return word.store(value, std::memory_order_release);
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (value != seen && value - seen < std::uint64_t{1} << 63 &&
         !word.compare_exchange_weak(seen, value, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

// Most messages are a word or a few; a call to memcpy would cost as much as the rest of a step.
// Bytes that are there already may be in memory that cannot be written.
inline void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (target == source) [[unlikely]]
    return;
  if (bytes == 8) {
    std::memcpy(target, source, 8);
  } else if (bytes == 4) {
    std::memcpy(target, source, 4);
  } else if (bytes != 0) {
    std::memcpy(target, source, bytes);
  }
}

// A put into memory that this process can address.
inline void store(const Put& message) {
  if (message.bytes >= kPacedBytes && message.place != message.source) [[unlikely]] {
    store_paced({message.target, message.long_round}, message.place, message.source, message.bytes);
  } else {
    copy_bytes(message.place, message.source, message.bytes);
  }
  if (message.flag != nullptr) raise(message.flag, message.flag_value, message.forward);
}

// `bytes` from `address` in the memory of rank `source` of the job, to `target` here.
struct Pull {
  int source = -1;
  std::uint64_t address = 0;
  std::byte* target = nullptr;
  std::size_t bytes = 0;
};

// `bytes` from `offset` in the shared memory of rank `source`'s host, to `place` here; then the
// flag, as of a put by that rank.
struct Get {
  int source = -1;
  std::uint64_t offset = 0;
  std::byte* place = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* flag = nullptr;
  std::uint64_t flag_value = 0;
};

// The `bytes` of an awaited message of rank `source` belong to `place` in the own receive buffer.
// They may go to `target` instead, a buffer of the caller.
struct Landing {
  int source = -1;
  std::byte* place = nullptr;
  std::byte* target = nullptr;
  std::size_t bytes = 0;
};

// The long messages that a rank wants in buffers of its own, not in their places in its receive
// buffer. That saves it a copy (decision 64). Thread rule: as of the Transport.
class Landings {
 public:
  virtual ~Landings() = default;
  Landings() = default;
  Landings(const Landings&) = delete;
  Landings& operator=(const Landings&) = delete;

  // Before that message has come. The target is written until has_landed() or withdraw().
  virtual void expect(const Landing& landing) = 0;
  // The flag of the message to that place has been raised. True: all its bytes are in the target;
  // false: in their place.
  virtual bool has_landed(const std::byte* place) = 0;
  // Nobody waits any more for messages to so many bytes from there on. They go to their places, as
  // do the bytes that have landed. Their targets are left alone.
  virtual void withdraw(const std::byte* place, std::size_t bytes) = 0;
};

enum class Pulled : std::uint8_t { done, gone, failed };  // gone: the source has ended

class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const Capabilities& capabilities() const = 0;
  // The source may be reused when put() returns. Never blocks.
  virtual void put(const Put& message) = 0;
  // Whether `bytes` from `address` in another process of this host can be read to `target`: callers
  // try before they allow pulls.
  virtual bool try_pull(pid_t /*process*/, std::uint64_t /*address*/, std::byte* /*target*/,
                        std::size_t /*bytes*/) {
    return false;
  }
  // Tells a transport that could that it may: every rank can read the others' memory. Their
  // processes, by rank of the job. Before the first operation.
  virtual void allow_pulls(std::span<const pid_t>) {}
  // Complete when it returns. failed: pull_error() says why. Only with Capabilities::pull.
  virtual Pulled pull(const Pull&) { return Pulled::failed; }
  virtual std::string pull_error() const { return "this transport cannot read another's memory"; }
  // The same put to every host at once, to the same offset of its memory. `target` has no meaning,
  // and this rank's own memory stays as it is. Allowed only if the job found that the network
  // carries multicast.
  virtual void put_to_all(const Put&) {}
  // Asks for bytes; the source's processor, or an agent, sends them. Only with Capabilities::get.
  virtual void get(const Get&) {}
  // Where messages of other hosts may land; null: nowhere. Only with Capabilities::lands_from.
  virtual Landings* landings() { return nullptr; }
  // Makes progress; returns the amount of work done.
  virtual int progress() = 0;
  // Reports that this rank cannot continue before it gets a put of that rank of the job. A waiting
  // rank calls it repeatedly, so it must be cheap. A transport that repairs losses then requests
  // the missing packets.
  virtual void awaits(int /*rank*/) {}
  // The same for a put of that rank to all.
  virtual void awaits_multicast(int /*origin*/) {}
};

}  // namespace unisono::transport
