// SPDX-License-Identifier: BSD-3-Clause
#include "explain/measured.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "arith/type.hpp"
#include "profile/merge.hpp"

namespace unisono::tools {

base::Result<std::vector<MeasuredCalls>> find_measured(const std::vector<std::string>& files,
                                                       const plan::Call& call, int ranks,
                                                       int hosts) {
  UNISONO_ASSIGN(const MergedProfile profile, read_profiles(files));
  profile::Kind wanted;
  wanted.collective = schedule::collective_name(call.collective);
  wanted.bytes_class = profile::size_class(call.count * call.element_bytes);
  wanted.ranks = ranks;
  wanted.hosts = hosts;
  const bool is_reduction = schedule::is_reduction(call.collective);
  if (is_reduction) {
    wanted.op = arith::operator_name(static_cast<arith::Operator>(call.op));
    wanted.type = arith::type_name(static_cast<arith::Type>(call.type));
  }
  std::map<std::pair<std::string, std::string>, profile::Series::Totals> found;
  for (const ProfileRow& row : profile.rows) {
    if (row.form != profile::Form::blocking || !row.kind.reason.empty()) continue;
    profile::Kind kind = row.kind;
    kind.algorithm.clear();
    kind.engine.clear();
    if (!is_reduction) kind.type.clear();
    if (kind == wanted) add_totals(found[{row.kind.algorithm, row.kind.engine}], row.totals);
  }
  std::vector<MeasuredCalls> measured;
  for (const auto& [by, totals] : found) {
    if (totals.calls == 0) continue;
    measured.push_back(
        {.algorithm = by.first,
         .engine = by.second,
         .calls = totals.calls,
         .mean_ns = static_cast<double>(totals.ns) / static_cast<double>(totals.calls)});
  }
  std::ranges::stable_sort(measured, {}, &MeasuredCalls::mean_ns);
  return measured;
}

}  // namespace unisono::tools
