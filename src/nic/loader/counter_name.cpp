// SPDX-License-Identifier: BSD-3-Clause
// The names of the program's counters, one for each enumerator, and their kinds.
#include "nic/loader/device.hpp"

namespace unisono::nic {

const char* counter_name(unisono_nic_counter counter) {
  switch (counter) {
    case UNISONO_NIC_FOREIGN:
      return "foreign";
    case UNISONO_NIC_OTHERS_FRAME:
      return "others_frame";
    case UNISONO_NIC_SHORT:
      return "short";
    case UNISONO_NIC_NO_GROUP:
      return "no_group";
    case UNISONO_NIC_BAD_TAG:
      return "bad_tag";
    case UNISONO_NIC_BAD_SENDER:
      return "bad_sender";
    case UNISONO_NIC_STALE:
      return "stale";
    case UNISONO_NIC_MISMATCH:
      return "mismatch";
    case UNISONO_NIC_NO_ROOM:
      return "no_room";
    case UNISONO_NIC_STRAY_DOORBELL:
      return "stray_doorbell";
    case UNISONO_NIC_NOT_YET:
      return "not_yet";
    case UNISONO_NIC_LOST:
      return "lost";
    case UNISONO_NIC_TAKEN_IN:
      return "taken_in";
    case UNISONO_NIC_SENT_UP:
      return "sent_up";
    case UNISONO_NIC_SENT_DOWN:
      return "sent_down";
    case UNISONO_NIC_CAME_DOWN:
      return "came_down";
    case UNISONO_NIC_ASKED:
      return "asked";
    case UNISONO_NIC_ANSWERED:
      return "answered";
    case UNISONO_NIC_QUERIED:
      return "queried";
    case UNISONO_NIC_PASSED_ON:
      return "passed_on";
    case UNISONO_NIC_BLOCK_SENT:
      return "block_sent";
    case UNISONO_NIC_BLOCK_TAKEN:
      return "block_taken";
    case UNISONO_NIC_BLOCK_PASSED:
      return "block_passed";
    case UNISONO_NIC_WOKEN:
      return "woken";
    case UNISONO_NIC_NOT_WOKEN:
      return "not_woken";
    case UNISONO_NIC_COUNTERS:
      break;
  }
  return "unknown";
}

// tables.h has the counters of a kind next to each other.
CounterKind counter_kind(unisono_nic_counter counter) {
  if (counter <= UNISONO_NIC_OTHERS_FRAME) return CounterKind::passed;
  if (counter <= UNISONO_NIC_LOST) return CounterKind::dropped;
  return counter < UNISONO_NIC_WOKEN ? CounterKind::handled : CounterKind::wakeup;
}

const char* counter_kind_name(CounterKind kind) {
  switch (kind) {
    case CounterKind::passed:
      return "passed";
    case CounterKind::dropped:
      return "dropped";
    case CounterKind::handled:
      return "handled";
    case CounterKind::wakeup:
      break;
  }
  return "wakeup";
}

}  // namespace unisono::nic
