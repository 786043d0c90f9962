/* SPDX-License-Identifier: BSD-3-Clause
 * What the NIC program records of a packet when somebody traces: where it came by, its header, and
 * what became of it. Plain C, compiled on both sides. No vector: who may trace sees that others
 * communicate, and not what.
 */
#pragma once

#include <stdint.h>

#include "wire/packet.h"

/* The program that saw the packet; also the index of its place for a record in the making. */
enum unisono_nic_entry {
  UNISONO_NIC_RECEIVE, /* coming in, by XDP: the verdict is an xdp_action */
  UNISONO_NIC_LEAVE,   /* from a process of this host: the verdict is a tcx_action */
  UNISONO_NIC_SPREAD,  /* came in and goes on to several: the verdict is a tcx_action */
  UNISONO_NIC_ENTRIES
};

struct unisono_nic_trace {
  uint64_t time_ns; /* monotonic, when it was seen */
  uint32_t bytes;   /* of the frame */
  uint32_t lost;    /* records of this processor that found no room since the last that did */
  uint8_t entry;
  int8_t verdict;
  uint16_t reason; /* 1 + enum unisono_nic_counter; 0: passed on, and not counted */
  uint32_t unused;
  struct unisono_packet packet; /* as it was when it was seen; nothing about it has been checked */
};
