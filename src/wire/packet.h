/* SPDX-License-Identifier: BSD-3-Clause
 * The one header of every packet that Unisono sends, in C so that programs in the kernel read the
 * same definition: fixed-width integers, no includes, no calls. On the wire all integers are
 * little-endian; in memory they are the machine's, and unisono_packet_swap() converts, which
 * does nothing on a little-endian machine. The payload follows the header directly, and a datagram
 * holds one packet. Invariant: a packet that unisono_packet_check() accepts is safe to act on if
 * its tag (siphash.h) is right, and not before. docs/reference/wire.md has the same as a table.
 * Pure functions; any thread. */
#ifndef UNISONO_WIRE_PACKET_H
#define UNISONO_WIRE_PACKET_H

typedef __UINT8_TYPE__ unisono_u8;
typedef __UINT16_TYPE__ unisono_u16;
typedef __UINT32_TYPE__ unisono_u32;
typedef __UINT64_TYPE__ unisono_u64;

/* "Un" as the first two bytes of a packet. */
#define UNISONO_PACKET_MAGIC 0x6e55
/* Changes with any change of this file that another version would misread. */
#define UNISONO_PACKET_VERSION 4
#define UNISONO_PACKET_BYTES 72
/* As `target`: all ranks of the job (multicast). */
#define UNISONO_PACKET_GROUP 0xffffffffU
/* As `flag`: no flag is to be raised. As `place`: there is none. */
#define UNISONO_PACKET_NONE 0xffffffffffffffffULL
/* Added to a put's `flag`, a multiple of 8. The word is a counter modulo 2^64, and keeps its value
 * if it has reached or passed `value`. */
#define UNISONO_PACKET_FORWARD 1ULL

/* The kinds of packets, and the meaning of `place`, `flag` and `value` in each.
 *
 * Between two ranks `hop` has a second use. In a put or a get, `communicator` and `hop` are the
 * upper and lower part of a 48-bit sequence number. They acknowledge, without a packet of its own,
 * that all of the target's puts before this number have arrived. In a nack, `hop` is 0 if all
 * before `place` have arrived. In a put or a query to the group it is 1 if this copy goes to one
 * rank by unicast.
 *
 * In an answer, and in a nack for the group, `position` is 1 if the origin's multicasts do not
 * reach the sender. The sender then wants all packets by unicast. In an answer 2 is added if the
 * sender passed over a lost member that the origin did not know to be lost (RepairTree). */
enum unisono_packet_kind {
  /* Writes the payload to offset `place` of the target's memory. Then, if `flag` is not NONE, it
   * writes `value` to the word at offset `flag`. If `flag` is NONE, at least `value` more packets
   * of the same message follow. `position` is the fragment's number in its message. */
  UNISONO_PACKET_PUT = 1,
  /* Packets are missing: bit i of `value` stands for sequence number `place` + i. `flag` is 1 if
   * they were sent to the group, 0 if to this rank. With `hop` 0 the sender lacks nothing before
   * `place`. */
  UNISONO_PACKET_NACK = 2,
  /* The sender's last sequence number to this rank is `place`; it has received up to `value`. With
   * `position` 1 it wants a status in return. `flag` belongs to a search by probes: see PathReport
   * in reliable/path/paths.hpp. `hop`, unless 0: the most bytes of a packet to the group, header
   * included. */
  UNISONO_PACKET_STATUS = 3,
  /* Asks whether every member has reached `value`; `place` says in which counter. `flag` names the
   * members that the sender knows to be lost: a number made of all of them, 0 if there is none. */
  UNISONO_PACKET_QUERY = 4,
  /* Answers the query with sequence number `place`: `value` is the least progress in the sender's
   * part of the tree. */
  UNISONO_PACKET_ANSWER = 5,
  /* To the group: is multicast carried? `value` is 1 if the sender has heard all members' probes.
   * `place`, unless NONE: where its device takes urgent packets (transport/verbs/multicast).
   * To a rank: how long may datagrams be? `value` is the round, `position` says which length. */
  UNISONO_PACKET_PROBE = 6,
  /* Asks the target to put bytes of its memory from offset `place` on to the sender, with `flag`
   * and `value` as in a put. The payload is two 64-bit integers: the target offset and the number
   * of bytes. Ordered like puts. */
  UNISONO_PACKET_GET = 7,
  /* A piece of a packet that is too long for its path: the bytes from `place` on. The packet has
   * `value` bytes with its header. `position` is the length of each piece but the last, `flag` an
   * identifier common to all. The joined packet is handled as if it had arrived whole. */
  UNISONO_PACKET_PIECE = 8,
  UNISONO_PACKET_KINDS = 9 /* one more than the last */
};

/* Why a packet was dropped, in the order in which the checks are made. */
enum unisono_packet_drop {
  UNISONO_DROP_NONE = 0,
  UNISONO_DROP_SHORT,   /* fewer bytes than a header */
  UNISONO_DROP_MAGIC,   /* not ours at all */
  UNISONO_DROP_VERSION, /* another version of this file */
  UNISONO_DROP_KIND,    /* no such kind */
  UNISONO_DROP_LENGTH,  /* `length` is not what follows the header */
  UNISONO_DROP_JOB,     /* another job's */
  UNISONO_DROP_SENDER,  /* no rank of the job, or the receiver itself */
  UNISONO_DROP_TARGET,  /* for another rank */
  UNISONO_DROP_TAG,     /* made without the job's key, or damaged */
  UNISONO_DROP_REPLAY,  /* received before, or too old to know */
  UNISONO_DROP_COUNT
};

/* The tag covers every field before it, and the payload. */
struct unisono_packet {
  unisono_u16 magic;    /*  0 */
  unisono_u8 version;   /*  2 */
  unisono_u8 kind;      /*  3  enum unisono_packet_kind */
  unisono_u32 job;      /*  4  identity of the job: foreign packets are dropped before the tag */
  unisono_u64 sequence; /*  8  of the link from sender to target, or of sender to the group */
  unisono_u32 sender;   /* 16  rank that made this packet and its tag */
  unisono_u32 target;   /* 20  rank, or UNISONO_PACKET_GROUP */
  unisono_u32 origin;   /* 24  rank whose data it carries; the sender, if nothing is forwarded */
  unisono_u32 communicator; /* 28  identity of the communicator in the job */
  unisono_u16 hop;      /* 32  hops since the origin; in concurrent broadcasting log2 of the last */
  unisono_u16 length;   /* 34  bytes of payload */
  unisono_u32 position; /* 36  of this fragment in its message, from 0 */
  unisono_u64 place;    /* 40  see the kinds */
  unisono_u64 flag;     /* 48  see the kinds */
  unisono_u64 value;    /* 56  see the kinds */
  unisono_u64 tag;      /* 64  SipHash-2-4 under the job's key */
};

/* No holes: the compiler's layout is the wire's. 28 bytes of IPv4 and UDP and 175 float64 fill an
 * Ethernet frame of 1500. */
#ifdef __cplusplus
#define UNISONO_PACKET_ASSERT static_assert
#else
#define UNISONO_PACKET_ASSERT _Static_assert
#endif
#define UNISONO_PACKET_AT(field, offset)                                              \
  UNISONO_PACKET_ASSERT(__builtin_offsetof(struct unisono_packet, field) == (offset), \
                        "the offset of " #field)
UNISONO_PACKET_AT(magic, 0);
UNISONO_PACKET_AT(version, 2);
UNISONO_PACKET_AT(kind, 3);
UNISONO_PACKET_AT(job, 4);
UNISONO_PACKET_AT(sequence, 8);
UNISONO_PACKET_AT(sender, 16);
UNISONO_PACKET_AT(target, 20);
UNISONO_PACKET_AT(origin, 24);
UNISONO_PACKET_AT(communicator, 28);
UNISONO_PACKET_AT(hop, 32);
UNISONO_PACKET_AT(length, 34);
UNISONO_PACKET_AT(position, 36);
UNISONO_PACKET_AT(place, 40);
UNISONO_PACKET_AT(flag, 48);
UNISONO_PACKET_AT(value, 56);
UNISONO_PACKET_AT(tag, 64);
UNISONO_PACKET_ASSERT(sizeof(struct unisono_packet) == UNISONO_PACKET_BYTES, "no padding");
UNISONO_PACKET_ASSERT(1500 - 28 - UNISONO_PACKET_BYTES == 175 * 8, "175 float64 in a frame");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define UNISONO_LE16(x) (x)
#define UNISONO_LE32(x) (x)
#define UNISONO_LE64(x) (x)
#else
#define UNISONO_LE16(x) __builtin_bswap16(x)
#define UNISONO_LE32(x) __builtin_bswap32(x)
#define UNISONO_LE64(x) __builtin_bswap64(x)
#endif

/* From the machine's order to the wire's, and back. */
static inline void unisono_packet_swap(struct unisono_packet* packet) {
  packet->magic = UNISONO_LE16(packet->magic);
  packet->job = UNISONO_LE32(packet->job);
  packet->sequence = UNISONO_LE64(packet->sequence);
  packet->sender = UNISONO_LE32(packet->sender);
  packet->target = UNISONO_LE32(packet->target);
  packet->origin = UNISONO_LE32(packet->origin);
  packet->communicator = UNISONO_LE32(packet->communicator);
  packet->hop = UNISONO_LE16(packet->hop);
  packet->length = UNISONO_LE16(packet->length);
  packet->position = UNISONO_LE32(packet->position);
  packet->place = UNISONO_LE64(packet->place);
  packet->flag = UNISONO_LE64(packet->flag);
  packet->value = UNISONO_LE64(packet->value);
  packet->tag = UNISONO_LE64(packet->tag);
}

/* The identity of the receiving rank. */
struct unisono_receiver {
  unisono_u32 job;
  unisono_u32 rank;
  unisono_u32 ranks;
};

/* All checks that need no key. `packet` is in the machine's order, of a datagram of `bytes` bytes.
 * Returns enum unisono_packet_drop; DROP_NONE up to DROP_TARGET. */
static inline int unisono_packet_check(const struct unisono_packet* packet, unisono_u32 bytes,
                                       const struct unisono_receiver* receiver) {
  if (bytes < UNISONO_PACKET_BYTES) return UNISONO_DROP_SHORT;
  if (packet->magic != UNISONO_PACKET_MAGIC) return UNISONO_DROP_MAGIC;
  if (packet->version != UNISONO_PACKET_VERSION) return UNISONO_DROP_VERSION;
  if (packet->kind == 0 || packet->kind >= UNISONO_PACKET_KINDS) return UNISONO_DROP_KIND;
  if (packet->length != bytes - UNISONO_PACKET_BYTES) return UNISONO_DROP_LENGTH;
  if (packet->job != receiver->job) return UNISONO_DROP_JOB;
  if (packet->sender >= receiver->ranks || packet->sender == receiver->rank)
    return UNISONO_DROP_SENDER;
  if (packet->origin >= receiver->ranks) return UNISONO_DROP_SENDER;
  if (packet->target != receiver->rank && packet->target != UNISONO_PACKET_GROUP)
    return UNISONO_DROP_TARGET;
  return UNISONO_DROP_NONE;
}

#endif /* UNISONO_WIRE_PACKET_H */
