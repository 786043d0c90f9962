/* SPDX-License-Identifier: BSD-3-Clause
 * The record that the NIC program makes of a packet while tracing: where it entered, its header,
 * and its fate. Plain C, compiled on both sides. It has no vector: a user who may trace sees that
 * others communicate, but not the data.
 */
#pragma once

#include <stdint.h>

#include "wire/packet.h"

/* The program that saw the packet; also the index of the place for its current record. */
enum unisono_nic_entry {
  UNISONO_NIC_RECEIVE, /* coming in, by XDP: `verdict` is an xdp_action */
  UNISONO_NIC_LEAVE,   /* from a process of this host: `verdict` is a tcx_action */
  UNISONO_NIC_SPREAD,  /* came in and goes on to several: `verdict` is a tcx_action */
  UNISONO_NIC_ENTRIES
};

struct unisono_nic_trace {
  uint64_t time_ns; /* monotonic, when it was seen */
  uint32_t bytes;   /* of the frame */
  uint32_t lost;    /* records of this processor without room since the last one with */
  uint8_t entry;
  int8_t verdict;
  uint16_t reason; /* 1 + enum unisono_nic_counter; 0: passed on, and not counted */
  uint32_t unused;
  struct unisono_packet packet; /* as seen; nothing about it has been checked */
};
