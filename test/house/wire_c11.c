/* SPDX-License-Identifier: BSD-3-Clause
 * The headers of wire/ are C11 without includes, and what a program in the kernel needs of them
 * needs no C library: compiled here as pedantic C and by wire_bpf_test.py for BPF, never run. */
#include "wire/siphash.h"

_Static_assert(UNISONO_PACKET_BYTES == 72, "the header does not grow by chance");
_Static_assert(UNISONO_PACKET_PUT == 1, "kinds do not move");
_Static_assert(UNISONO_DROP_REPLAY == 10, "reasons do not move");

/* A whole check, with a payload of up to 1400 bytes that is proved to be there word by word. */
int wire_c11_check(const struct unisono_packet* packet, const unisono_u64* payload,
                   const unisono_u64* end, const struct unisono_key* key,
                   const struct unisono_receiver* receiver);
int wire_c11_check(const struct unisono_packet* packet, const unisono_u64* payload,
                   const unisono_u64* end, const struct unisono_key* key,
                   const struct unisono_receiver* receiver) {
  const unisono_u32 bytes = UNISONO_PACKET_BYTES + (unisono_u32)packet->length;
  const int drop = unisono_packet_check(packet, bytes, receiver);
  if (drop != UNISONO_DROP_NONE) return drop;
  struct unisono_siphash_state state = unisono_siphash_start(key);
  unisono_siphash_header(&state, packet);
  for (int i = 0; i < 1400 / 8; ++i) {
    if (payload + i + 1 > end) break;
    unisono_siphash_word(&state, UNISONO_LE64(payload[i]));
  }
  const unisono_u64 tag = unisono_siphash_end(&state, 0, bytes - 8);
  return unisono_tag_equal(tag, packet->tag) ? UNISONO_DROP_NONE : UNISONO_DROP_TAG;
}
