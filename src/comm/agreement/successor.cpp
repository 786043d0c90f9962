// SPDX-License-Identifier: BSD-3-Clause
#include "comm/agreement/successor.hpp"

#include <algorithm>
#include <vector>

namespace unisono::comm {

base::Result<std::optional<std::unique_ptr<Communicator>>> Successor::step(Shrink& shrink) const {
  auto outcome = shrink.step();
  // Others may own the new communicator: it has to fail for them.
  if (const auto owned = shrink.after_error()) {
    build(*owned)->failures().fail_all(owned->failure->code, owned->failure->message, 0);
  }
  if (!outcome) return outcome.error();
  if (!*outcome) return std::optional<std::unique_ptr<Communicator>>();
  std::unique_ptr<Communicator> made = build(**outcome);
  // If a member is lost by now, it is the next call that says so.
  static_cast<void>(made->join_nic());
  return std::optional(std::move(made));
}

std::unique_ptr<Communicator> Successor::build(const Shrink::Outcome& outcome) const {
  std::vector<int> job_ranks;
  for (const int member : outcome.members) job_ranks.push_back(old_.members_.job_rank(member));
  const auto place = std::ranges::find(outcome.members, old_.rank()) - outcome.members.begin();
  std::unique_ptr<Communicator> made(new Communicator(
      old_.job_, std::move(job_ranks), static_cast<int>(place), outcome.grant, false));
  made->absent_ = outcome.absent;
  return made;
}

}  // namespace unisono::comm
