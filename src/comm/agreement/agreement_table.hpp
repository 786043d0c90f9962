// SPDX-License-Identifier: BSD-3-Clause
// AgreementTable: the words and texts of an Agreement in the memory that the ranks of a host share.
// It has the same layout on all hosts, so a rank updates those of another host by puts. Every entry
// but the acceptor is written once, in any order. A value that refers to the memory; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "memory/job_memory.hpp"

namespace unisono::comm {

// The words of a member. joined, prepared, proposed: 1 once it has said so. chosen: the ballot
// whose proposal is decided, as far as the member knows.
struct alignas(64) AgreementWords {
  std::atomic<std::uint64_t> joined, prepared, proposed, chosen;
};

// A member's answer to a proposer, for the member's host.
struct AgreementAnswer {
  std::atomic<std::uint64_t> promise, acceptance;
};

class AgreementTable {
 public:
  // `begin`: so many bytes, zero at first.
  AgreementTable(std::byte* begin, int members, std::size_t payload_bytes)
      : begin_(begin), members_(members), payload_bytes_(payload_bytes) {}
  static std::int64_t bytes(int members, std::size_t payload_bytes);

  // Memory for the entries that member `own` writes itself.
  base::Status commit(memory::JobMemory& memory, int own) const;

  int members() const { return members_; }
  // The state of the host's acceptor (host_acceptor.hpp).
  std::atomic<std::uint64_t>& acceptor() const;
  AgreementWords& words(int member) const;
  AgreementAnswer& answer(int proposer, int member) const;
  // The states of all members that a proposer has seen, a byte for each.
  std::span<std::byte> states_text(int proposer) const;
  // A byte for each member, whether it is in the list; then the payload.
  std::span<std::byte> proposal_text(int proposer) const;

 private:
  std::int64_t proposal_bytes() const {
    return members_ + static_cast<std::int64_t>(payload_bytes_);
  }

  std::byte* begin_;
  int members_;
  std::size_t payload_bytes_;
};

}  // namespace unisono::comm
