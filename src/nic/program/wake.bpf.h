/* SPDX-License-Identifier: BSD-3-Clause
 * Wakes processes that sleep until an operation is done (nic/memory/wake_ring.hpp). Each waiter of
 * a group has a ring buffer of its own, on which it sleeps. Without a sleeper, it costs a load from
 * a line that has just been written. For nic.bpf.c and allgather.bpf.h only.
 */
#pragma once

#include "nic/program/state.bpf.h"

/* One page of records, however large pages are: the loader makes those rings, and adjusts this. */
struct wake_ring_of_waiter {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
};

/* By the index of the group's row, and waiter. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UNISONO_NIC_ROWS_MAX* UNISONO_NIC_WAITERS_MAX);
  __type(key, uint32_t);
  __array(values, struct wake_ring_of_waiter);
} wakes SEC(".maps");

/* Takes the bits and wakes their waiters. All records have one length. So a ring still has record
 * headers at the right offsets if its process changes its position. */
UNISONO_GLOBAL int wake_waiters(const struct unisono_nic_row* row, struct unisono_nic_slot* slot) {
  if (!row || !slot) return 0;
  const uint64_t waiting = __sync_lock_test_and_set(&slot->waiting, 0);
  for (uint32_t waiter = 0; waiter < UNISONO_NIC_WAITERS_MAX; ++waiter) {
    if ((waiting >> waiter & 1) == 0) continue;
    const uint32_t index = row->index * UNISONO_NIC_WAITERS_MAX + waiter;
    const uint64_t record = 0;
    void* ring = bpf_map_lookup_elem(&wakes, &index);
    if (!ring) continue;
    const long put = bpf_ringbuf_output(ring, (void*)&record, sizeof(record), BPF_RB_FORCE_WAKEUP);
    count(put == 0 ? UNISONO_NIC_WOKEN : UNISONO_NIC_NOT_WOKEN, 0);
  }
  return 0;
}

/* Called after an exchange, which is a barrier, has shown the operation's end. A process sets its
 * bit and then checks whether the operation has ended, so one of the two sees the other. */
UNISONO_INLINE void wake(const struct unisono_nic_row* row, struct unisono_nic_slot* slot) {
  if (*(const volatile uint64_t*)&slot->waiting != 0) wake_waiters(row, slot);
}
