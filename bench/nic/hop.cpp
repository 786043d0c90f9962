// SPDX-License-Identifier: BSD-3-Clause
// Cost of a hop in the NIC program. In a reduction, a contribution comes in, is verified, kept and
// combined, and the sum is sent. In an allgather, a block comes in, is verified, kept and sent on,
// alone or joined with earlier ones: messages of 1, 2 and 4 blocks become 2 and 4. One packet at a
// time through the kernel's trial run, without a network; medians of its clock, in nanoseconds.
// Also the time to load the programs. Needs root.
//
//   hop [--repetitions 4000]
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/prng.hpp"
#include "nic/harness/frames.hpp"
#include "nic/loader/device.hpp"
#include "options.hpp"

namespace {

using namespace unisono;
using nic::test::Words;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "hop: {}\n", message);
  std::exit(1);
}

// An inner node with one child.
unisono_nic_row row_of(std::uint32_t communicator) {
  unisono_nic_row row = {};
  row.id = {1, communicator};
  row.key = {3, 5};
  row.rank = 1;
  row.flags = UNISONO_NIC_RETURNS_VALUES;
  row.depth = 2;
  row.children = 1;
  row.own = nic::test::host_address(1);
  row.up = nic::test::host_address(0);
  row.down = nic::test::group_address();
  row.child_rank[0] = 2;
  return row;
}

Words vector_of(base::Prng& random, int words, bool real) {
  Words vector(static_cast<std::size_t>(words));
  for (auto& word : vector) {
    word = real ? std::bit_cast<std::uint64_t>((random.unit() - 0.5) * 1e6) : random.next();
  }
  return vector;
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double hop_ns(nic::Device& device, int words, std::uint32_t combine, int repetitions) {
  static std::uint32_t communicator = 0;
  const auto added = device.add_group(row_of(++communicator));
  if (!added.ok()) die(added.error().message);
  const unisono_nic_row row = device.row(*added);
  const nic::GroupMemory memory = device.memory(*added);
  base::Prng random(1);
  std::vector<double> times;
  for (std::uint64_t sequence = 0; sequence < static_cast<std::uint64_t>(repetitions); ++sequence) {
    const bool real = combine == UNISONO_NIC_SUM_FLOAT64;
    const Words vector = vector_of(random, words, real);
    const std::uint64_t at = sequence % row.depth;
    auto& own = memory.blocks[at * 2];
    own.sequence = sequence;
    own.combine = combine;
    own.words = static_cast<std::uint32_t>(words);
    std::copy(vector.begin(), vector.end(), own.data);
    memory.slots[at].arrived |= 1;
    unisono_packet packet = nic::test::packet_of(UNISONO_NIC_GIVE, row.id,
                                                 static_cast<int>(row.child_rank[0]), sequence);
    packet.target = row.rank;
    packet.place = combine;
    const auto run = device.try_frame(
        nic::Entry::receive, nic::test::make_frame(nic::test::host_address(2), row.own, packet,
                                                   vector_of(random, words, real), row.key));
    if (!run.ok()) die(run.error().message);
    constexpr std::uint32_t kSend = 3;  // XDP_TX
    if (run->verdict != kSend) die(fmt::format("the program returned {}", run->verdict));
    times.push_back(run->run_ns);
  }
  if (!device.remove_group(*added).ok()) die("remove the group");
  return median(std::move(times));
}

// Rank 1 of three, which sends rank 0's blocks on to rank 2.
double block_ns(nic::Device& device, int words, int repetitions) {
  unisono_nic_row asked = row_of(1U << 20);
  asked.children = 0;
  asked.flags = 0;
  asked.ranks = 3;
  asked.route[0] = {0, 0, 1, 0};
  asked.target[0] = 2;
  for (int rank = 0; rank < 3; ++rank) asked.at[rank] = nic::test::host_address(rank);
  const auto added = device.add_group(asked);
  if (!added.ok()) die(added.error().message);
  const unisono_nic_row row = device.row(*added);
  base::Prng random(1);
  std::vector<double> times;
  for (std::uint64_t sequence = 0; sequence < static_cast<std::uint64_t>(repetitions); ++sequence) {
    const unisono_packet packet = nic::test::packet_of(UNISONO_NIC_BLOCK, row.id, 0, sequence);
    const auto run = device.try_frame(
        nic::Entry::receive, nic::test::make_frame(row.at[0], row.own, packet,
                                                   vector_of(random, words, false), row.key));
    if (!run.ok()) die(run.error().message);
    constexpr std::uint32_t kSend = 3;  // XDP_TX
    if (run->verdict != kSend) die(fmt::format("the program returned {}", run->verdict));
    times.push_back(run->run_ns);
  }
  if (!device.remove_group(*added).ok()) die("remove the group");
  return median(std::move(times));
}

// Rank 0 of eight takes the message of step `step`, 2^step blocks. Except after the last, it sends
// one of twice as many on, as Bruck does.
double message_ns(nic::Device& device, int words, int step, int repetitions) {
  constexpr int kRanks = 8;
  unisono_nic_row asked = row_of((2U << 20) + static_cast<std::uint32_t>(words * 4 + step));
  asked.rank = 0;
  asked.children = 0;
  asked.flags = 0;
  asked.ranks = kRanks;
  asked.gives = asked.takes = 3;
  asked.largest = kRanks / 2;
  for (std::uint8_t i = 0; i < 3; ++i) {
    const auto count = static_cast<std::uint8_t>(1 << i);
    const std::uint64_t blocks = (1ULL << count) - 1;
    const auto below = static_cast<std::uint8_t>(kRanks - count);
    asked.give[i] = {blocks, below, i, count, 0, 0};
    asked.take[i] = {blocks << count, count, i, count, count, 0};
  }
  for (int rank = 0; rank < kRanks; ++rank) asked.at[rank] = nic::test::host_address(rank);
  const auto added = device.add_group(asked);
  if (!added.ok()) die(added.error().message);
  const unisono_nic_row row = device.row(*added);
  const nic::GroupMemory memory = device.memory(*added);
  const unisono_nic_message& take = row.take[step];
  const Words payload((1 + static_cast<std::size_t>(words)) * take.count);
  const std::size_t room = (1 + static_cast<std::size_t>(words)) * row.largest;
  std::vector<double> times;
  for (std::uint64_t sequence = 0; sequence < static_cast<std::uint64_t>(repetitions); ++sequence) {
    const std::uint64_t at = sequence % row.depth;
    unisono_nic_block* const blocks = memory.blocks + at * kRanks;
    for (int rank = 0; rank < take.count; ++rank) {
      blocks[rank].words = static_cast<std::uint32_t>(words);
      blocks[rank].sequence = sequence;
    }
    memory.slots[at].arrived = (1ULL << take.count) - 1;
    memory.slots[at].done = sequence - row.depth;
    unisono_packet packet = nic::test::packet_of(UNISONO_NIC_BLOCKS, row.id, take.peer, sequence);
    packet.target = row.rank;
    packet.position = static_cast<std::uint32_t>(step);
    packet.value = take.blocks;
    const auto run = device.try_frame(
        nic::Entry::receive, nic::test::make_frame(row.at[take.peer], row.own, packet, payload,
                                                   row.key, room - payload.size()));
    if (!run.ok()) die(run.error().message);
    constexpr std::uint32_t kDrop = 1, kSend = 3;  // XDP_DROP, XDP_TX
    if (run->verdict != (step == 2 ? kDrop : kSend))
      die(fmt::format("the program returned {}", run->verdict));
    times.push_back(run->run_ns);
  }
  if (!device.remove_group(*added).ok()) die("remove the group");
  return median(std::move(times));
}

void print_programs(const nic::Device& device) {
  const char* const names[] = {"receive", "leave", "spread"};
  for (const auto entry : {nic::Entry::receive, nic::Entry::leave, nic::Entry::spread}) {
    const auto facts = device.facts(entry);
    if (!facts.ok()) die(facts.error().message);
    fmt::print("{:>8}: {} verifier steps, {} instructions, {} bytes\n",
               names[static_cast<int>(entry)], facts->verified_instructions, facts->instructions,
               facts->machine_bytes);
  }
  fmt::print("all loaded in {:.0f} ms\n",
             static_cast<double>(device.facts(nic::Entry::receive)->load_ns) / 1e6);
}

}  // namespace

int main(int count, char** arguments) {
  int repetitions = 4000;
  bench::Options given("Cost of a hop in the NIC program");
  given.number("--repetitions", repetitions, 1);
  given.parse(count, arguments);
  auto device = nic::load_device({});
  if (!device.ok()) die(device.error().message);
  print_programs(**device);
  fmt::print("{:>8} {:>10} {:>10} {:>10}\n", "words", "int64 ns", "float64 ns", "block ns");
  for (const int words : {0, 1, 16, 128, 175}) {
    fmt::print("{:>8} {:>10.0f} {:>10.0f} {:>10.0f}\n", words,
               hop_ns(**device, words, UNISONO_NIC_SUM_INT64, repetitions),
               hop_ns(**device, words, UNISONO_NIC_SUM_FLOAT64, repetitions),
               block_ns(**device, words, repetitions));
  }
  fmt::print("\nby doubling, of 8 ranks, ns\n{:>8} {:>10} {:>10} {:>10}\n", "words", "1 block",
             "2 blocks", "4 blocks");
  for (const int words : {0, 1, 4, 16, 42}) {
    fmt::print(
        "{:>8} {:>10.0f} {:>10.0f} {:>10.0f}\n", words, message_ns(**device, words, 0, repetitions),
        message_ns(**device, words, 1, repetitions), message_ns(**device, words, 2, repetitions));
  }
  return 0;
}
