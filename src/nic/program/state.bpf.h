/* SPDX-License-Identifier: BSD-3-Clause
 * The maps of the NIC program, and access to their rows, slots, blocks and counters; and the state
 * of an operation on this host. For nic.bpf.c only.
 */
#pragma once

#include "nic/program/trace.bpf.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX);
  __type(key, uint32_t);
  __type(value, struct unisono_nic_row);
} rows SEC(".maps");

/* The maps for a group's process. The loader makes them in the size that the group needs. They are
 * given by sizes and not by types, because clang leaves out types that only a map inside of a map
 * names. */
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

/* The row of a packet's group. */
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

/* Adds to the counter and returns it with the action, so that every exit is counted. */
UNISONO_INLINE int count_several(uint32_t counter, uint64_t number, int verdict) {
  uint64_t* value = bpf_map_lookup_elem(&counters, &counter);
  if (value) *value += number;
  return outcome_of(counter, verdict);
}

UNISONO_INLINE int count(uint32_t counter, int verdict) {
  return count_several(counter, 1, verdict);
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

/* The block of an operation: number 0 is the own process's, 1 + c is that of child c; in an
 * allgather, by origin. */
UNISONO_INLINE struct unisono_nic_block* find_block(const struct unisono_nic_row* row,
                                                    uint64_t sequence, uint32_t number) {
  void* own_blocks = bpf_map_lookup_elem(&blocks, &row->index);
  const uint32_t index = (uint32_t)(sequence & (row->depth - 1)) * unisono_nic_blocks(row) + number;
  return own_blocks ? bpf_map_lookup_elem(own_blocks, &index) : 0;
}

UNISONO_INLINE uint64_t all_arrived(const struct unisono_nic_row* row) {
  return unisono_nic_all_arrived(row);
}

/* Marks a child's contribution as arrived. 1: it was the last. */
UNISONO_INLINE int mark_child(const struct unisono_nic_row* row, struct unisono_nic_slot* slot,
                              uint32_t child) {
  uint64_t bit = 2ULL << (child & 63);
  if (child >= UNISONO_NIC_FIRST_CHILDREN) {
    const uint32_t word = (child - UNISONO_NIC_FIRST_CHILDREN) / 64;
    const uint64_t in_word = 1ULL << ((child - UNISONO_NIC_FIRST_CHILDREN) & 63);
    if (word >= UNISONO_NIC_FURTHER_WORDS) return 0;
    const uint64_t before = __sync_fetch_and_or(&slot->further[word], in_word);
    if ((before | in_word) != unisono_nic_all_further(row, word)) return 0;
    bit = unisono_nic_further_bit(word);
  }
  return (__sync_fetch_and_or(&slot->arrived, bit) | bit) == all_arrived(row);
}

/* Clears the arrival words for the next operation; the first one last, because it shows that. */
UNISONO_INLINE void clear_arrived(struct unisono_nic_slot* slot) {
  for (uint32_t word = 0; word < UNISONO_NIC_FURTHER_WORDS; ++word) slot->further[word] = 0;
  __sync_lock_test_and_set(&slot->arrived, 0);
}

/* Only one of those that find all contributions gets 1. */
UNISONO_INLINE int take(struct unisono_nic_slot* slot, uint64_t all) {
  return __sync_val_compare_and_swap(&slot->arrived, all, all | UNISONO_NIC_TAKEN) == all;
}

/* Shows the result in block 0 to the process. The exchange is a barrier: data first. */
UNISONO_INLINE void publish(struct unisono_nic_slot* slot, uint64_t sequence) {
  __sync_lock_test_and_set(&slot->done, sequence);
}

UNISONO_INLINE int is_allgather(const struct unisono_nic_row* row) { return row->ranks != 0; }

UNISONO_INLINE int is_root(const struct unisono_nic_row* row) {
  return (row->flags & UNISONO_NIC_ROOT) != 0;
}

/* The progress of an operation on this host. */
enum operation_state {
  UNISONO_GONE,    /* outside of the window of operations, or broken */
  UNISONO_LACKING, /* contributions have not come */
  UNISONO_BUSY,    /* somebody is combining them, or writing the result */
  UNISONO_SUMMED,  /* block 0 has the sum, and the result has not come */
  UNISONO_DONE     /* block 0 has the result */
};

/* `missing` gets the unset arrival bits, if some are missing. The bits are read first: they are
 * cleared after the sum is marked as such. */
UNISONO_INLINE enum operation_state find_state(const struct unisono_nic_row* row,
                                               struct unisono_nic_slot* slot, uint64_t sequence,
                                               uint64_t* missing) {
  *missing = all_arrived(row) & ~__sync_fetch_and_or(&slot->arrived, 0);
  if (slot->broken == sequence) return UNISONO_GONE;
  if (slot->done == sequence) return UNISONO_DONE;
  if (slot->claimed == sequence) return UNISONO_BUSY;
  if (slot->summed == sequence) return UNISONO_SUMMED;
  if (slot->summed != sequence - row->depth) return UNISONO_GONE;
  return *missing != 0 ? UNISONO_LACKING : UNISONO_BUSY;
}
