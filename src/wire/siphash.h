/* SPDX-License-Identifier: BSD-3-Clause
 * SipHash-2-4 with 64 bits of output and a key of 128: the tag of a packet, and proof of a key
 * elsewhere. In C, without includes besides packet.h, so that programs in the kernel use the same:
 * they feed words themselves (unisono_siphash_word), as a packet has to be bounded word by word
 * there; user space calls unisono_packet_tag(). Pure functions; any thread.
 * Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012, section 2. */
#ifndef UNISONO_WIRE_SIPHASH_H
#define UNISONO_WIRE_SIPHASH_H

#include "wire/packet.h"

struct unisono_key {
  unisono_u64 low;  /* bytes 0 to 7, little-endian */
  unisono_u64 high; /* bytes 8 to 15 */
};

struct unisono_siphash_state {
  unisono_u64 v0, v1, v2, v3;
};

#define UNISONO_ROTATE(x, bits) (((x) << (bits)) | ((x) >> (64 - (bits))))

static inline void unisono_siphash_round(struct unisono_siphash_state* s) {
  s->v0 += s->v1;
  s->v2 += s->v3;
  s->v1 = UNISONO_ROTATE(s->v1, 13) ^ s->v0;
  s->v3 = UNISONO_ROTATE(s->v3, 16) ^ s->v2;
  s->v0 = UNISONO_ROTATE(s->v0, 32);
  s->v2 += s->v1;
  s->v0 += s->v3;
  s->v1 = UNISONO_ROTATE(s->v1, 17) ^ s->v2;
  s->v3 = UNISONO_ROTATE(s->v3, 21) ^ s->v0;
  s->v2 = UNISONO_ROTATE(s->v2, 32);
}

static inline struct unisono_siphash_state unisono_siphash_start(const struct unisono_key* key) {
  struct unisono_siphash_state s;
  s.v0 = 0x736f6d6570736575ULL ^ key->low;
  s.v1 = 0x646f72616e646f6dULL ^ key->high;
  s.v2 = 0x6c7967656e657261ULL ^ key->low;
  s.v3 = 0x7465646279746573ULL ^ key->high;
  return s;
}

/* Eight bytes of the message, as a little-endian number. */
static inline void unisono_siphash_word(struct unisono_siphash_state* s, unisono_u64 word) {
  s->v3 ^= word;
  unisono_siphash_round(s);
  unisono_siphash_round(s);
  s->v0 ^= word;
}

/* After the last word. */
static inline unisono_u64 unisono_siphash_result(struct unisono_siphash_state* s) {
  s->v2 ^= 0xff;
  unisono_siphash_round(s);
  unisono_siphash_round(s);
  unisono_siphash_round(s);
  unisono_siphash_round(s);
  return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* `rest`: the 0 to 7 bytes after the last whole word, as a little-endian number; `length`: bytes of
 * the whole message. */
static inline unisono_u64 unisono_siphash_end(struct unisono_siphash_state* s, unisono_u64 rest,
                                              unisono_u64 length) {
  unisono_siphash_word(s, rest | length << 56);
  return unisono_siphash_result(s);
}

/* The header's words before its tag. `packet` in the machine's order. */
static inline void unisono_siphash_header(struct unisono_siphash_state* s,
                                          const struct unisono_packet* packet) {
  unisono_siphash_word(s, (unisono_u64)packet->magic | (unisono_u64)packet->version << 16 |
                              (unisono_u64)packet->kind << 24 | (unisono_u64)packet->job << 32);
  unisono_siphash_word(s, packet->sequence);
  unisono_siphash_word(s, (unisono_u64)packet->sender | (unisono_u64)packet->target << 32);
  unisono_siphash_word(s, (unisono_u64)packet->origin | (unisono_u64)packet->communicator << 32);
  unisono_siphash_word(s, (unisono_u64)packet->hop | (unisono_u64)packet->length << 16 |
                              (unisono_u64)packet->position << 32);
  unisono_siphash_word(s, packet->place);
  unisono_siphash_word(s, packet->flag);
  unisono_siphash_word(s, packet->value);
}

/* Constant time, so that an attacker cannot learn how many bits of a forged tag are right. */
static inline int unisono_tag_equal(unisono_u64 left, unisono_u64 right) {
  const unisono_u64 difference = left ^ right;
  return (int)(1 & ((difference - 1) & ~difference) >> 63);
}

/* The rest is for user space, where memory needs no proof before each read. */
#ifndef __bpf__

static inline unisono_u64 unisono_load_word(const unsigned char* bytes) {
  unisono_u64 word;
  __builtin_memcpy(&word, bytes, 8);
  return UNISONO_LE64(word);
}

/* Feeds all of `bytes` but the last length % 8, and returns those. */
static inline unisono_u64 unisono_siphash_words(struct unisono_siphash_state* s,
                                                const unsigned char* bytes, unisono_u64 length) {
  const unsigned char* const end = bytes + (length & ~7ULL);
  for (; bytes != end; bytes += 8) unisono_siphash_word(s, unisono_load_word(bytes));
  unisono_u64 rest = 0;
  for (unisono_u64 i = 0; i < (length & 7); ++i) rest |= (unisono_u64)bytes[i] << (8 * i);
  return rest;
}

static inline unisono_u64 unisono_siphash(const struct unisono_key* key, const void* bytes,
                                          unisono_u64 length) {
  struct unisono_siphash_state s = unisono_siphash_start(key);
  const unisono_u64 rest = unisono_siphash_words(&s, (const unsigned char*)bytes, length);
  return unisono_siphash_end(&s, rest, length);
}

/* The value of `tag`: the hash of the header without it, then of the `packet->length` bytes of
 * payload. */
static inline unisono_u64 unisono_packet_tag(const struct unisono_key* key,
                                             const struct unisono_packet* packet,
                                             const void* payload) {
  struct unisono_siphash_state s = unisono_siphash_start(key);
  unisono_siphash_header(&s, packet);
  const unisono_u64 rest = unisono_siphash_words(&s, (const unsigned char*)payload, packet->length);
  return unisono_siphash_end(&s, rest, UNISONO_PACKET_BYTES - 8 + (unisono_u64)packet->length);
}

#endif /* !__bpf__ */

#endif /* UNISONO_WIRE_SIPHASH_H */
