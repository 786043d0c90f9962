// SPDX-License-Identifier: BSD-3-Clause
// Right schedules, written by hand in the text form: one of each collective and of each trait that
// the proofs look at (forwarding, scratch, order of ranks, multicast, several blocks). Tests prove
// them, and break them.
#pragma once

#include <string_view>

namespace unisono::check {

inline constexpr std::string_view kBarrierDissemination = R"(
schedule barrier ranks 3 rank 0 count 0
slot 0 from 2 count 0
slot 1 from 1 count 0
op 0 send input[0:0] to 1 slot 0
op 1 wait slot 0
op 2 send input[0:0] to 2 slot 1 after 1
op 3 wait slot 1

schedule barrier ranks 3 rank 1 count 0
slot 0 from 0 count 0
slot 1 from 2 count 0
op 0 send input[0:0] to 2 slot 0
op 1 wait slot 0
op 2 send input[0:0] to 0 slot 1 after 1
op 3 wait slot 1

schedule barrier ranks 3 rank 2 count 0
slot 0 from 1 count 0
slot 1 from 0 count 0
op 0 send input[0:0] to 0 slot 0
op 1 wait slot 0
op 2 send input[0:0] to 1 slot 1 after 1
op 3 wait slot 1
)";

// Ranks 1 and 2 report to 0, which lets them go: every order matters.
inline constexpr std::string_view kBarrierGather = R"(
schedule barrier ranks 3 rank 0 count 0
slot 0 from 1 count 0
slot 1 from 2 count 0
op 0 wait slot 0
op 1 wait slot 1
op 2 multicast input[0:0] to 1 slot 0, 2 slot 0 after 0 1

schedule barrier ranks 3 rank 1 count 0
slot 0 from 0 count 0
op 0 send input[0:0] to 0 slot 0
op 1 wait slot 0

schedule barrier ranks 3 rank 2 count 0
slot 0 from 0 count 0
op 0 send input[0:0] to 0 slot 1
op 1 wait slot 0
)";

inline constexpr std::string_view kBroadcastMulticast = R"(
schedule broadcast ranks 3 rank 0 count 4 root 1
slot 0 from 1 count 4
op 0 wait slot 0
op 1 copy output[0:4] = slot 0[0:4] after 0

schedule broadcast ranks 3 rank 1 count 4 root 1
op 0 multicast input[0:4] to 0 slot 0, 2 slot 0

schedule broadcast ranks 3 rank 2 count 4 root 1
slot 0 from 1 count 4
op 0 wait slot 0
op 1 copy output[0:4] = slot 0[0:4] after 0
)";

// In two halves, from 1 to 2 to 0.
inline constexpr std::string_view kBroadcastChain = R"(
schedule broadcast ranks 3 rank 0 count 4 root 1
slot 0 from 2 count 2
slot 1 from 2 count 2
op 0 wait slot 0
op 1 copy output[0:2] = slot 0[0:2] after 0
op 2 wait slot 1
op 3 copy output[2:4] = slot 1[0:2] after 2

schedule broadcast ranks 3 rank 1 count 4 root 1
op 0 send input[0:2] to 2 slot 0
op 1 send input[2:4] to 2 slot 1

schedule broadcast ranks 3 rank 2 count 4 root 1
slot 0 from 1 count 2
slot 1 from 1 count 2
op 0 wait slot 0
op 1 send slot 0[0:2] to 0 slot 0 after 0
op 2 copy output[0:2] = slot 0[0:2] after 0
op 3 wait slot 1
op 4 send slot 1[0:2] to 0 slot 1 after 3
op 5 copy output[2:4] = slot 1[0:2] after 3
)";

inline constexpr std::string_view kReduceSerial = R"(
schedule reduce ranks 3 rank 0 count 4 root 2 ordered
op 0 send input[0:4] to 2 slot 0

schedule reduce ranks 3 rank 1 count 4 root 2 ordered
op 0 send input[0:4] to 2 slot 1

schedule reduce ranks 3 rank 2 count 4 root 2 ordered
scratch 4
slot 0 from 0 count 4
slot 1 from 1 count 4
op 0 wait slot 0
op 1 wait slot 1
op 2 reduce scratch[0:4] = slot 0[0:4] . slot 1[0:4] after 0 1
op 3 reduce output[0:4] = scratch[0:4] . input[0:4] after 2
)";

inline constexpr std::string_view kAllreduceExchange = R"(
schedule allreduce ranks 4 rank 0 count 4 ordered
slot 0 from 1 count 4
slot 1 from 2 count 4
op 0 send input[0:4] to 1 slot 0
op 1 wait slot 0
op 2 reduce output[0:4] = input[0:4] . slot 0[0:4] after 0 1
op 3 send output[0:4] to 2 slot 1 after 2
op 4 wait slot 1
op 5 reduce output[0:4] = output[0:4] . slot 1[0:4] after 3 4

schedule allreduce ranks 4 rank 1 count 4 ordered
slot 0 from 0 count 4
slot 1 from 3 count 4
op 0 send input[0:4] to 0 slot 0
op 1 wait slot 0
op 2 reduce output[0:4] = slot 0[0:4] . input[0:4] after 0 1
op 3 send output[0:4] to 3 slot 1 after 2
op 4 wait slot 1
op 5 reduce output[0:4] = output[0:4] . slot 1[0:4] after 3 4

schedule allreduce ranks 4 rank 2 count 4 ordered
slot 0 from 3 count 4
slot 1 from 0 count 4
op 0 send input[0:4] to 3 slot 0
op 1 wait slot 0
op 2 reduce output[0:4] = input[0:4] . slot 0[0:4] after 0 1
op 3 send output[0:4] to 0 slot 1 after 2
op 4 wait slot 1
op 5 reduce output[0:4] = slot 1[0:4] . output[0:4] after 3 4

schedule allreduce ranks 4 rank 3 count 4 ordered
slot 0 from 2 count 4
slot 1 from 1 count 4
op 0 send input[0:4] to 2 slot 0
op 1 wait slot 0
op 2 reduce output[0:4] = slot 0[0:4] . input[0:4] after 0 1
op 3 send output[0:4] to 1 slot 1 after 2
op 4 wait slot 1
op 5 reduce output[0:4] = slot 1[0:4] . output[0:4] after 3 4
)";

inline constexpr std::string_view kAllgatherRing = R"(
schedule allgather ranks 3 rank 0 count 2
slot 0 from 2 count 2
slot 1 from 2 count 2
op 0 copy output[0:2] = input[0:2]
op 1 send input[0:2] to 1 slot 0
op 2 wait slot 0
op 3 send slot 0[0:2] to 1 slot 1 after 2
op 4 copy output[4:6] = slot 0[0:2] after 2
op 5 wait slot 1
op 6 copy output[2:4] = slot 1[0:2] after 5

schedule allgather ranks 3 rank 1 count 2
slot 0 from 0 count 2
slot 1 from 0 count 2
op 0 copy output[2:4] = input[0:2]
op 1 send input[0:2] to 2 slot 0
op 2 wait slot 0
op 3 send slot 0[0:2] to 2 slot 1 after 2
op 4 copy output[0:2] = slot 0[0:2] after 2
op 5 wait slot 1
op 6 copy output[4:6] = slot 1[0:2] after 5

schedule allgather ranks 3 rank 2 count 2
slot 0 from 1 count 2
slot 1 from 1 count 2
op 0 copy output[4:6] = input[0:2]
op 1 send input[0:2] to 0 slot 0
op 2 wait slot 0
op 3 send slot 0[0:2] to 0 slot 1 after 2
op 4 copy output[2:4] = slot 0[0:2] after 2
op 5 wait slot 1
op 6 copy output[0:2] = slot 1[0:2] after 5
)";

// Rank 0 has nothing to give, so that its slot stays unused.
inline constexpr std::string_view kGatherLinear = R"(
schedule gather ranks 3 rank 0 blocks 0 3 2 root 1

schedule gather ranks 3 rank 1 blocks 0 3 2 root 1
slot 0 from 0 count 0
slot 1 from 2 count 2
op 0 copy output[0:3] = input[0:3]
op 1 wait slot 1
op 2 copy output[3:5] = slot 1[0:2] after 1

schedule gather ranks 3 rank 2 blocks 0 3 2 root 1
op 0 send input[0:2] to 1 slot 1
)";

// From 2 to 1, which sends on to 0.
inline constexpr std::string_view kScatterChain = R"(
schedule scatter ranks 3 rank 0 blocks 2 1 3 root 2
slot 0 from 1 count 2
op 0 wait slot 0
op 1 copy output[0:2] = slot 0[0:2] after 0

schedule scatter ranks 3 rank 1 blocks 2 1 3 root 2
slot 0 from 2 count 3
op 0 wait slot 0
op 1 send slot 0[0:2] to 0 slot 0 after 0
op 2 copy output[0:1] = slot 0[2:3] after 0

schedule scatter ranks 3 rank 2 blocks 2 1 3 root 2
op 0 send input[0:3] to 1 slot 0
op 1 copy output[0:3] = input[3:6]
)";

// The blocks of ranks 0 and 1 for each other have equal lengths, so they may be in place.
inline constexpr std::string_view kAllToAllPairs = R"(
schedule alltoall ranks 3 rank 0 blocks 1 2 0, 2 0 0, 0 0 4
slot 0 from 1 count 2
op 0 send input[1:3] to 1 slot 0
op 1 copy output[0:1] = input[0:1]
op 2 wait slot 0
op 3 copy output[1:3] = slot 0[0:2] after 0 2

schedule alltoall ranks 3 rank 1 blocks 1 2 0, 2 0 0, 0 0 4
slot 0 from 0 count 2
op 0 send input[0:2] to 0 slot 0
op 1 wait slot 0
op 2 copy output[0:2] = slot 0[0:2] after 0 1

schedule alltoall ranks 3 rank 2 blocks 1 2 0, 2 0 0, 0 0 4
op 0 copy output[0:4] = input[0:4]
)";

// The block of rank 1 is longer than that of rank 0: in place, its output overlaps its own part.
inline constexpr std::string_view kReduceScatterExchange = R"(
schedule reduce_scatter ranks 2 rank 0 blocks 1 3 ordered
slot 0 from 1 count 1
op 0 send input[1:4] to 1 slot 0
op 1 wait slot 0
op 2 reduce output[0:1] = input[0:1] . slot 0[0:1] after 1

schedule reduce_scatter ranks 2 rank 1 blocks 1 3 ordered
scratch 3
slot 0 from 0 count 3
op 0 send input[0:1] to 0 slot 0
op 1 wait slot 0
op 2 reduce scratch[0:3] = slot 0[0:3] . input[1:4] after 1
op 3 copy output[0:3] = scratch[0:3] after 2 0
)";

inline constexpr std::string_view kScanChain = R"(
schedule scan ranks 3 rank 0 count 2 ordered
op 0 send input[0:2] to 1 slot 0
op 1 copy output[0:2] = input[0:2] after 0

schedule scan ranks 3 rank 1 count 2 ordered
slot 0 from 0 count 2
op 0 wait slot 0
op 1 reduce output[0:2] = slot 0[0:2] . input[0:2] after 0
op 2 send output[0:2] to 2 slot 0 after 1

schedule scan ranks 3 rank 2 count 2 ordered
slot 0 from 1 count 2
op 0 wait slot 0
op 1 reduce output[0:2] = slot 0[0:2] . input[0:2] after 0
)";

inline constexpr std::string_view kExscanChain = R"(
schedule exscan ranks 3 rank 0 count 2 ordered
op 0 send input[0:2] to 1 slot 0

schedule exscan ranks 3 rank 1 count 2 ordered
scratch 2
slot 0 from 0 count 2
op 0 wait slot 0
op 1 reduce scratch[0:2] = slot 0[0:2] . input[0:2] after 0
op 2 send scratch[0:2] to 2 slot 0 after 1
op 3 copy output[0:2] = slot 0[0:2] after 0 1

schedule exscan ranks 3 rank 2 count 2 ordered
slot 0 from 1 count 2
op 0 wait slot 0
op 1 copy output[0:2] = slot 0[0:2] after 0
)";

// Ranks 0 and 1 give, 1 and 2 get.
inline constexpr std::string_view kManyToManyDirect = R"(
schedule many_to_many ranks 3 rank 0 blocks 1 2 0 receivers 1 2
op 0 multicast input[0:1] to 1 slot 0, 2 slot 0

schedule many_to_many ranks 3 rank 1 blocks 1 2 0 receivers 1 2
slot 0 from 0 count 1
op 0 send input[0:2] to 2 slot 1
op 1 copy output[1:3] = input[0:2] after 0
op 2 wait slot 0
op 3 copy output[0:1] = slot 0[0:1] after 2

schedule many_to_many ranks 3 rank 2 blocks 1 2 0 receivers 1 2
slot 0 from 0 count 1
slot 1 from 1 count 2
op 0 wait slot 0
op 1 copy output[0:1] = slot 0[0:1] after 0
op 2 wait slot 1
op 3 copy output[1:3] = slot 1[0:2] after 2
)";

struct HandWritten {
  std::string_view name;
  std::string_view text;
};

inline constexpr HandWritten kHandWritten[] = {
    {"barrier dissemination", kBarrierDissemination},
    {"barrier gather", kBarrierGather},
    {"broadcast multicast", kBroadcastMulticast},
    {"broadcast chain", kBroadcastChain},
    {"reduce serial", kReduceSerial},
    {"allreduce exchange", kAllreduceExchange},
    {"allgather ring", kAllgatherRing},
    {"gather linear", kGatherLinear},
    {"scatter chain", kScatterChain},
    {"alltoall pairs", kAllToAllPairs},
    {"reduce_scatter exchange", kReduceScatterExchange},
    {"scan chain", kScanChain},
    {"exscan chain", kExscanChain},
    {"many_to_many direct", kManyToManyDirect},
};

}  // namespace unisono::check
