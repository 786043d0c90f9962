// SPDX-License-Identifier: BSD-3-Clause
#include "comm/list_derivation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

namespace unisono::comm {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

constexpr std::size_t kDigestDigits = 16;  // of the list of ranks, before a grant

// The texts of a round have no zero bytes.
std::string to_text(const Grant& grant) {
  static_assert(std::is_trivially_copyable_v<Grant>);
  static_assert(kDigestDigits + 2 * sizeof grant < bootstrap::ExchangeRounds::kMostTextBytes);
  unsigned char bytes[sizeof grant];
  std::memcpy(bytes, &grant, sizeof grant);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * sizeof bytes);
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::optional<Grant> to_grant(std::string_view text) {
  unsigned char bytes[sizeof(Grant)];
  if (text.size() != 2 * sizeof bytes) return std::nullopt;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return std::nullopt;
  }
  Grant grant;
  std::memcpy(&grant, bytes, sizeof grant);
  return grant;
}

// FNV-1a over the numbers in the job: the ranks compare their lists by it.
std::uint64_t list_digest(const Members& parent, const std::vector<int>& ranks) {
  std::uint64_t hash = 14695981039346656037U;
  for (const int rank : ranks) {
    for (int shift = 0; shift < 32; shift += 8) {
      const auto number = static_cast<std::uint32_t>(parent.job_rank(rank));
      hash = (hash ^ ((number >> shift) & 0xffU)) * 1099511628211U;
    }
  }
  return hash;
}

// The work of this rank between two rounds. The others wait in the next one, so it throws nothing.
template <class Value, class Work>
Result<Value> locally(const Work& work) try {
  return work();
} catch (const std::exception& thrown) {
  return Error{Code::resources, thrown.what()};
}

}  // namespace

Result<ListDerivation::Made> ListDerivation::make(const Status& own) {
  const auto text = locally<std::string>([&] { return announce(own); });
  const auto texts = rounds_.gather(text);
  if (!texts) return give_up(texts.error());
  // All ranks have the same texts, so all find the same.
  if (const Status known = learn_grant(*texts); !known) {
    if (leads()) parent_.job().memory().release(grant_->offset, grant_->layout.bytes);
    return known.error();
  }
  if (needs_second_round()) UNISONO_TRY(agree());
  Made made = build();
  UNISONO_TRY(made->join_nic());
  return made;
}

bool ListDerivation::needs_second_round() const {
  return rounds_.failures() != bootstrap::ExchangeRounds::Failures::everywhere ||
         std::ranges::any_of(ranks_, [this](int rank) { return parent_.is_remote(rank); });
}

// Whether all ranks have the memory.
Status ListDerivation::agree() {
  const auto adopted = locally<bool>([&]() -> Result<bool> {
    UNISONO_TRY(adopt());
    return true;
  });
  const Status all = rounds_.agree(adopted ? base::success() : Status(adopted.error()));
  return all ? all : Status(give_up(all.error()));
}

// The digest of the list, and from the leader the segment.
Result<std::string> ListDerivation::announce(const Status& own) {
  UNISONO_TRY(own);
  std::string text = fmt::format("{:016x}", list_digest(parent_, ranks_));
  if (!leads()) return text;
  UNISONO_ASSIGN(grant_, Segment::reserve(parent_.job(), parent_.job_ranks_of(ranks_)));
  return text + to_text(*grant_);
}

Status ListDerivation::learn_grant(const std::vector<std::string>& texts) {
  const auto digest_of = [&](const std::string& text) {
    return std::string_view(text).substr(0, kDigestDigits);
  };
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (digest_of(texts[r]) != digest_of(texts[0])) {
      return Error{
          Code::argument,
          fmt::format("the ranks at places 0 and {} of their lists gave different lists", r)};
    }
  }
  const auto grant = to_grant(std::string_view(texts[0]).substr(kDigestDigits));
  if (!grant) return Error{Code::state, "the first rank of the list gave no memory"};
  grant_ = *grant;
  return base::success();
}

Status ListDerivation::adopt() {
  return parent_.is_remote(ranks_.front()) ? Segment::adopt(parent_.job(), *grant_)
                                           : base::success();
}

ListDerivation::Made ListDerivation::build() const {
  return Made(new Communicator(parent_.job(), parent_.job_ranks_of(ranks_), rounds_.rank(), *grant_,
                               false));
}

Error ListDerivation::give_up(const Error& why) {
  if (!grant_) return why;
  memory::JobMemory& memory = parent_.job().memory();
  const std::int64_t bytes = grant_->layout.bytes;
  if (!rounds_.have_all_an_error()) {
    build()->failures().fail_all(why.code, why.message, 0);  // others may own it
  } else if (leads() && parent_.on_one_host()) {
    memory.release(grant_->offset, bytes);
  } else if (leads() || parent_.is_remote(ranks_.front())) {
    memory.empty(grant_->offset, bytes);  // ranks of other hosts may be about to do the same
  }
  return why;
}

}  // namespace unisono::comm
