/* SPDX-License-Identifier: BSD-3-Clause
 * The NIC program: reductions up a tree and results down it, with no process on the way. It is
 * driven by tables (tables.h); the maps are filled and mapped by loader.cpp.
 *
 *   unisono_receive  XDP: contributions of children and results of the root, as they come in
 *   unisono_kick     tc, leaving: sent by the own process when its contribution was the last one
 *   unisono_spread   tc, coming in: results that go on to several, where the network has no
 * multicast
 *
 * Whoever sets the last arrival bit of an operation combines all of it, so there is no lock; and it
 * does so in the order of the children, so the result does not depend on the order of arrival. A
 * contribution is claimed before it is written: a late double finds its place taken, or gone.
 */
#include "nic/combine.bpf.h"
#include "nic/frame.bpf.h"

#define TCX_NEXT (-1) /* enum tcx_action_base of newer kernels' headers */
#define TCX_DROP 2

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX);
  __type(key, uint32_t);
  __type(value, struct unisono_nic_row);
} rows SEC(".maps");

/* What a group's process maps. The loader makes those maps, of the size that the group needs. Sizes
 * and no types: clang leaves types out that only a map inside of a map names. */
struct slots_of_group {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __uint(value_size, sizeof(struct unisono_nic_slot));
};

struct blocks_of_group {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __uint(value_size, sizeof(struct unisono_nic_block));
};

/* Both by the index of the group's row. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX);
  __type(key, uint32_t);
  __array(values, struct slots_of_group);
} slots SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX);
  __type(key, uint32_t);
  __array(values, struct blocks_of_group);
} blocks SEC(".maps");

/* Which row a packet's group has. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX);
  __type(key, struct unisono_nic_id);
  __type(value, uint32_t);
} groups SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, UNISONO_NIC_COUNTERS);
  __type(key, uint32_t);
  __type(value, uint64_t);
} counters SEC(".maps");

/* Adds one to the counter and returns the verdict, so that no way out is without. */
UNISONO_INLINE int count(uint32_t counter, int verdict) {
  uint64_t* value = bpf_map_lookup_elem(&counters, &counter);
  if (value) ++*value;
  return verdict;
}

UNISONO_INLINE struct unisono_nic_row* find_row(const struct unisono_packet* packet) {
  const struct unisono_nic_id key = {packet->job, packet->communicator};
  const uint32_t* index = bpf_map_lookup_elem(&groups, &key);
  return index ? bpf_map_lookup_elem(&rows, index) : 0;
}

UNISONO_INLINE struct unisono_nic_slot* find_slot(const struct unisono_nic_row* row,
                                                  uint64_t sequence) {
  void* own_slots = bpf_map_lookup_elem(&slots, &row->index);
  const uint32_t index = (uint32_t)(sequence & (row->depth - 1));
  return own_slots ? bpf_map_lookup_elem(own_slots, &index) : 0;
}

/* Of an operation: number 0 is the own process's, 1 + c is that of child c. */
UNISONO_INLINE struct unisono_nic_block* find_block(const struct unisono_nic_row* row,
                                                    uint64_t sequence, uint32_t number) {
  void* own_blocks = bpf_map_lookup_elem(&blocks, &row->index);
  const uint32_t index = (uint32_t)(sequence & (row->depth - 1)) * (row->children + 1) + number;
  return own_blocks ? bpf_map_lookup_elem(own_blocks, &index) : 0;
}

UNISONO_INLINE uint64_t all_arrived(const struct unisono_nic_row* row) {
  return (2ULL << row->children) - 1;
}

/* Only one of those who find everything there gets 1. */
UNISONO_INLINE int take(struct unisono_nic_slot* slot, uint64_t all) {
  return __sync_val_compare_and_swap(&slot->arrived, all, all | UNISONO_NIC_TAKEN) == all;
}

/* Shows the result in block 0 to the process. The exchange is a barrier: data first. */
UNISONO_INLINE void publish(struct unisono_nic_slot* slot, uint64_t sequence) {
  __sync_lock_test_and_set(&slot->done, sequence);
}

/* Combines all contributions in block 0, in order. The arrival word is free again before
 * anything is sent, because what is sent allows the children to use it. 0: they do not match. */
UNISONO_INLINE int combine_all(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                               struct unisono_nic_block* own, uint64_t sequence) {
  int fits = 1;
  for (uint32_t child = 0; child < UNISONO_NIC_CHILDREN_MAX; ++child) {
    if (child >= row->children) break;
    const struct unisono_nic_block* block = find_block(row, sequence, 1 + child);
    if (!block || block->words != own->words || block->combine != own->combine) {
      fits = 0;
      break;
    }
    combine_blocks(own, block);
  }
  if (!fits) slot->broken = sequence;
  __sync_lock_test_and_set(&slot->arrived, 0);
  return fits;
}

UNISONO_INLINE int is_root(const struct unisono_nic_row* row) {
  return (row->flags & UNISONO_NIC_ROOT) != 0;
}

/* The sum goes to the parent; the result goes to all or to the first of several. */
UNISONO_INLINE struct outgoing next_hop(const struct unisono_nic_row* row,
                                        const struct unisono_nic_block* own, int down) {
  const int quiet = down && (row->flags & UNISONO_NIC_RETURNS_VALUES) == 0;
  const struct outgoing out = {
      .kind = down ? UNISONO_NIC_RESULT : UNISONO_NIC_GIVE,
      .target = down ? UNISONO_PACKET_GROUP : row->parent,
      .words = quiet ? 0 : own->words,
      .to = !down                ? &row->up
            : row->forwards != 0 ? &row->forward[0]
                                 : &row->down,
  };
  return out;
}

/* Last, when block 0 is not needed any more: the result belongs to the process. */
UNISONO_INLINE void hand_over(struct unisono_nic_slot* slot, uint64_t sequence) {
  slot->claimed = sequence;
  slot->done_ns = bpf_ktime_get_ns();
  publish(slot, sequence);
}

/* The received frame leaves with what block 0 holds: up, or down to one. For several,
 * unisono_spread gets it. */
UNISONO_INLINE int leave(struct xdp_md* context, const struct unisono_nic_row* row,
                         struct unisono_nic_slot* slot, const struct unisono_nic_block* own,
                         int down) {
  const struct outgoing out = next_hop(row, own, down);
  const uint64_t sequence = own->sequence;
  const int excess =
      (int)bpf_xdp_get_buff_len(context) - (int)(UNISONO_NIC_PAYLOAD + out.words * 8);
  if (excess != 0 && bpf_xdp_adjust_tail(context, -excess) != 0) {
    return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  }
  void* data = (void*)(long)context->data;
  void* end = (void*)(long)context->data_end;
  if (!write_frame(data, end, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  if (!down) return count(UNISONO_NIC_SENT_UP, XDP_TX);
  hand_over(slot, sequence);
  return count(UNISONO_NIC_SENT_DOWN, row->forwards > 1 ? XDP_PASS : XDP_TX);
}

/* The contribution in the received frame was the last. */
UNISONO_INLINE int complete_received(struct xdp_md* context, const struct unisono_nic_row* row,
                                     struct unisono_nic_slot* slot, uint64_t sequence) {
  struct unisono_nic_block* own = find_block(row, sequence, 0);
  if (!own || !take(slot, all_arrived(row))) return count(UNISONO_NIC_STALE, XDP_DROP);
  if (!combine_all(row, slot, own, sequence)) return count(UNISONO_NIC_MISMATCH, XDP_DROP);
  return leave(context, row, slot, own, is_root(row));
}

UNISONO_INLINE int take_contribution(struct xdp_md* context, const struct unisono_packet* packet,
                                     const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  const uint32_t child = packet->position - row->first_slot;
  if (child >= row->children || child >= UNISONO_NIC_CHILDREN_MAX ||
      row->child_rank[child] != packet->sender || packet->target != row->rank) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* block = find_block(row, sequence, 1 + child);
  if (!slot || !block) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const uint64_t before = sequence - row->depth;
  if (__sync_val_compare_and_swap(&block->sequence, before, sequence) != before) {
    return count(UNISONO_NIC_STALE, XDP_DROP);
  }
  copy_in(block, packet, (void*)(long)context->data_end);
  block->combine = packet->place;
  block->words = packet->length / 8;
  const uint64_t bit = 2ULL << child;
  if ((__sync_fetch_and_or(&slot->arrived, bit) | bit) != all_arrived(row)) {
    return count(UNISONO_NIC_TAKEN_IN, XDP_DROP);
  }
  return complete_received(context, row, slot, sequence);
}

UNISONO_INLINE int take_result(struct xdp_md* context, const struct unisono_packet* packet,
                               const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  if (is_root(row) || packet->sender != row->down_source) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* own = find_block(row, sequence, 0);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const uint64_t before = sequence - row->depth;
  if (own->sequence != sequence ||
      __sync_val_compare_and_swap(&slot->claimed, before, sequence) != before) {
    return count(UNISONO_NIC_STALE, XDP_DROP);
  }
  if ((row->flags & UNISONO_NIC_RETURNS_VALUES) != 0) {
    if (packet->place != own->combine || packet->length != own->words * 8) {
      slot->broken = sequence;
      return count(UNISONO_NIC_MISMATCH, XDP_DROP);
    }
    copy_in(own, packet, (void*)(long)context->data_end);
  }
  count(UNISONO_NIC_CAME_DOWN, 0);
  if (row->forwards != 0) return leave(context, row, slot, own, 1);
  hand_over(slot, sequence);
  return XDP_DROP;
}

SEC("xdp")
int unisono_receive(struct xdp_md* context) {
  void* data = (void*)(long)context->data;
  void* end = (void*)(long)context->data_end;
  const struct unisono_packet* packet = find_packet(data, end);
  if (!packet || (packet->kind != UNISONO_NIC_GIVE && packet->kind != UNISONO_NIC_RESULT)) {
    return count(UNISONO_NIC_FOREIGN, XDP_PASS);
  }
  const struct unisono_nic_row* row = find_row(packet);
  if (!row) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  if (!is_addressed(data, row)) return count(UNISONO_NIC_OTHERS_FRAME, XDP_PASS);
  if (!is_whole(packet, end)) return count(UNISONO_NIC_SHORT, XDP_DROP);
  if (!is_genuine(packet, end, row)) return count(UNISONO_NIC_BAD_TAG, XDP_DROP);
  if (packet->kind == UNISONO_NIC_GIVE) return take_contribution(context, packet, row);
  return take_result(context, packet, row);
}

struct spreading {
  struct __sk_buff* frame;
  const struct unisono_nic_row* row;
  uint32_t kept;
};

static long send_clone(uint32_t turn, struct spreading* spreading) {
  struct __sk_buff* frame = spreading->frame;
  const struct unisono_nic_row* row = spreading->row;
  const uint32_t i = row->forwards - 1 - turn;
  void* data = (void*)(long)frame->data;
  if (i >= UNISONO_NIC_FORWARDS_MAX || data + UNISONO_NIC_PAYLOAD > (void*)(long)frame->data_end) {
    return 1;
  }
  const struct unisono_packet* packet = data + UNISONO_NIC_HEADS;
  write_addresses(data, row, &row->forward[i], packet->length);
  if (i >= spreading->kept) bpf_clone_redirect(frame, row->interface, 0);
  return 0;
}

/* Sends clones of the frame to all that this rank sends results on to but, of them, the first
 * `kept`, to whom the frame itself is addressed then: 0 or 1. */
UNISONO_INLINE void spread(struct __sk_buff* frame, const struct unisono_nic_row* row,
                           uint32_t kept) {
  struct spreading spreading = {frame, row, kept};
  bpf_loop(row->forwards, send_clone, &spreading, 0);
}

/* A result that unisono_receive has passed on, because it goes to several. */
SEC("tc")
int unisono_spread(struct __sk_buff* frame) {
  void* end = (void*)(long)frame->data_end;
  const struct unisono_packet* packet = find_packet((void*)(long)frame->data, end);
  if (!packet || packet->kind != UNISONO_NIC_RESULT) return TCX_NEXT;
  const struct unisono_nic_row* row = find_row(packet);
  if (!row || row->rank != packet->sender || !is_whole(packet, end)) return TCX_NEXT;
  if (!is_genuine(packet, end, row)) return count(UNISONO_NIC_BAD_TAG, TCX_DROP);
  spread(frame, row, 0);
  return TCX_DROP;
}

SEC("tc")
int unisono_kick(struct __sk_buff* frame) {
  const struct unisono_packet* packet =
      find_packet((void*)(long)frame->data, (void*)(long)frame->data_end);
  if (!packet || packet->kind != UNISONO_NIC_KICK) return TCX_NEXT;
  const struct unisono_nic_row* row = find_row(packet);
  if (!row) return count(UNISONO_NIC_NO_GROUP, TCX_DROP);
  const uint64_t sequence = packet->sequence;
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* own = find_block(row, sequence, 0);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, TCX_DROP);
  if (own->sequence != sequence || slot->arrived != all_arrived(row)) {
    return count(UNISONO_NIC_STRAY_KICK, TCX_DROP);
  }
  /* Before the operation is taken: after it, it would be lost with the frame. */
  const struct outgoing out = next_hop(row, own, is_root(row));
  const uint32_t bytes = UNISONO_NIC_PAYLOAD + out.words * 8;
  if (bpf_skb_change_tail(frame, bytes, 0) != 0 || bpf_skb_pull_data(frame, bytes) != 0) {
    return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  }
  if (!take(slot, all_arrived(row))) return count(UNISONO_NIC_STRAY_KICK, TCX_DROP);
  if (!combine_all(row, slot, own, sequence)) return count(UNISONO_NIC_MISMATCH, TCX_DROP);
  if (!write_frame((void*)(long)frame->data, (void*)(long)frame->data_end, row, own, &out)) {
    return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  }
  if (!is_root(row)) return count(UNISONO_NIC_SENT_UP, TCX_NEXT);
  hand_over(slot, sequence);
  spread(frame, row, 1);
  return count(UNISONO_NIC_SENT_DOWN, TCX_NEXT);
}

char unisono_license[] SEC("license") = "Dual BSD/GPL";
