// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/exchange/exchange_rounds.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

// The magic number names this form of the rounds. Another byte order reverses its bytes.
constexpr std::uint64_t kRoundMagic = 0x324f534f4e49554e;
constexpr std::size_t kMostHostBytes = 64;

// A rank's contribution to a round.
struct Record {
  std::uint64_t magic = kRoundMagic;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint32_t round = 0;
  std::uint32_t code = 0;  // of its error; Code::ok: it has none
  std::array<char, ExchangeRounds::kMostTextBytes> text{};
  std::array<char, kMostHostBytes> host{};  // its name, which may be cut
};

template <std::size_t size>
std::string text_of(const std::array<char, size>& bytes) {
  return {bytes.begin(), std::ranges::find(bytes, '\0')};
}

Record record_of(const Result<std::string>& own) {
  Record record;
  const std::string& text = own.ok() ? *own : own.error().message;
  record.code = own.ok() ? 0 : static_cast<std::uint32_t>(own.error().code);
  text.copy(record.text.data(), record.text.size());
  // A cut name need not end with a zero. Without a name the rank's number has to do.
  if (::gethostname(record.host.data(), record.host.size()) != 0) record.host.front() = '\0';
  return record;
}

Error error_of(const Record& record) {
  const bool known = record.code <= static_cast<std::uint32_t>(Code::cancelled);
  return {known ? static_cast<Code>(record.code) : Code::state,
          fmt::format("rank {}: {}", record.rank, text_of(record.text))};
}

// Whether the records of all ranks are of this round and this job.
Status check_records(const std::vector<Record>& records, std::uint32_t round) {
  const Record& first = records.front();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.magic == __builtin_bswap64(kRoundMagic)) {
      return Error{Code::unsupported,
                   fmt::format("rank {} on host '{}' has another byte order than this rank: start "
                               "the job on hosts of one byte order",
                               i, text_of(record.host))};
    }
    if (record.magic != kRoundMagic) {
      return Error{Code::unsupported,
                   fmt::format("rank {} has another version of Unisono, or the exchange did not "
                               "deliver what the rank gave",
                               i)};
    }
    if (record.ranks != first.ranks) {
      return Error{Code::argument,
                   fmt::format("rank {} was told that the job has {} ranks, rank {} that it has {}",
                               i, record.ranks, first.rank, first.ranks)};
    }
    if (static_cast<std::size_t>(record.rank) != i || record.round != round) {
      return Error{Code::argument,
                   fmt::format("the exchange delivered step {} of rank {} in the place of step {} "
                               "of rank {}. It has to deliver in the order of ranks",
                               record.round, record.rank, round, i)};
    }
  }
  return base::success();
}

}  // namespace

Result<std::vector<std::string>> ExchangeRounds::exchange(const Result<std::string>& own) {
  Record record = record_of(own);
  record.rank = rank_;
  record.ranks = ranks_;
  record.round = ++round_;
  std::vector<Record> records(static_cast<std::size_t>(ranks_));
  if (const int failure = allgather_(&record, records.data(), sizeof record); failure != 0) {
    have_all_an_error_ = failures_ == Failures::everywhere;
    return Error{Code::system,
                 fmt::format("rank {} of {}: the exchange that the caller provides returned {} in "
                             "step {}",
                             rank_, ranks_, failure, round_)};
  }
  if (!own.ok()) {
    have_all_an_error_ = true;
    return own.error();
  }
  UNISONO_TRY(check_records(records, round_));
  std::vector<std::string> texts;
  for (const Record& each : records) {
    have_all_an_error_ = each.code != 0;
    if (have_all_an_error_) return error_of(each);
    texts.push_back(text_of(each.text));
  }
  return texts;
}

Result<std::vector<std::string>> ExchangeRounds::gather(const Result<std::string>& own) {
  if (error_) return *error_;
  Result<std::vector<std::string>> texts = exchange(own);
  if (!texts.ok()) error_ = texts.error();
  return texts;
}

Status ExchangeRounds::agree(const Status& own) {
  const Result<std::vector<std::string>> texts =
      gather(own.ok() ? Result<std::string>(std::string()) : Result<std::string>(own.error()));
  return texts.ok() ? base::success() : Status(texts.error());
}

}  // namespace unisono::bootstrap
