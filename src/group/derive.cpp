// SPDX-License-Identifier: BSD-3-Clause
// The part of Communicator that makes new ones: duplicate, split, from_list. Each is two allgathers
// on the parent: who goes where, then where each group's leader has reserved its segment.
#include <fmt/format.h>

#include <algorithm>

#include "arith/type.hpp"
#include "group/communicator.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Error;
using base::Result;

// What each rank tells the others first.
struct Wish {
  std::int32_t color = -1;
  std::int32_t key = 0;
};

// FNV-1a: the ranks compare their lists by it.
std::int32_t list_digest(std::span<const int> members) {
  std::uint32_t hash = 2166136261U;
  for (const int member : members) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<std::uint32_t>(member) >> shift) & 0xffU)) * 16777619U;
    }
  }
  return static_cast<std::int32_t>(hash);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::duplicate() {
  return derive(Purpose::duplicate, 0, 0, rank_);
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  return derive(Purpose::split, 0, color, key);
}

Result<std::unique_ptr<Communicator>> Communicator::from_list(std::span<const int> members) {
  const auto place = std::ranges::find(members, rank_);
  const int color = place == members.end() ? -1 : 0;
  return derive(Purpose::from_list, list_digest(members), color,
                static_cast<int>(place - members.begin()));
}

base::Status Communicator::exchange(Purpose purpose, std::int32_t digest, const void* own,
                                    void* all, std::int64_t bytes) {
  Call call;
  call.collective = schedule::Collective::allgather;
  call.purpose = purpose;
  call.count = bytes;
  call.type = static_cast<std::int32_t>(arith::Type::byte);
  call.root = digest;
  return run(call, own, all);
}

Result<std::unique_ptr<Communicator>> Communicator::derive(Purpose purpose, std::int32_t digest,
                                                           int color, int key) {
  const Wish wish{color, key};
  std::vector<Wish> wishes(static_cast<std::size_t>(size()));
  UNISONO_TRY(exchange(purpose, digest, &wish, wishes.data(), sizeof wish));

  std::vector<int> group;  // old ranks of this rank's color, in their new order
  for (int r = 0; r < size(); ++r) {
    if (color >= 0 && wishes[static_cast<std::size_t>(r)].color == color) group.push_back(r);
  }
  std::ranges::stable_sort(group, {},
                           [&](int r) { return wishes[static_cast<std::size_t>(r)].key; });

  Grant grant;
  Error refusal;
  if (!group.empty() && group.front() == rank_) {
    auto offset = reserve(job_, static_cast<int>(group.size()));
    if (offset) {
      grant.offset = *offset;
      grant.layout = reinterpret_cast<CommunicatorHeader*>(job_.memory().at(*offset))->layout;
    } else {
      refusal = offset.error();
    }
  }
  std::vector<Grant> grants(static_cast<std::size_t>(size()));
  UNISONO_TRY(exchange(purpose, digest, &grant, grants.data(), sizeof grant));
  if (group.empty()) return std::unique_ptr<Communicator>();

  const auto& [offset, layout] = grants[static_cast<std::size_t>(group.front())];
  if (offset < 0) {
    if (!refusal.message.empty()) return refusal;
    return Error{Code::resources,
                 fmt::format("rank {}: {} could not reserve memory for the new communicator", rank_,
                             name_rank(group.front()))};
  }
  const auto new_rank = static_cast<int>(std::ranges::find(group, rank_) - group.begin());
  std::vector<int> job_ranks;
  for (const int r : group) job_ranks.push_back(job_ranks_[static_cast<std::size_t>(r)]);
  if (is_remote(group.front())) UNISONO_TRY(adopt(job_, offset, layout));
  std::unique_ptr<Communicator> made(
      new Communicator(job_, std::move(job_ranks), new_rank, offset, layout, false));
  UNISONO_TRY(made->agree_on_nic());
  return made;
}

}  // namespace unisono::group
