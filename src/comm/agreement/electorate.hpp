// SPDX-License-Identifier: BSD-3-Clause
// Electorate: whose voice counts in an Agreement: the members that take part, which of them leads,
// and whether those that agree are enough. Members that have been lost, or have freed the
// communicator, do not take part. One thread at a time.
#pragma once

#include <functional>
#include <set>
#include <utility>

#include "base/result.hpp"
#include "comm/members.hpp"

namespace unisono::comm {

class Electorate {
 public:
  // `has_ended`: whether a member lives and will never join; a member that has ended stays so.
  Electorate(const Members& members, std::function<bool(int member)> has_ended)
      : members_(members), has_ended_(std::move(has_ended)) {}

  bool takes_part(int member) const { return members_.lives(member) && !has_ended_(member); }
  // The first member that takes part; the number of members if there is none.
  int leader() const;
  // More than half of the communicator's hosts, or half of them with the first. Any two such sets
  // have a host in common. says(m): member m speaks for its host.
  template <class Says>
  bool is_quorum(const Says& says) const {
    std::set<int> all;
    std::set<int> saying;
    for (int m = 0; m < members_.size(); ++m) {
      const int host = members_.hosts().of(m);
      all.insert(host);
      if (says(m)) saying.insert(host);
    }
    if (saying.size() * 2 == all.size()) return saying.contains(members_.hosts().of(0));
    return saying.size() * 2 > all.size();
  }
  bool has_quorum() const {
    return is_quorum([this](int member) { return takes_part(member); });
  }

  // The error of a member that the others have taken for gone; and of one that has no quorum.
  base::Error excluded() const;
  base::Error no_quorum() const;

 private:
  const Members& members_;
  std::function<bool(int member)> has_ended_;
};

}  // namespace unisono::comm
