// SPDX-License-Identifier: BSD-3-Clause
#include "plan/bind/bind.hpp"

#include <algorithm>
#include <iterator>

#include "base/check.hpp"
#include "plan/bind/landings.hpp"
#include "plan/bind/receive_layout.hpp"
#include "plan/bind/references.hpp"
#include "plan/bind/remote_partners.hpp"

namespace unisono::plan {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

// Writes one rank's program.
// A message from that byte on.
Place payload_of(const MessagePlace& message, std::int64_t from = 0) {
  const bool is_in_line = message.payload + kLinePayload == message.flag;
  return {is_in_line ? Space::receive_buffers : Space::data, message.payload + from};
}

class Binder {
 public:
  Binder(std::span<const Schedule> set, int rank, bool is_own, const BindOptions& options,
         const ReceiveLayout& layout)
      : schedule_(set[static_cast<std::size_t>(rank)]),
        rank_(rank),
        is_own_(is_own),
        options_(options),
        layout_(layout),
        order_(schedule::order_steps(schedule_, options.helping)) {
    if (options.refer_from > 0 && is_own)
      references_ = {set, rank, elements_of(options.refer_from)};
    if (options.land_from > 0 && is_own && options.element_bytes > 0) {
      landings_ = {schedule_, options.hosts, elements_of(options.land_from)};
    }
  }

  Program bind() {
    program_.steps.reserve(is_own_ ? order_.ops.size() : order_.helpable);
    program_.wait_segments.reserve(schedule_.slots.size() + 1);
    program_.woken.reserve(schedule_.targets.size());
    if (layout_.pulls().any()) find_last_readers();
    wait_segment_of_.resize(schedule_.ops.size());
    for (std::size_t i = 0; i < order_.ops.size(); ++i) {
      const schedule::OpId op = order_.ops[i];
      note_wait_segment(op, i > 0 && i == order_.helpable);
      if (!is_own_ && i >= order_.helpable) continue;  // a helper needs no steps beyond
      bind_op(schedule_.ops[static_cast<std::size_t>(op)], op);
      if (layout_.pulls().any()) bind_taken(op);
      if (i + 1 == order_.helpable) {
        program_.helpable_end = static_cast<std::int32_t>(program_.steps.size());
      }
    }
    if (layout_.pulls().any()) bind_returns();
    if (references_.any()) bind_releases();
    program_.looks_ahead = looks_ahead();
    if (order_.helpable > 0) note_staging();
    return std::move(program_);
  }

 private:
  void bind_op(const Op& op, schedule::OpId id) {
    switch (op.kind) {
      case OpKind::send:
        bind_sends(op, id);
        break;
      case OpKind::multicast:
        if (layout_.is_staged(rank_, op)) {
          bind_staged(op, id);
        } else {
          bind_sends(op, id);
        }
        break;
      case OpKind::wait:
        bind_wait(op.slot);
        break;
      case OpKind::reduce:
        bind_elements(op, StepKind::reduce);
        break;
      case OpKind::copy:
        bind_elements(op, StepKind::copy);
        break;
      case OpKind::sum:
        bind_sum(op);
        break;
    }
  }

  void bind_wait(schedule::SlotId slot) {
    Step step;
    step.kind = StepKind::wait;
    step.peer = schedule_.slots[static_cast<std::size_t>(slot)].source;
    step.flag = layout_.slot(rank_, slot).flag;
    step.to_all = is_in_buffer_of(step.peer, step.flag);
    if (lands(slot)) {
      const Range& target = landings_.target(slot);
      step.left = locate(schedule::slot_range(slot, 0, target.count), 0);
      step.target = locate(target, 0);
      step.bytes = target.count * options_.element_bytes;
      const Landing landing = landings_.of(slot);
      step.count = landing == Landing::only_apart ? 1 : 0;
      if (landing != Landing::waited) {
        program_.expected.push_back(
            {static_cast<std::int32_t>(program_.steps.size()), landing != Landing::start});
      }
    }
    program_.steps.push_back(step);
  }

  // A wait segment begins with each wait, and where helping ends. It needs the segments of its ops'
  // predecessors.
  void note_wait_segment(schedule::OpId id, bool helping_ends) {
    const Op& op = schedule_.ops[static_cast<std::size_t>(id)];
    auto& wait_segments = program_.wait_segments;
    if (op.kind == OpKind::wait || helping_ends) {
      wait_segments.push_back(
          {.begin = static_cast<std::int32_t>(program_.steps.size()), .needs = 0});
    }
    const auto own = static_cast<std::int32_t>(wait_segments.size()) - 1;
    wait_segment_of_[static_cast<std::size_t>(id)] = own;
    for (const schedule::OpId before : schedule_.after_of(op)) {
      const std::int32_t needed = wait_segment_of_[static_cast<std::size_t>(before)];
      if (needed >= 0 && needed < own && needed > own - kAhead) {
        wait_segments.back().needs |= wait_segment_bit(needed);
      }
    }
  }

  // Not with pulls. Their sources are released after the last reader in the order of the program,
  // and two reductions share the buffers for pulled data.
  bool looks_ahead() const {
    const auto& wait_segments = program_.wait_segments;
    for (std::size_t s = 1; s < wait_segments.size(); ++s) {
      const std::uint64_t previous = wait_segment_bit(static_cast<std::int32_t>(s) - 1);
      if ((wait_segments[s].needs & previous) == 0) return !layout_.pulls().any();
    }
    return false;
  }

  void bind_sends(const Op& op, schedule::OpId id) {
    Multicast multicast = op.target_count > 1 ? Multicast::first : Multicast::no;
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      Step step = put_to(target.peer);
      step.multicast = multicast;
      if (multicast == Multicast::first) multicast = Multicast::again;
      if (references_.sent(id) != Reference::no) {
        const bool is_long = op.left.count * options_.element_bytes >= options_.refer_in_place_from;
        step.count = static_cast<int>(is_long ? Refer::always : Refer::unless_in_place);
      }
      bind_message(op.left, layout_.slot(target.peer, target.slot), step,
                   layout_.pulls().sent(rank_, id));
    }
  }

  Step put_to(std::int32_t peer) {
    Step step;
    step.kind = StepKind::put;
    step.peer = peer;
    step.first_woken = static_cast<std::int32_t>(program_.woken.size());
    step.woken_count = 1;
    program_.woken.push_back(peer);
    return step;
  }

  bool is_in_buffer_of(int rank, std::int64_t place) const {
    return place / layout_.geometry().rank_stride() == rank;
  }

  void bind_staged(const Op& op, schedule::OpId id) {
    Step step;
    step.kind = StepKind::put;
    step.peer = rank_;
    step.multicast = op.target_count > 1 ? Multicast::first : Multicast::no;
    step.first_woken = static_cast<std::int32_t>(program_.woken.size());
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      if (options_.hosts.share(rank_, target.peer)) program_.woken.push_back(target.peer);
    }
    step.woken_count = static_cast<std::int32_t>(program_.woken.size()) - step.first_woken;
    const MessagePlace& place = layout_.outbox(rank_, id);
    if (step.woken_count == op.target_count) {
      bind_message(op.left, place, step, layout_.pulls().sent(rank_, id));
    } else {
      bind_to_all(op.left, place, step);
    }
  }

  // Other hosts get one piece. Data in several pieces, or read on this host too, is sent from the
  // outbox.
  void bind_to_all(const Range& source, const MessagePlace& place, const Step& local) {
    const Place outbox = payload_of(place);
    const bool is_read_here = local.woken_count > 0;
    const bool in_pieces = source.count > 0 && piece_length(source, 0) < source.count;
    if (is_read_here || in_pieces) {
      for (std::int64_t done = 0; done < source.count;) {
        const std::int64_t piece = piece_length(source, done);
        Step copy;
        copy.kind = is_referred(source) ? StepKind::copy_referred : StepKind::copy;
        copy.target = payload_of(place, done * options_.element_bytes);
        copy.left = locate(source, done);
        copy.count = piece;
        copy.bytes = piece * options_.element_bytes;
        program_.steps.push_back(copy);
        done += piece;
      }
    }
    Step step;
    step.kind = StepKind::put;
    step.multicast = local.multicast;
    step.peer = rank_;
    step.to_all = true;
    step.target = outbox;
    step.left = source.count == 0 || is_read_here || in_pieces ? outbox : locate(source, 0);
    if (step.left.line >= 0) step.kind = StepKind::put_or_refer;
    step.bytes = source.count * options_.element_bytes;
    step.flag = place.flag;
    program_.steps.push_back(step);
    if (!is_read_here) return;
    step = local;
    step.multicast = Multicast::no;
    step.target = step.left = outbox;
    step.flag = place.flag;
    program_.steps.push_back(step);
  }

  // An advertisement, or one put for each contiguous piece of the source; the last one carries the
  // flag.
  void bind_message(const Range& source, const MessagePlace& place, Step step, bool advertised) {
    if (advertised) {
      step.kind = StepKind::advertise;
      step.target = payload_of(place);
      step.left = locate(source, 0);
      step.flag = place.flag;
      program_.steps.push_back(step);
      return;
    }
    const Step last = step;
    std::int64_t done = 0;
    do {
      const std::int64_t piece = piece_length(source, done);
      step = last;
      step.target = payload_of(place, done * options_.element_bytes);
      step.left = piece == 0 ? payload_of(place) : locate(source, done);
      step.bytes = piece * options_.element_bytes;
      if (is_referred(source)) step.kind = StepKind::put_or_refer;
      done += piece;
      if (done == source.count) {
        step.flag = place.flag;
        if (step.count != 0) step.kind = StepKind::put_or_refer;
        // Only what lies in one piece can be referred to.
        if (step.count != 0 && piece < source.count) step.count = static_cast<int>(Refer::copy);
      } else {
        step.count = static_cast<int>(Refer::resolve);
        step.woken_count = 0;
        step.multicast = Multicast::no;  // the last piece counts for all
      }
      program_.steps.push_back(step);
    } while (done < source.count);
  }

  void bind_elements(const Op& op, StepKind kind) {
    const bool pulls_left = is_pulled(op.left);
    const bool pulls_right = kind == StepKind::reduce && is_pulled(op.right);
    for (std::int64_t done = 0; done < op.target.count;) {
      std::int64_t piece = std::min(piece_length(op.target, done), piece_length(op.left, done));
      if (kind == StepKind::reduce) piece = std::min(piece, piece_length(op.right, done));
      if (kind == StepKind::copy && pulls_left) {
        bind_pull(op.left, done, piece, locate(op.target, done));
        done += piece;
        continue;
      }
      if (pulls_left || pulls_right) piece = std::min(piece, layout_.bounce_count(rank_));
      Step step;
      step.kind = kind;
      if (is_referred(op.left) || (kind == StepKind::reduce && is_referred(op.right))) {
        step.kind = kind == StepKind::reduce ? StepKind::reduce_referred : StepKind::copy_referred;
      }
      step.target = locate(op.target, done);
      step.left = pulls_left ? bind_bounce(op.left, done, piece, 0) : locate(op.left, done);
      if (kind == StepKind::reduce) {
        step.right = pulls_right ? bind_bounce(op.right, done, piece, pulls_left ? 1 : 0)
                                 : locate(op.right, done);
      }
      step.count = piece;
      step.bytes = piece * options_.element_bytes;
      program_.steps.push_back(step);
      done += piece;
    }
  }

  void bind_sum(const Op& op) {
    const auto operands = schedule_.operands_of(op);
    const bool pulls = std::ranges::any_of(operands, [&](const Range& r) { return is_pulled(r); });
    for (std::int64_t done = 0; done < op.target.count;) {
      std::int64_t piece = piece_length(op.target, done);
      for (const Range& operand : operands) {
        piece = std::min(piece, piece_length(operand, done));
      }
      if (pulls) piece = std::min(piece, layout_.bounce_count(rank_));
      Step step;
      step.kind = StepKind::sum;
      step.target = locate(op.target, done);
      step.first_operand = static_cast<std::int32_t>(program_.operands.size());
      step.operand_count = op.operand_count;
      int bounce = 0;
      for (const Range& operand : operands) {
        program_.operands.push_back(is_pulled(operand) ? bind_bounce(operand, done, piece, bounce++)
                                                       : locate(operand, done));
      }
      step.count = piece;
      step.bytes = piece * options_.element_bytes;
      program_.steps.push_back(step);
      done += piece;
    }
  }

  bool is_pulled(const Range& range) const {
    return range.memory == Memory::slot && layout_.pulls().received(rank_, range.slot);
  }

  // Elements [done, done + piece) of a range of a pulled slot.
  void bind_pull(const Range& range, std::int64_t done, std::int64_t piece, Place target) {
    Step step;
    step.kind = StepKind::pull;
    step.peer = schedule_.slots[static_cast<std::size_t>(range.slot)].source;
    step.target = target;
    step.left = payload_of(layout_.slot(rank_, range.slot));
    step.count = (range.offset + done) * options_.element_bytes;
    step.bytes = piece * options_.element_bytes;
    program_.steps.push_back(step);
  }
  Place bind_bounce(const Range& range, std::int64_t done, std::int64_t piece, int number) {
    const Place bounce = {Space::data, layout_.bounce(rank_, number)};
    bind_pull(range, done, piece, bounce);
    return bounce;
  }

  // Lines hold shorter messages.
  std::int64_t elements_of(std::int64_t bytes) const {
    return (std::max(bytes, kLinePayload + 1) + options_.element_bytes - 1) /
           options_.element_bytes;
  }
  bool is_referred(const Range& range) const {
    return range.memory == Memory::slot &&
           (references_.received(range.slot) != Reference::no || lands(range.slot));
  }
  bool lands(schedule::SlotId slot) const {
    if (landings_.of(slot) == Landing::no) return false;
    const Range& target = landings_.target(slot);
    const int source = schedule_.slots[static_cast<std::size_t>(slot)].source;
    return piece_length(target, 0) == target.count &&
           !is_in_buffer_of(source, layout_.slot(rank_, slot).flag);
  }

  // At the end, in a wait segment that needs all others: out of order, a reader may be the last
  // one. A release comes before all waits for one, so they cannot deadlock.
  void bind_releases() {
    program_.wait_segments.push_back(
        {.begin = static_cast<std::int32_t>(program_.steps.size()), .needs = ~std::uint64_t{0}});
    for (std::size_t s = 0; s < schedule_.slots.size(); ++s) {
      if (references_.received(static_cast<schedule::SlotId>(s)) != Reference::released) continue;
      Step step = put_to(schedule_.slots[s].source);
      step.kind = StepKind::release;
      step.flag = layout_.slot(rank_, static_cast<schedule::SlotId>(s)).flag;
      program_.steps.push_back(step);
    }
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      if (references_.sent(static_cast<schedule::OpId>(i)) != Reference::released) continue;
      const schedule::Target& target = schedule_.targets_of(schedule_.ops[i]).front();
      Step step;
      step.kind = StepKind::await_release;
      step.peer = target.peer;
      step.flag = layout_.slot(target.peer, target.slot).flag;
      program_.steps.push_back(step);
    }
  }

  void find_last_readers() {
    last_reader_.assign(schedule_.slots.size(), -1);
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      const Op& op = schedule_.ops[i];
      const auto note = [&](schedule::SlotId slot) {
        last_reader_[static_cast<std::size_t>(slot)] = static_cast<schedule::OpId>(i);
      };
      if (op.kind == OpKind::wait) note(op.slot);
      if (!schedule::writes_range(op)) continue;
      schedule::for_each_read(schedule_, op, [&](const Range& range) {
        if (range.memory == Memory::slot) note(range.slot);
      });
    }
  }

  // Releases the sources whose last reader this op was.
  void bind_taken(schedule::OpId op) {
    for (std::size_t s = 0; s < last_reader_.size(); ++s) {
      const auto slot = static_cast<schedule::SlotId>(s);
      if (last_reader_[s] != op || !layout_.pulls().received(rank_, slot)) continue;
      Step step = put_to(schedule_.slots[s].source);
      step.flag = layout_.slot(rank_, slot).taken;
      step.target = step.left = {Space::receive_buffers, step.flag};
      program_.steps.push_back(step);
    }
  }

  // At the end, the own sources have to be free again.
  void bind_returns() {
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      if (!layout_.pulls().sent(rank_, static_cast<schedule::OpId>(i))) continue;
      for (const schedule::Target& target : schedule_.targets_of(schedule_.ops[i])) {
        Step step;
        step.kind = StepKind::wait;
        step.peer = target.peer;
        step.flag = layout_.slot(target.peer, target.slot).taken;
        program_.steps.push_back(step);
      }
    }
  }

  // Data that others may touch is staged, without gaps. Only their owner knows and touches their
  // buffers.
  const BufferLayout* layout_of(Memory memory) const {
    switch (memory) {
      case Memory::input:
        return is_own_ && !order_.stages_input ? &options_.input : nullptr;
      case Memory::output:
        return is_own_ && !order_.stages_output ? &options_.output : nullptr;
      case Memory::scratch:
      case Memory::slot:
        return nullptr;
    }
    return nullptr;
  }

  // Elements of the range from its element `from` on that lie next to each other.
  std::int64_t piece_length(const Range& range, std::int64_t from) const {
    const std::int64_t left = range.count - from;
    const BufferLayout* buffer = layout_of(range.memory);
    // An empty range may lie behind the last piece.
    if (left == 0 || buffer == nullptr || buffer->contiguous()) return left;
    const BufferLayout::Piece& piece = buffer->piece_of(range.offset + from);
    return std::min(left, piece.offset + piece.count - range.offset - from);
  }

  Place locate(const Range& range, std::int64_t from) const {
    const std::int64_t element = range.offset + from;
    switch (range.memory) {
      case Memory::input:
        return {Space::input, in_buffer(layout_of(Memory::input), element)};
      case Memory::output:
        return {Space::output, in_buffer(layout_of(Memory::output), element)};
      case Memory::scratch:
        return {Space::data, layout_.scratch(rank_) + element * options_.element_bytes};
      case Memory::slot: {
        const MessagePlace& slot = layout_.slot(rank_, range.slot);
        Place place = payload_of(slot, element * options_.element_bytes);
        if (is_referred(range)) place.line = static_cast<std::int32_t>(slot.flag / kLineBytes);
        return place;
      }
    }
    return {};
  }

  std::int64_t in_buffer(const BufferLayout* buffer, std::int64_t element) const {
    if (buffer != nullptr && !buffer->contiguous()) {
      const BufferLayout::Piece& piece = buffer->piece_of(element);
      element += piece.place - piece.offset;
    }
    return element * options_.element_bytes;
  }

  void note_staging() {
    program_.stages_input = order_.stages_input;
    program_.stages_output = order_.stages_output;
    program_.gathers_input = order_.stages_input && is_own_ && !options_.input.contiguous();
    program_.staged_input = layout_.staged_input(rank_);
    program_.staged_output = layout_.staged_output(rank_);
    program_.input_pieces = pieces(options_.input, schedule::input_count(schedule_.shape, rank_));
    program_.output_pieces =
        pieces(options_.output, schedule::output_count(schedule_.shape, rank_));
  }

  std::vector<Program::Piece> pieces(const BufferLayout& buffer, std::int64_t count) const {
    const std::int64_t bytes = options_.element_bytes;
    if (!is_own_ || count == 0) return {};
    if (buffer.contiguous()) return {{.staged = 0, .place = 0, .bytes = count * bytes}};
    std::vector<Program::Piece> all;
    for (const auto& [offset, length, place] : buffer.pieces) {
      all.push_back({.staged = offset * bytes, .place = place * bytes, .bytes = length * bytes});
    }
    return all;
  }

  const Schedule& schedule_;
  int rank_;
  bool is_own_;
  const BindOptions& options_;
  const ReceiveLayout& layout_;
  const schedule::StepOrder order_;
  References references_;
  Landings landings_;
  std::vector<schedule::OpId> last_reader_;    // by slot; only with pulls
  std::vector<std::int32_t> wait_segment_of_;  // by op; -1: before all wait segments
  Program program_;
};

void find_fed(std::vector<Program>& programs) {
  for (Program& program : programs) {
    std::vector<std::int32_t>& fed = program.feeds;
    for (const Step& step : program.steps) {
      for (std::int32_t i = 0; i < step.woken_count; ++i) {
        const std::int32_t peer = program.woken[static_cast<std::size_t>(step.first_woken + i)];
        if (programs[static_cast<std::size_t>(peer)].helpable_end > 0) fed.push_back(peer);
      }
    }
    std::ranges::sort(fed);
    fed.erase(std::unique(fed.begin(), fed.end()), fed.end());
  }
}

}  // namespace

const BufferLayout::Piece& BufferLayout::piece_of(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(pieces, element, {}, &Piece::offset);
  UNISONO_CHECK(
      after != pieces.begin() && element < std::prev(after)->offset + std::prev(after)->count,
      "an element outside a buffer's layout");
  return *std::prev(after);
}

ReceiveNeed receive_need(std::span<const schedule::Schedule> set, const BindOptions& options) {
  return ReceiveLayout(set, options).need();
}

std::vector<Program> bind_schedules(std::span<const schedule::Schedule> set, int rank,
                                    const BindOptions& options) {
  return bind_schedules(set, rank, options, ReceiveLayout(set, options));
}

std::vector<Program> bind_schedules(std::span<const schedule::Schedule> set, int rank,
                                    const BindOptions& options, const ReceiveLayout& layout) {
  UNISONO_CHECK(layout.need().fits(layout.geometry()),
                "a schedule set larger than its receive buffers");
  UNISONO_CHECK(!options.hosts.given() || (!options.helping && options.pull_from == 0),
                "what needs one memory, between hosts");
  UNISONO_CHECK(options.pull_from == 0 ||
                    (!options.helping && options.input.contiguous() && options.output.contiguous()),
                "pulls need contiguous buffers, and their owner to do it");
  UNISONO_CHECK(options.land_from == 0 || (!options.helping && options.pull_from == 0),
                "landings need their owner to do the steps");
  UNISONO_CHECK(options.refer_from == 0 ||
                    (!options.helping && !options.hosts.given() && options.pull_from == 0),
                "references need one memory, and their owner to do the steps");
  // A rank whose sends all come before its waits publishes nothing, and others do not need its
  // program.
  std::vector<Program> programs(set.size());
  for (std::size_t r = 0; r < set.size(); ++r) {
    const int number = static_cast<int>(r);
    if (number != rank && !layout.helpable(number).any) continue;
    programs[r] = Binder(set, number, number == rank, options, layout).bind();
  }
  if (options.helping) find_fed(programs);
  Program& own = programs[static_cast<std::size_t>(rank)];
  // The sender of a reference reads a word of its receiver's buffers.
  own.only_owners_read = layout.only_owners_read() && options.refer_from == 0;
  own.callers_memory_is_read = layout.pulls().any() || options.refer_from != 0;
  note_receivers_here(own, set[static_cast<std::size_t>(rank)], options.hosts);
  if (options.hosts.given()) {
    if (layout.need().multicast_bytes >= 0) {
      note_all_remote(own, rank, options.hosts);
    } else {
      note_remote_partners(own, set, rank, options.hosts);
    }
  }
  return programs;
}

}  // namespace unisono::plan
