// SPDX-License-Identifier: BSD-3-Clause
// VerbsOutgoing: this rank's connection to another, by which it writes to that rank's ring. What
// finds no room there waits in memory. One object belongs to one rank; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "transport/remote_memory.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/handshake.hpp"

namespace unisono::transport {

class VerbsOutgoing {
 public:
  // `device` outlives it. Errors: resources, system.
  static base::Result<std::unique_ptr<VerbsOutgoing>> begin(VerbsDevice& device, int rank);

  // Its side of the handshake, without ranks.
  VerbsHandshake request() const;
  base::Status connect(const VerbsAddress& to, const VerbsHandshake& answer);

  bool is_open() const { return is_open_; }
  bool waits_for_room() const { return !waiting_.empty(); }
  bool has_unacknowledged() const { return waits_for_room() || completed_ != posted_; }
  std::uint64_t moved() const { return completed_ + consumed_; }  // frames

  // One frame, of at most kVerbsPieceBytes. False: the device refused it; the connection is lost.
  bool write(const Transfer& transfer);
  // Sends what waits, as far as there is room, and asks for missing completions after some calls.
  bool look();
  // All frames up to that one, modulo 2^32, have been acknowledged.
  void complete(std::uint64_t frame);

 private:
  struct Waiting {
    Transfer transfer;
    std::vector<std::byte> bytes;
  };

  VerbsOutgoing(VerbsDevice& device, int rank) : device_(device), rank_(rank) {}
  bool has_room(std::size_t bytes);
  bool post(const Transfer& transfer);
  bool post_requests(ibv_send_wr* first);
  bool ask_for_completion();

  VerbsDevice& device_;
  const int rank_;
  VerbsMemory ring_;
  VerbsOwned<ibv_qp> queue_pair_{nullptr, nullptr};
  bool is_open_ = false;
  std::uint64_t remote_ = 0;  // address of the other side's ring
  std::uint32_t remote_key_ = 0;
  std::uint32_t most_inline_ = 0;
  std::size_t most_short_ = 0;
  std::uint64_t posted_ = 0;  // frames
  std::uint64_t completed_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t asked_ = 0;  // the last frame whose completion is reported
  std::uint64_t pieces_ = 0;
  std::uint64_t pieces_completed_ = 0;
  std::uint64_t pieces_consumed_ = 0;
  std::uint64_t pieces_after_[32] = {};  // pieces_ behind the frame of each slot
  int idle_looks_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace unisono::transport
