/* SPDX-License-Identifier: BSD-3-Clause
 * The memory that the NIC program (BPF) and a rank's process share: the definition of a group, and
 * the state of its operations. Plain C, compiled on both sides, so there is one definition of each
 * field. Nothing about a group is compiled into the program; it is a row here.
 *
 * Each group has two maps of its own, one of slots and one of blocks, so that a process gets access
 * to its group's memory only. An operation with sequence number s uses the slot s mod depth: one
 * word of arrival bits, and a block for each contribution; blocks lie slot by slot. A group is a
 * tree or, if its row has `ranks`, an allgather. The allgather's blocks go singly or, with `gives`,
 * are joined to messages of doubling size.
 *
 * In a tree, bit and block 0 are the own process, 1 + c is child c. Children without room in the
 * arrival word have further words. The run that fills one of those sets its bit in the first. The
 * run that sets the last bit there combines the blocks, own op c0 op c1 ..., in block 0, which
 * later takes the result as well.
 *
 * In an allgather, bit and block o are those of rank o, its origin. An arriving block is stored. It
 * is sent on by the row's route of its origin, whether the own process has called or not; or with
 * the others of a message, when all of them are there. The last setter clears the word and marks
 * the operation as done. `combine` is data that processes exchange besides the block.
 *
 * Stored data answers requests for lost packets. The sum stays in block 0 until the result, which
 * includes it, is there. The result stays until the process posts operation s + depth. It may do so
 * when s + depth / 2 is done. Every rank contributed to that one, and could do so only with the
 * result of s. So no rank can lack a result that was overwritten. The same holds for blocks of an
 * allgather. Others' blocks of s + depth may arrive as soon as the process has posted s + depth /
 * 2; it has read those of s by then.
 *
 * Writers: the process writes block 0 until it sets bit 0, and its bit of `waiting`, which the
 * program clears. A child's block is written by the run that claimed it (block.sequence moved from
 * s - depth to s). The program writes everything else. In an allgather the process writes its own
 * block and, like the program, completes an operation whose last bit it has set. But where blocks
 * are joined the program sets the process's bit, once, and marks that in `summed`.
 */
#pragma once

#include <stdint.h>

#include "wire/siphash.h"

#define UNISONO_NIC_WORDS_MAX 175 /* 1400 bytes: an MTU of 1500 without the headers */
/* An operation's arrival word has the own bit, one for each of the first children, one for each
 * full further word, and one for "taken". */
#define UNISONO_NIC_FIRST_CHILDREN 59
#define UNISONO_NIC_FURTHER_WORDS 3
#define UNISONO_NIC_CHILDREN_MAX (UNISONO_NIC_FIRST_CHILDREN + 64 * UNISONO_NIC_FURTHER_WORDS)
#define UNISONO_NIC_FORWARDS_MAX 251 /* ranks to which one sends a result */
#define UNISONO_NIC_RANKS_MAX 64     /* of an allgather: one arrival word has a bit for each */
#define UNISONO_NIC_TARGETS_MAX 64   /* packets that a rank sends in an allgather */
#define UNISONO_NIC_MESSAGES_MAX 8   /* that a rank sends by doubling; 6 do for 64 ranks */
#define UNISONO_NIC_ROWS_MAX 1024    /* groups of all jobs on a host */
#define UNISONO_NIC_DEPTH_MAX 32     /* slots of a row, of which half are in flight */
#define UNISONO_NIC_WAITERS_MAX 16   /* of a group: processes that may sleep for an operation */

#define UNISONO_NIC_TAKEN (1ULL << 63) /* arrival word: a program run is combining */

/* Kinds of packets (wire/packet.h) that only NIC programs understand; a host drops them as unknown.
 * `sequence` is the operation's number in its group, `position` the contribution's number at the
 * parent. `place` is the way of combining vectors. */
enum unisono_nic_kind {
  UNISONO_NIC_GIVE = 128, /* a contribution, from a child to its parent */
  UNISONO_NIC_RESULT,     /* down from the root; or from a parent to a child that asked */
  UNISONO_NIC_DOORBELL,   /* from the own process to the own program: all arrived, go on */
  UNISONO_NIC_ASK,        /* from the own process to the own program: it is late, ask */
  UNISONO_NIC_ASK_RESULT, /* from a child, which has given this vector and lacks the result */
  UNISONO_NIC_ASK_GIVE,   /* from the parent, which lacks a contribution. The vector has
                             no meaning: it gives a question the length of its answer */
  UNISONO_NIC_QUERY,      /* from the root to all: have you contributed? It is kept, so that a late
                             rank sends at once. From its process to its program: send this */
  /* In an allgather `origin` is the rank of the block; the tag covers it. */
  UNISONO_NIC_BLOCK,     /* sent on unchanged; `sender` is the origin, or the answering rank */
  UNISONO_NIC_ASK_BLOCK, /* to the rank that should have sent the block. `hop` counts the
                            forwarding ranks; the vector has no meaning, as above */
  /* Where blocks are joined, `position` is the number of the message at its receiver, and `value`
   * its blocks. Each block is a word with its length in words and, above, its mark; then its words.
   * All their datagrams have the length of the largest message, so that no frame has to grow. Bytes
   * behind `length` mean nothing. */
  UNISONO_NIC_BLOCKS,
  UNISONO_NIC_ASK_BLOCKS /* to the rank that should have sent it; `hop` as above */
};

/* Contributions must agree in a word. Its lower bits define how they are combined. Its upper bits
 * belong to the processes: a digest of their calls, so that different calls are never combined. */
#define UNISONO_NIC_COMBINE_BITS 8
#define UNISONO_NIC_COMBINE_MASK ((1U << UNISONO_NIC_COMBINE_BITS) - 1)

/* How two vectors are combined, element by element, in words of 64 bits. */
enum unisono_nic_combine {
  UNISONO_NIC_NOTHING = 0, /* a barrier */
  UNISONO_NIC_SUM_INT64,   /* two's complement: unsigned as well */
  UNISONO_NIC_SUM_INT32,
  UNISONO_NIC_SUM_FLOAT64,
  UNISONO_NIC_SUM_FLOAT32,
  UNISONO_NIC_MIN_INT64,
  UNISONO_NIC_MIN_UINT64,
  UNISONO_NIC_MIN_FLOAT64,
  UNISONO_NIC_MIN_INT32,
  UNISONO_NIC_MIN_UINT32,
  UNISONO_NIC_MIN_FLOAT32,
  UNISONO_NIC_MAX_INT64,
  UNISONO_NIC_MAX_UINT64,
  UNISONO_NIC_MAX_FLOAT64,
  UNISONO_NIC_MAX_INT32,
  UNISONO_NIC_MAX_UINT32,
  UNISONO_NIC_MAX_FLOAT32,
  UNISONO_NIC_AND, /* of bits, so of any type */
  UNISONO_NIC_OR,
  UNISONO_NIC_XOR,
  UNISONO_NIC_SUM_INT16,
  UNISONO_NIC_SUM_INT8,
  UNISONO_NIC_SUM_FLOAT16,
  UNISONO_NIC_SUM_BFLOAT16,
  UNISONO_NIC_MIN_INT16,
  UNISONO_NIC_MIN_INT8,
  UNISONO_NIC_MIN_UINT16,
  UNISONO_NIC_MIN_UINT8,
  UNISONO_NIC_MIN_FLOAT16,
  UNISONO_NIC_MIN_BFLOAT16,
  UNISONO_NIC_MAX_INT16,
  UNISONO_NIC_MAX_INT8,
  UNISONO_NIC_MAX_UINT16,
  UNISONO_NIC_MAX_UINT8,
  UNISONO_NIC_MAX_FLOAT16,
  UNISONO_NIC_MAX_BFLOAT16,
  UNISONO_NIC_PRODUCT_INT64, /* signed or not, as sums */
  UNISONO_NIC_PRODUCT_INT32,
  UNISONO_NIC_PRODUCT_INT16,
  UNISONO_NIC_PRODUCT_INT8,
  UNISONO_NIC_PRODUCT_FLOAT64,
  UNISONO_NIC_PRODUCT_FLOAT32,
  UNISONO_NIC_PRODUCT_FLOAT16,
  UNISONO_NIC_PRODUCT_BFLOAT16,
  UNISONO_NIC_BOTH_INT64, /* logical operators: and, ... */
  UNISONO_NIC_BOTH_INT32,
  UNISONO_NIC_BOTH_INT16,
  UNISONO_NIC_BOTH_INT8,
  UNISONO_NIC_EITHER_INT64, /* ... or, ... */
  UNISONO_NIC_EITHER_INT32,
  UNISONO_NIC_EITHER_INT16,
  UNISONO_NIC_EITHER_INT8,
  UNISONO_NIC_ONE_INT64, /* ... and exclusive or */
  UNISONO_NIC_ONE_INT32,
  UNISONO_NIC_ONE_INT16,
  UNISONO_NIC_ONE_INT8,
  UNISONO_NIC_COMBINES
};

/* The fate of packets: an index into the counters, one set for each processor. Every exit of the
 * program counts one. */
enum unisono_nic_counter {
  UNISONO_NIC_FOREIGN,        /* passed on: not a packet for this program */
  UNISONO_NIC_OTHERS_FRAME,   /* passed on: another address; a bridge floods such frames */
  UNISONO_NIC_SHORT,          /* dropped: truncated, or its length field is wrong */
  UNISONO_NIC_NO_GROUP,       /* dropped: no such job and communicator here */
  UNISONO_NIC_BAD_TAG,        /* dropped: not made with the job's key */
  UNISONO_NIC_BAD_SENDER,     /* dropped: not from a child or the root, or not to this rank */
  UNISONO_NIC_STALE,          /* dropped: seen before, or outside of the window of operations */
  UNISONO_NIC_MISMATCH,       /* dropped: contributions that differ in length or operator */
  UNISONO_NIC_NO_ROOM,        /* dropped: the frame could not be cut or rewritten */
  UNISONO_NIC_STRAY_DOORBELL, /* dropped: a doorbell packet for an operation that is not complete */
  UNISONO_NIC_NOT_YET,        /* dropped: a question for data that is late here, not lost */
  UNISONO_NIC_LOST,           /* dropped: because a test wants losses */
  UNISONO_NIC_TAKEN_IN,       /* a contribution that was not the last */
  UNISONO_NIC_SENT_UP,        /* a sum that went to the parent */
  UNISONO_NIC_SENT_DOWN,      /* a result that went out from here */
  UNISONO_NIC_CAME_DOWN,      /* a result that was written to this host's memory */
  UNISONO_NIC_ASKED,          /* a question of the own process that went out */
  UNISONO_NIC_ANSWERED,       /* a question that was answered from stored data */
  UNISONO_NIC_QUERIED,        /* a query that went out from the root */
  UNISONO_NIC_PASSED_ON,      /* a question that was forwarded */
  UNISONO_NIC_BLOCK_SENT,     /* a packet with the own block, alone or joined with others */
  UNISONO_NIC_BLOCK_TAKEN,    /* another rank's block that was written to this host's memory */
  UNISONO_NIC_BLOCK_PASSED,   /* a packet with another rank's block, sent on unchanged */
  UNISONO_NIC_WOKEN,          /* no packet: a waiter that slept was woken */
  UNISONO_NIC_NOT_WOKEN,      /* ... or was not, because its ring is full */
  UNISONO_NIC_COUNTERS
};

#define UNISONO_NIC_RETURNS_VALUES 1U /* row.flags: results come down with their values */
#define UNISONO_NIC_ROOT 2U

/* Addresses of packets. */
struct unisono_nic_address {
  uint8_t mac[6];
  uint16_t port; /* UDP, network order */
  uint32_t ipv4; /* network order */
};

/* As a target: all other ranks, by one multicast. */
#define UNISONO_NIC_TO_ALL 255

/* The handling of one origin's block at a rank of an allgather. */
struct unisono_nic_route {
  uint8_t from;    /* rank that sends it, and gets questions; unused for the own block */
  uint8_t first;   /* of its targets in the row's list ... */
  uint8_t targets; /* ... and how many */
  uint8_t unused;
};

/* Blocks that are sent in one packet, in the order of their origins. */
struct unisono_nic_message {
  uint64_t blocks; /* bit o: that of rank o */
  uint8_t peer;    /* the rank that receives or sends it */
  uint8_t slot;    /* its number at the receiver */
  uint8_t count;   /* of the blocks */
  uint8_t first;   /* of their origins */
  uint32_t unused;
};

/* Identifies the group of a packet. */
struct unisono_nic_id {
  uint32_t job;
  uint32_t communicator;
};

/* The secret that a group's process writes in place of the tag into packets for its own program
 * (DOORBELL, ASK and its own QUERY). It is derived from the group's key and reveals nothing of it.
 * So checking a doorbell packet costs one comparison, and processes without the key cannot make
 * one. */
static inline uint64_t unisono_nic_secret(const struct unisono_key* key) {
  struct unisono_siphash_state hash = unisono_siphash_start(key);
  unisono_siphash_word(&hash, 0x6c6c6562726f6f64ULL); /* "doorbell" */
  return unisono_siphash_end(&hash, 0, 8);
}

/* Settings that the loader passes to the program, besides the groups. */
struct unisono_nic_host {
  uint32_t trace_every; /* one of this many packets is recorded; 0: none */
  /* The address of packets to this host. The last group's `own`; zero before the first. */
  struct unisono_nic_address own;
};

/* A group, as this host's NIC sees it. Written before its key is entered, and not changed
 * afterwards. */
struct unisono_nic_row {
  struct unisono_nic_id id;
  struct unisono_key key;
  uint64_t secret; /* unisono_nic_secret() of the key, filled in by the loader */
  uint32_t rank;
  uint32_t flags;
  uint32_t depth; /* slots: a power of two; half as many operations may be in flight */
  uint32_t index; /* of this row, and of the group's maps of slots and of blocks */
  uint32_t children;
  uint32_t first_slot;  /* numbers in packets: of the first child's contribution here ... */
  uint32_t own_slot;    /* ... and of the own one at the parent */
  uint32_t parent;      /* rank; unused at the root */
  uint32_t down_source; /* rank that sends results */
  struct unisono_nic_address own;
  struct unisono_nic_address up;   /* the parent; unused at the root */
  struct unisono_nic_address down; /* the multicast group in which the root sends */
  uint32_t interface;              /* index; clones of results leave by it */
  uint32_t forwards;               /* clones to send, instead of one packet to `down` */
  uint32_t loss;    /* packets to lose, of 2^32; only programs loaded for tests look at it */
  uint32_t ranks;   /* of an allgather; 0: this is a tree */
  uint32_t waiters; /* rings of the group: processes that may sleep */
  uint32_t gives;   /* messages of an allgather whose blocks are joined; 0: they go singly */
  uint32_t takes;
  uint32_t largest; /* most blocks of a message, the same at all ranks */
  uint32_t child_rank[UNISONO_NIC_CHILDREN_MAX];
  struct unisono_nic_address child[UNISONO_NIC_CHILDREN_MAX];
  struct unisono_nic_address forward[UNISONO_NIC_FORWARDS_MAX];
  /* For an allgather: routes by origin, the targets of all routes, and addresses by rank. */
  struct unisono_nic_route route[UNISONO_NIC_RANKS_MAX];
  uint8_t target[UNISONO_NIC_TARGETS_MAX];
  struct unisono_nic_address at[UNISONO_NIC_RANKS_MAX];
  /* ... by message; received ones by their numbers. Each sent message contains the own block. */
  struct unisono_nic_message give[UNISONO_NIC_MESSAGES_MAX];
  struct unisono_nic_message take[UNISONO_NIC_MESSAGES_MAX];
};

/* Blocks that an operation has. */
static inline uint32_t unisono_nic_blocks(const struct unisono_nic_row* row) {
  return row->ranks != 0 ? row->ranks : row->children + 1;
}

/* Children that have no bit in the first arrival word. */
static inline uint32_t unisono_nic_further_children(const struct unisono_nic_row* row) {
  return row->children > UNISONO_NIC_FIRST_CHILDREN ? row->children - UNISONO_NIC_FIRST_CHILDREN
                                                    : 0;
}

/* A further arrival word that is full; 0: it is not used. */
static inline uint64_t unisono_nic_all_further(const struct unisono_nic_row* row, uint32_t word) {
  const uint32_t children = unisono_nic_further_children(row);
  if (children <= 64 * word) return 0;
  return children >= 64 * word + 64 ? ~0ULL : (1ULL << (children & 63)) - 1;
}

/* The bit of a further arrival word in the first. */
static inline uint64_t unisono_nic_further_bit(uint32_t word) {
  return 2ULL << (UNISONO_NIC_FIRST_CHILDREN + word);
}

/* The arrival word of an operation that has all. */
static inline uint64_t unisono_nic_all_arrived(const struct unisono_nic_row* row) {
  if (row->ranks != 0) return ~0ULL >> (64 - row->ranks);
  const uint32_t further = unisono_nic_further_children(row);
  if (further == 0) return (2ULL << row->children) - 1;
  return unisono_nic_further_bit((further + 63) / 64) - 1;
}

/* Words that a datagram of a group whose blocks are joined has room for: `words` in each block. */
static inline uint32_t unisono_nic_room(const struct unisono_nic_row* row, uint32_t words) {
  return row->largest * (1 + words);
}

/* An operation in flight. On cache lines of its own. */
struct unisono_nic_slot {
  uint64_t arrived; /* bit 0: the own process; bit 1 + c: child c; then, of further words, those
                       that are full; and UNISONO_NIC_TAKEN. In an allgather, bit o: rank o */
  uint64_t claimed; /* sequence number whose result is being written to block 0 */
  uint64_t done;    /* ... and is there, complete */
  uint64_t broken;  /* sequence number of an operation whose contributions do not match */
  uint64_t waiting; /* bit w: waiter w sleeps, and wants to be woken when this ends */
  uint64_t done_ns; /* when the result was there, by the monotonic clock */
  uint64_t summed;  /* sequence number whose contributions have been combined in block 0 */
  uint64_t queried; /* sequence number that the root has asked for */
  uint64_t further[UNISONO_NIC_FURTHER_WORDS]; /* of more children: bit by bit, word by word */
  uint64_t unused[5];
};

/* A contribution. */
struct unisono_nic_block {
  uint64_t sequence; /* of the operation that it is for */
  uint32_t combine;  /* enum unisono_nic_combine, and a digest above UNISONO_NIC_COMBINE_BITS */
  uint32_t words;
  uint64_t data[UNISONO_NIC_WORDS_MAX];
};
