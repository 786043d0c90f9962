// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/incoming.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "transport/remote_memory.hpp"
#include "transport/transport.hpp"
#include "transport/verbs/ring.hpp"

namespace unisono::transport {
namespace {

constexpr std::uint64_t kFramesForOneReturn = kVerbsSlots / 4;
constexpr std::uint64_t kPiecesForOneReturn = kVerbsPieces / 4;
constexpr std::uint64_t kMostReturns = 16;  // under way; a later one replaces those that wait

bool holds(std::size_t region, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= region && bytes <= region - offset;
}

}  // namespace

base::Result<std::unique_ptr<VerbsIncoming>> VerbsIncoming::accept(VerbsDevice& device,
                                                                   const VerbsAddress& from,
                                                                   const VerbsHandshake& request) {
  std::unique_ptr<VerbsIncoming> made(new VerbsIncoming(device, request));
  UNISONO_ASSIGN(made->ring_, device.enroll(kVerbsRingBytes));
  UNISONO_ASSIGN(made->queue_pair_, device.make_queue_pair());
  UNISONO_TRY(device.connect(made->queue_pair_.get(), from, request, 0));
  made->most_short_ = verbs_most_short(std::min(device.mtu(), request.mtu));
  return made;
}

VerbsHandshake VerbsIncoming::answer() const {
  return {.kind = VerbsHandshake::Kind::answer,
          .queue_pair = queue_pair_->qp_num,
          .first_packet = 0,
          .mtu = device_.mtu(),
          .address = reinterpret_cast<std::uintptr_t>(ring_.at(0)),
          .key = ring_.registration->rkey};
}

VerbsIncoming::Found VerbsIncoming::take(std::span<std::byte> region) {
  std::byte* const end = ring_.at(verbs_slot_at(frames_) + kVerbsTrailerAt);
  auto* const place = reinterpret_cast<VerbsTrailer*>(end);
  const std::atomic_ref number(place->number);
  if (number.load(std::memory_order_acquire) != frames_ + 1) return Found::nothing;
  VerbsTrailer trailer;
  std::memcpy(&trailer, place, sizeof trailer);
  const bool has_flag = trailer.flag != kNoFlag;
  const bool is_short = trailer.bytes <= most_short_;
  if (trailer.bytes > kVerbsPieceBytes || !holds(region.size(), trailer.offset, trailer.bytes) ||
      (has_flag && (trailer.flag % 8 != 0 || !holds(region.size(), trailer.flag, 8)))) {
    return Found::broken;
  }
  const std::byte* const from =
      is_short ? end - verbs_padded(trailer.bytes) : ring_.at(verbs_piece_at(pieces_));
  if (trailer.bytes != 0) std::memcpy(region.data() + trailer.offset, from, trailer.bytes);
  ++frames_;
  if (!is_short) ++pieces_;
  if (!has_flag) return Found::bytes;
  raise(reinterpret_cast<std::uint64_t*>(region.data() + trailer.flag), trailer.value,
        trailer.forward != 0);
  return Found::flag;
}

// With immediate data: a sender that waits for room may sleep.
bool VerbsIncoming::return_room() {
  if (frames_ - frames_told_ < kFramesForOneReturn &&
      pieces_ - pieces_told_ < kPiecesForOneReturn) {
    return true;
  }
  if (returns_ == kMostReturns) return true;
  // One that is under way and not inline may carry this newer count: both are true.
  const std::uint64_t both = verbs_consumed(frames_, pieces_);
  std::byte* const word = ring_.at(kVerbsConsumedAt);
  std::memcpy(word, &both, sizeof both);
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(word),
                .length = sizeof both,
                .lkey = ring_.registration->lkey};
  ibv_send_wr request{};
  request.wr_id = kVerbsIncomingSide | verbs_request(static_cast<int>(request_.from), frames_);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  if (device_.most_inline() >= sizeof both) request.send_flags |= IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = request_.address;
  request.wr.rdma.rkey = request_.key;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(queue_pair_.get(), &request, &bad) != 0) return false;
  ++returns_;
  frames_told_ = frames_;
  pieces_told_ = pieces_;
  return true;
}

}  // namespace unisono::transport
