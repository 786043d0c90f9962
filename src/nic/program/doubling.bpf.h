/* SPDX-License-Identifier: BSD-3-Clause
 * Allgather inside the NIC program, by messages of doubling size. Arrived blocks are joined to
 * those already there, and go on as one packet. A message is sent when the last of its blocks is
 * there. The program run that sets its last arrival bit sends it, in the received frame. So no
 * message is sent twice and no run waits. The own process must have posted, because its block is in
 * every message sent here.
 *
 * All datagrams of an operation have the length of the largest message. A frame is rewritten in the
 * memory of a received one, and drivers do not promise that frames can grow. Blocks that differ in
 * length are cut to the available room. Their length and mark, a word before each, always have
 * room, so every process sees which rank made a different call.
 *
 * A rank that lacks a message asks the rank that should have sent it. A rank that has its blocks
 * answers. A rank that lacks some too asks for the messages that bring those. For nic.bpf.c only.
 */
#pragma once

#include "arith/soft_float.h"
#include "nic/program/allgather.bpf.h"
#include "nic/program/message.bpf.h"

UNISONO_INLINE int is_doubling(const struct unisono_nic_row* row) { return row->gives != 0; }

UNISONO_INLINE int is_of_doubling(uint8_t kind) {
  return kind == UNISONO_NIC_BLOCKS || kind == UNISONO_NIC_ASK_BLOCKS;
}

/* Arrival bits of the blocks that are here. The word is read first: it is cleared before the
 * operation is shown as done. */
UNISONO_INLINE uint64_t find_here(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                                  uint64_t sequence) {
  const uint64_t arrived = __sync_fetch_and_or(&slot->arrived, 0);
  if (slot->done == sequence) return all_arrived(row);
  return slot->done == sequence - row->depth ? arrived : 0;
}

/* The messages that were not complete before these bits were set, and are now. The verifier looks
 * at the two global functions once, and sees no difference between messages. */
UNISONO_GLOBAL uint32_t find_due(const struct unisono_nic_row* row, uint64_t before,
                                 uint64_t after) {
  uint64_t due = unisono_soft_opaque(0);
  if (!row) return 0;
  for (uint32_t i = 0; i < UNISONO_NIC_MESSAGES_MAX; ++i) {
    const uint64_t blocks = row->give[i].blocks;
    if (i < row->gives && (blocks & ~after) == 0 && (blocks & ~before) != 0)
      due |= unisono_soft_opaque(1U << i);
  }
  return (uint32_t)due;
}

/* The messages that bring any of these blocks. */
UNISONO_GLOBAL uint32_t find_takes(const struct unisono_nic_row* row, uint64_t blocks) {
  uint64_t takes = unisono_soft_opaque(0);
  if (!row) return 0;
  for (uint32_t i = 0; i < UNISONO_NIC_MESSAGES_MAX; ++i) {
    if (i < row->takes && (row->take[i].blocks & blocks) != 0)
      takes |= unisono_soft_opaque(1U << i);
  }
  return (uint32_t)takes;
}

/* The lowest bit's number, of MESSAGES_MAX bits. */
UNISONO_INLINE uint32_t lowest(uint32_t bits) { return count_bits((bits & -bits) - 1); }

/* Sets the bits of blocks that are there, and returns the messages that this completes. */
UNISONO_INLINE uint32_t mark_blocks(const struct unisono_nic_row* row,
                                    struct unisono_nic_slot* slot, uint64_t sequence,
                                    uint64_t blocks) {
  const uint64_t before = __sync_fetch_and_or(&slot->arrived, blocks);
  const uint64_t after = before | blocks;
  if (after == all_arrived(row)) finish(row, slot, sequence);
  return find_due(row, before, after);
}

/* The received frame goes to unisono_spread, with the numbers of several messages. */
UNISONO_INLINE int pass_to_spread(struct xdp_md* context, const struct unisono_nic_row* row,
                                  uint64_t sequence, uint32_t kind, uint32_t messages,
                                  uint32_t hop) {
  const uint32_t room = ((uint32_t)bpf_xdp_get_buff_len(context) - UNISONO_NIC_PAYLOAD) / 8;
  const struct joined out = to_oneself(row, sequence, kind, messages, room, hop);
  if (!finish_received(context, row, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return XDP_PASS;
}

/* Sends the complete messages: one at once, several by unisono_spread. */
UNISONO_INLINE int send_due(struct xdp_md* context, const struct unisono_nic_row* row,
                            uint64_t sequence, uint32_t due) {
  if (due == 0) return XDP_DROP;
  if ((due & (due - 1)) != 0) {
    return pass_to_spread(context, row, sequence, UNISONO_NIC_BLOCKS, due, 0);
  }
  if (!join_in_received(context, row, lowest(due), sequence)) {
    return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  }
  return count(UNISONO_NIC_BLOCK_SENT, XDP_TX);
}

/* The first block of a message claims it. */
UNISONO_INLINE int take_blocks(struct xdp_md* context, const struct unisono_packet* packet,
                               const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  const uint32_t words = packet->length / 8;
  const struct unisono_nic_message* take = find_take(row, packet->position);
  if (packet->position >= row->takes || packet->sender != take->peer ||
      packet->target != row->rank || packet->value != take->blocks) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  if (take->count == 0 || words < take->count || words % take->count != 0) {
    return count(UNISONO_NIC_SHORT, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* first = find_block(row, sequence, take->first);
  if (!slot || !first) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const uint64_t before = sequence - row->depth;
  if (__sync_val_compare_and_swap(&first->sequence, before, sequence) != before) {
    return count(UNISONO_NIC_STALE, XDP_DROP);
  }
  struct joining joining = {.context = context,
                            .row = row,
                            .sequence = sequence,
                            .blocks = take->blocks,
                            .stride = words / take->count};
  bpf_loop(row->ranks, part_received, &joining, 0);
  count_several(UNISONO_NIC_BLOCK_TAKEN, take->count, 0);
  return send_due(context, row, sequence, mark_blocks(row, slot, sequence, take->blocks));
}

/* The received question goes on to the source of the missing blocks. */
UNISONO_INLINE int ask_on_for_blocks(struct xdp_md* context, const struct unisono_nic_row* row,
                                     uint64_t sequence, uint64_t lacking, uint32_t hop) {
  const uint32_t takes = find_takes(row, lacking);
  if (hop > row->ranks) return count(UNISONO_NIC_STALE, XDP_DROP);
  if ((lacking & bit_of(row->rank)) != 0) return count(UNISONO_NIC_NOT_YET, XDP_DROP);
  if (takes == 0) return count(UNISONO_NIC_STALE, XDP_DROP);
  if ((takes & (takes - 1)) != 0) {
    return pass_to_spread(context, row, sequence, UNISONO_NIC_ASK_BLOCKS, takes, hop);
  }
  const uint32_t room = ((uint32_t)bpf_xdp_get_buff_len(context) - UNISONO_NIC_PAYLOAD) / 8;
  const struct joined out = about_take(row, lowest(takes), sequence, room, hop);
  if (!finish_received(context, row, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return count(UNISONO_NIC_PASSED_ON, XDP_TX);
}

/* A rank lacks a message. It gets it, or the question goes on. */
UNISONO_INLINE int answer_for_blocks(struct xdp_md* context, const struct unisono_packet* packet,
                                     const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  uint32_t number = UNISONO_NIC_MESSAGES_MAX;
  for (uint32_t i = 0; i < UNISONO_NIC_MESSAGES_MAX; ++i) {
    const struct unisono_nic_message* give = &row->give[i];
    if (i < row->gives && give->peer == packet->sender && give->slot == packet->position)
      number = i;
  }
  if (number == UNISONO_NIC_MESSAGES_MAX || packet->target != row->rank) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  if (!slot) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const uint64_t lacking = find_give(row, number)->blocks & ~find_here(row, slot, sequence);
  if (lacking != 0) {
    if (slot->done != sequence - row->depth) return count(UNISONO_NIC_STALE, XDP_DROP);
    return ask_on_for_blocks(context, row, sequence, lacking, packet->hop + 1U);
  }
  /* The process may be about to reuse the memory. */
  const struct unisono_nic_block* own = find_block(row, sequence, row->rank);
  if (!own || own->sequence != sequence) return count(UNISONO_NIC_STALE, XDP_DROP);
  if (!join_in_received(context, row, number, sequence)) {
    return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  }
  return count(UNISONO_NIC_ANSWERED, XDP_TX);
}

/* Messages, or questions for some, that leave as clones of one frame. */
struct leaving {
  struct __sk_buff* frame;
  const struct unisono_nic_row* row;
  uint64_t sequence;
  uint32_t messages; /* bits of their numbers */
  uint32_t hop;
  uint32_t failed;
};

/* All but the last, which uses the frame itself. */
static long send_message(uint32_t number, struct leaving* leaving) {
  const uint32_t left = leaving->messages >> (number & 31);
  if ((left & 1) == 0) return 0;
  if (!join_in_leaving(leaving->frame, leaving->row, number, leaving->sequence)) {
    leaving->failed = 1;
    return 1;
  }
  if (left != 1) bpf_clone_redirect(leaving->frame, leaving->row->interface, 0);
  return 0;
}

static long send_question_for(uint32_t number, struct leaving* leaving) {
  struct __sk_buff* frame = leaving->frame;
  const struct unisono_nic_row* row = leaving->row;
  const uint32_t left = leaving->messages >> (number & 31);
  if ((left & 1) == 0) return 0;
  const uint32_t room = (frame->len - UNISONO_NIC_PAYLOAD) / 8;
  const struct joined out = about_take(row, number, leaving->sequence, room, leaving->hop);
  if (!finish_leaving(frame, row, &out)) {
    leaving->failed = 1;
    return 1;
  }
  if (left != 1) bpf_clone_redirect(frame, row->interface, 0);
  return 0;
}

/* Sends all complete messages; 0: there was no room for all. */
UNISONO_INLINE int send_messages(struct leaving* leaving) {
  bpf_loop(UNISONO_NIC_MESSAGES_MAX, send_message, leaving, 0);
  return !leaving->failed;
}

UNISONO_INLINE int send_questions(struct leaving* leaving) {
  bpf_loop(UNISONO_NIC_MESSAGES_MAX, send_question_for, leaving, 0);
  return !leaving->failed;
}

/* A packet for several targets, which take_blocks() or answer_for_blocks() has passed on. */
UNISONO_INLINE int spread_joined(struct __sk_buff* frame, const struct unisono_packet* packet,
                                 const void* end, const struct unisono_nic_row* row) {
  const void* data = (const void*)packet - UNISONO_NIC_HEADS;
  if (packet->sender != row->rank || packet->target != row->rank || !is_to_oneself(data, row) ||
      !is_whole(packet, end)) {
    return TCX_NEXT;
  }
  if (!leaving_is_genuine(frame, packet, row)) return count(UNISONO_NIC_BAD_TAG, TCX_DROP);
  frame->priority = UNISONO_NIC_PRIORITY;
  const int asks = packet->kind == UNISONO_NIC_ASK_BLOCKS;
  struct leaving leaving = {.frame = frame,
                            .row = row,
                            .sequence = packet->sequence,
                            .messages = (uint32_t)packet->value,
                            .hop = packet->hop};
  if (bpf_skb_pull_data(frame, frame->len) != 0 ||
      !(asks ? send_questions(&leaving) : send_messages(&leaving))) {
    return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  }
  bpf_redirect(row->interface, 0);
  if (asks) return count(UNISONO_NIC_PASSED_ON, TCX_REDIRECT);
  return count_several(UNISONO_NIC_BLOCK_SENT, count_bits(leaving.messages), TCX_REDIRECT);
}

/* Makes the own process's frame as long as all frames of the operation. */
UNISONO_INLINE int make_joined_room(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                    const struct unisono_nic_block* own) {
  const struct outgoing room = {.words = unisono_nic_room(row, own->words)};
  return make_room(frame, &room);
}

/* A packet of the own process. It has posted its block, once; or an operation is late, and the
 * missing messages are requested. */
UNISONO_INLINE int leave_by_doubling(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                     uint64_t sequence, uint8_t kind) {
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  const struct unisono_nic_block* own = find_block(row, sequence, row->rank);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, TCX_DROP);
  if (kind == UNISONO_NIC_QUERY || own->sequence != sequence) {
    return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  }
  if (!make_joined_room(frame, row, own)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  struct leaving leaving = {.frame = frame, .row = row, .sequence = sequence};
  const uint64_t before = sequence - row->depth;
  if (__sync_val_compare_and_swap(&slot->summed, before, sequence) == before) {
    leaving.messages = mark_blocks(row, slot, sequence, bit_of(row->rank));
    if (leaving.messages == 0) return count(UNISONO_NIC_TAKEN_IN, TCX_DROP);
    if (!send_messages(&leaving)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
    return count_several(UNISONO_NIC_BLOCK_SENT, count_bits(leaving.messages), TCX_NEXT);
  }
  if (kind == UNISONO_NIC_DOORBELL) return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  leaving.messages = find_takes(row, all_arrived(row) & ~find_here(row, slot, sequence));
  if (leaving.messages == 0) return count(UNISONO_NIC_NOT_YET, TCX_DROP);
  if (!send_questions(&leaving)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  return count(UNISONO_NIC_ASKED, TCX_NEXT);
}
