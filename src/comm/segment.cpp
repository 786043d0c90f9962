// SPDX-License-Identifier: BSD-3-Clause
#include "comm/segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "comm/agreement/agreement_table.hpp"
#include "comm/failure/ends.hpp"
#include "comm/operations/remote_calls.hpp"
#include "engine/nic/nic_group.hpp"
#include "model/machine.hpp"
#include "wait/wait_until.hpp"
#include "wire/key.hpp"

namespace unisono::comm {
namespace {

using base::Result;
using base::Status;

using plan::SizeClass;

// Receive buffers for small messages. Lines suffice for every rank to send to one, and for a ring
// in both directions. There is some room for payloads of more than a line.
constexpr std::int64_t kSpareLines = 16;
// Besides, for long messages: each piece of a vector has a line. At most two ranks send pieces to
// one, and the root of a reduction receives those of the result, too.
constexpr std::int64_t kPieceLines = 3 * algorithm::kMostPieces;
constexpr std::int64_t kSmallBuffer = 8 * 1024;
// Messages of some packets. Between hosts a rank informs the others once in half of the slot
// indexes how far it is. With few of them, that takes longer than such a message, and its sender
// waits.
//
// On one host, two ranks have them too. Their data goes a longer round in them than in buffers for
// long messages (plan::Rotation). With more ranks those are enough.
constexpr std::int64_t kMiddleBuffer = 64 * 1024;
constexpr int kMostWithMiddle = 2;
constexpr std::int64_t kLeastMiddleBuffer = 16 * 1024;
constexpr std::int64_t kBulkBuffer = 128 * 1024;
// A stream carries a long message faster than several parts that wait for each other.
constexpr std::int64_t kStreamBuffer = 1024 * 1024;
// So a buffer has room for that much of each other member, up to this.
constexpr std::int64_t kLongestStreamBuffer = 8 * kStreamBuffer;
// A communicator takes at most this part of the address space that is left, or the usual.
constexpr std::int64_t kPartsOfRoom = 8;
// The least part of such a buffer that becomes real memory; it doubles for longer calls.
constexpr std::int64_t kLeastPrepared = 256 * 1024;
// On one host at least so much of each member's buffers becomes real at once, but at least one
// buffer. Many programs keep communicators on which they make few calls.
constexpr std::int64_t kLeastReal = 32 * 1024;
constexpr std::int64_t kLeastBulkBuffer = 16 * 1024;
// Where ranks lose their cores to computation, each part of a long message costs a wait for a turn.
// More than the usual memory makes parts longer. Ranks with cores of their own are slower with
// buffers that no cache holds, so it is not usual.
constexpr std::int64_t kUsualBuffers = 64 * 1024 * 1024;
constexpr std::int64_t kLongestBulkBuffer = 4 * 1024 * 1024;
constexpr int kSmallSlotIndexes = 64;
constexpr int kMiddleSlotIndexes = 32;
constexpr int kFewMiddleSlotIndexes = 16;
constexpr int kBulkSlotIndexes = 8;
// With two, a rank informs all others in every call.
constexpr int kEnoughBulkSlotIndexes = 4;
constexpr int kLeader = 0;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// An older communicator of as many ranks had the memory. Its receive buffers may stay as they are:
// their flags are those of older operations, and lie in the same places. All else has to be zero.
void clear_used(job::Job& job, const Grant& grant) {
  const SegmentLayout& layout = grant.layout;
  auto& header = *reinterpret_cast<SegmentHeader*>(job.memory().at(grant.offset));
  plan::BySize<std::int32_t> real_slots;
  for (const SizeClass size : plan::kSizeClasses)
    real_slots[size] = header.real_slots[size].load(std::memory_order_relaxed);
  std::memset(job.memory().at(grant.offset), 0,
              static_cast<std::size_t>(layout.queue_buffers[SizeClass::small]));
  for (const SizeClass size : plan::kSizeClasses)
    header.real_slots[size].store(real_slots[size], std::memory_order_relaxed);
  job.memory().clear(grant.offset + layout.agreement, layout.bytes - layout.agreement);
}

Status commit_control(job::Job& job, const Grant& grant) {
  return job.memory().commit(grant.offset, grant.layout.queue_buffers[SizeClass::small],
                             "a communicator's control data");
}

// At least `least`, and with the slot index of `first`. So all communicators in a place begin with
// the same slot indexes, whose memory is real.
std::uint64_t first_sequence_from(std::uint64_t first, std::uint64_t least) {
  constexpr auto kTurn = static_cast<std::uint64_t>(engine::kMostSlotIndexes);
  return least <= first ? first : first + (least - first + kTurn - 1) / kTurn * kTurn;
}

// A range of slot indexes.
struct SlotRange {
  int first, count;
};

struct Room {
  std::int64_t offset = 0;
  bool is_used = false;  // an older communicator of as many ranks had it
};

// All members may have freed a communicator of several hosts, and the words that say so are still
// on their way. So a lack of room counts when none of these can come any more.
Result<Room> find_room(job::Job& job, std::int64_t bytes, int ranks) {
  constexpr std::chrono::milliseconds kPause{1};
  const std::int64_t deadline_ns = base::now_ns() + job::SilenceLimits::of(job.settings()).lost_ns;
  Result<Room> room = Room{};
  const auto turn = [&] {
    job.carry_network();
    const bool is_last = job.retired().reclaim() || base::now_ns() > deadline_ns;
    if (const auto used = job.memory().reuse(bytes, ranks)) {
      room = Room{*used, true};
      return true;
    }
    const auto offset = job.memory().allocate(bytes);
    room = offset ? Result<Room>(Room{*offset, false}) : offset.error();
    return offset.ok() || is_last;
  };
  wait::CoreContention contention;
  wait::Waiter waiter({.short_slices = wait::ShortSlices::never}, contention);
  wait::wait_until(
      waiter, turn, [] { return true; },
      [&] {
        std::this_thread::sleep_for(kPause);
        return false;
      });
  return room;
}

// The same for all ranks of the job.
Links links_of(job::Job& job) {
  if (job.network() == nullptr) return Links::none;
  return job.network()->bulk_name().empty() ? Links::datagrams : Links::streams;
}

Spread spread_of(job::Job& job, std::span<const int> job_ranks) {
  std::vector<int> labels;
  for (const int r : job_ranks) labels.push_back(job.hosts().of(r));
  // The second half of a host's part is for many communicators with the usual buffers.
  const std::int64_t own_part = job.memory().bytes() / job.hosts().count();
  const std::int64_t left = std::min(own_part, job.memory().room());
  return spread_over(
      topology::HostMap::of_labels(labels), job.network() != nullptr && job.network()->multicasts(),
      static_cast<int>(model::constant_of(job.machine(), model::Constant::few_ranks).count()),
      left > own_part / 2 ? left : 0);
}

// The largest power of two with which the size class stays within its share of memory.
int fitting_slot_indexes(int most, std::int64_t receive_buffer_bytes, int ranks,
                         std::int64_t share) {
  int slot_indexes = most;
  while (slot_indexes > 2 && slot_indexes * receive_buffer_bytes * ranks > share) slot_indexes /= 2;
  return slot_indexes;
}

plan::ReceiveGeometry plan_small(int ranks, std::int64_t lines, std::int64_t share,
                                 const base::Settings& settings) {
  const std::int64_t line_bytes = lines * plan::kLineBytes;
  const auto wanted = static_cast<int>(
      std::bit_floor(static_cast<std::uint64_t>(settings.integer(base::Setting::channels))));
  const std::int64_t buffer_bytes =
      std::max(kSmallBuffer, round_up(line_bytes + kSmallBuffer / 2, 4096));
  return {.ranks = ranks,
          .slot_indexes = wanted >= 2
                              ? std::min(wanted, engine::kMostSlotIndexes)
                              : fitting_slot_indexes(kSmallSlotIndexes, buffer_bytes, ranks, share),
          .lines = lines,
          .data_bytes = buffer_bytes - line_bytes};
}

// None if they would be too few or too short to be worth it.
plan::ReceiveGeometry plan_middle(int ranks, Links links, std::int64_t lines, std::int64_t share) {
  const plan::ReceiveGeometry none{.ranks = ranks, .lines = 0};
  plan::ReceiveGeometry g{.ranks = ranks,
                          .slot_indexes = kMiddleSlotIndexes,
                          .lines = lines,
                          .data_bytes = kMiddleBuffer};
  if (links == Links::none) {
    if (ranks > kMostWithMiddle) return none;
    g.slot_indexes = kFewMiddleSlotIndexes;
    g.lines += kPieceLines;
    g.data_bytes = kBulkBuffer;
  }
  while (g.total_bytes() > share) {
    if (g.slot_indexes > kFewMiddleSlotIndexes) {
      g.slot_indexes /= 2;
    } else if (g.data_bytes > kLeastMiddleBuffer) {
      g.data_bytes /= 2;
    } else {
      return none;
    }
  }
  return g;
}

// Where memory is short there are fewer slot indexes, and the buffers stay as long as they are.
// With buffers of half the length, long messages at 4x2 took up to twice as long. `most`: may be
// taken for enough slot indexes.
plan::ReceiveGeometry plan_bulk(int ranks, std::int64_t lines, std::int64_t share,
                                std::int64_t most, std::int64_t buffer_bytes) {
  lines += kPieceLines;
  const std::int64_t whole = buffer_bytes + lines * plan::kLineBytes;
  int slot_indexes = fitting_slot_indexes(kBulkSlotIndexes, whole, ranks, share);
  if (slot_indexes < kEnoughBulkSlotIndexes && kEnoughBulkSlotIndexes * whole * ranks <= most) {
    slot_indexes = kEnoughBulkSlotIndexes;
    share = most;
  }
  while (buffer_bytes > kLeastBulkBuffer && buffer_bytes * slot_indexes * ranks > share)
    buffer_bytes /= 2;
  return {.ranks = ranks, .slot_indexes = slot_indexes, .lines = lines, .data_bytes = buffer_bytes};
}

// Longer buffers than the usual, for streams. Those of members that share a host have to fit into
// memory, and those of all into the room for addresses.
std::optional<plan::ReceiveGeometry> plan_long_streams(int ranks, std::int64_t lines,
                                                       std::int64_t most, const Spread& spread) {
  const int held = spread.on_a_host == 0 ? ranks : spread.on_a_host;
  std::int64_t buffer_bytes = std::min(
      kLongestStreamBuffer,
      kStreamBuffer * static_cast<std::int64_t>(std::bit_ceil(static_cast<unsigned>(ranks - 1))));
  for (; buffer_bytes > kStreamBuffer; buffer_bytes /= 2) {
    for (const int slot_indexes : {kBulkSlotIndexes, kEnoughBulkSlotIndexes}) {
      const plan::ReceiveGeometry g{.ranks = ranks,
                                    .slot_indexes = slot_indexes,
                                    .lines = lines + kPieceLines,
                                    .data_bytes = buffer_bytes};
      if (g.rank_stride() * held <= most && g.total_bytes() <= spread.room) return g;
    }
  }
  return std::nullopt;
}

// On one host, buffers are only as long as memory has room for with all slot indexes.
std::int64_t wanted_bulk_buffer(Links links, int ranks, std::int64_t lines, std::int64_t buffers) {
  if (links == Links::streams) return kStreamBuffer;
  if (links == Links::datagrams) return kBulkBuffer;
  const auto factor = std::bit_floor(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(buffers / kUsualBuffers, 1, 1024)));
  std::int64_t buffer_bytes =
      std::min(kBulkBuffer * static_cast<std::int64_t>(factor), kLongestBulkBuffer);
  const std::int64_t line_bytes = (lines + kPieceLines) * plan::kLineBytes;
  const auto needed = [&] { return kBulkSlotIndexes * (buffer_bytes + line_bytes) * ranks; };
  while (buffer_bytes > kBulkBuffer && needed() > buffers / 2) buffer_bytes /= 2;
  return buffer_bytes;
}

}  // namespace

Spread spread_over(const topology::HostMap& hosts, bool multicasts, int few, std::int64_t left) {
  if (!hosts.given()) return {};
  Spread spread{.room = left / kPartsOfRoom};
  // Each host holds the multicasts of all others.
  if (multicasts && hosts.hosts() > few) return spread;
  for (int host = 0; host < hosts.hosts(); ++host) {
    spread.on_a_host = std::max(spread.on_a_host, static_cast<int>(hosts.members(host).size()));
  }
  return spread;
}

SegmentLayout plan_segment(int ranks, const base::Settings& settings, Links links,
                           const Spread& spread) {
  SegmentLayout g{};
  g.streams = links == Links::streams;
  const std::int64_t lines = 2 * ranks + kSpareLines;
  const std::int64_t whole = settings.bytes(base::Setting::buffers);
  const std::int64_t share = whole / 2;
  g.receive_buffers[SizeClass::small] = plan_small(ranks, lines, share, settings);
  // The middle class gets what small messages leave.
  const std::int64_t small = g.receive_buffers[SizeClass::small].total_bytes();
  g.receive_buffers[SizeClass::middle] = plan_middle(ranks, links, lines, share - small);
  const std::int64_t left = whole - small - g.receive_buffers[SizeClass::middle].total_bytes();
  const std::int64_t most = links == Links::none ? share : left;
  const auto long_streams = g.streams ? plan_long_streams(ranks, lines, most, spread)
                                      : std::optional<plan::ReceiveGeometry>();
  g.receive_buffers[SizeClass::bulk] =
      long_streams
          ? *long_streams
          : plan_bulk(ranks, lines, share, most, wanted_bulk_buffer(links, ranks, lines, whole));

  std::int64_t end = round_up(static_cast<std::int64_t>(sizeof(SegmentHeader)), 4096);
  const auto place = [&end](std::int64_t bytes) {
    const std::int64_t offset = end;
    end = round_up(end + bytes, 4096);
    return offset;
  };
  g.notices = place(ranks * static_cast<std::int64_t>(sizeof(job::FailureNotice)));
  g.leave_records = place(ranks * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  g.ends = place(Ends::memory_bytes(ranks));
  g.members = place(ranks * static_cast<std::int64_t>(sizeof(MemberRecord)));
  g.calls = place(RemoteCalls::memory_bytes(ranks));
  g.choices = place(plan::ChoiceTable::kBytes);
  for (const SizeClass size : plan::kSizeClasses) {
    g.queue_control[size] = place(engine::size_queue_control_bytes(g.receive_buffers[size]));
  }
  for (const SizeClass size : plan::kSizeClasses) {
    g.queue_buffers[size] = place(g.receive_buffers[size].total_bytes());
  }
  g.agreement = place(AgreementTable::bytes(ranks, sizeof(Grant)));
  g.answers = place(std::int64_t{ranks} * ranks * static_cast<std::int64_t>(sizeof(QueryAnswer)));
  g.failure_answers = place(ranks * static_cast<std::int64_t>(sizeof(FailureAnswer)));
  g.host_reduction = place(engine::NicGroup::memory_bytes(ranks));
  g.bytes = end;
  g.first_sequence = static_cast<std::uint64_t>(settings.integer(base::Setting::first_sequence));
  return g;
}

std::uint64_t memory_layout(const base::Settings& settings) {
  const SegmentLayout layout = plan_segment(64, settings);
  const plan::ReceiveGeometry& bulk = layout.receive_buffers[SizeClass::bulk];
  return wire::hash(
      wire::Key{},
      fmt::format("{} {} {} {} {} {} {}", settings.bytes(base::Setting::buffers), layout.bytes,
                  layout.first_sequence, layout.receive_buffers[SizeClass::small].slot_indexes,
                  bulk.slot_indexes, bulk.data_bytes, settings.choice(base::Setting::bulk)));
}

Result<Grant> Segment::reserve(job::Job& job, std::span<const int> job_ranks,
                               Reservation* reservation, std::uint64_t number) {
  const int ranks = static_cast<int>(job_ranks.size());
  Grant grant{.layout =
                  plan_segment(ranks, job.settings(), links_of(job), spread_of(job, job_ranks))};
  UNISONO_ASSIGN(const Room room, find_room(job, grant.layout.bytes, ranks));
  grant.offset = room.offset;
  if (room.is_used) clear_used(job, grant);
  // Now: the older communicator there has said how far it came.
  grant.layout.first_sequence =
      first_sequence_from(grant.layout.first_sequence, job.retired().least_sequence());
  if (reservation != nullptr) reservation->note(grant.offset, grant.layout.bytes, number);
  if (const Status ready = room.is_used ? base::success() : commit_control(job, grant); !ready) {
    if (reservation != nullptr) reservation->offset.store(0, std::memory_order_relaxed);
    job.memory().release(grant.offset, grant.layout.bytes);
    return ready.error();
  }
  reinterpret_cast<SegmentHeader*>(job.memory().at(grant.offset))->layout = grant.layout;
  return grant;
}

Status Segment::adopt(job::Job& job, const Grant& grant) {
  // Members of an older communicator in this place that left later than this host's have written
  // here after that. All their packets had arrived before the leader reserved the place again.
  job.memory().empty(grant.offset, grant.layout.bytes);
  return commit_control(job, grant);
}

SegmentLayout Segment::layout_at(job::Job& job, std::int64_t offset) {
  return reinterpret_cast<const SegmentHeader*>(job.memory().at(offset))->layout;
}

Segment::Segment(const Members& members, const Grant& grant)
    : members_(members),
      offset_(grant.offset),
      layout_(grant.layout),
      header_(reinterpret_cast<SegmentHeader*>(at(0))),
      size_queues_{{make_size_queue(SizeClass::small), make_size_queue(SizeClass::middle),
                    make_size_queue(SizeClass::bulk)}} {
  if (members.on_one_host()) return;
  for (engine::SizeQueue& size_queue : size_queues_)
    size_queue.set_remote(members.remote_by_host());
}

engine::SizeQueue Segment::make_size_queue(SizeClass size) const {
  return {layout_.receive_buffers[size], members_.rank(), at(layout_.queue_control[size]),
          at(layout_.queue_buffers[size]), layout_.first_sequence};
}

std::byte* Segment::at(std::int64_t part) const {
  return members_.job().memory().at(offset_ + part);
}

FailurePlace Segment::failure_place() const {
  return {.record = &header_->failure,
          .notices = reinterpret_cast<job::FailureNotice*>(at(layout_.notices)),
          .answers = reinterpret_cast<FailureAnswer*>(at(layout_.failure_answers))};
}

Status Segment::prepare_now(const plan::Plan& plan) {
  return members_.on_one_host() ? prepare_slots(plan) : prepare_for_hosts(plan);
}

// The buffers of the slot indexes that the next operation reaches. A member accesses those of its
// own operations only, also in others' buffers. So each makes real what it needs, before it sends
// anything, and whatever the others do.
Status Segment::prepare_slots(const plan::Plan& plan) {
  const plan::ReceiveGeometry& receive_buffers = layout_.receive_buffers[plan.size];
  const std::int64_t buffer_bytes = receive_buffers.receive_buffer_bytes();
  const auto all = static_cast<std::uint64_t>(receive_buffers.slot_indexes);
  engine::SizeQueue& size_queue = engine::size_queue_of(size_queues_, plan.size);
  const std::uint64_t used = size_queue.next_sequence() - layout_.first_sequence;
  const std::uint64_t wanted = std::max(used + static_cast<std::uint64_t>(plan.segments),
                                        static_cast<std::uint64_t>(kLeastReal / buffer_bytes));
  const int slots = static_cast<int>(wanted >= all ? all : std::bit_ceil(wanted));
  std::atomic<std::int32_t>& real_slots = header_->real_slots[plan.size];
  const int before = real_slots.load(std::memory_order_acquire);
  if (before < slots) UNISONO_TRY(make_slots_real(plan.size, before, slots));
  Prepared& prepared = prepared_[plan.size];
  const int now = std::max(before, slots);
  buffer_bytes_ += (now - prepared.slots) * buffer_bytes * receive_buffers.ranks;
  prepared = {.own = receive_buffers.data_bytes, .group = receive_buffers.data_bytes, .slots = now};
  size_queue.set_real_end(std::cmp_less(now, all)
                              ? layout_.first_sequence + static_cast<std::uint64_t>(now)
                              : kAllSequences);
  return base::success();
}

// Those of all members. Small ones without page tables: those of each rank for the buffers of all
// would cost more than the faults of those that it uses.
Status Segment::make_slots_real(SizeClass size, int before, int now) {
  const plan::ReceiveGeometry& receive_buffers = layout_.receive_buffers[size];
  const std::int64_t buffer_bytes = receive_buffers.receive_buffer_bytes();
  const int all = receive_buffers.slot_indexes;
  const int first = static_cast<int>((layout_.first_sequence + static_cast<std::uint64_t>(before)) &
                                     (static_cast<std::uint64_t>(all) - 1));
  const int until_end = std::min(now - before, all - first);
  const SlotRange ranges[] = {{first, until_end}, {0, now - before - until_end}};
  const std::int64_t begin = offset_ + layout_.queue_buffers[size];
  std::atomic<std::int32_t>& real_slots = header_->real_slots[size];
  // A long message would take a fault for each of its pages, for many calls.
  const auto commit = [&](std::int64_t place, std::int64_t bytes) {
    constexpr const char* kPurpose = "a communicator's buffers";
    memory::JobMemory& memory = members_.job().memory();
    return size == SizeClass::small ? memory.commit_pages(place, bytes, kPurpose)
                                    : memory.commit(place, bytes, kPurpose);
  };
  if (now - before == all) UNISONO_TRY(commit(begin, receive_buffers.total_bytes()));
  for (int rank = 0; now - before < all && rank < receive_buffers.ranks; ++rank) {
    // Many ranks come here at the same time.
    if (real_slots.load(std::memory_order_acquire) >= now) return base::success();
    const std::int64_t place = begin + rank * receive_buffers.rank_stride();
    for (const SlotRange& range : ranges) {
      if (range.count == 0) continue;
      UNISONO_TRY(commit(place + range.first * buffer_bytes, range.count * buffer_bytes));
    }
  }
  // Other ranks may have come further meanwhile.
  while (before < now && !real_slots.compare_exchange_weak(before, now, std::memory_order_release,
                                                           std::memory_order_relaxed)) {
  }
  return base::success();
}

// Each rank prepares the buffers of all ranks of its host, and those of other hosts' ranks that
// hold their multicasts. A long one becomes real as far as calls use it.
Status Segment::prepare_for_hosts(const plan::Plan& plan) {
  const std::int64_t all = layout_.receive_buffers[plan.size].data_bytes;
  const auto used_of = [all](std::int64_t bytes) {
    if (all <= kStreamBuffer) return all;
    const auto least = static_cast<std::uint64_t>(std::max(bytes, kLeastPrepared));
    return bytes < 0 ? bytes : std::min(all, static_cast<std::int64_t>(std::bit_ceil(least)));
  };
  Prepared& before = prepared_[plan.size];
  const Prepared now{std::max(before.own, used_of(plan.receive_buffer_bytes)),
                     std::max(before.group, used_of(plan.multicast_bytes))};
  const std::vector<bool> group = members_.multicast_group();
  std::int64_t made = 0;
  for (const int r : members_.here()) {
    UNISONO_TRY(make_real(plan.size, r, before.own, now.own, made));
  }
  for (const int r : members_.remote()) {
    if (group.empty() || !group[static_cast<std::size_t>(r)]) continue;
    UNISONO_TRY(make_real(plan.size, r, before.group, now.group, made));
  }
  before = now;
  engine::size_queue_of(size_queues_, plan.size).set_real_end(kAllSequences);
  buffer_bytes_ += made;
  return base::success();
}

// More of a member's buffers of all slot indexes, as in Prepared. Adds its bytes to `made`.
Status Segment::make_real(SizeClass size, int rank, std::int64_t from, std::int64_t to,
                          std::int64_t& made) {
  if (to <= from) return base::success();
  const plan::ReceiveGeometry& receive_buffers = layout_.receive_buffers[size];
  const std::int64_t lines = receive_buffers.lines * plan::kLineBytes;
  const std::int64_t first = from < 0 ? 0 : lines + from;
  std::int64_t place =
      offset_ + layout_.queue_buffers[size] + rank * receive_buffers.rank_stride() + first;
  std::int64_t bytes = lines + to - first;
  int pieces = receive_buffers.slot_indexes;
  if (from < 0 && to == receive_buffers.data_bytes) {  // they lie together
    bytes = receive_buffers.rank_stride();
    pieces = 1;
  }
  for (; pieces > 0; --pieces, place += receive_buffers.receive_buffer_bytes()) {
    UNISONO_TRY(members_.job().memory().commit(place, bytes, "a communicator's buffers"));
    made += bytes;
  }
  return base::success();
}

std::uint64_t Segment::next_sequence() const {
  std::uint64_t greatest = 0;
  for (const engine::SizeQueue& size_queue : size_queues_)
    greatest = std::max(greatest, size_queue.next_sequence());
  return greatest;
}

bool Segment::count_end(const std::vector<int>& absent, bool has_failed) {
  std::uint32_t ends = 0;
  const std::uint64_t first = layout_.first_sequence;
  // Numbers that wrap cannot be compared.
  bool is_reusable = !has_failed && std::ranges::all_of(
                                        size_queues_, [first](const engine::SizeQueue& size_queue) {
                                          return size_queue.next_sequence() >= first;
                                        });
  const std::uint64_t next = next_sequence();
  std::uint64_t greatest = header_->next_sequence.load(std::memory_order_relaxed);
  while (greatest < next &&
         !header_->next_sequence.compare_exchange_weak(greatest, next, std::memory_order_relaxed)) {
  }
  for (const int r : members_.here()) {
    const bool cannot =
        members_.state(r) == job::RankState::dead || std::ranges::count(absent, r) != 0;
    if (r != members_.rank() && !cannot) continue;
    is_reusable = is_reusable && !cannot;
    std::uint32_t none = 0;
    ends += records()[r].ended.compare_exchange_strong(none, 1) ? 1U : 0U;
  }
  if (!is_reusable) header_->is_not_reusable.store(true, std::memory_order_relaxed);
  return header_->freed.fetch_add(ends, std::memory_order_acq_rel) + ends ==
         static_cast<std::uint32_t>(members_.size()) - members_.remote().size();
}

void Segment::release() {
  job::Job& job = members_.job();
  if (header_->is_not_reusable.load(std::memory_order_relaxed)) {
    return job.memory().release(offset_, layout_.bytes);
  }
  job.retired().raise_least_sequence(header_->next_sequence.load(std::memory_order_relaxed) + 1);
  job.memory().keep(offset_, layout_.bytes, members_.size());
}

void Segment::leave(bool last_here, bool has_failed, bool tells) {
  job::Job& job = members_.job();
  const bool with_leader = !members_.is_remote(kLeader);
  // Checked before the leave record is sent; after that, a newer communicator may use this memory.
  const bool leader_is_gone = members_.state(kLeader) == job::RankState::dead;
  if (last_here && (!with_leader || leader_is_gone)) job.memory().empty(offset_, layout_.bytes);
  if (!tells || !job.settle_network()) return;
  auto* const leave_records =
      reinterpret_cast<std::atomic<std::uint64_t>*>(at(layout_.leave_records));
  const auto said =
      static_cast<std::uint64_t>(has_failed ? job::LeaveRecord::failed : job::LeaveRecord::clean);
  auto& own = leave_records[members_.rank()];
  if (with_leader) {
    own.store(said, std::memory_order_release);
  } else {
    job.network()->put({.target = members_.job_rank(kLeader),
                        .flag = reinterpret_cast<std::uint64_t*>(&own),
                        .flag_value = said});
  }
  if (members_.rank() == kLeader) {
    job.retired().add({offset_, layout_.bytes, leave_records, members_.job_ranks()},
                      next_sequence() + 1);  // for the mark
  }
}

}  // namespace unisono::comm
