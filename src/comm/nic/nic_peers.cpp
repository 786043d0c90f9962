// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_peers.hpp"

namespace unisono::comm {

void NicPeers::publish(const NicProgress& own) {
  const auto held = members_.job().network()->hold();  // another host may be reading it
  record(members_.rank()).nic_progress.store(own.word(), std::memory_order_release);
}

void NicPeers::publish_leave_record() {
  MemberRecord& own = record(members_.rank());
  const std::uint64_t word = nic_leave_record(path_.mark, path_.completed);
  own.leave_record.store(word, std::memory_order_release);
  for (const int member : members_.remote()) {
    members_.job().network()->put({.target = members_.job_rank(member),
                                   .flag = reinterpret_cast<std::uint64_t*>(&own.leave_record),
                                   .flag_value = word});
  }
}

std::optional<NicProgress> NicPeers::leave_record_of(int rank) const {
  return read_leave_record(path_.mark, record(rank).leave_record.load(std::memory_order_acquire));
}

std::optional<NicProgress> NicPeers::of(const NicPath::Neighbour& next) const {
  if (const auto last = leave_record_of(next.rank)) return last;
  const MemberRecord& member = record(next.rank);
  if (!next.here && (next.asked == path_.first_asked || awaits_answer(next))) return std::nullopt;
  const std::uint64_t said = next.here ? member.nic_progress.load(std::memory_order_acquire)
                                       : member.heard.load(std::memory_order_relaxed);
  if (said == 0) return std::nullopt;
  return NicProgress::of_word(said);
}

bool NicPeers::awaits_answer(const NicPath::Neighbour& next) const {
  return next.asked != path_.first_asked &&
         record(next.rank).heard_number.load(std::memory_order_acquire) != next.asked;
}

void NicPeers::ask(NicPath::Neighbour& next) {
  if (next.here || awaits_answer(next)) return;
  MemberRecord& member = record(next.rank);
  const auto offset =
      reinterpret_cast<std::byte*>(&member.nic_progress) - members_.job().memory().at(0);
  members_.job().network()->get({.source = members_.job_rank(next.rank),
                                 .offset = static_cast<std::uint64_t>(offset),
                                 .place = reinterpret_cast<std::byte*>(&member.heard),
                                 .bytes = sizeof member.heard,
                                 .flag = reinterpret_cast<std::uint64_t*>(&member.heard_number),
                                 .flag_value = ++next.asked});
}

}  // namespace unisono::comm
