// SPDX-License-Identifier: BSD-3-Clause
#include "engine/bind.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace unisono::engine {
namespace {

using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

std::int64_t round_to_line(std::int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Where a message lies: payload and flag, as offsets in Space::windows.
struct MessagePlace {
  std::int64_t payload = 0;
  std::int64_t flag = 0;
};

// The layout of every rank's window.
class WindowLayout {
 public:
  WindowLayout(std::span<const Schedule> set, const BindOptions& options)
      : set_(set), options_(options), ranks_(set.size()) {
    for (std::size_t r = 0; r < set.size(); ++r) {
      ranks_[r].slots.assign(set[r].slots.size(), MessagePlace{-1, -1});
      ranks_[r].outboxes.assign(set[r].ops.size(), MessagePlace{-1, -1});
    }
    if (options.staged_multicast) place_outboxes();
    for (std::size_t r = 0; r < set.size(); ++r) place_rank(static_cast<int>(r));
  }

  const MessagePlace& slot(int rank, schedule::SlotId id) const {
    return at(rank).slots[static_cast<std::size_t>(id)];
  }
  const MessagePlace& outbox(int rank, schedule::OpId op) const {
    return at(rank).outboxes[static_cast<std::size_t>(op)];
  }
  std::int64_t scratch(int rank) const { return at(rank).scratch; }
  std::int64_t staged_input(int rank) const { return at(rank).staged_input; }
  std::int64_t staged_output(int rank) const { return at(rank).staged_output; }
  WindowNeed need() const {
    WindowNeed need;
    for (const RankLayout& layout : ranks_) {
      need.lines = std::max(need.lines, layout.lines);
      need.data_bytes = std::max(need.data_bytes, layout.data_bytes);
    }
    return need;
  }

 private:
  struct RankLayout {
    std::vector<MessagePlace> slots;
    std::vector<MessagePlace> outboxes;  // by op; multicasts only
    std::int64_t scratch = 0, staged_input = 0, staged_output = 0;
    std::int64_t lines = 0, data_bytes = 0;
  };

  const RankLayout& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  std::int64_t window_of(int rank) const { return rank * options_.geometry.window_bytes(); }

  std::int64_t take_data(int rank, std::int64_t bytes) {
    RankLayout& layout = ranks_[static_cast<std::size_t>(rank)];
    const std::int64_t offset =
        window_of(rank) + options_.geometry.lines * kLineBytes + layout.data_bytes;
    layout.data_bytes += round_to_line(bytes);
    return offset;
  }

  // Payload and flag in one line where they fit, so that one transfer carries both.
  MessagePlace take_message(int rank, std::int64_t bytes) {
    RankLayout& layout = ranks_[static_cast<std::size_t>(rank)];
    const std::int64_t line = window_of(rank) + layout.lines * kLineBytes;
    ++layout.lines;
    return {bytes <= kLinePayload ? line : take_data(rank, bytes), line + kLinePayload};
  }

  // A multicast is written once, in the sender's window, where all its receivers read it.
  void place_outboxes() {
    for (std::size_t r = 0; r < set_.size(); ++r) {
      for (std::size_t i = 0; i < set_[r].ops.size(); ++i) {
        const Op& op = set_[r].ops[i];
        if (op.kind != OpKind::multicast) continue;
        const MessagePlace place =
            take_message(static_cast<int>(r), op.left.count * options_.element_bytes);
        ranks_[r].outboxes[i] = place;
        for (const schedule::Target& target : set_[r].targets_of(op)) {
          ranks_[static_cast<std::size_t>(target.peer)]
              .slots[static_cast<std::size_t>(target.slot)] = place;
        }
      }
    }
  }

  void place_rank(int rank) {
    RankLayout& layout = ranks_[static_cast<std::size_t>(rank)];
    const Schedule& schedule = set_[static_cast<std::size_t>(rank)];
    for (std::size_t s = 0; s < schedule.slots.size(); ++s) {
      if (layout.slots[s].flag >= 0) continue;  // in its sender's outbox
      layout.slots[s] = take_message(rank, schedule.slots[s].count * options_.element_bytes);
    }
    layout.scratch = take_data(rank, schedule.scratch_count * options_.element_bytes);
    if (!options_.helping) return;
    layout.staged_input =
        take_data(rank, schedule::input_count(schedule.shape, rank) * options_.element_bytes);
    layout.staged_output =
        take_data(rank, schedule::output_count(schedule.shape, rank) * options_.element_bytes);
  }

  std::span<const Schedule> set_;
  const BindOptions& options_;
  std::vector<RankLayout> ranks_;
};

// Writes one rank's program.
class Binder {
 public:
  Binder(std::span<const Schedule> set, int rank, const BindOptions& options,
         const WindowLayout& layout)
      : schedule_(set[static_cast<std::size_t>(rank)]),
        rank_(rank),
        options_(options),
        layout_(layout) {}

  Program bind() {
    program_.steps.reserve(schedule_.ops.size());
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      bind_op(schedule_.ops[i], static_cast<schedule::OpId>(i));
    }
    if (options_.helping) mark_helpable();
    return std::move(program_);
  }

 private:
  void bind_op(const Op& op, schedule::OpId id) {
    switch (op.kind) {
      case OpKind::send:
        bind_sends(op);
        break;
      case OpKind::multicast:
        if (options_.staged_multicast) {
          bind_staged(op, id);
        } else {
          bind_sends(op);
        }
        break;
      case OpKind::wait: {
        Step step;
        step.kind = StepKind::wait;
        step.peer = schedule_.slots[static_cast<std::size_t>(op.slot)].source;
        step.flag = layout_.slot(rank_, op.slot).flag;
        program_.steps.push_back(step);
        break;
      }
      case OpKind::reduce:
        bind_elements(op, StepKind::reduce);
        break;
      case OpKind::copy:
        bind_elements(op, StepKind::copy);
        break;
    }
  }

  void bind_sends(const Op& op) {
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      Step step;
      step.kind = StepKind::put;
      step.peer = target.peer;
      step.first_bell = static_cast<std::int32_t>(program_.bells.size());
      step.bell_count = 1;
      program_.bells.push_back(target.peer);
      bind_message(op.left, layout_.slot(target.peer, target.slot), step);
    }
  }

  void bind_staged(const Op& op, schedule::OpId id) {
    Step step;
    step.kind = StepKind::put;
    step.peer = rank_;
    step.first_bell = static_cast<std::int32_t>(program_.bells.size());
    step.bell_count = op.target_count;
    for (const schedule::Target& target : schedule_.targets_of(op)) {
      program_.bells.push_back(target.peer);
    }
    bind_message(op.left, layout_.outbox(rank_, id), step);
  }

  // One put per contiguous piece of the source; the last one carries the flag.
  void bind_message(const Range& source, const MessagePlace& place, Step step) {
    const Step last = step;
    std::int64_t done = 0;
    do {
      const std::int64_t piece = piece_length(source, done);
      step = last;
      step.target = {Space::windows, place.payload + done * options_.element_bytes};
      step.left = piece == 0 ? Place{Space::windows, place.payload} : locate(source, done);
      step.bytes = piece * options_.element_bytes;
      done += piece;
      if (done == source.count) {
        step.flag = place.flag;
      } else {
        step.bell_count = 0;
      }
      program_.steps.push_back(step);
    } while (done < source.count);
  }

  void bind_elements(const Op& op, StepKind kind) {
    for (std::int64_t done = 0; done < op.target.count;) {
      std::int64_t piece = std::min(piece_length(op.target, done), piece_length(op.left, done));
      if (kind == StepKind::reduce) piece = std::min(piece, piece_length(op.right, done));
      Step step;
      step.kind = kind;
      step.target = locate(op.target, done);
      step.left = locate(op.left, done);
      if (kind == StepKind::reduce) step.right = locate(op.right, done);
      step.count = piece;
      step.bytes = piece * options_.element_bytes;
      program_.steps.push_back(step);
      done += piece;
    }
  }

  const BufferLayout* layout_of(Memory memory) const {
    switch (memory) {
      case Memory::input:
        return &options_.input;
      case Memory::output:
        return &options_.output;
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
    if (buffer == nullptr || buffer->contiguous()) return left;
    return std::min(left, buffer->block - (range.offset + from) % buffer->block);
  }

  Place locate(const Range& range, std::int64_t from) const {
    const std::int64_t element = range.offset + from;
    switch (range.memory) {
      case Memory::input:
        return {Space::input, in_buffer(options_.input, element)};
      case Memory::output:
        return {Space::output, in_buffer(options_.output, element)};
      case Memory::scratch:
        return {Space::windows, layout_.scratch(rank_) + element * options_.element_bytes};
      case Memory::slot:
        return {Space::windows,
                layout_.slot(rank_, range.slot).payload + element * options_.element_bytes};
    }
    return {};
  }

  std::int64_t in_buffer(const BufferLayout& buffer, std::int64_t element) const {
    if (!buffer.contiguous()) {
      element = element / buffer.block * buffer.stride + element % buffer.block;
    }
    return element * options_.element_bytes;
  }

  void mark_helpable() {
    bool waited = false;
    std::size_t first_wait = 0;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const StepKind kind = program_.steps[i].kind;
      if (kind == StepKind::wait && !waited) {
        waited = true;
        first_wait = i;
      }
      if (kind == StepKind::put && waited) {
        program_.helpable_end = static_cast<std::int32_t>(i + 1);
      }
    }
    const auto end = static_cast<std::size_t>(program_.helpable_end);
    for (std::size_t i = 0; i < end; ++i) {
      const Step& step = program_.steps[i];
      if (step.kind == StepKind::wait) continue;
      const Place* places[] = {&step.target, &step.left,
                               step.kind == StepKind::reduce ? &step.right : &step.left};
      for (const Place* place : places) {
        if (place->space == Space::input && i > first_wait) program_.stages_input = true;
        if (place->space == Space::output) program_.stages_output = true;
      }
    }
    program_.staged_input = layout_.staged_input(rank_);
    program_.staged_output = layout_.staged_output(rank_);
    program_.input_bytes = schedule::input_count(schedule_.shape, rank_) * options_.element_bytes;
    program_.output_bytes = schedule::output_count(schedule_.shape, rank_) * options_.element_bytes;
  }

  const Schedule& schedule_;
  int rank_;
  const BindOptions& options_;
  const WindowLayout& layout_;
  Program program_;
};

}  // namespace

WindowNeed window_need(std::span<const schedule::Schedule> set, const BindOptions& options) {
  return WindowLayout(set, options).need();
}

std::vector<Program> bind(std::span<const schedule::Schedule> set, int rank,
                          const BindOptions& options) {
  const WindowLayout layout(set, options);
  UNISONO_CHECK(layout.need().fits(options.geometry), "a schedule set larger than its windows");
  UNISONO_CHECK(!options.helping || (options.input.contiguous() && options.output.contiguous()),
                "helping needs contiguous buffers");
  std::vector<Program> programs(set.size());
  for (std::size_t r = 0; r < set.size(); ++r) {
    if (!options.helping && static_cast<int>(r) != rank) continue;
    programs[r] = Binder(set, static_cast<int>(r), options, layout).bind();
  }
  return programs;
}

}  // namespace unisono::engine
