// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/agreement_messages.hpp"

#include <cstring>
#include <mutex>

namespace unisono::comm {

void AgreementMessages::store(const Entry& entry, std::span<const std::byte> text) const {
  if (!text.empty() && text.data() != entry.place.data()) {
    std::memcpy(entry.place.data(), text.data(), text.size());
  }
  entry.word.store(entry.value, std::memory_order_release);
  members_.job().events().raise();
}

void AgreementMessages::put(int member, const Entry& entry, std::span<const std::byte> text) const {
  members_.job().network()->put({.target = members_.job_rank(member),
                                 .source = text.data(),
                                 .place = entry.place.data(),
                                 .bytes = text.size(),
                                 .flag = reinterpret_cast<std::uint64_t*>(&entry.word),
                                 .flag_value = entry.value});
}

// To every rank of a host, since it is unknown which of them will live.
void AgreementMessages::tell_all(const Entry& entry, std::span<const std::byte> text) const {
  store(entry, text);
  for (const int member : members_.remote()) {
    if (members_.lives(member)) put(member, entry, text);
  }
}

void AgreementMessages::tell_all_and_silent(const Entry& entry,
                                            std::span<const std::byte> text) const {
  store(entry, text);
  for (const int member : members_.remote()) {
    const job::RankState state = members_.state(member);
    if (state == job::RankState::present || state == job::RankState::silent) {
      put(member, entry, text);
    }
  }
}

void AgreementMessages::respond(int proposer, std::atomic<std::uint64_t>& word, std::uint64_t value,
                                int proposal) const {
  if (!members_.is_remote(proposer)) return store({word, value}, {});
  if (proposal < 0) return put(proposer, {word, value}, {});
  const std::span<std::byte> text = table_.proposal_text(proposal);
  put(proposer, {word, value, text}, text);
}

std::vector<std::byte> AgreementMessages::read(std::span<const std::byte> text) const {
  std::unique_lock<std::mutex> held;
  if (network::Network* const network = members_.job().network()) held = network->hold();
  return {text.begin(), text.end()};
}

void AgreementMessages::await(int member) const {
  job::Job& job = members_.job();
  const int job_rank = members_.job_rank(member);
  if (members_.is_remote(member)) {
    job.network()->awaits(job_rank);
  } else {
    job.watch().is_stopped(job_rank);
  }
}

}  // namespace unisono::comm
