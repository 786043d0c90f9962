// SPDX-License-Identifier: BSD-3-Clause
// The price of a collective: the critical path of the schedules of all its ranks on a machine. Each
// rank runs its ops in their order and is occupied by one at a time:
//
//   start      all ranks together, each for C
//   send       occupies the rank for o + O m; leaves then, or g + G m after its last message left;
//              arrives L + G m later
//   multicast  one send where the network copies; else staged once and sent from there where the
//   path
//              stages; else a send to each target
//   wait       until the message has arrived, then r(m)
//   reduce     c(m);   copy: gamma m, and nothing onto itself
//
// A range that is sent several times without having been written in between is staged once, too.
//
// On a host with more ranks than cores, the longest path takes one core, and the rest of the work
// is shared by all: Graham's bound for a scheduler that leaves no core idle. There a wait that
// blocks costs a hand-over. If ranks help each other (Engine::helping), a rank that is awake does
// the steps of all. Then each rank needs a core once for each segment, and hand-overs add up to the
// ranks of each core. Each message is read on any core alike, and the growth of r(m) counts only
// for other cores than its sender's. The buffers of the caller that other ranks may need are staged
// first, at O m (schedule/step_order.hpp).
//
// Hosts that are containers of one machine share its cores, and count as one host here.
//
// Source of the bound: R. L. Graham, Bounds on multiprocessing timing anomalies, 1969.
//
// A call that is too long for the receive buffers goes in segments, one behind the other. Each rank
// begins the next segment when it is through with one. So the first takes its critical path, and
// the others what each adds to it.
//
// Calls in a row overlap: a rank begins the next one when it is through with one, up to the slot
// indexes that its buffers have. The price in a row is the time by which a call delays the slowest
// rank after some calls. Ranks that only send, or only receive, then need a core once for as many
// calls as there are slot indexes; those that wait for each other need it in each call.
//
// No contention within the network: see sim/. Functions are pure; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "model/costs.hpp"
#include "schedule/schedule.hpp"

namespace unisono::model {

// A bound that every price is below, in nanoseconds.
inline constexpr double kAnyPrice = std::numeric_limits<double>::infinity();

struct Price {
  double ns = 0;
  Parts parts;  // of the longest path; they add up to ns, but for rounding
  int last_rank = 0;
  double in_row_ns = 0;  // of each of many calls in a row; 0: not asked for

  bool operator==(const Price&) const = default;
};

// How calls go.
struct Calls {
  std::int64_t segments = 1;  // of each call, of equal length; the schedules are those of one
  int slot_indexes = 0;       // so many segments may a rank be ahead; 0: no price in a row
};

// set[r] is the schedule of rank r. The schedules must terminate (check/); others stop the process.
Price price(std::span<const schedule::Schedule> set, const Machine& machine, const Work& work,
            const Calls& calls = {});

// The same from the schedule of any rank, if all ranks' schedules are alike
// (algorithm::ranks_are_alike). All ranks must be on one host, or each on its own: then every rank
// is at the same op at the same time.
Price price_of_alike(const schedule::Schedule& any, const Machine& machine, const Work& work,
                     const Calls& calls = {});

// A lower bound of a set's price, from one of its schedules. It is what this rank has to do by
// itself, as if all messages had arrived. It costs little against the price. Segments overlap and
// may take less than so many times the first. So if others may need more of them, only the cores
// that ranks share bound the price: 0 if each has its own.
enum class Segments : std::uint8_t { one, as_many_or_more };
double least_ns(const schedule::Schedule& one, const Machine& machine, const Work& work,
                const Calls& calls, Segments segments);

class Outline;

// Sizes of a segment, in place of those of the whole call: they are rounded down.
struct Scale {
  std::int64_t from = 1, to = 1;

  std::int64_t of(std::int64_t size) const { return from == to ? size : size * to / from; }
  bool operator==(const Scale&) const = default;
};

// The same prices of several sets of as many ranks on the same hosts. It keeps what it has
// worked out and its memory. One thread.
class Pricer {
 public:
  // `machine` must outlive it. Only the shape's ranks and hosts count.
  Pricer(const Machine& machine, const Work& work, const schedule::Shape& shape);
  Pricer(Pricer&&) noexcept;
  Pricer& operator=(Pricer&&) noexcept;
  ~Pricer();

  Price price(std::span<const schedule::Schedule> set, const Calls& calls);
  Price price_of_alike(const schedule::Schedule& any, const Calls& calls);

  // The nanoseconds of price(); nullopt if they are `most_ns` or more, which costs less than to
  // find them.
  std::optional<double> ns_below(double most_ns, std::span<const schedule::Schedule> set,
                                 const Calls& calls);
  // The same of an outlined set, whose ranks are on one host.
  std::optional<double> ns_below(double most_ns, const Outline& outline, const Calls& calls);
  // The work that an outlined rank has to do by itself in a segment, if that has sizes of such a
  // scale. Ranks are asked for in their order.
  double work_of(const Outline& outline, int rank, const Scale& scale);
  // The lower bound of least_ns() from that work.
  double least_ns_of_rank(double work_ns, int rank, const Calls& calls, Segments segments) const;
  // Whether the rank shares its cores: that bound of several segments is 0 if it has its own.
  bool shares_cores(int rank) const;
  // Whether all ranks share one set of cores. Then a set takes at least so long whose ranks have so
  // much work in a segment, and one of them `own_ns` of it. Calls may have more segments.
  bool share_all_cores() const;
  double least_ns_of_work(double work_ns, double own_ns, const Calls& calls) const;
  double ns_of_alike(const schedule::Schedule& any, const Calls& calls);
  double least_ns(const schedule::Schedule& one, const Calls& calls, Segments segments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unisono::model
