// SPDX-License-Identifier: BSD-3-Clause
#include "plan/make_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "check/check.hpp"
#include "model/default_machine.hpp"
#include "model/machine.hpp"
#include "plan/bind/bind.hpp"
#include "plan/bind/bind_local.hpp"
#include "plan/bind/receive_layout.hpp"
#include "plan/plan_cache.hpp"
#include "plan/segments.hpp"

namespace unisono::plan {
namespace {

using base::Code;
using base::Error;
using base::Result;
using schedule::Schedule;
using schedule::Shape;

// Segments are cut at a multiple of this, to keep vector loads aligned.
constexpr std::int64_t kSegmentUnit = 256;
// The least share of a rank in another's receive buffer. With it, blocks of any length go between
// hosts in pieces.
constexpr std::int64_t kLeastShare = 64;
// Multicasts use at most so much of a long receive buffer. Every host has a copy of that part of
// each sender's buffers.
constexpr std::int64_t kMostMulticast = 1024 * 1024;
// So much of it is shared by the blocks of a call whose counts a rank does not know. It becomes
// real memory however short they are, but for long ones between hosts.
constexpr std::int64_t kMostOfLocalCounts = 1024 * 1024;
constexpr std::int64_t kMostOfShortBlocks = 256 * 1024;
// The buffers for long messages hold so many times what an operation may stage without waiting for
// its receivers. Two operations use memory at a time.
constexpr std::int64_t kFewestLasting = 2;
// A round of staging has at least so many operations: those that a rank may be ahead.
constexpr std::int64_t kFewestInRound = 8;

// The schedules of all ranks for a shape, and how they lie in receive buffers of some size.
struct LaidOut {
  LaidOut(const Shape& of, std::vector<Schedule> schedules, const BindOptions& how)
      : shape(of), set(std::move(schedules)), options(how), layout(set, options) {}
  LaidOut(const LaidOut&) = delete;
  LaidOut& operator=(const LaidOut&) = delete;

  Shape shape;
  std::vector<Schedule> set;
  BindOptions options;
  ReceiveLayout layout;
};

// The programs of one plan in the making.
class ProgramMaker {
 public:
  ProgramMaker(const PlanContext& context, const Call& call, const select::Choice& choice,
               Plan& plan)
      : context_(context),
        call_(call),
        choice_(choice),
        plan_(plan),
        shape_(shape_of(call, context)) {}

  base::Status make() {
    plan_.engine = choice_.engine;
    UNISONO_TRY(call_.local_counts ? make_local() : make_global());
    if (moves_on()) {
      plan_.rotation = rotate(context_.receive_buffers[plan_.size], plan_.receive_buffer_bytes,
                              limit(model::Constant::data_round));
    }
    const std::shared_ptr<Plan::Part[]> parts = std::make_shared<Plan::Part[]>(parts_.size());
    std::ranges::move(parts_, parts.get());
    plan_.parts = parts;
    return base::success();
  }

 private:
  std::int64_t limit(model::Constant constant) const { return machine_bytes(context_, constant); }

  const ReceiveGeometry& bulk() const { return context_.receive_buffers[SizeClass::bulk]; }
  bool fits_bulk(const ReceiveNeed& need) const {
    return need.fits(bulk()) && need.multicast_bytes <= kMostMulticast;
  }
  std::string name() const { return algorithm::describe(*choice_.algorithm, choice_.parameters); }

  Result<std::vector<Schedule>> build_set(const Shape& shape) const {
    const algorithm::Algorithm& row = *choice_.algorithm;
    std::vector<Schedule> set;
    set.reserve(static_cast<std::size_t>(shape.ranks));
    UNISONO_ASSIGN(Schedule first, algorithm::build(row, shape, choice_.parameters, 0));
    set.push_back(std::move(first));
    // The choice is legal for all ranks or for none.
    for (int r = 1; r < shape.ranks; ++r) set.push_back(row.build(shape, choice_.parameters, r));
    return set;
  }

  // Schedules serve for buffers of several sizes.
  Result<std::unique_ptr<LaidOut>> lay_out(const Shape& shape, const BindOptions& how) const {
    UNISONO_ASSIGN(auto set, build_set(shape));
    return std::make_unique<LaidOut>(shape, std::move(set), how);
  }

  BufferLayout input_layout(const Shape& part) const {
    return layout_of(shape_, part, {context_.rank, Buffer::Side::input, call_.input_places.get()});
  }
  BufferLayout output_layout(const Shape& part) const {
    return layout_of(shape_, part,
                     {context_.rank, Buffer::Side::output, call_.output_places.get()});
  }

  BindOptions options(const ReceiveGeometry& geometry, const Shape& part) const {
    BindOptions options{.element_bytes = call_.element_bytes,
                        .input = input_layout(part),
                        .output = output_layout(part),
                        .geometry = geometry,
                        .staged_multicast = context_.staged_multicast,
                        .helping = plan_.engine == select::EngineKind::helping,
                        .land_from = context_.land_from,
                        .hosts = context_.hosts,
                        .group = context_.group};
    if (options.helping) options.land_from = 0;
    return options;
  }

  Result<std::vector<Program>> bind(const LaidOut& laid_out, const BindOptions& options) const {
    UNISONO_TRY(prove_if_asked(laid_out.set));
    return bind_schedules(laid_out.set, context_.rank, options, laid_out.layout);
  }

  base::Status prove_if_asked(const std::vector<Schedule>& set) const {
    if (context_.check != base::Toggle::on) return base::success();
    const auto violations = check::prove(set, 1);
    if (violations.empty()) return base::success();
    return Error{Code::unsupported,
                 fmt::format("algorithm {} failed its proof: {} (a defect: please report it)",
                             name(), violations.front().message)};
  }

  // Whether the data of successive operations lies in different places. Between hosts, buffers are
  // real memory as far as a call uses them only. Pulled data passes a part that is to stay in a
  // core's cache. Ranks with local counts share the whole data area.
  bool moves_on() const {
    return are_apart() && plan_.size != SizeClass::small && !call_.local_counts &&
           !plan_.single_copy;
  }
  // Whether ranks of one host have cores of their own, which wait for each other's cache lines.
  bool are_apart() const { return !context_.hosts.given() && !context_.oversubscribed; }

  // For calls with counts that all ranks know.
  base::Status make_global() {
    longest_ = longest_vector(shape_);
    UNISONO_ASSIGN(const bool is_pulled, try_single_copy());
    if (is_pulled) return base::success();
    for (const SizeClass size : {SizeClass::small, SizeClass::middle}) {
      UNISONO_ASSIGN(const bool fits, try_size(size));
      if (fits) return base::success();
    }
    return make_bulk();
  }

  // Schedules need the same in buffers of any size.
  Result<bool> try_size(SizeClass size) {
    const ReceiveGeometry& geometry = context_.receive_buffers[size];
    if (!geometry.given() || longest_ * call_.element_bytes > geometry.receive_buffer_bytes())
      return false;
    // On one host the middle ones have room for a long round, and small ones have none.
    if (size == SizeClass::middle && !context_.hosts.given() && !are_apart()) return false;
    if (size == SizeClass::small && are_apart() &&
        context_.receive_buffers[SizeClass::middle].given() &&
        longest_ * call_.element_bytes >= limit(model::Constant::moved_from))
      return false;
    plan_.size = size;
    if (laid_out_ == nullptr) {
      UNISONO_ASSIGN(laid_out_, lay_out(shape_, options(geometry, shape_)));
    }
    if (!laid_out_->layout.need().fits(geometry)) return false;
    laid_out_->layout.place_in(geometry);
    return bind_whole(*laid_out_, with_references(laid_out_->options));
  }

  // The whole vector in one part, if every long message can be pulled.
  Result<bool> try_single_copy() {
    if (call_.blocks.given() ||
        !select::prefers_single_copy(shape_, circumstances_of(call_, context_)))
      return false;
    BindOptions how = options(bulk(), shape_);
    how.helping = false;
    how.land_from = 0;
    how.pull_from = std::max<std::int64_t>(
        1, std::min(longest_ * call_.element_bytes, limit(model::Constant::pulled_from)));
    UNISONO_ASSIGN(const auto laid_out, lay_out(shape_, how));
    if (!laid_out->layout.need().fits(how.geometry)) return false;
    UNISONO_TRY(bind_whole(*laid_out, laid_out->options));
    plan_.engine = select::EngineKind::inline_;
    plan_.size = SizeClass::bulk;
    plan_.single_copy = true;
    return true;
  }

  void use_receive_buffers(const ReceiveNeed& need) {
    plan_.receive_buffer_bytes = std::max(plan_.receive_buffer_bytes, need.data_bytes);
    plan_.multicast_bytes = std::max(plan_.multicast_bytes, need.multicast_bytes);
  }

  // Without segments. Errors: those of a proof.
  Result<bool> bind_whole(const LaidOut& laid_out, const BindOptions& how) {
    use_receive_buffers(laid_out.layout.need());
    UNISONO_ASSIGN(auto programs, bind(laid_out, how));
    parts_.push_back({1, std::move(programs)});
    return true;
  }

  base::Status make_bulk() {
    plan_.size = SizeClass::bulk;
    UNISONO_ASSIGN(std::int64_t segment, find_segment());
    for (;;) {
      UNISONO_ASSIGN(const ReceiveNeed need, try_segments(segment));
      if (fits_bulk(need)) return base::success();
      if (segment == 1) return too_small(need);
      segment = shorter(segment, segment / 2);
    }
  }

  // Blocks of different lengths end in different segments, and a later one may need more room than
  // the first. Returns the need of the first one that does not fit, or of the last one. All ranks
  // find the same.
  Result<ReceiveNeed> try_segments(std::int64_t segment) {
    ReceiveNeed need;
    parts_.clear();
    plan_.segments = std::max<std::int64_t>(1, (longest_ + segment - 1) / segment);
    const std::int64_t stride = segment * call_.element_bytes;
    plan_.input_stride = schedule::input_count(shape_, context_.rank) > 0 ? stride : 0;
    plan_.output_stride = schedule::output_count(shape_, context_.rank) > 0 ? stride : 0;
    plan_.overlaps_in_place = overlaps_in_place(shape_, context_.rank);
    for (std::int64_t n = 0; n < plan_.segments; ++n) {
      const Shape part = segment_of(shape_, n * segment, segment);
      if (n > 0 && part == last_part_) {
        parts_.back().end = n + 1;
        continue;
      }
      UNISONO_TRY(lay_out_in_bulk(part));
      const std::unique_ptr<LaidOut> laid_out = std::move(laid_out_);
      need = laid_out->layout.need();
      if (!fits_bulk(need)) return need;
      use_receive_buffers(need);
      UNISONO_ASSIGN(auto programs, bind(*laid_out, with_references(options(bulk(), part))));
      parts_.push_back({n + 1, std::move(programs)});
      last_part_ = part;
    }
    return need;
  }

  // Short messages are copied faster.
  BindOptions with_references(BindOptions how) const {
    const bool refers = context_.refer && !how.helping && !how.hosts.given() &&
                        plan_.size != SizeClass::small && schedule::is_reduction(shape_.collective);
    how.refer_from = refers ? limit(model::Constant::referred_from) : 0;
    how.refer_in_place_from = limit(model::Constant::referred_in_place_from);
    return how;
  }

  // Builds nothing if that is what was laid out last, maybe in buffers of another size.
  base::Status lay_out_in_bulk(const Shape& part) {
    if (laid_out_ == nullptr || laid_out_->shape != part) {
      UNISONO_ASSIGN(laid_out_, lay_out(part, options(bulk(), part)));
    }
    laid_out_->layout.place_in(bulk());
    return base::success();
  }

  // The longest segment whose schedules fit the bulk buffers. All ranks find the same. It keeps
  // these schedules, which are those of the first segment.
  Result<std::int64_t> find_segment() {
    const std::int64_t most = most_of_segment(context_, call_.collective);
    std::int64_t segment =
        std::max<std::int64_t>(1, std::min(longest_, most / call_.element_bytes));
    for (;;) {
      UNISONO_TRY(lay_out_in_bulk(segment_of(shape_, 0, segment)));
      const ReceiveNeed need = laid_out_->layout.need();
      if (fits_bulk(need)) return segment;
      if (segment <= 1) return too_small(need);
      const auto share = [](std::int64_t room, std::int64_t bytes) {
        return static_cast<double>(room) / static_cast<double>(std::max<std::int64_t>(bytes, 1));
      };
      const double fitting =
          static_cast<double>(segment) * std::min(share(bulk().data_bytes, need.data_bytes),
                                                  share(kMostMulticast, need.multicast_bytes));
      segment = shorter(segment, static_cast<std::int64_t>(fitting));
    }
  }

  Error too_small(const ReceiveNeed& need) const {
    return {
        Code::resources,
        fmt::format(
            "{} on {} ranks needs receive buffers of {} lines and {} bytes, but they have {} "
            "and {}; raise UNISONO_BUFFERS",
            name(), context_.ranks, need.lines, need.data_bytes, bulk().lines, bulk().data_bytes)};
  }

  static std::int64_t shorter(std::int64_t segment, std::int64_t wanted) {
    std::int64_t next = std::min(segment - 1, wanted);
    if (next > kSegmentUnit) next -= next % kSegmentUnit;
    return std::max<std::int64_t>(1, next);
  }

  // This rank's own schedule. It is proved with the schedules that the others would have if they
  // exchanged data with this rank only. Their other counts are not known here.
  Result<Schedule> build_local() const {
    if (context_.check != base::Toggle::on) {
      return algorithm::build(*choice_.algorithm, shape_, {}, context_.rank);
    }
    UNISONO_ASSIGN(auto set, build_set(shape_));
    UNISONO_TRY(prove_if_asked(set));
    return std::move(set[static_cast<std::size_t>(context_.rank)]);
  }

  // Within a host, a gather or scatter uses the buffers for short messages, which have more slot
  // indexes. A rank cannot know whether other ranks have long blocks, and those are advertised.
  // Staging holds as much as the buffers for long messages, so that senders do not wait for each
  // call's receivers. In an alltoall each rank waits for all others, so that more slot indexes
  // only use more of the caches. Between hosts a block of medium length would be fetched instead
  // of sent.
  //
  // One part only: ranks that do not know each other's counts cannot agree on more.
  base::Status make_local() {
    UNISONO_ASSIGN(const Schedule schedule, build_local());
    const bool runs_ahead =
        shape_.collective != schedule::Collective::alltoall && !context_.hosts.given();
    const SizeClass size = runs_ahead ? SizeClass::small : SizeClass::bulk;
    const std::int64_t staged_ahead = bulk().slot_indexes * bulk().data_bytes;
    LocalOptions how{.element_bytes = call_.element_bytes,
                     .input = input_layout(shape_),
                     .output = output_layout(shape_),
                     .geometry = context_.receive_buffers[size],
                     .most_bytes = kMostOfLocalCounts,
                     .most_of_short = kMostOfShortBlocks,
                     .pull = context_.pull,
                     .staged_up_to = limit(model::Constant::staged_up_to),
                     .pull_from = context_.single_copy_from,
                     .lasting_up_to = runs_ahead ? staged_ahead / kFewestLasting : 0,
                     .in_place = call_.in_place,
                     .hosts = context_.hosts};
    if (how.hosts.given() && longest_block(how) < kLeastShare) {
      return Error{Code::resources,
                   fmt::format("{} on {} ranks of several hosts needs a share of {} bytes of the "
                               "receive buffers for each, but they have {}; raise UNISONO_BUFFERS",
                               name(), context_.ranks, kLeastShare, longest_block(how))};
    }
    std::vector<Program> programs(static_cast<std::size_t>(context_.ranks));
    auto& own = programs[static_cast<std::size_t>(context_.rank)];
    own = bind_local(schedule, how);
    plan_.staging_bytes = own.staging_bytes;
    plan_.staging_lasts = own.staging_lasts;
    if (own.staging_lasts) {
      // All that ranks have staged should stay in their caches together.
      const std::int64_t senders =
          shape_.collective == schedule::Collective::scatter ? 1 : context_.ranks;
      plan_.ahead = std::clamp<std::int64_t>(staged_ahead / senders / own.staging_bytes, 1,
                                             bulk().slot_indexes);
    }
    const std::int64_t round = limit(model::Constant::data_round);
    if (are_apart() && own.staging_bytes * kFewestInRound <= round) {
      plan_.staging_round = round;
      plan_.rotation.is_long = true;
    }
    plan_.size = size;
    plan_.receive_buffer_bytes = own.data_bytes;
    parts_.push_back({1, std::move(programs)});
    return base::success();
  }

  const PlanContext& context_;
  const Call& call_;
  const select::Choice& choice_;
  Plan& plan_;
  Shape shape_;
  std::int64_t longest_ = 0;
  std::unique_ptr<LaidOut> laid_out_;  // the last one, until a part of the plan uses it
  Shape last_part_;                    // of the plan
  std::vector<Plan::Part> parts_;
};

}  // namespace

base::Status make_programs(const PlanContext& context, const Call& call,
                           const select::Choice& choice, Plan& plan) {
  return ProgramMaker(context, call, choice, plan).make();
}

}  // namespace unisono::plan
