// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/scan_of_hosts.hpp"

#include "base/check.hpp"

namespace unisono::algorithm::two_level {

ScanOfHosts::ScanOfHosts(const Shape& shape, const Parameters& parameters, int rank)
    : shape_(shape),
      parameters_(parameters),
      rank_(rank),
      levels_(shape, Lead::highest),
      host_(levels_.host(rank)),
      leads_(levels_.leads(rank)) {}

void ScanOfHosts::make_slot_of_hosts_below(Builder& b) const {
  if (has_hosts_below() && !leads_) b.slot(levels_.leader(host_), shape_.count);
}

std::vector<OpId> ScanOfHosts::within_host(Builder& b, Range input, Range output) const {
  const int last = levels_.size(host_) - 1;
  return embed(b, local(host_, levels_.place(rank_)), {input, output, {}},
               {[&](int place) { return levels_.member(host_, place); },
                [&](int place) { return SlotId{has_hosts_below() && place != last ? 1 : 0}; }});
}

std::vector<OpId> ScanOfHosts::among_leaders(Builder& b, const InnerBuffers& buffers) const {
  const Schedule inner =
      inner_schedule(shape_, parameters_, levels_, {.count = shape_.count}, host_);
  return embed(b, inner, buffers, levels_, [&](int host) {
    return static_cast<SlotId>(local(host, levels_.size(host) - 1).slots.size());
  });
}

void ScanOfHosts::release(Builder& b, Range value, std::span<const OpId> after) const {
  two_level::release(b, levels_, rank_, value, after);
}

Schedule ScanOfHosts::local(int host, int place) const {
  const std::string_view name = kScans[static_cast<std::size_t>(parameters_.values[1])];
  const Algorithm* row = find(shape_.collective, name);
  UNISONO_CHECK(row != nullptr, "a scan within hosts that the table does not have");
  const Shape within{.collective = shape_.collective,
                     .ranks = levels_.size(host),
                     .count = shape_.count,
                     .ordered = shape_.ordered};
  return row->build(within, default_parameters(*row, within), place);
}

const char* hosts_out_of_order(const Shape& shape, const Parameters&) {
  if (!shape.hosts.given() || shape.hosts.are_neighbours()) return nullptr;
  return "a host's ranks do not follow one another, so that its sum is no part of a scan";
}

}  // namespace unisono::algorithm::two_level
