// SPDX-License-Identifier: BSD-3-Clause
// One tree serves all four collectives: a reduce is an allreduce whose result one rank takes, a
// broadcast one with the bitwise or to which all but the root give zeros.
#include "engine/nic/nic_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/lower.hpp"
#include "nic/row.hpp"

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

const algorithm::Algorithm& tree_row() {
  return *algorithm::find(Collective::allreduce, "gather-release");
}

const algorithm::Algorithm& two_level_row() {
  return *algorithm::find(Collective::allreduce, "two-level");
}

// In which the ranks of a host combine.
int host_fan_in(int places) {
  return algorithm::default_parameters(two_level_row(), tree_shape(places)).values[1];
}

Status check_blocks(const NicShape& shape, std::size_t bytes) {
  constexpr std::size_t kMost = UNISONO_NIC_WORDS_MAX * sizeof(std::uint64_t);
  if (!shape.one_a_host) {
    return Error{Code::unsupported, "an allgather goes there with one rank a host only"};
  }
  if (shape.ranks > UNISONO_NIC_RANKS_MAX) {
    return Error{Code::unsupported,
                 fmt::format("an allgather goes there with up to {} ranks", UNISONO_NIC_RANKS_MAX)};
  }
  if (bytes <= kMost) return base::success();
  return Error{Code::unsupported,
               fmt::format("blocks of {} bytes do not fit one packet, {} bytes", bytes, kMost)};
}

base::Result<nic::Node> tree_node(int rank, int ranks) {
  const schedule::Shape shape = tree_shape(ranks);
  const algorithm::Parameters parameters = algorithm::default_parameters(tree_row(), shape);
  UNISONO_ASSIGN(const auto schedule, algorithm::build(tree_row(), shape, parameters, rank));
  return nic::lower(schedule);
}

}  // namespace

std::string nic_tree_name(const schedule::HostMap& hosts) {
  schedule::Shape shape = tree_shape(hosts.ranks());
  if (hosts.are_alone()) {
    return algorithm::describe(tree_row(), algorithm::default_parameters(tree_row(), shape));
  }
  shape.hosts = hosts;
  algorithm::Parameters parameters = algorithm::default_parameters(two_level_row(), shape);
  const auto& inner = two_level_row().parameters[0].names;
  parameters.values[0] =
      static_cast<int>(std::ranges::find(inner, tree_row().name) - inner.begin());
  return algorithm::describe(two_level_row(), parameters);
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
  UNISONO_TRY(nic::lower_count(shape.count, shape.type));
  return call;
}

base::Result<std::unique_ptr<NicGroup>> NicGroup::open(const NicGroupOptions& options) {
  UNISONO_ASSIGN(auto client, nic::ServiceClient::connect(options.path));
  std::unique_ptr<NicGroup> group(new NicGroup(options, std::move(client)));
  UNISONO_ASSIGN(const nic::Served served, group->client_->describe());
  group->offer_ = {served.own, served.mask, 1};
  return group;
}

Status NicGroup::join(std::span<const NicOffer> offers) {
  UNISONO_CHECK(std::cmp_equal(offers.size(), options_.ranks), "an offer of each rank");
  UNISONO_TRY(agree(offers));
  UNISONO_ASSIGN(const nic::Node node, tree_node(options_.rank, options_.ranks));
  parent_ = node.parent;
  children_ = node.children;
  std::vector<unisono_nic_address> addresses;
  for (const NicOffer& offer : offers) addresses.push_back(offer.address);
  nic::GroupAddresses group;
  group.id = options_.id;
  group.key = options_.key;
  group.ranks = addresses;
  group.multicast = nic::multicast_address(options_.multicast, offers[0].address.port);
  group.waiters =
      static_cast<std::uint32_t>(std::clamp(options_.places, 1, UNISONO_NIC_WAITERS_MAX));
  UNISONO_ASSIGN(const unisono_nic_row row, nic::make_row(node, group));
  UNISONO_ASSIGN(member_, find_member(row));
  if (options_.place < static_cast<int>(row.waiters)) {
    const auto waiter = static_cast<std::uint32_t>(options_.place);
    UNISONO_ASSIGN(wakes_, nic::WakeRing::open(std::move(member_->wakes.at(waiter)), waiter));
  }
  UNISONO_ASSIGN(port_, nic::Port::open(member_->row, member_->mapping.memory()));
  if (options_.places > 1) {
    host_ = std::make_unique<HostReduction>(options_.memory, options_.place, options_.places,
                                            host_fan_in(options_.places));
  }
  if (!options_.one_a_host || options_.ranks > UNISONO_NIC_RANKS_MAX) return base::success();
  UNISONO_ASSIGN(allgather_, NicAllgather::join(*client_, group, options_.rank));
  return base::success();
}

// Connections are counted, so who needs none keeps none.
base::Result<std::unique_ptr<nic::Membership>> NicGroup::find_member(const unisono_nic_row& row) {
  if (leads()) return client_->join(row);
  auto shared = client_->share(row);
  client_.reset();
  return shared;
}

Status NicGroup::run(const NicCall& call, const void* input, void* output,
                     std::int64_t deadline_ns) {
  UNISONO_TRY(start(call, input, output));
  UNISONO_TRY(wait(deadline_ns));
  return take(call, output);
}

Status NicGroup::start(const NicCall& call, const void* input, void* output) {
  UNISONO_CHECK(port_ != nullptr, "NicGroup::start before join");
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
  operation_ = port_->next();
  patience_ns_ = random_patience(kFirstPatience);
  return host_ == nullptr ? post(call, input) : post_sum(call, input);
}

Status NicGroup::take(const NicCall& call, void* output) {
  if (gathers_) return base::success();
  const auto result = port_->result(operation_);
  if (result.size_bytes() < call.bytes) {
    return fail({Code::mismatch, fmt::format("NIC path: operation {} has a result of {} bytes, not "
                                             "{}: the ranks called different things",
                                             operation_, result.size_bytes(), call.bytes)});
  }
  if (call.takes && call.bytes != 0) std::memcpy(output, result.data(), call.bytes);
  return base::success();
}

Status NicGroup::post(const NicCall& call, const void* input) {
  const std::size_t words = (call.bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  const auto vector = std::span(words_).first(words);
  std::ranges::fill(vector, 0);
  if (call.gives && call.bytes != 0) std::memcpy(vector.data(), input, call.bytes);
  const Status posted = port_->post(call.combine, vector);
  return posted.ok() ? posted : fail(posted.error());
}

// A place of the program's memory is used again by the post of a later operation. That is made when
// all ranks of this host have given to it, and each does so when it has taken the result of the one
// before: so nobody still reads what a post overwrites, however late it looks.
Status NicGroup::post_sum(const NicCall& call, const void* input) {
  if (!host_->give({call.combine, call.bytes, call.gives ? input : nullptr})) {
    port_->follow();
    return base::success();
  }
  odd_place_ = host_->odd();
  if (odd_place_) {
    return fail({Code::mismatch,
                 fmt::format("NIC path: the contributions of this host's ranks to operation {} "
                             "differ in length or operator: they called different things",
                             operation_)});
  }
  const Status posted = port_->post(call.combine, host_->combine(call.kernel, call.count));
  return posted.ok() ? posted : fail(posted.error());
}

base::Result<bool> NicGroup::poll_allgather() {
  auto done = allgather_->poll();
  if (!done) fail(done.error());
  return done;
}

base::Result<bool> NicGroup::poll() {
  if (gathers_) return poll_allgather();
  if (port_->is_done(operation_)) return true;
  if (!port_->is_broken(operation_)) return false;
  return fail({Code::mismatch, fmt::format("NIC path: the contributions to operation {} differ in "
                                           "length or operator: the ranks called different "
                                           "things",
                                           operation_)});
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
bool NicGroup::is_given() const { return gathers_ || port_->is_given(operation_); }

std::optional<NicRank> NicGroup::odd_rank() const {
  if (gathers_) {
    if (allgather_->odd_rank() < 0) return std::nullopt;
    return NicRank{allgather_->odd_rank(), 0};
  }
  if (odd_place_) return NicRank{options_.rank, *odd_place_};
  const int host = port_->odd_rank(operation_);
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
                                  operation_, options_.rank)});
}

void NicGroup::sleep_until_woken(std::int64_t limit_ns) {
  if (!is_woken()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(limit_ns, kNap)));
    return;
  }
  if (gathers_) return allgather_->sleep(limit_ns);
  if (arm()) wakes_->sleep(limit_ns);
  disarm();
}

// Ranks that lack the same should not all ask at once, so how long one waits is random. While a
// rank of this host has not come there is nothing to ask for.
Status NicGroup::repair() {
  if (!is_host_complete()) return base::success();
  const auto asked = port_->repair(base::now_ns(), patience_ns_);
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
