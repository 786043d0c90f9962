// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/pattern/blocks.hpp"
#include "base/clock.hpp"
#include "engine/nic/group_number.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"
#include "nic/service/probe.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::engine {
namespace {

using base::Code;
using base::Error;
using base::Status;
using namespace nic_patience;

base::Result<std::vector<nic::Node>> nodes_of(int rank, int ranks, int splits, bool multicasts) {
  const select::NicTrees trees = select::nic_trees(ranks, splits, multicasts);
  UNISONO_ASSIGN(const auto schedule,
                 algorithm::build(*trees.algorithm, trees.shape, trees.parameters, rank));
  if (!trees.has_pieces) {
    UNISONO_ASSIGN(nic::Node node, nic::lower(schedule));
    return std::vector{std::move(node)};
  }
  UNISONO_ASSIGN(std::vector<nic::Node> nodes, nic::lower_pieces(schedule));
  for (nic::Node& node : nodes) {
    if (ranks != 2 || !node.multicasts) continue;
    node.multicasts = false;
    node.forwards = {1 - rank};
  }
  return nodes;
}

}  // namespace

base::Result<std::unique_ptr<NicGroup>> NicGroup::open(const NicGroupOptions& options) {
  UNISONO_ASSIGN(auto client, nic::ServiceClient::connect(options.path));
  std::unique_ptr<NicGroup> group(new NicGroup(options, std::move(client)));
  UNISONO_ASSIGN(const nic::Served served, group->client_->describe());
  group->capabilities_ = nic::capabilities_of(served, options.preferences);
  return group;
}

Status NicGroup::join(std::span<const nic::Capabilities> hosts) {
  UNISONO_CHECK(std::cmp_equal(hosts.size(), options_.ranks), "the capabilities of each host");
  UNISONO_TRY(nic::check_capabilities(hosts));
  splits_ = select::choose_splits(hosts, options_.one_a_host, options_.multicasts);
  UNISONO_ASSIGN(const auto nodes,
                 nodes_of(options_.rank, options_.ranks, splits_.most(), options_.multicasts));
  std::vector<unisono_nic_address> addresses;
  for (const nic::Capabilities& host : hosts) addresses.push_back(host.address);
  nic::GroupAddresses group;
  group.id = options_.id;
  group.key = options_.key;
  group.depth = nic::kPacketsMax;
  group.ranks = addresses;
  if (options_.multicasts) {
    group.multicast = nic::multicast_address(options_.multicast, hosts[0].address.port);
  }
  group.waiters =
      static_cast<std::uint32_t>(std::clamp(options_.places, 1, UNISONO_NIC_WAITERS_MAX));
  for (const nic::Node& node : nodes) UNISONO_TRY(join_tree(node, group));
  if (!leads()) client_.reset();  // connections are counted
  if (options_.places > 1) {
    host_ = std::make_unique<HostReduction>(options_.memory, options_.place, options_.places,
                                            select::nic_host_fan_in(options_.places));
  }
  if (!options_.one_a_host || options_.ranks > UNISONO_NIC_RANKS_MAX) return base::success();
  UNISONO_ASSIGN(allgather_, NicAllgather::join(*client_, group, options_.rank));
  return base::success();
}

Status NicGroup::join_tree(const nic::Node& node, const nic::GroupAddresses& group) {
  UNISONO_ASSIGN(unisono_nic_row row, nic::make_row(node, group));
  row.id.communicator = group_number(row.id.communicator, NicWay::first_tree,
                                     static_cast<std::uint32_t>(trees().size()));
  UNISONO_ASSIGN(auto member, leads() ? client_->join(row) : client_->share(row));
  std::optional<std::uint32_t> waiter;
  if (options_.place < static_cast<int>(row.waiters)) {
    waiter = static_cast<std::uint32_t>(options_.place);
  }
  return trees_.add(node, std::move(member), waiter);
}

nic::TreePorts::Cut NicGroup::cut_of(const NicCall& call) const {
  nic::TreePorts::Cut cut;
  cut.pieces = 1 << splits_of(call, splits_);
  const auto elements = static_cast<std::int64_t>(call.bytes / call.element_bytes);
  const algorithm::pattern::Blocks pieces(elements, cut.pieces);
  for (int piece = 0; piece < cut.pieces; ++piece) {
    const std::int64_t end = pieces.offset(piece) + pieces.count(piece);
    cut.bounds[static_cast<std::size_t>(piece) + 1] =
        static_cast<std::size_t>(end) * call.element_bytes;
  }
  return cut;
}

Status NicGroup::run(const NicCall& call, const void* input, void* output,
                     std::int64_t deadline_ns) {
  UNISONO_TRY(start(call, input, output));
  UNISONO_TRY(wait(deadline_ns));
  return take(call, output);
}

Status NicGroup::start(const NicCall& call, const void* input, void* output) {
  UNISONO_CHECK(!trees().empty(), "NicGroup::start before join");
  if (failure_) return *failure_;
  gathers_ = call.gathers;
  if (gathers_) {
    UNISONO_CHECK(allgather_ != nullptr, "NicGroup::start of an allgather that it does not do");
    allgather_->start(
        {static_cast<const std::byte*>(input), call.bytes},
        {static_cast<std::byte*>(output), call.bytes * static_cast<std::size_t>(options_.ranks)},
        call.combine);
    return base::success();
  }
  patience_ns_ = random_patience(kFirstPatience);
  if (host_ != nullptr) return post_sum(call, input);
  const Status posted = trees_.post(call.combine, cut_of(call), call.gives ? input : nullptr);
  return posted.ok() ? posted : fail(posted.error());
}

Status NicGroup::take(const NicCall& call, void* output) {
  if (gathers_) return base::success();
  if (trees_.take(call.takes ? output : nullptr)) return base::success();
  return fail({Code::mismatch, fmt::format("NIC path: operation {} has no result of {} bytes: the "
                                           "ranks called different things",
                                           trees_.number(), call.bytes)});
}

// A place of the program's memory is used again by the post of a later operation. That is made when
// all ranks of this host have given to it, and each does so when it has taken the result of the one
// before: so nobody still reads what a post overwrites, however late it looks.
Status NicGroup::post_sum(const NicCall& call, const void* input) {
  if (!host_->give({call.combine, call.bytes, call.gives ? input : nullptr})) {
    trees_.follow(cut_of(call));
    return base::success();
  }
  odd_place_ = host_->odd();
  if (odd_place_) {
    return fail({Code::mismatch,
                 fmt::format("NIC path: the contributions of this host's ranks to operation {} "
                             "differ in length or operator: they called different things",
                             trees_.next())});
  }
  const auto sum = host_->combine(call.kernel, call.count);
  const Status posted = trees_.post(call.combine, cut_of(call), sum.data());
  return posted.ok() ? posted : fail(posted.error());
}

base::Result<bool> NicGroup::poll_allgather() {
  auto done = allgather_->poll();
  if (!done) fail(done.error());
  return done;
}

base::Result<bool> NicGroup::poll() {
  if (gathers_) return poll_allgather();
  if (trees_.is_done()) return true;
  if (!trees_.is_broken()) return false;
  return fail({Code::mismatch, fmt::format("NIC path: the contributions to operation {} differ in "
                                           "length or operator: the ranks called different "
                                           "things",
                                           trees_.number())});
}

Status NicGroup::look_around() {
  if (!leads()) return base::success();
  if (gathers_) {
    const Status looked = allgather_->look_around();
    return looked.ok() ? looked : fail(looked.error());
  }
  if (const auto lost = client_->lost()) return fail(*lost);
  return repair();
}

// To an allgather it has when it has started it.
std::uint32_t NicGroup::given() const { return gathers_ ? ~std::uint32_t{0} : trees_.given(); }

std::optional<NicRank> NicGroup::odd_rank() const {
  if (gathers_) {
    if (allgather_->odd_rank() < 0) return std::nullopt;
    return NicRank{allgather_->odd_rank(), 0};
  }
  if (odd_place_) return NicRank{options_.rank, *odd_place_};
  const int host = trees_.mismatching_rank();
  if (host < 0) return std::nullopt;
  return NicRank{host, 0};  // the ranks of a host differ from each other, or all from another host
}

Status NicGroup::wait(std::int64_t deadline_ns) {
  for (int i = 0; i < kSpins + kYields; ++i) {
    UNISONO_ASSIGN(const bool done, poll());
    if (done) return base::success();
    if (i >= kSpins) std::this_thread::yield();
  }
  for (std::int64_t sleep = kFirstSleep;; sleep = std::min(2 * sleep, kLongestSleep)) {
    UNISONO_ASSIGN(const bool done, poll());
    if (done) return base::success();
    UNISONO_TRY(look_around());
    const std::int64_t now = base::now_ns();
    if (now >= deadline_ns) break;
    sleep_until_woken(std::min(sleep, deadline_ns - now));
  }
  return fail(
      {Code::timeout, fmt::format("NIC path: operation {} of rank {} has no result in time: "
                                  "a rank did not take part",
                                  trees_.number(), options_.rank)});
}

void NicGroup::sleep_until_woken(std::int64_t limit_ns) {
  if (!is_woken()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(limit_ns, kNap)));
    return;
  }
  if (gathers_) return allgather_->sleep(limit_ns);
  trees_.sleep(limit_ns);
}

// Ranks that lack the same should not all ask at once, so how long one waits is random. While a
// rank of this host has not come there is nothing to ask for.
Status NicGroup::repair() {
  if (!is_host_complete()) return base::success();
  const auto asked = trees_.repair(base::now_ns(), patience_ns_);
  if (!asked.ok()) return fail(asked.error());
  if (*asked != 0) patience_ns_ = random_patience(std::min(2 * patience_ns_, kLongestPatience));
  return base::success();
}

std::int64_t NicGroup::random_patience(std::int64_t least_ns) {
  return least_ns + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(least_ns)));
}

Error NicGroup::fail(Error why) {
  failure_ = why;
  return why;
}

}  // namespace unisono::engine
