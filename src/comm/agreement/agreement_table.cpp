// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/agreement_table.hpp"

namespace unisono::comm {
namespace {

constexpr std::int64_t kLine = 64;

std::int64_t round_up(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::int64_t texts_of(int members, std::size_t payload_bytes) {
  return round_up(members) + round_up(members + static_cast<std::int64_t>(payload_bytes));
}

std::int64_t words_of(int members) {
  return members * static_cast<std::int64_t>(sizeof(AgreementWords));
}

std::int64_t answers_of(int members) {
  return round_up(std::int64_t{members} * members *
                  static_cast<std::int64_t>(sizeof(AgreementAnswer)));
}

}  // namespace

// The layout: the acceptor; words by member; answers by proposer and member; then the texts of each
// member.
std::int64_t AgreementTable::bytes(int members, std::size_t payload_bytes) {
  return kLine + words_of(members) + answers_of(members) +
         members * texts_of(members, payload_bytes);
}

std::atomic<std::uint64_t>& AgreementTable::acceptor() const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(begin_);
}

AgreementWords& AgreementTable::words(int member) const {
  return reinterpret_cast<AgreementWords*>(begin_ + kLine)[member];
}

AgreementAnswer& AgreementTable::answer(int proposer, int member) const {
  auto* const answers = reinterpret_cast<AgreementAnswer*>(begin_ + kLine + words_of(members_));
  return answers[std::int64_t{proposer} * members_ + member];
}

std::span<std::byte> AgreementTable::states_text(int proposer) const {
  std::byte* const texts = begin_ + kLine + words_of(members_) + answers_of(members_);
  return {texts + proposer * texts_of(members_, payload_bytes_),
          static_cast<std::size_t>(members_)};
}

std::span<std::byte> AgreementTable::proposal_text(int proposer) const {
  return {states_text(proposer).data() + round_up(members_),
          static_cast<std::size_t>(proposal_bytes())};
}

base::Status AgreementTable::commit(memory::JobMemory& memory, int own) const {
  const auto part = [&memory](const void* begin, std::int64_t bytes) {
    return memory.commit(static_cast<const std::byte*>(begin) - memory.at(0), bytes,
                         "the agreement on who is left");
  };
  UNISONO_TRY(part(begin_, kLine + words_of(members_)));
  UNISONO_TRY(part(&answer(own, 0), members_ * static_cast<std::int64_t>(sizeof(AgreementAnswer))));
  return part(states_text(own).data(), round_up(members_) + proposal_bytes());
}

}  // namespace unisono::comm
