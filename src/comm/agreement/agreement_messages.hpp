// SPDX-License-Identifier: BSD-3-Clause
// AgreementMessages: how the members of an Agreement write into each other's tables: by stores
// within a host, by puts to other hosts. One thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/agreement/agreement_table.hpp"
#include "comm/members.hpp"

namespace unisono::comm {

class AgreementMessages {
 public:
  AgreementMessages(const Members& members, const AgreementTable& table)
      : members_(members), table_(table) {}

  // A word of this host's table, and the text that it announces.
  struct Entry {
    std::atomic<std::uint64_t>& word;
    std::uint64_t value;
    std::span<std::byte> place{};  // of the text
  };
  // Writes it on all hosts. `text` may lie in its place already.
  void tell_all(const Entry& entry, std::span<const std::byte> text) const;
  // The same. Members that count as silent may still receive it.
  void tell_all_and_silent(const Entry& entry, std::span<const std::byte> text) const;
  // Answers a proposer. `proposal`: of the member whose proposal it has to know to understand the
  // answer; -1: none.
  void respond(int proposer, std::atomic<std::uint64_t>& word, std::uint64_t value,
               int proposal) const;

  // A copy of a text. Several members tell the same text, each writing it once more.
  std::vector<std::byte> read(std::span<const std::byte> text) const;
  // The transport repeats the packets of an awaited member, and notices its silence or stop.
  void await(int member) const;

 private:
  void store(const Entry& entry, std::span<const std::byte> text) const;
  void put(int member, const Entry& entry, std::span<const std::byte> text) const;

  const Members& members_;
  AgreementTable table_;
};

}  // namespace unisono::comm
