/* SPDX-License-Identifier: BSD-3-Clause
 * Tracing inside the NIC program: a packet as it was seen, and its fate, written to a ring buffer.
 * When off, which is nearly always, it costs a branch on one word. A record is begun before the
 * packet is handled and ended after it. In between it lies in memory of this processor and program.
 * For state.bpf.h and nic.bpf.c only.
 */
#pragma once

#include "nic/program/frame.bpf.h"
#include "nic/program/trace.h"

/* Written by the loader. */
struct unisono_nic_host unisono_host = {};

struct trace_place {
  uint64_t seen; /* packets, for sampling */
  struct unisono_nic_trace record;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, UNISONO_NIC_ENTRIES);
  __type(key, uint32_t);
  __type(value, struct trace_place);
} trace_places SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 * 1024);
} trace_records SEC(".maps");

/* How a packet leaves the program: the action for the kernel, and the counter with the reason. */
UNISONO_INLINE int outcome_of(uint32_t counter, int verdict) {
  return (int)((counter + 1) << 8 | (uint8_t)verdict);
}

UNISONO_INLINE int verdict_of(int outcome) { return (int8_t)outcome; }

/* Whether the program at `entry` handles packets of this kind. Others pass through it, also while
 * it handles one: clones take the same way as packets of processes. */
UNISONO_INLINE int is_traced(uint32_t entry, uint8_t kind) {
  const int own = kind == UNISONO_NIC_DOORBELL || kind == UNISONO_NIC_ASK;
  if (entry == UNISONO_NIC_LEAVE) return own || kind == UNISONO_NIC_QUERY;
  if (entry == UNISONO_NIC_SPREAD)
    return kind == UNISONO_NIC_RESULT || kind == UNISONO_NIC_ASK_GIVE ||
           kind == UNISONO_NIC_BLOCK || kind == UNISONO_NIC_BLOCKS ||
           kind == UNISONO_NIC_ASK_BLOCKS;
  return kind >= UNISONO_NIC_GIVE;
}

UNISONO_INLINE int begin_trace(void* data, void* end, uint32_t entry) {
  struct trace_place* place = bpf_map_lookup_elem(&trace_places, &entry);
  const struct unisono_packet* packet = find_packet(data, end);
  const uint32_t every = unisono_host.trace_every;
  if (!place || !packet || !is_traced(entry, packet->kind)) return 0;
  place->record.time_ns = 0;
  if (every == 0 || place->seen++ % every != 0) return 0;
  place->record.time_ns = bpf_ktime_get_ns();
  place->record.bytes = (uint32_t)(end - data);
  place->record.entry = (uint8_t)entry;
  __builtin_memcpy(&place->record.packet, packet, sizeof(*packet));
  if (entry == UNISONO_NIC_LEAVE) place->record.packet.tag = 0; /* the group's secret */
  return 0;
}

UNISONO_GLOBAL int begin_trace_received(struct xdp_md* context) {
  return begin_trace((void*)(long)context->data, (void*)(long)context->data_end,
                     UNISONO_NIC_RECEIVE);
}

UNISONO_GLOBAL int begin_trace_leaving(struct __sk_buff* frame, uint32_t entry) {
  return begin_trace((void*)(long)frame->data, (void*)(long)frame->data_end, entry);
}

UNISONO_GLOBAL int end_trace(uint32_t entry, int outcome) {
  struct trace_place* place = bpf_map_lookup_elem(&trace_places, &entry);
  if (!place || place->record.time_ns == 0) return 0;
  place->record.verdict = (int8_t)verdict_of(outcome);
  place->record.reason = outcome < 0 ? 0 : (uint16_t)(outcome >> 8);
  if (bpf_ringbuf_output(&trace_records, &place->record, sizeof(place->record), 0) == 0) {
    place->record.lost = 0;
  } else {
    ++place->record.lost;
  }
  place->record.time_ns = 0;
  return 0;
}

/* The whole of a program: `handle` between the two halves of a record. */
#define UNISONO_TRACED(entry, begin, handle)                        \
  do {                                                              \
    if (unisono_host.trace_every != 0) (begin);                     \
    const int outcome = (handle);                                   \
    if (unisono_host.trace_every != 0) end_trace((entry), outcome); \
    return verdict_of(outcome);                                     \
  } while (0)
