/* SPDX-License-Identifier: BSD-3-Clause
 * Frames inside the NIC program: finding the packet in one, checking its tag, and making one from a
 * block in the memory of the frame that is there. `data` and `end` are those of XDP or tc; the
 * verifier wants each access compared with `end`. For nic.bpf.c only.
 */
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "nic/program/bpf.bpf.h"
#include "nic/program/tables.h"
#include "wire/packet.h"
#include "wire/siphash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packets are read as they lie");

#define TCX_NEXT (-1) /* enum tcx_action_base of newer kernels' headers */
#define TCX_DROP 2
#define TCX_REDIRECT 7

/* Packets of the own process and clones leave by a queueing discipline, with this priority.
 * Disciplines that look at priorities send them ahead of ordinary traffic. It is
 * TC_PRIO_INTERACTIVE, the highest that any user may give a socket, so nobody gains a right. */
#define UNISONO_NIC_PRIORITY 6

#define UNISONO_NIC_HEADS (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define UNISONO_NIC_PAYLOAD (UNISONO_NIC_HEADS + sizeof(struct unisono_packet))

/* The packet in an Ethernet frame of IPv4 and UDP without options and fragments, or NULL. */
UNISONO_INLINE struct unisono_packet* find_packet(void* data, void* end) {
  const struct ethhdr* ethernet = data;
  const struct iphdr* ip = (void*)(ethernet + 1);
  const struct udphdr* udp = (void*)(ip + 1);
  struct unisono_packet* packet = (void*)(udp + 1);
  if ((void*)(packet + 1) > end) return 0;
  if (ethernet->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_UDP) return 0;
  if (ip->version != 4 || ip->ihl != 5 || (ip->frag_off & bpf_htons(0x3FFF)) != 0) return 0;
  if (packet->magic != UNISONO_PACKET_MAGIC || packet->version != UNISONO_PACKET_VERSION) return 0;
  return packet;
}

/* Ethernet addresses have even offsets, in frames as in tables. */
UNISONO_INLINE int is_same_mac(const void* left, const uint8_t* right) {
  const uint16_t* a = left;
  const uint16_t* b = (const uint16_t*)right;
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* Whether a frame in which find_packet() has found one goes to this address, in all of its layers.
 * A host may forward frames and datagrams of others, and other services have other ports. */
UNISONO_INLINE int goes_to(const void* data, const struct unisono_nic_address* to) {
  const struct iphdr* ip = data + sizeof(struct ethhdr);
  const struct udphdr* udp = (const void*)(ip + 1);
  return is_same_mac(data, to->mac) && ip->daddr == to->ipv4 && udp->dest == to->port;
}

/* Whether the frame is for the row's group: this host's own address or the group's. */
UNISONO_INLINE int is_addressed(const void* data, const struct unisono_nic_row* row) {
  return goes_to(data, &row->own) || goes_to(data, &row->down);
}

/* Whether the frame was sent from this address. */
UNISONO_INLINE int comes_from(const void* data, const struct unisono_nic_address* from) {
  const struct ethhdr* ethernet = data;
  const struct udphdr* udp = data + sizeof(*ethernet) + sizeof(struct iphdr);
  return is_same_mac(ethernet->h_source, from->mac) && udp->dest == from->port;
}

/* Whether unisono_receive has passed the frame on to unisono_spread. Such frames from other hosts
 * do not get there: unisono_receive drops those to the row's own address. */
UNISONO_INLINE int is_to_oneself(const void* data, const struct unisono_nic_row* row) {
  const struct ethhdr* ethernet = data;
  return goes_to(data, &row->own) && is_same_mac(ethernet->h_source, row->own.mac);
}

/* Whether all of the vector is there, in whole words. */
UNISONO_INLINE int is_whole(const struct unisono_packet* packet, const void* end) {
  return (packet->length & 7) == 0 && packet->length <= UNISONO_NIC_WORDS_MAX * 8 &&
         (const void*)(packet + 1) + packet->length <= end;
}

/* The tag that the packet in the frame should have. 0: the frame is shorter than its packet says.
 */
UNISONO_INLINE int find_tag(const void* data, const void* end, const struct unisono_nic_row* row,
                            uint64_t* tag) {
  const struct unisono_packet* packet = data + UNISONO_NIC_HEADS;
  const uint64_t* payload = (const uint64_t*)(packet + 1);
  if ((const void*)payload > end) return 0;
  const uint32_t words = packet->length / 8;
  struct unisono_siphash_state hash = unisono_siphash_start(&row->key);
  unisono_siphash_header(&hash, packet);
  for (uint32_t i = 0; i < UNISONO_NIC_WORDS_MAX; ++i) {
    if (i >= words) break;
    if ((const void*)(payload + i + 1) > end) return 0;
    unisono_siphash_word(&hash, payload[i]);
  }
  *tag = unisono_siphash_end(&hash, 0, UNISONO_PACKET_BYTES - 8 + words * 8);
  return 1;
}

/* The verifier follows the loop over all words turn by turn, and looks at a global function once.
 * So all tags of a program are found by one, that of its kind of frames. */
UNISONO_GLOBAL int find_tag_received(struct xdp_md* context, const struct unisono_nic_row* row,
                                     uint64_t* tag) {
  if (!row || !tag) return 0;
  return find_tag((void*)(long)context->data, (void*)(long)context->data_end, row, tag);
}

UNISONO_GLOBAL int find_tag_leaving(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                    uint64_t* tag) {
  if (!row || !tag) return 0;
  return find_tag((void*)(long)frame->data, (void*)(long)frame->data_end, row, tag);
}

/* Whether the tag of the packet in the received frame fits. */
UNISONO_INLINE int received_is_genuine(struct xdp_md* context, const struct unisono_packet* packet,
                                       const struct unisono_nic_row* row) {
  uint64_t tag = 0;
  return find_tag_received(context, row, &tag) && unisono_tag_equal(tag, packet->tag);
}

UNISONO_INLINE int leaving_is_genuine(struct __sk_buff* frame, const struct unisono_packet* packet,
                                      const struct unisono_nic_row* row) {
  uint64_t tag = 0;
  return find_tag_leaving(frame, row, &tag) && unisono_tag_equal(tag, packet->tag);
}

/* Writes the tag over all that the frame has. */
UNISONO_INLINE int seal_received(struct xdp_md* context, const struct unisono_nic_row* row) {
  uint64_t tag = 0;
  if (!find_tag_received(context, row, &tag)) return 0;
  struct unisono_packet* packet = (void*)(long)context->data + UNISONO_NIC_HEADS;
  if ((void*)(packet + 1) > (void*)(long)context->data_end) return 0;
  packet->tag = tag;
  return 1;
}

UNISONO_INLINE int seal_leaving(struct __sk_buff* frame, const struct unisono_nic_row* row) {
  uint64_t tag = 0;
  if (!find_tag_leaving(frame, row, &tag)) return 0;
  struct unisono_packet* packet = (void*)(long)frame->data + UNISONO_NIC_HEADS;
  if ((void*)(packet + 1) > (void*)(long)frame->data_end) return 0;
  packet->tag = tag;
  return 1;
}

/* Copies words between a frame and memory; `in_frame` is that of the two which is in the frame. One
 * comparison with its end is for several words. 0: the frame ends before. */
UNISONO_INLINE int copy_words(uint64_t* to, const uint64_t* from, const uint64_t* in_frame,
                              const void* end, uint32_t words) {
  uint32_t i = 0;
  for (; i < UNISONO_NIC_WORDS_MAX; i += UNISONO_AT_ONCE) {
    if (i + UNISONO_AT_ONCE > words) break;
    if ((const void*)(in_frame + i + UNISONO_AT_ONCE) > end) return 0;
    _Pragma("clang loop unroll(full)") for (uint32_t j = 0; j < UNISONO_AT_ONCE; ++j) {
      to[i + j] = from[i + j];
    }
  }
  for (; i < UNISONO_NIC_WORDS_MAX; ++i) {
    if (i >= words) break;
    if ((const void*)(in_frame + i + 1) > end) return 0;
    to[i] = from[i];
  }
  return 1;
}

UNISONO_INLINE uint16_t ip_checksum(const struct iphdr* ip) {
  const uint16_t* words = (const uint16_t*)ip;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < sizeof(*ip) / 2; ++i) sum += words[i];
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return (uint16_t)~sum;
}

UNISONO_INLINE void write_addresses(void* data, const struct unisono_nic_row* row,
                                    const struct unisono_nic_address* to, uint32_t bytes) {
  struct ethhdr* ethernet = data;
  struct iphdr* ip = (void*)(ethernet + 1);
  struct udphdr* udp = (void*)(ip + 1);
  const uint32_t udp_bytes = sizeof(*udp) + sizeof(struct unisono_packet) + bytes;
  __builtin_memcpy(ethernet->h_dest, to->mac, ETH_ALEN);
  __builtin_memcpy(ethernet->h_source, row->own.mac, ETH_ALEN);
  ethernet->h_proto = bpf_htons(ETH_P_IP);
  *(uint32_t*)ip = bpf_htonl(0x45000000 | (sizeof(*ip) + udp_bytes)); /* version to total length */
  ip->id = 0;
  ip->frag_off = bpf_htons(0x4000); /* not to be cut */
  ip->ttl = 64;
  ip->protocol = IPPROTO_UDP;
  ip->check = 0;
  ip->saddr = row->own.ipv4;
  ip->daddr = to->ipv4;
  ip->check = ip_checksum(ip);
  udp->source = row->own.port;
  udp->dest = to->port;
  udp->len = bpf_htons(udp_bytes);
  udp->check = 0; /* legal in IPv4; the tag says more */
}

/* An outgoing packet and its target. A value without pointers, for global functions. */
struct outgoing {
  uint64_t sequence;
  uint32_t kind; /* enum unisono_nic_kind */
  uint32_t target;
  uint32_t origin; /* rank whose data it carries, or whose data it asks for */
  uint32_t words;  /* of the block */
  uint32_t hop;
  struct unisono_nic_address to;
};

/* The common part of all packets that this rank makes. */
UNISONO_INLINE void write_identity(struct unisono_packet* packet,
                                   const struct unisono_nic_row* row) {
  packet->magic = UNISONO_PACKET_MAGIC;
  packet->version = UNISONO_PACKET_VERSION;
  packet->job = row->id.job;
  packet->communicator = row->id.communicator;
  packet->sender = row->rank;
  packet->flag = UNISONO_PACKET_NONE;
}

/* Turns the frame, which has the right length, into one with the block's first words, all but its
 * tag. The tag is that of the copied words, so a concurrent change cannot invalidate it. */
UNISONO_INLINE int write_frame(void* data, void* end, const struct unisono_nic_row* row,
                               const struct unisono_nic_block* block, const struct outgoing* out) {
  const uint32_t words = out->words;
  struct unisono_packet* packet = data + UNISONO_NIC_HEADS;
  uint64_t* payload = (uint64_t*)(packet + 1);
  if ((void*)payload > end) return 0;
  write_addresses(data, row, &out->to, words * 8);
  write_identity(packet, row);
  packet->kind = out->kind;
  packet->sequence = out->sequence;
  packet->target = out->target;
  packet->origin = out->origin;
  packet->hop = out->hop;
  packet->length = words * 8;
  packet->position = row->own_slot;
  packet->place = block->combine;
  packet->value = 0;
  return copy_words(payload, block->data, payload, end, words);
}

/* Copies the received packet's vector to the block. Its length has been checked with its tag. */
UNISONO_GLOBAL int copy_received(struct xdp_md* context, struct unisono_nic_block* block) {
  void* end = (void*)(long)context->data_end;
  const struct unisono_packet* packet = (void*)(long)context->data + UNISONO_NIC_HEADS;
  if (!block || (void*)(packet + 1) > end) return 0;
  const uint64_t* payload = (const uint64_t*)(packet + 1);
  return copy_words(block->data, payload, payload, end, packet->length / 8);
}

/* Turns the received frame into one with the block's contents, of its length. */
UNISONO_GLOBAL int rewrite_received(struct xdp_md* context, const struct unisono_nic_row* row,
                                    const struct unisono_nic_block* block,
                                    const struct outgoing* out) {
  if (!row || !block || !out || out->words > UNISONO_NIC_WORDS_MAX) return 0;
  const int excess =
      (int)bpf_xdp_get_buff_len(context) - (int)(UNISONO_NIC_PAYLOAD + out->words * 8);
  if (excess != 0 && bpf_xdp_adjust_tail(context, -excess) != 0) return 0;
  return write_frame((void*)(long)context->data, (void*)(long)context->data_end, row, block, out) &&
         seal_received(context, row);
}

/* The same for an outgoing frame, which has its length. */
UNISONO_GLOBAL int rewrite_leaving(struct __sk_buff* frame, const struct unisono_nic_row* row,
                                   const struct unisono_nic_block* block,
                                   const struct outgoing* out) {
  if (!row || !block || !out) return 0;
  return write_frame((void*)(long)frame->data, (void*)(long)frame->data_end, row, block, out) &&
         seal_leaving(frame, row);
}

/* Makes the frame as long as `out` needs it. */
UNISONO_INLINE int make_room(struct __sk_buff* frame, const struct outgoing* out) {
  const uint32_t bytes = UNISONO_NIC_PAYLOAD + out->words * 8;
  return out->words <= UNISONO_NIC_WORDS_MAX && bpf_skb_change_tail(frame, bytes, 0) == 0 &&
         bpf_skb_pull_data(frame, bytes) == 0;
}
