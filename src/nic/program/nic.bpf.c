/* SPDX-License-Identifier: BSD-3-Clause
 * The NIC program: reductions up a tree and results down it, and allgathers (allgather.bpf.h,
 * doubling.bpf.h), with no process on the way. It is driven by tables (tables.h); the maps are
 * filled and mapped by loader.cpp.
 *
 *   unisono_receive  XDP: contributions of children, results of the root, blocks, and questions, as
 *                    they come in
 *   unisono_leave     tc, leaving: sent by the own process when its contribution was the last one,
 *                    or when it is late
 *   unisono_spread   tc, coming in: what goes on to several: results, where the network has no
 *                    multicast, blocks, and questions
 *
 * Whoever sets the last arrival bit of an operation combines all of it, so there is no lock; and it
 * does so in the order of the children, so the result does not depend on the order of arrival. A
 * contribution is claimed before it is written: a late double finds its place taken, or gone.
 */
#include "nic/program/allgather.bpf.h"
#include "nic/program/combine.bpf.h"
#include "nic/program/doubling.bpf.h"
#include "nic/program/frame.bpf.h"
#include "nic/program/state.bpf.h"
#include "nic/program/trace.bpf.h"
#include "nic/program/wake.bpf.h"

/* Set before loading, by tests: rows may lose packets. Otherwise the verifier removes the code. */
const volatile uint32_t unisono_loses_packets SEC(".rodata") = 0;

struct combining {
  const struct unisono_nic_row* row;
  struct unisono_nic_block* own;
  uint64_t sequence;
  int fits;
};

static long combine_child(uint32_t child, struct combining* combining) {
  struct unisono_nic_block* own = combining->own;
  const struct unisono_nic_block* block =
      find_block(combining->row, combining->sequence, 1 + child);
  if (!block || block->words != own->words || block->combine != own->combine) {
    combining->fits = 0;
    return 1;
  }
  combine_blocks(own, block);
  return 0;
}

/* Combines all contributions in block 0, in order. The arrival words are cleared before anything
 * is sent, because a sent packet allows the children to use them. 0: the contributions do not
 * match. */
UNISONO_GLOBAL int combine_all(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                               struct unisono_nic_block* own, uint64_t sequence) {
  if (!row || !slot || !own) return 0;
  struct combining combining = {.row = row, .own = own, .sequence = sequence, .fits = 1};
  bpf_loop(row->children, combine_child, &combining, 0);
  if (!combining.fits) slot->broken = sequence;
  slot->summed = sequence;
  clear_arrived(slot);
  if (!combining.fits) wake(row, slot);
  return combining.fits;
}

/* The sum goes to the parent; the result goes to all or to the first of several. */
UNISONO_INLINE struct outgoing next_hop(const struct unisono_nic_row* row,
                                        const struct unisono_nic_block* own, int down) {
  const int quiet = down && (row->flags & UNISONO_NIC_RETURNS_VALUES) == 0;
  const struct outgoing out = {
      .sequence = own->sequence,
      .kind = down ? UNISONO_NIC_RESULT : UNISONO_NIC_GIVE,
      .target = down ? UNISONO_PACKET_GROUP : row->parent,
      .origin = row->rank,
      .words = quiet ? 0 : own->words,
      .to = !down                ? row->up
            : row->forwards != 0 ? row->forward[0]
                                 : row->down,
  };
  return out;
}

/* The last step, when block 0 is no longer needed: the result belongs to the process. */
UNISONO_INLINE void hand_over(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                              uint64_t sequence) {
  slot->claimed = sequence;
  slot->done_ns = bpf_ktime_get_ns();
  publish(slot, sequence);
  wake(row, slot);
}

/* The received frame leaves with the contents of block 0: up, or down to one. For several,
 * unisono_spread gets it, addressed to this host. */
UNISONO_INLINE int leave(struct xdp_md* context, const struct unisono_nic_row* row,
                         struct unisono_nic_slot* slot, const struct unisono_nic_block* own,
                         int down) {
  struct outgoing out = next_hop(row, own, down);
  const uint64_t sequence = own->sequence;
  if (down && row->forwards > 1) out.to = row->own;
  if (!rewrite_received(context, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  if (!down) return count(UNISONO_NIC_SENT_UP, XDP_TX);
  hand_over(row, slot, sequence);
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

/* The received question goes on to the children whose contributions are missing. To one child it
 * goes at once. To several, or to children without a bit in the first word, it goes by
 * unisono_spread. */
UNISONO_INLINE int pass_down(struct xdp_md* context, const struct unisono_nic_row* row,
                             uint64_t sequence, uint64_t missing) {
  const uint64_t children = missing & ~1ULL; /* bits from 1 on */
  const uint32_t child = 62 - unisono_leading_zeros(children & -children);
  const int one = (children & (children - 1)) == 0 && child < UNISONO_NIC_FIRST_CHILDREN;
  const struct unisono_nic_block* own = find_block(row, sequence, 0);
  const int bytes = (int)bpf_xdp_get_buff_len(context) - (int)UNISONO_NIC_PAYLOAD;
  if (!own || child >= UNISONO_NIC_CHILDREN_MAX) return count(UNISONO_NIC_STALE, XDP_DROP);
  const struct outgoing out = {
      .sequence = sequence,
      .kind = UNISONO_NIC_ASK_GIVE,
      .target = one ? row->child_rank[child] : row->rank,
      .origin = row->rank,
      .words = (uint32_t)bytes / 8,
      .to = one ? row->child[child] : row->own,
  };
  if (!rewrite_received(context, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return one ? count(UNISONO_NIC_PASSED_ON, XDP_TX) : XDP_PASS;
}

/* A question about an operation whose sum is not here either. If nothing is missing, no packet has
 * continued the operation since the last contribution arrived: this frame does. */
UNISONO_INLINE int look_further(struct xdp_md* context, const struct unisono_nic_row* row,
                                struct unisono_nic_slot* slot, uint64_t sequence,
                                enum operation_state state, uint64_t missing) {
  if (state == UNISONO_GONE) return count(UNISONO_NIC_STALE, XDP_DROP);
  if (missing == 0) return complete_received(context, row, slot, sequence);
  if (state != UNISONO_LACKING || (missing & ~1ULL) == 0) {
    return count(UNISONO_NIC_NOT_YET, XDP_DROP);
  }
  return pass_down(context, row, sequence, missing);
}

/* A child that has given its vector lacks the result. It gets the result, or the question goes
 * on. */
UNISONO_INLINE int answer_child(struct xdp_md* context, const struct unisono_nic_row* row,
                                struct unisono_nic_slot* slot, uint64_t sequence, uint32_t child) {
  uint64_t missing = 0;
  const enum operation_state state = find_state(row, slot, sequence, &missing);
  const struct unisono_nic_block* own = find_block(row, sequence, 0);
  const int done = state == UNISONO_DONE;
  if (!own) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  if (!done && state != UNISONO_SUMMED) {
    return look_further(context, row, slot, sequence, state, missing);
  }
  if (!done && is_root(row)) return count(UNISONO_NIC_NOT_YET, XDP_DROP);
  if (own->sequence != sequence) return count(UNISONO_NIC_STALE, XDP_DROP);
  struct outgoing out = next_hop(row, own, done);
  out.sequence = sequence; /* the process may be about to reuse the memory */
  out.kind = done ? UNISONO_NIC_RESULT : UNISONO_NIC_ASK_RESULT;
  out.target = done ? row->child_rank[child] : row->parent;
  out.to = done ? row->child[child] : row->up;
  if (!rewrite_received(context, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return count(done ? UNISONO_NIC_ANSWERED : UNISONO_NIC_PASSED_ON, XDP_TX);
}

/* The parent lacks this host's contribution. It gets it, or the question goes on. */
UNISONO_INLINE int answer_parent(struct xdp_md* context, const struct unisono_packet* packet,
                                 const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  if (is_root(row) || packet->sender != row->parent || packet->target != row->rank) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  const struct unisono_nic_block* own = find_block(row, sequence, 0);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  uint64_t missing = 0;
  const enum operation_state state = find_state(row, slot, sequence, &missing);
  if (state == UNISONO_DONE) return count(UNISONO_NIC_STALE, XDP_DROP);
  if (state != UNISONO_SUMMED) return look_further(context, row, slot, sequence, state, missing);
  struct outgoing out = next_hop(row, own, 0);
  out.sequence = sequence;
  if (!rewrite_received(context, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, XDP_DROP);
  return count(UNISONO_NIC_ANSWERED, XDP_TX);
}

/* Also takes a contribution that a child repeats because it lacks the result. */
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
  const uint64_t seen = __sync_val_compare_and_swap(&block->sequence, before, sequence);
  if (seen != before) {
    if (seen == sequence && packet->kind == UNISONO_NIC_ASK_RESULT) {
      return answer_child(context, row, slot, sequence, child);
    }
    return count(UNISONO_NIC_STALE, XDP_DROP);
  }
  block->combine = packet->place;
  block->words = packet->length / 8;
  copy_received(context, block);
  if (!mark_child(row, slot, child)) return count(UNISONO_NIC_TAKEN_IN, XDP_DROP);
  return complete_received(context, row, slot, sequence);
}

/* A result from its regular sender, or from the parent that was asked. */
UNISONO_INLINE int take_result(struct xdp_md* context, const struct unisono_packet* packet,
                               const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  const int meant = packet->target == UNISONO_PACKET_GROUP || packet->target == row->rank;
  if (is_root(row) || !meant ||
      (packet->sender != row->down_source && packet->sender != row->parent)) {
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
      __sync_lock_test_and_set(&slot->broken, sequence);
      wake(row, slot);
      return count(UNISONO_NIC_MISMATCH, XDP_DROP);
    }
    copy_received(context, own);
  }
  count(UNISONO_NIC_CAME_DOWN, 0);
  if (row->forwards != 0) return leave(context, row, slot, own, 1);
  hand_over(row, slot, sequence);
  return outcome_of(UNISONO_NIC_CAME_DOWN, XDP_DROP);
}

/* The root asks all ranks whether they have contributed. The positive answer is the contribution
 * itself, combined on its way up. There is no negative answer: the question is kept, so that a late
 * rank sends at once. */
UNISONO_INLINE int take_query(struct xdp_md* context, const struct unisono_packet* packet,
                              const struct unisono_nic_row* row) {
  const uint64_t sequence = packet->sequence;
  if (is_root(row) || packet->sender != row->down_source) {
    return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  }
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  if (!slot) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  const int is_next = slot->summed == sequence - row->depth;
  if (!is_next || slot->queried == sequence) return count(UNISONO_NIC_STALE, XDP_DROP);
  __sync_lock_test_and_set(&slot->queried, sequence);
  uint64_t missing = 0;
  const enum operation_state state = find_state(row, slot, sequence, &missing);
  if (state != UNISONO_BUSY || missing != 0) return count(UNISONO_NIC_NOT_YET, XDP_DROP);
  return complete_received(context, row, slot, sequence);
}

/* Whether other hosts' programs send packets of this kind. */
UNISONO_INLINE int is_known(uint8_t kind) {
  return kind == UNISONO_NIC_GIVE || kind == UNISONO_NIC_RESULT || kind == UNISONO_NIC_ASK_RESULT ||
         kind == UNISONO_NIC_ASK_GIVE || kind == UNISONO_NIC_QUERY || is_of_allgather(kind) ||
         is_of_doubling(kind);
}

/* Whether the row's kind of group uses it. */
UNISONO_INLINE int fits(const struct unisono_nic_row* row, uint8_t kind) {
  if (is_doubling(row)) return is_of_doubling(kind);
  return !is_of_doubling(kind) && is_allgather(row) == is_of_allgather(kind);
}

UNISONO_INLINE int is_to_be_lost(const struct unisono_nic_row* row) {
  return unisono_loses_packets != 0 && bpf_get_prandom_u32() < row->loss;
}

UNISONO_INLINE int receive(struct xdp_md* context) {
  void* data = (void*)(long)context->data;
  void* end = (void*)(long)context->data_end;
  const struct unisono_packet* packet = find_packet(data, end);
  if (!packet || !is_known(packet->kind)) return count(UNISONO_NIC_FOREIGN, XDP_PASS);
  const struct unisono_nic_row* row = find_row(packet);
  if (!row && goes_to(data, &unisono_host.own)) return count(UNISONO_NIC_NO_GROUP, XDP_DROP);
  if (!row || !is_addressed(data, row)) return count(UNISONO_NIC_OTHERS_FRAME, XDP_PASS);
  if (!is_whole(packet, end)) return count(UNISONO_NIC_SHORT, XDP_DROP);
  if (is_to_be_lost(row)) return count(UNISONO_NIC_LOST, XDP_DROP);
  if (!received_is_genuine(context, packet, row)) return count(UNISONO_NIC_BAD_TAG, XDP_DROP);
  if (!fits(row, packet->kind)) return count(UNISONO_NIC_BAD_SENDER, XDP_DROP);
  if (packet->kind == UNISONO_NIC_BLOCKS) return take_blocks(context, packet, row);
  if (packet->kind == UNISONO_NIC_ASK_BLOCKS) return answer_for_blocks(context, packet, row);
  if (packet->kind == UNISONO_NIC_BLOCK) return take_block(context, packet, row);
  if (packet->kind == UNISONO_NIC_ASK_BLOCK) return answer_for_block(context, packet, row);
  if (packet->kind == UNISONO_NIC_RESULT) return take_result(context, packet, row);
  if (packet->kind == UNISONO_NIC_ASK_GIVE) return answer_parent(context, packet, row);
  if (packet->kind == UNISONO_NIC_QUERY) return take_query(context, packet, row);
  return take_contribution(context, packet, row);
}

struct spreading {
  struct __sk_buff* frame;
  const struct unisono_nic_row* row;
  uint64_t sequence; /* of a question */
  uint32_t kept;     /* clones of a result that are not sent */
  uint32_t words;
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

static long send_question(uint32_t child, struct spreading* spreading) {
  const struct unisono_nic_row* row = spreading->row;
  const struct unisono_nic_block* own = find_block(row, spreading->sequence, 0);
  const struct unisono_nic_block* block = find_block(row, spreading->sequence, 1 + child);
  if (!own || !block) return 1;
  if (block->sequence == spreading->sequence) return 0;
  if (child >= UNISONO_NIC_CHILDREN_MAX) return 1;
  const struct outgoing out = {
      .sequence = spreading->sequence,
      .kind = UNISONO_NIC_ASK_GIVE,
      .target = row->child_rank[child],
      .origin = row->rank,
      .words = spreading->words,
      .to = row->child[child],
  };
  if (!rewrite_leaving(spreading->frame, row, own, &out)) return 1;
  bpf_clone_redirect(spreading->frame, row->interface, 0);
  return 0;
}

/* Sends clones of the frame to the ranks to which this rank sends results, except the first `kept`
 * (0 or 1). The frame itself is then addressed to that one. */
UNISONO_INLINE void spread(struct __sk_buff* frame, const struct unisono_nic_row* row,
                           uint32_t kept) {
  struct spreading spreading = {.frame = frame, .row = row, .kept = kept};
  bpf_loop(row->forwards, send_clone, &spreading, 0);
}

/* Asks all children whose contributions are missing, by clones of the frame. Its length allows for
 * `words`. */
UNISONO_INLINE void ask_children(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                 uint64_t sequence, uint32_t words) {
  struct spreading spreading = {.frame = frame, .row = row, .sequence = sequence, .words = words};
  bpf_loop(row->children, send_question, &spreading, 0);
}

/* A question for several children, which unisono_receive has passed on. */
UNISONO_INLINE int spread_question(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                   uint64_t sequence, uint32_t words) {
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  uint64_t missing = 0;
  if (!slot || find_state(row, slot, sequence, &missing) != UNISONO_LACKING) {
    return count(UNISONO_NIC_STALE, TCX_DROP);
  }
  ask_children(frame, row, sequence, words);
  return count(UNISONO_NIC_PASSED_ON, TCX_DROP);
}

/* A packet for several targets, which unisono_receive has passed on. */
UNISONO_INLINE int spread_received(struct __sk_buff* frame) {
  void* data = (void*)(long)frame->data;
  void* end = (void*)(long)frame->data_end;
  const struct unisono_packet* packet = find_packet(data, end);
  if (!packet || (packet->kind != UNISONO_NIC_RESULT && packet->kind != UNISONO_NIC_ASK_GIVE &&
                  packet->kind != UNISONO_NIC_BLOCK && !is_of_doubling(packet->kind))) {
    return TCX_NEXT;
  }
  const struct unisono_nic_row* row = find_row(packet);
  if (row && is_of_doubling(packet->kind)) {
    return is_doubling(row) ? spread_joined(frame, packet, end, row) : TCX_NEXT;
  }
  if (row && packet->kind == UNISONO_NIC_BLOCK) return spread_block(frame, packet, end, row);
  if (!row || row->rank != packet->sender || !is_to_oneself(data, row) || !is_whole(packet, end)) {
    return TCX_NEXT;
  }
  if (!leaving_is_genuine(frame, packet, row)) return count(UNISONO_NIC_BAD_TAG, TCX_DROP);
  frame->priority = UNISONO_NIC_PRIORITY;
  if (packet->kind == UNISONO_NIC_ASK_GIVE) {
    return spread_question(frame, row, packet->sequence, packet->length / 8);
  }
  spread(frame, row, 0);
  return TCX_DROP;
}

/* The own process reports that its contribution was the last one. */
UNISONO_INLINE int go_on(struct __sk_buff* frame, const struct unisono_nic_row* row,
                         struct unisono_nic_slot* slot, struct unisono_nic_block* own,
                         uint64_t sequence) {
  if (own->sequence != sequence || slot->arrived != all_arrived(row)) {
    return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  }
  /* Before the operation is taken: afterwards a failure would lose it with the frame. */
  const struct outgoing out = next_hop(row, own, is_root(row));
  if (!make_room(frame, &out)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  if (!take(slot, all_arrived(row))) return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  if (!combine_all(row, slot, own, sequence)) return count(UNISONO_NIC_MISMATCH, TCX_DROP);
  if (!rewrite_leaving(frame, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  if (!is_root(row)) return count(UNISONO_NIC_SENT_UP, TCX_NEXT);
  hand_over(row, slot, sequence);
  spread(frame, row, 1);
  return count(UNISONO_NIC_SENT_DOWN, TCX_NEXT);
}

/* The own process reports that an operation is late: the missing packets are requested from their
 * sources. */
UNISONO_INLINE int ask(struct __sk_buff* frame, const struct unisono_nic_row* row,
                       struct unisono_nic_slot* slot, struct unisono_nic_block* own,
                       uint64_t sequence) {
  uint64_t missing = 0;
  const enum operation_state state = find_state(row, slot, sequence, &missing);
  const int up = state == UNISONO_SUMMED && !is_root(row);
  if (own->sequence != sequence) return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  if (!up && state != UNISONO_LACKING) return count(UNISONO_NIC_NOT_YET, TCX_DROP);
  struct outgoing out = next_hop(row, own, 0);
  out.kind = UNISONO_NIC_ASK_RESULT;
  if (!make_room(frame, &out)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  if (!up) {
    ask_children(frame, row, sequence, out.words);
    return count(UNISONO_NIC_ASKED, TCX_DROP);
  }
  if (!rewrite_leaving(frame, row, own, &out)) return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  return count(UNISONO_NIC_ASKED, TCX_NEXT);
}

/* The root's process asks whether all ranks have contributed. */
UNISONO_INLINE int query(struct __sk_buff* frame, const struct unisono_nic_row* row,
                         struct unisono_nic_block* own, uint64_t sequence) {
  if (own->sequence != sequence || !is_root(row) || row->down.ipv4 == 0) {
    return count(UNISONO_NIC_STRAY_DOORBELL, TCX_DROP);
  }
  const struct outgoing out = {
      .sequence = sequence,
      .kind = UNISONO_NIC_QUERY,
      .target = UNISONO_PACKET_GROUP,
      .origin = row->rank,
      .words = own->words,
      .to = row->down,
  };
  if (!make_room(frame, &out) || !rewrite_leaving(frame, row, own, &out)) {
    return count(UNISONO_NIC_NO_ROOM, TCX_DROP);
  }
  return count(UNISONO_NIC_QUERIED, TCX_NEXT);
}

UNISONO_INLINE int leave_host(struct __sk_buff* frame) {
  void* data = (void*)(long)frame->data;
  const struct unisono_packet* packet = find_packet(data, (void*)(long)frame->data_end);
  if (!packet || (packet->kind != UNISONO_NIC_DOORBELL && packet->kind != UNISONO_NIC_ASK &&
                  packet->kind != UNISONO_NIC_QUERY)) {
    return TCX_NEXT;
  }
  const struct unisono_nic_row* row = find_row(packet);
  if (!row) {
    const int is_own = comes_from(data, &unisono_host.own);
    return is_own ? count(UNISONO_NIC_NO_GROUP, TCX_DROP) : TCX_NEXT;
  }
  if (!comes_from(data, &row->own)) return TCX_NEXT; /* a guest of this host sent it */
  if (!unisono_tag_equal(packet->tag, row->secret)) return count(UNISONO_NIC_BAD_TAG, TCX_DROP);
  frame->priority = UNISONO_NIC_PRIORITY;
  const uint64_t sequence = packet->sequence;
  const uint8_t kind = packet->kind;
  if (is_doubling(row)) return leave_by_doubling(frame, row, sequence, kind);
  if (is_allgather(row)) return leave_singly(frame, row, sequence, kind);
  struct unisono_nic_slot* slot = find_slot(row, sequence);
  struct unisono_nic_block* own = find_block(row, sequence, 0);
  if (!slot || !own) return count(UNISONO_NIC_NO_GROUP, TCX_DROP);
  if (kind == UNISONO_NIC_ASK) return ask(frame, row, slot, own, sequence);
  if (kind == UNISONO_NIC_QUERY) return query(frame, row, own, sequence);
  return go_on(frame, row, slot, own, sequence);
}

SEC("xdp")
int unisono_receive(struct xdp_md* context) {
  UNISONO_TRACED(UNISONO_NIC_RECEIVE, begin_trace_received(context), receive(context));
}

SEC("tc")
int unisono_spread(struct __sk_buff* frame) {
  UNISONO_TRACED(UNISONO_NIC_SPREAD, begin_trace_leaving(frame, UNISONO_NIC_SPREAD),
                 spread_received(frame));
}

SEC("tc")
int unisono_leave(struct __sk_buff* frame) {
  UNISONO_TRACED(UNISONO_NIC_LEAVE, begin_trace_leaving(frame, UNISONO_NIC_LEAVE),
                 leave_host(frame));
}

char unisono_license[] SEC("license") = "Dual BSD/GPL";
