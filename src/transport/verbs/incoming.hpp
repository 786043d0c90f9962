// SPDX-License-Identifier: BSD-3-Clause
// VerbsIncoming: the ring into which another rank writes, and the connection by which this rank
// tells it how much has been consumed. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/handshake.hpp"

namespace unisono::transport {

class VerbsIncoming {
 public:
  // Connects to the rank that has asked. `device` outlives it. Errors: resources, system.
  static base::Result<std::unique_ptr<VerbsIncoming>> accept(VerbsDevice& device,
                                                             const VerbsAddress& from,
                                                             const VerbsHandshake& request);

  // Its side of the handshake, without ranks.
  VerbsHandshake answer() const;
  const VerbsHandshake& request() const { return request_; }

  enum class Found : std::uint8_t { nothing, bytes, flag, broken };
  // The next frame: its payload is copied to `region`, its flag raised. broken: it says something
  // impossible, which no sender of the job writes.
  Found take(std::span<std::byte> region);
  // Tells the sender how much was consumed, if that is much. False: the device refused.
  bool return_room();
  void complete() { --returns_; }

 private:
  VerbsIncoming(VerbsDevice& device, const VerbsHandshake& request)
      : device_(device), request_(request) {}

  VerbsDevice& device_;
  const VerbsHandshake request_;
  VerbsMemory ring_;
  VerbsOwned<ibv_qp> queue_pair_{nullptr, nullptr};
  std::uint64_t frames_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t frames_told_ = 0;
  std::uint64_t pieces_told_ = 0;
  std::uint64_t returns_ = 0;  // under way
  std::size_t most_short_ = 0;
};

}  // namespace unisono::transport
