// SPDX-License-Identifier: BSD-3-Clause
#include "tune/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithm/algorithm.hpp"
#include "base/settings/settings.hpp"
#include "comm/segment.hpp"
#include "machine.hpp"
#include "model/default_machine.hpp"
#include "model/fit.hpp"
#include "select/candidates.hpp"
#include "tune/load.hpp"
#include "tune/messages.hpp"
#include "tune/probes/job_probes.hpp"
#include "tune/probes/loopback_probes.hpp"
#include "tune/probes/memory_probes.hpp"
#include "tune/serial_fit.hpp"

namespace unisono::tools::tune {
namespace {

using model::Unit;
using model::Value;

// Sizes that stay in a core's caches, and sizes that do not; the border is the largest of the
// first.
constexpr std::array<std::int64_t, 5> kCached = {8, 512, 4096, 16384, 65536};
constexpr std::array<std::int64_t, 3> kLong = {262144, 524288, 1048576};
// More ranks than cores are measured up to so many, beside twice the cores.
constexpr int kMostOversubscribed = 16;
// All degrees of the f-nomial tree together take as long as so many other probes.
constexpr int kProbesOfDegrees = 4;
// Serial reductions that are fitted: their vectors stay in a core's caches.
constexpr std::array<std::int64_t, 3> kSerialBytes = {8, 4096, 65536};
// Broadcasts with one copy and with two.
constexpr std::array<std::int64_t, 5> kCopied = {65536, 262144, 1048576, 4194304, 16777216};
constexpr int kMostCopying = 8;  // ranks
constexpr std::array kDatagramSizes = {8, 256, 768, 1400};

Value measured(double number, double plus_minus, std::string where, Unit unit = Unit::ns) {
  // Three digits after the point of a nanosecond: more would be noise.
  const auto rounded = [](double each) { return std::round(each * 1e3) / 1e3; };
  return {.number = std::max(0.0, rounded(number)),
          .plus_minus = std::max(0.0, rounded(plus_minus)),
          .unit = unit,
          .origin = model::Origin::measured,
          .where = std::move(where)};
}
Value per_byte(const model::Estimate& estimate, std::string where) {
  Value value = measured(0, 0, std::move(where), Unit::ns_per_byte);
  value.number = std::round(estimate.value * 1e6) / 1e6;
  value.plus_minus = std::round(estimate.plus_minus * 1e6) / 1e6;
  return value;
}
Value none(std::string where, Unit unit = Unit::ns) {
  return {.unit = unit, .origin = model::Origin::assumed, .where = std::move(where)};
}
double both(double a, double b) { return std::hypot(a, b); }  // of independent intervals

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options)
      : options_(options),
        probe_ns_((options.quick ? 120 : 600) * std::int64_t{1'000'000}),
        cores_(tools::usable_cores()) {}

  base::Result<Tuning> run() {
    tuning_.machine.name = "this";
    tuning_.machine.about = "measured by unisono tune";
    tuning_.machine.hosts = 1;
    tuning_.machine.cores_per_host = cores_;
    // These first: they have children, and there are no threads yet.
    if (options_.degrees) UNISONO_TRY(measure_degrees());
    UNISONO_TRY(part("one copy and two", [this] { return measure_copies(); }));
    take_copies();
    UNISONO_TRY(part("messages within the host", [this] { return measure_memory(); }));
    UNISONO_TRY(part("datagrams", [this] { return measure_loopback(); }));
    UNISONO_TRY(part("passing a core on", [this] {
      measure_cores();
      return base::success();
    }));
    UNISONO_TRY(part("calls of many messages", [this] { return measure_messages(); }));
    UNISONO_TRY(part("serial reductions and barriers", [this] { return compare(); }));
    take_nic_path();
    take_error();
    UNISONO_TRY(predict_degrees());
    return std::move(tuning_);
  }

 private:
  // Measures a part again if another program disturbed it, and returns why the last time was.
  base::Result<std::string> attempt(const std::string& name,
                                    const std::function<base::Status()>& measure) {
    const Tuning before = tuning_;
    Moment begin;
    const Attempts attempts{
        .measure =
            [&] {
              tuning_ = before;
              spreads_.clear();
              begin = moment_now();
              return measure();
            },
        .why_disturbed = [&] { return why_disturbed(begin, moment_now(), cores_, spreads_); },
        .again = [&](const std::string& why) { say(fmt::format("{}: {}; again", name, why)); },
        // An accepted load is seldom over a few seconds later, which --quick does not have.
        .most = options_.quick && options_.accept_load ? 1 : kAttempts};
    return measure_undisturbed(attempts);
  }

  base::Status part(const std::string& name, const std::function<base::Status()>& measure) {
    UNISONO_ASSIGN(const std::string why, attempt(name, measure));
    if (why.empty()) return base::success();
    if (options_.accept_load) {
      tuning_.disturbed.push_back(fmt::format("{}: {}", name, why));
      return base::success();
    }
    return base::Error{
        base::Code::state,
        fmt::format("the machine is busy: {} ({}, {} times). Stop other programs and "
                    "try again, or add --busy for a file that prices may use but "
                    "choices do not",
                    why, name, kAttempts)};
  }

  double note(const Sample& one) {
    if (one.ns > 0) spreads_.push_back(one.plus_minus / one.ns);
    return one.ns;
  }

  // Without it, no choice goes by the file's prices.
  void take_error() {
    if (!tuning_.disturbed.empty()) {
      tuning_.machine.about += ", while other programs kept it busy";
      return;
    }
    tuning_.machine.price_error = measured(
        price_error(tuning_.comparisons), 0,
        fmt::format("{} collectives that nothing was fitted to", tuning_.comparisons.size()),
        Unit::ratio);
  }

  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  base::Result<model::LineFit> line(const std::string& what,
                                    const std::vector<model::LineTime>& times) {
    model::LineFit fit;
    UNISONO_ASSIGN(fit, model::fit_line(times));
    tuning_.fits.push_back({what, fit.each.value, fit.each.plus_minus, fit.per_byte.value,
                            fit.per_byte.plus_minus, fit.fit.deviation});
    return fit;
  }

  // A line through one probe's times of several sizes.
  template <class Sizes, class Probe>
  base::Result<model::LineFit> line_of(const std::string& what, const Sizes& sizes,
                                       const Probe& probe) {
    say(what);
    std::vector<model::LineTime> times;
    for (const auto bytes : sizes) times.push_back({bytes, note(probe(bytes, probe_ns_))});
    return line(what, times);
  }

  model::ReductionCost reduction(std::optional<arith::Operator> op, std::optional<arith::Type> type,
                                 bool is_long) {
    model::ReductionCost cost{op, type, {}};
    const auto add = [&](std::int64_t bytes) {
      const Sample one = combining(op.value_or(arith::Operator::sum),
                                   type.value_or(arith::Type::float64), bytes, probe_ns_ / 5);
      double ns = note(one);
      // Beyond the last point, costs go on with the last slope, which must not fall.
      if (!cost.curve.points.empty()) ns = std::max(ns, cost.curve.points.back().value.number);
      cost.curve.points.push_back({bytes, measured(ns, one.plus_minus, "kernel")});
    };
    if (is_long) {
      for (const std::int64_t bytes : kLong) add(bytes);
    } else {
      for (const std::int64_t bytes : kCached) add(bytes);
    }
    return cost;
  }

  std::vector<model::ReductionCost> reductions(bool is_long) {
    say(is_long ? "kernels, long vectors" : "kernels");
    std::vector<model::ReductionCost> costs;
    costs.push_back(reduction(std::nullopt, std::nullopt, is_long));
    for (const auto op : {arith::Operator::sum, arith::Operator::max}) {
      for (const auto type : {arith::Type::int32, arith::Type::float32, arith::Type::float64}) {
        costs.push_back(reduction(op, type, is_long));
      }
    }
    return costs;
  }

  // O and r(m). A broadcast between two ranks copies twice: into the buffer, which another core has
  // read, and out of it, which another core has written. Each costs half, and more than a copy
  // within a core's caches.
  static void share_bytes(const model::Estimate& called, const model::Estimate& sent,
                          const model::Estimate& copied, std::int64_t last,
                          model::PathParameters& path) {
    const model::Estimate half{called.value / 2, called.plus_minus / 2};
    path.overhead_per_byte = half.value > sent.value
                                 ? per_byte(half, "half of a broadcast, fit over sizes")
                                 : per_byte(sent, "sending, fit over sizes");
    const double bytes = static_cast<double>(last);
    const double read = std::max(0.0, half.value - copied.value) * bytes;
    const double read_error = both(half.plus_minus, copied.plus_minus) * bytes;
    path.reception.points = {
        {0, none("in the latency")},
        {last, measured(read, read_error, "half of a broadcast less copying")}};
  }

  // Measures a path within the host. C is what the library's calls take beyond the messages.
  template <class Sizes>
  base::Status measure_path(const Sizes& sizes, bool is_long, model::PathParameters& path) {
    const std::string range = is_long ? "long messages" : "short messages";
    model::LineFit flown, sent, copied, called;
    UNISONO_ASSIGN(flown, line_of("ping-pong of flags, " + range, sizes, flight));
    UNISONO_ASSIGN(sent, line_of("sending, " + range, sizes, sending));
    UNISONO_ASSIGN(copied, line_of("copies, " + range, sizes, copying));
    base::Status status = base::success();
    UNISONO_ASSIGN(called, line_of("broadcasts between two ranks, " + range, sizes,
                                   [&](std::int64_t bytes, std::int64_t budget_ns) {
                                     auto one = broadcast(2, bytes, budget_ns);
                                     if (one.ok()) return *one;
                                     status = one.error();
                                     return Sample{.ns = 1};
                                   }));
    UNISONO_TRY(std::move(status));
    path.level = is_long ? model::Level::memory : model::Level::cache;
    path.up_to_bytes = is_long ? 0 : sizes.back();
    path.overhead = measured(sent.each.value, sent.each.plus_minus, "sending, fit over sizes");
    // The line of long messages says nothing of small parts: its short ones do.
    const model::PathParameters* cached = is_long ? &tuning_.machine.paths.front() : nullptr;
    if (cached != nullptr) path.overhead = cached->overhead;
    share_bytes(called.per_byte, sent.per_byte, copied.per_byte, sizes.back(), path);
    path.latency = cached != nullptr ? cached->latency
                                     : measured(flown.each.value - sent.each.value,
                                                both(flown.each.plus_minus, sent.each.plus_minus),
                                                "ping-pong of flags less sending");
    path.gap = none("a store leaves at once");
    path.gap_per_byte = none("a store leaves at once", Unit::ns_per_byte);
    path.copy_per_byte = per_byte(copied.per_byte, "copies, fit over sizes");
    path.reduction = reductions(is_long);
    path.start_up = {
        {std::nullopt, cached != nullptr
                           ? cached->start_up.front().value
                           : measured(called.each.value - flown.each.value,
                                      both(called.each.plus_minus, flown.each.plus_minus),
                                      "broadcasts between two ranks less a ping-pong of flags")}};
    return base::success();
  }

  base::Status measure_memory() {
    model::PathParameters cached, uncached;
    UNISONO_TRY(measure_path(kCached, false, cached));
    tuning_.machine.paths.push_back(std::move(cached));
    UNISONO_TRY(measure_path(kLong, true, uncached));
    tuning_.machine.paths.push_back(std::move(uncached));
    return base::success();
  }

  base::Status measure_copies() {
    if (cores_ < 2) {
      tuning_.left_out.push_back("one copy: there is one core");
      return base::success();
    }
    say("one copy and two");
    std::vector<int> numbers = {2};
    if (cores_ > 2) numbers.push_back(std::min(cores_, kMostCopying));
    for (const int ranks : numbers) {
      for (const std::int64_t bytes : kCopied) {
        const auto one = copied_broadcast(Copies::one, ranks, bytes, probe_ns_ / 2);
        if (!one.ok()) {
          tuning_.copies.clear();
          tuning_.left_out.push_back("one copy: " + one.error().message);
          return base::success();
        }
        UNISONO_ASSIGN(const Sample two,
                       copied_broadcast(Copies::two, ranks, bytes, probe_ns_ / 2));
        tuning_.copies.push_back({ranks, bytes, note(*one), note(two), one->plus_minus});
      }
    }
    return base::success();
  }

  // It decides how calls go. So it takes times that nothing disturbed.
  void take_copies() {
    const auto from = single_copy_from(tuning_.copies);
    if (!from || !tuning_.disturbed.empty()) return;
    const bool is_one_number = tuning_.copies.front().ranks == tuning_.copies.back().ranks;
    tuning_.machine.constants[static_cast<std::size_t>(model::Constant::single_copy_from)] =
        measured(static_cast<double>(from->bytes), static_cast<double>(from->plus_minus),
                 fmt::format("broadcasts of 2 {}ranks with one copy and with two",
                             is_one_number ? std::string()
                                           : fmt::format("and {} ", tuning_.copies.back().ranks)),
                 Unit::bytes);
  }

  base::Status measure_loopback() {
    say("datagrams over loopback");
    std::vector<model::LineTime> flown, sent, received;
    for (const int bytes : kDatagramSizes) {
      const auto times = datagrams(bytes, probe_ns_);
      if (!times.ok()) {
        tuning_.left_out.push_back("datagrams: " + times.error().message);
        return base::success();
      }
      flown.push_back({bytes, note(times->flight)});
      sent.push_back({bytes, note(times->sending)});
      received.push_back({bytes, note(times->receiving)});
    }
    model::LineFit whole, sending_fit, receiving;
    UNISONO_ASSIGN(whole, line("ping-pong of datagrams", flown));
    UNISONO_ASSIGN(sending_fit, line("sending datagrams", sent));
    UNISONO_ASSIGN(receiving, line("receiving datagrams", received));
    model::PathParameters path = tuning_.machine.paths.back();
    const std::string raw = "datagrams over loopback, fit over sizes";
    path.level = model::Level::hosts;
    path.overhead = measured(sending_fit.each.value, sending_fit.each.plus_minus, raw);
    path.overhead_per_byte = per_byte(sending_fit.per_byte, raw);
    path.latency = measured(
        whole.each.value - sending_fit.each.value - receiving.each.value,
        both(whole.each.plus_minus, both(sending_fit.each.plus_minus, receiving.each.plus_minus)),
        "datagrams over loopback, without a network: ping-pong less its ends");
    path.gap_per_byte = none("loopback has no link", Unit::ns_per_byte);
    const double largest = kDatagramSizes.back();
    path.reception.points = {
        {0, measured(receiving.each.value, receiving.each.plus_minus, raw)},
        {kDatagramSizes.back(),
         measured(receiving.each.value + receiving.per_byte.value * largest,
                  receiving.each.plus_minus + receiving.per_byte.plus_minus * largest, raw)}};
    path.reduction = tuning_.machine.paths.front().reduction;
    tuning_.machine.paths.push_back(std::move(path));
    return base::success();
  }

  // It takes hosts to measure it.
  void take_nic_path() {
    for (const model::PathParameters& path : model::default_machine().paths) {
      if (path.level == model::Level::nic) tuning_.machine.paths.push_back(path);
    }
    tuning_.left_out.push_back(
        "NIC path: not measured; its costs are those of the default machine");
    tuning_.left_out.push_back(
        "choices by price: not compared with rules; from which length on each collective goes by "
        "price is the default machine's");
  }

  void measure_cores() {
    say("passing a core on");
    const Sample passed = handing_over(probe_ns_);
    const Sample woken = waking_up(probe_ns_);
    tuning_.machine.hand_over =
        measured(note(passed), passed.plus_minus, "two threads on one core that yield");
    tuning_.machine.wake_up = measured(note(woken), woken.plus_minus, "a futex of another thread");
  }

  // The calls of each engine: with a core for each rank, and with more ranks than cores.
  base::Status measure_messages() {
    std::vector<int> alone, oversubscribed = {2 * cores_};
    for (int ranks = 2; ranks <= std::min(cores_, 4); ++ranks) alone.push_back(ranks);
    if (4 * cores_ <= kMostOversubscribed) oversubscribed.push_back(4 * cores_);
    if (alone.empty()) tuning_.left_out.push_back("messages of ranks with a core each: one core");
    model::Machine with_costs = tuning_.machine;
    if (!alone.empty()) {
      UNISONO_TRY(measure_messages_of(model::Engine::inline_, alone, with_costs));
    }
    UNISONO_TRY(measure_messages_of(model::Engine::helping, oversubscribed, with_costs));
    tuning_.machine = std::move(with_costs);
    return measure_turn(oversubscribed.back());
  }

  base::Status measure_messages_of(model::Engine engine, const std::vector<int>& numbers,
                                   model::Machine& with_costs) {
    const std::string what = fmt::format("calls of many messages, engine {}", engine_name(engine));
    say(what);
    std::vector<MessageTime> times;
    for (const int ranks : numbers) {
      for (const MessageProbe& probe : message_probes(engine == model::Engine::helping)) {
        UNISONO_ASSIGN(const Sample one, many_messages(probe, ranks, probe_ns_ / 2));
        times.push_back({probe, ranks, note(one)});
      }
    }
    UNISONO_ASSIGN(const MessageCosts costs, fit_messages(tuning_.machine, engine, cores_, times));
    const auto note = [&](const std::string& name, const model::Estimate& each) {
      tuning_.fits.push_back({name + ", engine " + std::string(engine_name(engine)), each.value,
                              each.plus_minus, 0, 0, costs.deviation});
    };
    note("sending one of many", costs.overhead);
    note("receiving one of many", costs.reception);
    if (engine == model::Engine::helping) {
      note("passing a core on", costs.hand_over);
    } else {
      note("a call of one message", costs.start_up_and_latency);
    }
    set_message_costs(with_costs, engine, costs, what + ", fit of prices");
    return base::success();
  }

  // A barrier of ranks that share cores takes about a turn of each rank of a core.
  base::Status measure_turn(int ranks) {
    UNISONO_ASSIGN(const Sample one, barrier(ranks, probe_ns_));
    const double of_core = std::ceil(static_cast<double>(ranks) / cores_);
    tuning_.machine.constants[static_cast<std::size_t>(model::Constant::rank_turn)] =
        measured(note(one) / of_core, one.plus_minus / of_core,
                 fmt::format("a barrier of {} ranks, for each of a core", ranks));
    return base::success();
  }

  base::Result<double> predict(schedule::Collective collective, const char* name,
                               const algorithm::Parameters& parameters, int ranks,
                               std::int64_t bytes) const {
    const schedule::Shape shape{.collective = collective, .ranks = ranks, .count = bytes / 8};
    const algorithm::Algorithm& row = *algorithm::find(collective, name);
    const bool shares_cores = ranks > cores_;
    select::Pricing pricing{
        .machine = &tuning_.machine,
        .work = {.engine = shares_cores ? model::Engine::helping : model::Engine::inline_,
                 .type = arith::Type::float64,
                 .staged_multicast = true,
                 .cores = std::max(cores_, shares_cores ? 1 : ranks)},
        .receive_buffer_bytes = comm::plan_segment(ranks, base::Settings())
                                    .receive_buffers[plan::SizeClass::bulk]
                                    .data_bytes};
    if (schedule::is_reduction(collective)) pricing.work.op = arith::Operator::sum;
    UNISONO_ASSIGN(const model::Price price, select::price_of(row, parameters, shape, pricing));
    return price.ns;
  }

  template <class Probe>
  base::Status compare_one(const std::string& what, schedule::Collective collective,
                           const char* name, int ranks, std::int64_t bytes, const Probe& probe) {
    const auto one = probe();
    if (!one.ok()) return one.error();
    note(*one);
    UNISONO_ASSIGN(const double ns, predict(collective, name, {}, ranks, bytes));
    tuning_.comparisons.push_back({what, one->ns, one->plus_minus, ns, ranks, bytes});
    return base::success();
  }

  // They decide nothing in the file. So a disturbance here neither ends the tuning nor lowers the
  // file's confidence.
  base::Status measure_degrees() {
    const std::string name = "degrees of the f-nomial tree";
    say(name);
    const int ranks = std::min(4 * cores_, kMostOversubscribed);
    const int degrees = ranks - 2;
    UNISONO_ASSIGN(why_degrees_, attempt(name, [&]() -> base::Status {
                     for (int degree = 2; degree < ranks; ++degree) {
                       UNISONO_ASSIGN(const Sample one,
                                      reduction_of_degree(degree, ranks, kDegreeBytes,
                                                          probe_ns_ * kProbesOfDegrees / degrees));
                       note(one);
                       tuning_.degrees.push_back({.what = fmt::format("degree {}", degree),
                                                  .measured_ns = one.ns,
                                                  .plus_minus = one.plus_minus,
                                                  .ranks = ranks,
                                                  .bytes = kDegreeBytes,
                                                  .degree = degree});
                     }
                     return base::success();
                   }));
    return base::success();
  }

  base::Status predict_degrees() {
    for (Comparison& each : tuning_.degrees) {
      UNISONO_ASSIGN(each.predicted_ns,
                     predict(schedule::Collective::reduce, "fnomial",
                             algorithm::Parameters{{each.degree}}, each.ranks, each.bytes));
    }
    if (!why_degrees_.empty()) {
      tuning_.disturbed.push_back(fmt::format("degrees of the f-nomial tree: {}", why_degrees_));
    }
    return base::success();
  }

  // The serial reduction shows what the parameters are worth: none was fitted to it.
  base::Status compare() {
    say("serial reductions and barriers");
    std::vector<int> numbers = {2};
    for (int ranks = 3; ranks <= std::min(cores_, 8); ++ranks) numbers.push_back(ranks);
    numbers.push_back(2 * cores_);
    for (const int ranks : numbers) {
      UNISONO_TRY(compare_one(fmt::format("barrier of {}", ranks), schedule::Collective::barrier,
                              "dissemination", ranks, 0,
                              [&] { return barrier(ranks, probe_ns_); }));
      for (const std::int64_t bytes : {8, 4096, 65536, 524288}) {
        UNISONO_TRY(compare_one(fmt::format("reduce of {}, {} bytes", ranks, bytes),
                                schedule::Collective::reduce, "serial", ranks, bytes,
                                [&] { return serial_reduction(ranks, bytes, probe_ns_); }));
      }
    }
    numbers.clear();
    for (int ranks = 2; ranks <= std::min(cores_, 8); ++ranks) numbers.push_back(ranks);
    UNISONO_TRY(fit_serial_of(model::Engine::inline_, numbers));
    const int some = cores_ + std::max(1, cores_ / 2);
    return fit_serial_of(model::Engine::helping, {some, std::max(2 * cores_, some + 1)});
  }

  // The closed form of serial reductions beside them. It decides nothing in the file: these times
  // tell neither C from L nor r from c, and other probes do.
  base::Status fit_serial_of(model::Engine engine, const std::vector<int>& numbers) {
    const std::string name = fmt::format("serial reductions, engine {}", engine_name(engine));
    if (numbers.size() < 2) {
      tuning_.left_out.push_back(name + ": their fit takes two numbers of ranks");
      return base::success();
    }
    std::vector<SerialTime> times;
    std::vector<Comparison> shown;
    for (const int ranks : numbers) {
      for (const std::int64_t bytes : kSerialBytes) {
        UNISONO_ASSIGN(const Sample one, serial_reduction(ranks, bytes, probe_ns_ / 2));
        times.push_back({ranks, bytes, note(one)});
        shown.push_back({.what = fmt::format("{} ranks, {} bytes", ranks, bytes),
                         .measured_ns = one.ns,
                         .plus_minus = one.plus_minus,
                         .ranks = ranks,
                         .bytes = bytes});
      }
    }
    UNISONO_ASSIGN(const SerialFit fit, fit_serial(times));
    for (Comparison& each : shown) each.predicted_ns = fit.ns(each.ranks, each.bytes);
    tuning_.serial.push_back({name, std::move(shown)});
    tuning_.fits.push_back({name + ": C + L", fit.start_up_and_latency.value,
                            fit.start_up_and_latency.plus_minus, 0, 0, fit.fit.deviation});
    tuning_.fits.push_back({name + ": r + c", fit.each.value, fit.each.plus_minus,
                            fit.per_byte.value, fit.per_byte.plus_minus, fit.fit.deviation});
    return base::success();
  }

  TuneOptions options_;
  std::int64_t probe_ns_;
  int cores_;
  Tuning tuning_;
  std::vector<double> spreads_;  // of the samples of the part that is measured
  std::string why_degrees_;      // why the degrees' samples are disturbed; empty: they are not
};

}  // namespace

BestDegrees best_degrees(const std::vector<Comparison>& degrees) {
  if (degrees.empty()) return {};
  return {std::ranges::min_element(degrees, {}, &Comparison::measured_ns)->degree,
          std::ranges::min_element(degrees, {}, &Comparison::predicted_ns)->degree};
}

double price_error(const std::vector<Comparison>& comparisons) {
  double sum = 0;
  for (const Comparison& each : comparisons) {
    const double deviation = std::log(each.predicted_ns / each.measured_ns);
    sum += deviation * deviation;
  }
  if (comparisons.empty()) return 0;
  return std::exp(std::sqrt(sum / static_cast<double>(comparisons.size()))) - 1;
}

base::Result<std::string> measure_undisturbed(const Attempts& attempts) {
  for (int attempt = 1;; ++attempt) {
    UNISONO_TRY(attempts.measure());
    std::string why = attempts.why_disturbed();
    if (why.empty() || attempt >= attempts.most) return why;
    attempts.again(why);
  }
}

base::Result<Tuning> tune_machine(const TuneOptions& options) { return Tuner(options).run(); }

}  // namespace unisono::tools::tune
