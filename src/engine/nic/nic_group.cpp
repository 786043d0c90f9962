// SPDX-License-Identifier: BSD-3-Clause
// The same trees serve all four collectives: a reduce is an allreduce whose result one rank takes,
// a broadcast one with the bitwise or to which all but the root give zeros.
#include "engine/nic/nic_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "algorithm/pattern/cube.hpp"
#include "base/clock.hpp"
#include "engine/nic/group_number.hpp"
#include "engine/nic/nic_patience.hpp"
#include "engine/nic/probe.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"

namespace unisono::engine {
namespace {

using base::Code;
using base::Error;
using base::Status;
using schedule::Collective;
using namespace nic_patience;

schedule::Shape tree_shape(int ranks) {
  schedule::Shape shape;
  shape.collective = Collective::allreduce;
  shape.ranks = ranks;
  shape.count = 1;
  return shape;
}

// With one packet: of two hosts, all others are one.
bool reaches_all(int hosts, bool multicasts) { return multicasts || hosts == 2; }

const algorithm::Algorithm& tree_row(bool multicasts) {
  return *algorithm::find(Collective::allreduce,
                          multicasts ? "gather-release" : "reduce-broadcast");
}

// Whose first tree is that of tree_row(true), and its only one if nothing is split.
const algorithm::Algorithm& split_row() {
  return *algorithm::find(Collective::allreduce, "split-release");
}

int fan_in_of_tree(int ranks) {
  return algorithm::default_parameters(tree_row(true), tree_shape(ranks)).values[0];
}

const algorithm::Algorithm& two_level_row() {
  return *algorithm::find(Collective::allreduce, "two-level");
}

// In which the ranks of a host combine.
int host_fan_in(int places) {
  return algorithm::default_parameters(two_level_row(), tree_shape(places)).values[1];
}

Status check_blocks(const NicShape& shape, std::size_t bytes) {
  if (!shape.one_a_host) {
    return Error{Code::unsupported, "an allgather goes there with one rank a host only"};
  }
  if (shape.ranks > UNISONO_NIC_RANKS_MAX) {
    return Error{Code::unsupported,
                 fmt::format("an allgather goes there with up to {} ranks", UNISONO_NIC_RANKS_MAX)};
  }
  if (bytes <= kNicPacketBytes) return base::success();
  return Error{Code::unsupported, fmt::format("blocks of {} bytes do not fit one packet, {} bytes",
                                              bytes, kNicPacketBytes)};
}

Status check_vector(const NicShape& shape, const NicCall& call) {
  const std::size_t most = nic_packets_that_pay(shape.collective, call.combine) * kNicPacketBytes;
  if (call.bytes <= most) return base::success();
  return Error{Code::unsupported,
               fmt::format("a vector of {} bytes is faster without it; up to {} bytes go by it",
                           call.bytes, most)};
}

base::Result<std::vector<nic::Node>> tree_of_clones(int rank, int ranks) {
  const schedule::Shape shape = tree_shape(ranks);
  const algorithm::Algorithm& row = tree_row(false);
  UNISONO_ASSIGN(const auto schedule,
                 algorithm::build(row, shape, algorithm::default_parameters(row, shape), rank));
  UNISONO_ASSIGN(nic::Node node, nic::lower(schedule));
  return std::vector{std::move(node)};
}

base::Result<std::vector<nic::Node>> trees_to_all(int rank, int ranks, int splits) {
  schedule::Shape shape = tree_shape(ranks);
  shape.count = 1 << splits;  // a piece needs something in it
  const algorithm::Parameters parameters = {{splits, fan_in_of_tree(ranks)}};
  UNISONO_ASSIGN(const auto schedule, algorithm::build(split_row(), shape, parameters, rank));
  UNISONO_ASSIGN(std::vector<nic::Node> nodes, nic::lower_pieces(schedule));
  for (nic::Node& node : nodes) {
    if (ranks != 2 || !node.multicasts) continue;
    node.multicasts = false;
    node.forwards = {1 - rank};
  }
  return nodes;
}

}  // namespace

SplitChoice choose_splits(std::span<const NicOffer> offers, bool one_a_host, bool multicasts) {
  if (!reaches_all(static_cast<int>(offers.size()), multicasts)) return {};
  // Of several ranks a host, the tree of hosts is inside of another algorithm, which has it with
  // its usual parameters.
  const auto hosts = static_cast<int>(offers.size());
  const int usual = algorithm::default_parameters(split_row(), tree_shape(hosts)).values[0];
  const int most = std::min(one_a_host ? SplitChoice::kMost : usual,
                            algorithm::pattern::FoldedCube(hosts).dimensions());
  const std::int32_t wish = offers[0].wishes.splits;
  if (wish >= 0) return SplitChoice::forced(std::min(wish, most));
  return SplitChoice::computed(
      {.hosts = hosts, .processors = nic_processors(offers), .fan_in = fan_in_of_tree(hosts)},
      most);
}

int splits_of(const NicCall& call, const SplitChoice& choice) {
  return choice.splits(words_of(call.bytes), nic_adds_floats(call.combine));
}

std::string nic_tree_name(const topology::HostMap& hosts, int splits, bool multicasts) {
  schedule::Shape shape = tree_shape(hosts.ranks());
  const algorithm::Algorithm& row =
      splits > 0 ? split_row() : tree_row(reaches_all(hosts.hosts(), multicasts));
  if (hosts.are_alone()) {
    algorithm::Parameters parameters = algorithm::default_parameters(row, shape);
    if (splits > 0) parameters.values[0] = splits;
    return algorithm::describe(row, parameters);
  }
  shape.hosts = hosts;
  algorithm::Parameters parameters = algorithm::default_parameters(two_level_row(), shape);
  const auto& inner = two_level_row().parameters[0].names;
  parameters.values[0] = static_cast<int>(std::ranges::find(inner, row.name) - inner.begin());
  return algorithm::describe(two_level_row(), parameters);
}

bool rooted_pays(Collective collective, int hosts) {
  return collective == Collective::reduce && hosts > 1 + fan_in_of_tree(hosts);
}

base::Result<NicCall> lower_call(const NicShape& shape, int rank) {
  NicCall call;
  call.bytes = static_cast<std::size_t>(shape.count) * arith::type_size(shape.type);
  switch (shape.collective) {
    case Collective::barrier:
      call.bytes = 0;
      call.combine = UNISONO_NIC_NOTHING;
      return call;
    case Collective::allreduce:
    case Collective::reduce: {
      UNISONO_ASSIGN(call.combine, nic::lower_operator(shape.op, shape.type));
      call.kernel = arith::find_kernel(shape.op, shape.type);
      call.count = shape.count;
      call.element_bytes = arith::type_size(shape.type);
      call.takes = shape.collective == Collective::allreduce || rank == shape.root;
      break;
    }
    case Collective::broadcast:
      call.combine = UNISONO_NIC_OR;
      call.gives = rank == shape.root;
      call.takes = !call.gives;
      break;
    case Collective::allgather:
      UNISONO_TRY(check_blocks(shape, call.bytes));
      call.gathers = true;
      return call;
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
    case Collective::many_to_many:
      return Error{Code::unsupported, fmt::format("the NIC path does no {}",
                                                  schedule::collective_name(shape.collective))};
  }
  UNISONO_TRY(check_vector(shape, call));
  return call;
}

base::Result<std::unique_ptr<NicGroup>> NicGroup::open(const NicGroupOptions& options) {
  UNISONO_ASSIGN(auto client, nic::ServiceClient::connect(options.path));
  std::unique_ptr<NicGroup> group(new NicGroup(options, std::move(client)));
  UNISONO_ASSIGN(const nic::Served served, group->client_->describe());
  group->offer_ = offer_of(served, options.wishes);
  return group;
}

Status NicGroup::join(std::span<const NicOffer> offers) {
  UNISONO_CHECK(std::cmp_equal(offers.size(), options_.ranks), "an offer of each rank");
  UNISONO_TRY(agree(offers));
  splits_ = choose_splits(offers, options_.one_a_host, options_.multicasts);
  UNISONO_ASSIGN(const auto nodes, reaches_all(options_.ranks, options_.multicasts)
                                       ? trees_to_all(options_.rank, options_.ranks, splits_.most())
                                       : tree_of_clones(options_.rank, options_.ranks));
  std::vector<unisono_nic_address> addresses;
  for (const NicOffer& offer : offers) addresses.push_back(offer.address);
  nic::GroupAddresses group;
  group.id = options_.id;
  group.key = options_.key;
  group.depth = kNicPacketsMax;
  group.ranks = addresses;
  if (options_.multicasts) {
    group.multicast = nic::multicast_address(options_.multicast, offers[0].address.port);
  }
  group.waiters =
      static_cast<std::uint32_t>(std::clamp(options_.places, 1, UNISONO_NIC_WAITERS_MAX));
  for (const nic::Node& node : nodes) UNISONO_TRY(join_tree(node, group));
  if (!leads()) client_.reset();  // connections are counted
  if (options_.places > 1) {
    host_ = std::make_unique<HostReduction>(options_.memory, options_.place, options_.places,
                                            host_fan_in(options_.places));
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

NicTrees::Cut NicGroup::cut_of(const NicCall& call) const {
  return {.bytes = call.bytes,
          .element_bytes = call.element_bytes,
          .pieces = 1 << splits_of(call, splits_)};
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
  const int host = trees_.odd_rank();
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
