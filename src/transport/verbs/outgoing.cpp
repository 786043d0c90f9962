// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/outgoing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "transport/verbs/ring.hpp"

namespace unisono::transport {
namespace {

// Most frames report no completion of their own: one report stands for all before it.
constexpr std::uint64_t kFramesForOneReport = 8;
constexpr std::uint64_t kPiecesForOneReport = 2;
constexpr int kIdleLooks = 64;  // until a report is asked for

// The full count from its lower half: it is at most `posted`, and less than 2^32 behind.
std::uint64_t count_below(std::uint64_t posted, std::uint32_t low) {
  return posted - static_cast<std::uint32_t>(static_cast<std::uint32_t>(posted) - low);
}

}  // namespace

base::Result<std::unique_ptr<VerbsOutgoing>> VerbsOutgoing::begin(VerbsDevice& device, int rank) {
  static_assert(kVerbsSlots == 32);
  std::unique_ptr<VerbsOutgoing> made(new VerbsOutgoing(device, rank));
  UNISONO_ASSIGN(made->ring_, device.enroll(kVerbsRingBytes));
  UNISONO_ASSIGN(made->queue_pair_, device.make_queue_pair());
  return made;
}

VerbsHandshake VerbsOutgoing::request() const {
  return {.kind = VerbsHandshake::Kind::request,
          .queue_pair = queue_pair_->qp_num,
          .first_packet = 0,
          .mtu = device_.mtu(),
          .address = reinterpret_cast<std::uintptr_t>(ring_.at(kVerbsConsumedAt)),
          .key = ring_.registration->rkey};
}

base::Status VerbsOutgoing::connect(const VerbsAddress& to, const VerbsHandshake& answer) {
  UNISONO_TRY(device_.connect(queue_pair_.get(), to, answer, 0));
  remote_ = answer.address;
  remote_key_ = answer.key;
  most_inline_ = device_.most_inline();
  most_short_ = verbs_most_short(std::min(device_.mtu(), answer.mtu));
  is_open_ = true;
  return base::success();
}

// ---- sending -----------------------------------------------------------------------------------

// A slot is free again when its frame is acknowledged here and consumed there.
bool VerbsOutgoing::has_room(std::size_t bytes) {
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(ring_.at(kVerbsConsumedAt)));
  const std::uint64_t both = word.load(std::memory_order_acquire);
  consumed_ = count_below(posted_, static_cast<std::uint32_t>(both));
  pieces_consumed_ = count_below(pieces_, static_cast<std::uint32_t>(both >> 32));
  if (posted_ - std::min(consumed_, completed_) >= kVerbsSlots) return false;
  return bytes <= most_short_ ||
         pieces_ - std::min(pieces_consumed_, pieces_completed_) < kVerbsPieces;
}

bool VerbsOutgoing::write(const Transfer& transfer) {
  if (waiting_.empty() && has_room(transfer.bytes)) return post(transfer);
  Waiting& kept = waiting_.emplace_back();
  kept.transfer = transfer;
  kept.bytes.assign(transfer.from, transfer.from + transfer.bytes);
  return true;
}

bool VerbsOutgoing::post(const Transfer& transfer) {
  const std::uint64_t frame = posted_++;
  const std::size_t slot = verbs_slot_at(frame);
  const VerbsTrailer trailer{.offset = transfer.offset,
                             .flag = transfer.flag,
                             .value = transfer.flag_value,
                             .bytes = static_cast<std::uint32_t>(transfer.bytes),
                             .forward = transfer.forward ? 1U : 0U,
                             .number = frame + 1};
  std::memcpy(ring_.at(slot + kVerbsTrailerAt), &trailer, sizeof trailer);
  const bool is_short = transfer.bytes <= most_short_;
  const std::size_t before = is_short ? verbs_padded(transfer.bytes) : 0;
  const std::size_t begin = slot + kVerbsTrailerAt - before;
  ibv_sge slot_bytes{.addr = reinterpret_cast<std::uintptr_t>(ring_.at(begin)),
                     .length = static_cast<std::uint32_t>(before + sizeof trailer),
                     .lkey = ring_.registration->lkey};
  ibv_send_wr notify{};
  notify.wr_id = verbs_request(rank_, posted_);
  notify.sg_list = &slot_bytes;
  notify.num_sge = 1;
  // The receiver finds the frame in its memory. The immediate data only wakes it if it sleeps.
  notify.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  notify.send_flags = slot_bytes.length <= most_inline_ ? IBV_SEND_INLINE : 0;
  notify.wr.rdma.remote_addr = remote_ + begin;
  notify.wr.rdma.rkey = remote_key_;
  ibv_sge piece_bytes{};
  ibv_send_wr data{};
  if (is_short) {
    if (transfer.bytes != 0) std::memcpy(ring_.at(begin), transfer.from, transfer.bytes);
  } else {
    const std::size_t at = verbs_piece_at(pieces_++);
    std::memcpy(ring_.at(at), transfer.from, transfer.bytes);
    piece_bytes = {.addr = reinterpret_cast<std::uintptr_t>(ring_.at(at)),
                   .length = static_cast<std::uint32_t>(transfer.bytes),
                   .lkey = ring_.registration->lkey};
    data.wr_id = notify.wr_id - 1;
    data.next = &notify;
    data.sg_list = &piece_bytes;
    data.num_sge = 1;
    data.opcode = IBV_WR_RDMA_WRITE;
    data.wr.rdma.remote_addr = remote_ + at;
    data.wr.rdma.rkey = remote_key_;
  }
  pieces_after_[frame % kVerbsSlots] = pieces_;
  if (posted_ - asked_ >= kFramesForOneReport ||
      (!is_short && pieces_ % kPiecesForOneReport == 0)) {
    notify.send_flags |= IBV_SEND_SIGNALED;
    asked_ = posted_;
  }
  idle_looks_ = 0;
  return post_requests(is_short ? &notify : &data);
}

bool VerbsOutgoing::post_requests(ibv_send_wr* first) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(queue_pair_.get(), first, &bad) == 0;
}

// A word that nobody reads is written behind the frames, because only writes report completion.
bool VerbsOutgoing::ask_for_completion() {
  ibv_sge word{.addr = reinterpret_cast<std::uintptr_t>(ring_.at(kVerbsIdleWordAt)),
               .length = 8,
               .lkey = ring_.registration->lkey};
  ibv_send_wr request{};
  request.wr_id = verbs_request(rank_, posted_);
  request.sg_list = &word;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = remote_ + kVerbsIdleWordAt;
  request.wr.rdma.rkey = remote_key_;
  asked_ = posted_;
  return post_requests(&request);
}

bool VerbsOutgoing::look() {
  while (!waiting_.empty() && has_room(waiting_.front().transfer.bytes)) {
    Waiting& next = waiting_.front();
    next.transfer.from = next.bytes.data();
    if (!post(next.transfer)) return false;
    waiting_.pop_front();
  }
  if (asked_ == posted_ || (waiting_.empty() && ++idle_looks_ < kIdleLooks)) return true;
  return ask_for_completion();
}

void VerbsOutgoing::complete(std::uint64_t frame) {
  const std::uint64_t until = count_below(posted_, static_cast<std::uint32_t>(frame));
  if (until <= completed_) return;
  completed_ = until;
  pieces_completed_ = pieces_after_[(until - 1) % kVerbsSlots];
}

}  // namespace unisono::transport
