/* SPDX-License-Identifier: BSD-3-Clause
 * Messages of several blocks in frames, for doubling.bpf.h: joining blocks in the memory of the
 * frame that is there, and splitting received ones. tables.h defines the layout of a message. The
 * frames of XDP and of tc have the same functions twice.
 */
#pragma once

#include "nic/program/allgather.bpf.h"
#include "nic/program/frame.bpf.h"
#include "nic/program/state.bpf.h"

/* Masks, as in allgather.bpf.h. */
UNISONO_INLINE const struct unisono_nic_message* find_give(const struct unisono_nic_row* row,
                                                           uint32_t number) {
  return &row->give[number & (UNISONO_NIC_MESSAGES_MAX - 1)];
}

UNISONO_INLINE const struct unisono_nic_message* find_take(const struct unisono_nic_row* row,
                                                           uint32_t number) {
  return &row->take[number & (UNISONO_NIC_MESSAGES_MAX - 1)];
}

UNISONO_INLINE uint64_t bit_of(uint32_t rank) { return 1ULL << (rank & 63); }

UNISONO_INLINE uint32_t count_bits(uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return (uint32_t)(bits * 0x0101010101010101 >> 56);
}

/* The header of a packet other than a block. A value without pointers, for global functions. */
struct joined {
  uint64_t sequence;
  uint64_t value;
  uint32_t kind; /* enum unisono_nic_kind */
  uint32_t target;
  uint32_t position;
  uint32_t words; /* of payload, which is there already */
  uint32_t room;  /* words that the datagram has room for */
  uint32_t hop;
};

/* Between programs of one host: for unisono_spread; `value` has the messages. */
UNISONO_INLINE struct joined to_oneself(const struct unisono_nic_row* row, uint64_t sequence,
                                        uint32_t kind, uint32_t messages, uint32_t room,
                                        uint32_t hop) {
  const struct joined out = {.sequence = sequence,
                             .value = messages,
                             .kind = kind,
                             .target = row->rank,
                             .room = room,
                             .hop = hop};
  return out;
}

UNISONO_INLINE struct joined about_give(const struct unisono_nic_row* row, uint32_t number,
                                        uint64_t sequence, uint32_t stride, uint32_t room) {
  const struct unisono_nic_message* give = find_give(row, number);
  const struct joined out = {.sequence = sequence,
                             .value = give->blocks,
                             .kind = UNISONO_NIC_BLOCKS,
                             .target = give->peer,
                             .position = give->slot,
                             .words = give->count * stride,
                             .room = room};
  return out;
}

UNISONO_INLINE struct joined about_take(const struct unisono_nic_row* row, uint32_t number,
                                        uint64_t sequence, uint32_t room, uint32_t hop) {
  const struct unisono_nic_message* take = find_take(row, number);
  const struct joined out = {.sequence = sequence,
                             .value = take->blocks,
                             .kind = UNISONO_NIC_ASK_BLOCKS,
                             .target = take->peer,
                             .position = number,
                             .room = room,
                             .hop = hop};
  return out;
}

/* Writes addresses and header, all but the tag. */
UNISONO_INLINE int write_joined(void* data, void* end, const struct unisono_nic_row* row,
                                const struct joined* out) {
  struct unisono_packet* packet = data + UNISONO_NIC_HEADS;
  if ((void*)(packet + 1) > end) return 0;
  write_addresses(data, row, out->target == row->rank ? &row->own : address_of(row, out->target),
                  out->room * 8);
  write_identity(packet, row);
  packet->kind = out->kind;
  packet->sequence = out->sequence;
  packet->target = out->target;
  packet->origin = row->rank;
  packet->hop = out->hop;
  packet->length = out->words * 8;
  packet->position = out->position;
  packet->place = UNISONO_PACKET_NONE;
  packet->value = out->value;
  return 1;
}

/* Puts a block after the header, `offset` words on. `stride`: words of the block and the word
 * before it. */
UNISONO_INLINE int put_block(void* data, void* end, const struct unisono_nic_block* block,
                             uint32_t offset, uint32_t stride) {
  uint64_t* to = data + UNISONO_NIC_PAYLOAD + (offset & 0xFF) * 8;
  if ((void*)(to + 1) > end) return 0;
  *to = (uint64_t)block->combine << 32 | block->words;
  for (uint32_t i = 0; i < UNISONO_NIC_WORDS_MAX; ++i) {
    if (i + 1 >= stride) break;
    if ((void*)(to + i + 2) > end) return 0;
    to[i + 1] = block->data[i];
  }
  return 1;
}

/* The global functions below are there so that the verifier looks at them once. */

UNISONO_GLOBAL int put_block_received(struct xdp_md* context, const struct unisono_nic_block* block,
                                      uint32_t offset, uint32_t stride) {
  if (!block) return 0;
  return put_block((void*)(long)context->data, (void*)(long)context->data_end, block, offset,
                   stride);
}

UNISONO_GLOBAL int put_block_leaving(struct __sk_buff* frame, const struct unisono_nic_block* block,
                                     uint32_t offset, uint32_t stride) {
  if (!block) return 0;
  return put_block((void*)(long)frame->data, (void*)(long)frame->data_end, block, offset, stride);
}

/* The reverse. Words that were cut off stay unchanged; the length shows how many there should
 * be. */
UNISONO_GLOBAL int take_out_block(struct xdp_md* context, struct unisono_nic_block* block,
                                  uint32_t offset, uint32_t stride) {
  void* end = (void*)(long)context->data_end;
  const uint64_t* from = (void*)(long)context->data + UNISONO_NIC_PAYLOAD + (offset & 0xFF) * 8;
  if (!block || (void*)(from + 1) > end) return 0;
  block->words = (uint32_t)*from;
  block->combine = (uint32_t)(*from >> 32);
  for (uint32_t i = 0; i < UNISONO_NIC_WORDS_MAX; ++i) {
    if (i + 1 >= stride || (void*)(from + i + 2) > end) break;
    block->data[i] = from[i + 1];
  }
  return 1;
}

UNISONO_GLOBAL int finish_received(struct xdp_md* context, const struct unisono_nic_row* row,
                                   const struct joined* out) {
  if (!row || !out) return 0;
  return write_joined((void*)(long)context->data, (void*)(long)context->data_end, row, out) &&
         seal_received(context, row);
}

UNISONO_GLOBAL int finish_leaving(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                  const struct joined* out) {
  if (!row || !out) return 0;
  return write_joined((void*)(long)frame->data, (void*)(long)frame->data_end, row, out) &&
         seal_leaving(frame, row);
}

/* Iterates over the blocks of a message, origin by origin. */
struct joining {
  struct xdp_md* context;  /* one of ... */
  struct __sk_buff* frame; /* ... these two */
  const struct unisono_nic_row* row;
  uint64_t sequence;
  uint64_t blocks;
  uint32_t stride;
  uint32_t failed;
};

/* The position of an origin's block in the message, in words. */
UNISONO_INLINE uint32_t offset_of(const struct joining* joining, uint32_t origin) {
  return count_bits(joining->blocks & (bit_of(origin) - 1)) * joining->stride;
}

static long join_received(uint32_t origin, struct joining* joining) {
  if ((joining->blocks & bit_of(origin)) == 0) return 0;
  const struct unisono_nic_block* block = find_block(joining->row, joining->sequence, origin);
  if (block &&
      put_block_received(joining->context, block, offset_of(joining, origin), joining->stride)) {
    return 0;
  }
  joining->failed = 1;
  return 1;
}

static long join_leaving(uint32_t origin, struct joining* joining) {
  if ((joining->blocks & bit_of(origin)) == 0) return 0;
  const struct unisono_nic_block* block = find_block(joining->row, joining->sequence, origin);
  if (block &&
      put_block_leaving(joining->frame, block, offset_of(joining, origin), joining->stride)) {
    return 0;
  }
  joining->failed = 1;
  return 1;
}

static long part_received(uint32_t origin, struct joining* joining) {
  if ((joining->blocks & bit_of(origin)) == 0) return 0;
  struct unisono_nic_block* block = find_block(joining->row, joining->sequence, origin);
  if (!block) return 1;
  block->sequence = joining->sequence;
  take_out_block(joining->context, block, offset_of(joining, origin), joining->stride);
  return 0;
}

/* Words that a block takes in a message, if the datagram has room; 0: it has too little. */
UNISONO_INLINE uint32_t stride_of(const struct unisono_nic_block* own, uint32_t blocks,
                                  uint32_t room) {
  const uint32_t wanted = 1 + own->words;
  const uint32_t possible = blocks == 0 ? 0 : room / blocks;
  return wanted != 0 && wanted < possible ? wanted : possible;
}

/* Turns the received frame into the message of this number, with room for no more than the largest
 * of this rank. */
UNISONO_GLOBAL int join_in_received(struct xdp_md* context, const struct unisono_nic_row* row,
                                    uint32_t number, uint64_t sequence) {
  if (!row) return 0;
  const struct unisono_nic_message* give = find_give(row, number);
  const struct unisono_nic_block* own = find_block(row, sequence, row->rank);
  if (!own) return 0;
  const uint32_t wanted = unisono_nic_room(row, own->words);
  const int excess =
      (int)bpf_xdp_get_buff_len(context) - (int)(UNISONO_NIC_PAYLOAD + (wanted & 0xFFFF) * 8);
  if (excess > 0 && bpf_xdp_adjust_tail(context, -excess) != 0) return 0;
  const uint32_t room = ((uint32_t)bpf_xdp_get_buff_len(context) - UNISONO_NIC_PAYLOAD) / 8;
  struct joining joining = {.context = context,
                            .row = row,
                            .sequence = sequence,
                            .blocks = give->blocks,
                            .stride = stride_of(own, give->count, room)};
  if (joining.stride == 0) return 0;
  bpf_loop(row->ranks, join_received, &joining, 0);
  if (joining.failed) return 0;
  const struct joined out = about_give(row, number, sequence, joining.stride, room);
  return finish_received(context, row, &out);
}

/* The same for an outgoing frame, which has its length. */
UNISONO_GLOBAL int join_in_leaving(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                   uint32_t number, uint64_t sequence) {
  if (!row) return 0;
  const struct unisono_nic_message* give = find_give(row, number);
  const struct unisono_nic_block* own = find_block(row, sequence, row->rank);
  if (!own) return 0;
  const uint32_t room = (frame->len - UNISONO_NIC_PAYLOAD) / 8;
  struct joining joining = {.frame = frame,
                            .row = row,
                            .sequence = sequence,
                            .blocks = give->blocks,
                            .stride = stride_of(own, give->count, room)};
  if (joining.stride == 0) return 0;
  bpf_loop(row->ranks, join_leaving, &joining, 0);
  if (joining.failed) return 0;
  const struct joined out = about_give(row, number, sequence, joining.stride, room);
  return finish_leaving(frame, row, &out);
}
