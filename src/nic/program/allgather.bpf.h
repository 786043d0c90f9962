/* SPDX-License-Identifier: BSD-3-Clause
 * Allgather inside the NIC program, by concurrent broadcasting. Each rank's block goes down a tree
 * of its own, whose branches at this rank are the row's route of the block's origin. A packet with
 * a block keeps its contents and tag everywhere; only the addresses around it are rewritten. The
 * own process need not have called. A block is claimed before it is written, so a duplicate finds
 * its memory taken and is not sent on: no packet can circulate.
 *
 * A rank that lacks a block asks the rank that should have sent it. A rank that has the block
 * answers. A rank that lacks it too asks on, towards the origin. The answer is an ordinary block,
 * which goes on to all ranks below. For nic.bpf.c only.
 */
#pragma once

#include "nic/program/frame.bpf.h"
#include "nic/program/state.bpf.h"
#include "nic/program/wake.bpf.h"

UNISONO_INLINE int is_of_allgather(uint8_t kind) {
  return kind == UNISONO_NIC_BLOCK || kind == UNISONO_NIC_ASK_BLOCK;
}

/* Masks show the verifier the limits that add_group() and the daemon have checked. */
UNISONO_INLINE const struct unisono_nic_route* find_route(const struct unisono_nic_row* row,
                                                          uint32_t origin) {
  return &row->route[origin & (UNISONO_NIC_RANKS_MAX - 1)];
}

UNISONO_INLINE const struct unisono_nic_address* address_of(const struct unisono_nic_row* row,
                                                            uint32_t rank) {
  return &row->at[rank & (UNISONO_NIC_RANKS_MAX - 1)];
}

UNISONO_INLINE const struct unisono_nic_address* find_target(const struct unisono_nic_row* row,
                                                             uint32_t number) {
  const uint32_t target = row->target[number & (UNISONO_NIC_TARGETS_MAX - 1)];
  return target == UNISONO_NIC_TO_ALL ? &row->down : address_of(row, target);
}

/* Whether an origin's block is here, whole. The own process numbers its block when it is complete.
 * Others are numbered when they are claimed, and are complete when their bit is set. The bit is
 * read first: while it is set, the block belongs to its number. It is cleared when all have
 * arrived, shortly before the operation is done. A reader in between may miss others' blocks, but
 * never the own. */
UNISONO_INLINE int has_block(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                             const struct unisono_nic_block* block, uint64_t sequence,
                             uint32_t origin) {
  const uint64_t arrived = __sync_fetch_and_or(&slot->arrived, 0);
  if (block->sequence != sequence) return 0;
  if (origin == row->rank || slot->done == sequence) return 1;
  return (arrived >> (origin & 63) & 1) != 0;
}

/* All have arrived. The word is cleared before the operation is shown as done, which lets the next
 * block for this memory be sent. */
UNISONO_INLINE void finish(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                           uint64_t sequence) {
  __sync_lock_test_and_set(&slot->arrived, 0);
  slot->done_ns = bpf_ktime_get_ns();
  publish(slot, sequence);
  wake(row, slot);
}

UNISONO_INLINE void mark_arrived(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                                 uint64_t sequence, uint32_t origin) {
  const uint64_t bit = 1ULL << (origin & 63);
  if ((__sync_fetch_and_or(&slot->arrived, bit) | bit) == all_arrived(row))
    finish(row, slot, sequence);
}

/* The received block goes on: to one target at once, to several by unisono_spread. */
UNISONO_INLINE int send_on(struct xdp_md* context, const struct unisono_nic_row* row,
                           const struct unisono_nic_route* route, uint32_t bytes) {
  void* data = (void*)(long)context->data;
  if (route->targets == 0) return XDP_DROP;
  if (route->targets > 1) return XDP_PASS;
  if (data + UNISONO_NIC_PAYLOAD > (void*)(long)context->data_end) return XDP_DROP;
  write_addresses(data, row, find_target(row, route->first), bytes);
  return count(UNISONO_NIC_BLOCK_PASSED, XDP_TX);
}

/* A block from any sender: the tag proves that it is the origin's, or a member's copy. */
UNISONO_INLINE int take_block(struct xdp_md* context, const struct unisono_packet* packet,
                              const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  const uint32_t origin = packet->origin;
  const uint32_t bytes = packet->length;
  if (origin >= row->ranks || origin == row->rank || packet->sender >= row->ranks ||
      packet->target != UNISONO_PACKET_GROUP) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* block = find_block(row, sequence, origin);
  if (!slot || !block) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const uint64_t before = sequence - row->depth;
  if (__sync_val_compare_and_swap(&block->sequence, before, sequence) != before) {
    return count(UNISONO_NIC_STALE, XDP_DROP);
  }
  block->combine = packet->place;
  block->words = bytes / 8;
  copy_received(context, block);
  count(UNISONO_NIC_BLOCK_TAKEN, 0);
  mark_arrived(row, slot, sequence, origin);
  return send_on(context, row, find_route(row, origin), bytes);
}

/* The header of a packet about an origin's block. */
UNISONO_INLINE struct outgoing about_block(const struct unisono_nic_row* row, uint64_t sequence,
                                           uint32_t origin, uint32_t kind, uint32_t words) {
  const uint32_t from = find_route(row, origin)->from;
  const int asks = kind == UNISONO_NIC_ASK_BLOCK;
  const struct outgoing out = {
      .sequence = sequence,
      .kind = kind,
      .target = asks ? from : UNISONO_PACKET_GROUP,
      .origin = origin,
      .words = words,
      .to = *address_of(row, from),
  };
  return out;
}

/* The received question goes on towards the origin. It ends there if the origin's process is
 * late. */
UNISONO_INLINE int ask_on(struct xdp_md* context, const struct unisono_nic_row* row,
                          const struct unisono_nic_block* block, struct outgoing out) {
  const uint64_t seen = block->sequence;
  const int is_next = seen == out.sequence - row->depth || seen == out.sequence;
  if (!is_next || out.hop > row->ranks) return count(UNISONO_NIC_STALE, XDP_DROP);
  if (out.origin == row->rank) return count(UNISONO_NIC_NOT_YET, XDP_DROP);
  if (!rewrite_received(context, row, block, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return count(UNISONO_NIC_PASSED_ON, XDP_TX);
}

/* A rank lacks an origin's block. It gets it, or the question goes on. */
UNISONO_INLINE int answer_for_block(struct xdp_md* context, const struct unisono_packet* packet,
                                    const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  const uint32_t origin = packet->origin;
  const uint32_t asker = packet->sender;
  const uint32_t words = packet->length / 8;
  if (origin >= row->ranks || asker >= row->ranks || asker == row->rank || asker == origin ||
      packet->target != row->rank) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  const struct unisono_nic_block* block = find_block(row, sequence, origin);
  if (!slot || !block) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const int found = has_block(row, slot, block, sequence, origin);
  struct outgoing out =
      about_block(row, sequence, origin, found ? UNISONO_NIC_BLOCK : UNISONO_NIC_ASK_BLOCK, words);
  out.hop = packet->hop + 1U;
  if (!found) return ask_on(context, row, block, out);
  if (block->words > words) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  out.words = block->words;
  out.hop = 0;
  out.to = *address_of(row, asker);
  if (!rewrite_received(context, row, block, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return count(UNISONO_NIC_ANSWERED, XDP_TX);
}

struct forwarding {
  struct __sk_buff* frame;
  const struct unisono_nic_row* row;
  uint32_t first; /* in the row's list of targets */
  uint32_t targets;
};

/* To all targets but the last; the frame itself is then addressed to that one. */
static long send_to_target(uint32_t turn, struct forwarding* forwarding) {
  struct __sk_buff* frame = forwarding->frame;
  const struct unisono_nic_row* row = forwarding->row;
  void* data = (void*)(long)frame->data;
  if (data + UNISONO_NIC_PAYLOAD > (void*)(long)frame->data_end) return 1;
  const struct unisono_packet* packet = data + UNISONO_NIC_HEADS;
  write_addresses(data, row, find_target(row, forwarding->first + turn), packet->length);
  if (turn + 1 < forwarding->targets) bpf_clone_redirect(frame, row->interface, 0);
  return 0;
}

UNISONO_INLINE void send_to_targets(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                    const struct unisono_nic_route* route) {
  struct forwarding forwarding = {
      .frame = frame, .row = row, .first = route->first, .targets = route->targets};
  bpf_loop(route->targets, send_to_target, &forwarding, 0);
}

/* A block for several targets, which take_block() has passed on. */
UNISONO_INLINE int spread_block(struct __sk_buff* frame, const struct unisono_packet* packet,
                                const void* end, const struct unisono_nic_row* row) {
  const void* data = (const void*)packet - UNISONO_NIC_HEADS;
  if (packet->origin >= row->ranks || !is_addressed(data, row) || !is_whole(packet, end)) {
    return TCX_NEXT;
  }
  if (!leaving_is_genuine(frame, packet, row)) return count(UNISONO_NIC_BAD_TAG, TCX_DROP);
  const struct unisono_nic_route* route = find_route(row, packet->origin);
  if (route->targets < 2) return TCX_NEXT;
  frame->priority = UNISONO_NIC_PRIORITY;
  send_to_targets(frame, row, route);
  bpf_redirect(row->interface, 0);
  return count_several(UNISONO_NIC_BLOCK_PASSED, route->targets, TCX_REDIRECT);
}

/* The own process has posted its block. If that was the last one, the process has completed the
 * operation, and other processes of this host may sleep for it. */
UNISONO_INLINE int send_own_block(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                  struct unisono_nic_slot* slot,
                                  const struct unisono_nic_block* own, uint64_t sequence) {
  const struct unisono_nic_route* route = find_route(row, row->rank);
  const struct outgoing out = about_block(row, sequence, row->rank, UNISONO_NIC_BLOCK, own->words);
  if (slot->done == sequence) wake(row, slot);
  if (route->targets == 0) return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  if (!make_room(frame, &out) || !rewrite_leaving(frame, row, own, &out)) {
    return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  }
  send_to_targets(frame, row, route);
  return count_several(UNISONO_NIC_BLOCK_SENT, route->targets, TCX_NEXT);
}

struct asking {
  struct __sk_buff* frame;
  const struct unisono_nic_row* row;
  const struct unisono_nic_block* own;
  uint64_t sequence;
  uint64_t missing; /* arrival bits */
  uint32_t words;
};

static long ask_for_block(uint32_t origin, struct asking* asking) {
  const struct unisono_nic_row* row = asking->row;
  if ((asking->missing >> (origin & 63) & 1) == 0 || origin == row->rank) return 0;
  const struct outgoing out =
      about_block(row, asking->sequence, origin, UNISONO_NIC_ASK_BLOCK, asking->words);
  if (!rewrite_leaving(asking->frame, row, asking->own, &out)) return 1;
  bpf_clone_redirect(asking->frame, row->interface, 0);
  return 0;
}

/* The own process reports that an operation is late: each missing block is requested. The question
 * is as long as the own block, which is as long as the others. */
UNISONO_INLINE int ask_for_blocks(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                  struct unisono_nic_slot* slot,
                                  const struct unisono_nic_block* own, uint64_t sequence) {
  const uint64_t missing = all_arrived(row) & ~__sync_fetch_and_or(&slot->arrived, 0);
  if (slot->done == sequence) return count(UNISONO_NIC_NOT_YET, TCX_DROP);
  struct asking asking = {.frame = frame,
                          .row = row,
                          .own = own,
                          .sequence = sequence,
                          .missing = missing,
                          .words = own->words};
  const struct outgoing room = {.words = asking.words};
  if (!make_room(frame, &room)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  bpf_loop(row->ranks, ask_for_block, &asking, 0);
  return count(UNISONO_NIC_ASKED, TCX_DROP);
}

/* A packet of the own process. */
UNISONO_INLINE int leave_singly(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                uint64_t sequence, uint8_t kind) {
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  const struct unisono_nic_block* own = find_block(row, sequence, row->rank);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, TCX_DROP);
  if (kind == UNISONO_NIC_QUERY || !has_block(row, slot, own, sequence, row->rank)) {
    return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  }
  if (kind == UNISONO_NIC_ASK) return ask_for_blocks(frame, row, slot, own, sequence);
  return send_own_block(frame, row, slot, own, sequence);
}
