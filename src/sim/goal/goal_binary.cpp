// SPDX-License-Identifier: BSD-3-Clause
#include "sim/goal/goal_binary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <concepts>

#include "sim/goal/goal_messages.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kMagic = 4223;
constexpr std::size_t kMagicBytes = 8, kJumpBytes = 16, kOperationBytes = 39;
constexpr std::size_t kHeadBytes = 6;  // up to the jumps, without the magic number
constexpr std::uint8_t kSend = 1, kReceive = 2, kCalculate = 3;

template <std::unsigned_integral Number>
void append(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    out += static_cast<char>(static_cast<std::uint8_t>(std::uint64_t{number} >> (8 * i)));
  }
}

std::uint8_t kind_number(StepKind kind) {
  switch (kind) {
    case StepKind::send:
    case StepKind::follow:
      return kSend;
    case StepKind::wait:
      return kReceive;
    case StepKind::work:
      return kCalculate;
  }
  return 0;
}

// Each operation depends on the one before.
void append_part(std::string& out, const ProgramSet& programs, int rank) {
  const auto steps = programs.steps(programs.program(rank));
  const auto count = static_cast<std::uint32_t>(steps.size());
  const std::uint32_t roots = count > 0 ? 1 : 0;
  append(out, count);
  append(out, roots);
  if (roots > 0) append(out, std::uint32_t{0});
  const std::uint32_t dependents = count > 0 ? count - 1 : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    const StepCost& cost = programs.cost(step);
    const bool is_work = step.kind == StepKind::work;
    const std::int64_t amount = is_work ? std::llround(to_ns(cost.occupied)) : cost.bytes;
    append(out, std::uint32_t{i > 0 ? 1U : 0U});
    append(out, kind_number(step.kind));
    append(out, static_cast<std::uint32_t>(is_work ? 0 : programs.peer(rank, step)));
    append(out, static_cast<std::uint64_t>(amount));
    append(out, static_cast<std::uint32_t>(is_work ? 0 : step.slot));
    append(out, std::uint8_t{0});
    append(out, std::uint8_t{0});
    append(out, std::uint32_t{i < dependents ? 1U : 0U});
    append(out, i);
    append(out, std::uint32_t{0});
    append(out, i < dependents ? i + 1 : i);
  }
  for (std::uint32_t i = 1; i < count; ++i) append(out, i);
}

class BinaryReader {
 public:
  BinaryReader(std::string_view content, std::string_view file) : all_(content), file_(file) {}

  base::Result<std::vector<Trace>> read() {
    UNISONO_TRY(has(0, kMagicBytes + kHeadBytes, "expected the head of GOAL binary"));
    if (number<std::uint64_t>(0) != kMagic) return fail(0, "expected the number 4223 of GOAL");
    const auto ranks = number<std::uint32_t>(kMagicBytes);
    if (ranks == 0 || ranks > kMostGoalRanks) {
      return fail(kMagicBytes,
                  fmt::format("expected 1 to {} ranks, found {}", kMostGoalRanks, ranks));
    }
    const std::size_t jumps = kMagicBytes + kHeadBytes;
    UNISONO_TRY(has(jumps, ranks * kJumpBytes, "expected where the parts of all ranks are"));
    GoalMessages messages(static_cast<int>(ranks));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      UNISONO_TRY(part(rank, ranks, jumps + rank * kJumpBytes, messages));
    }
    return messages.traces([this](std::int64_t place, std::string_view what) {
      return fail(static_cast<std::size_t>(place), what);
    });
  }

 private:
  base::Error fail(std::size_t place, std::string_view what) const {
    return {base::Code::argument, fmt::format("{}: byte {}: {}", file_, place, what)};
  }

  base::Status has(std::size_t place, std::size_t bytes, std::string_view what) const {
    if (place <= all_.size() && bytes <= all_.size() - place) return base::success();
    return fail(all_.size(), what);
  }

  template <std::unsigned_integral Number>
  Number number(std::size_t place) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(all_[place + i])} << (8 * i);
    }
    return static_cast<Number>(value);
  }

  base::Status part(std::uint32_t rank, std::uint32_t ranks, std::size_t jump,
                    GoalMessages& messages) {
    const auto begin = number<std::uint64_t>(jump), end = number<std::uint64_t>(jump + 8);
    if (begin < last_end_ || begin > end || end > all_.size() - kMagicBytes) {
      return fail(
          jump, fmt::format("expected the part of rank {} in the file, behind those before", rank));
    }
    last_end_ = end;
    // From here on, no number of the part can lead behind its end.
    const std::size_t first = kMagicBytes + begin, bytes = end - begin;
    if (bytes < 8) return fail(first, "expected the number of operations and of roots");
    const std::size_t count = number<std::uint32_t>(first);
    const std::size_t roots = number<std::uint32_t>(first + 4);
    const std::size_t room = bytes - 8;
    if (roots > count || roots * 4 > room || count > (room - roots * 4) / kOperationBytes) {
      return fail(first, fmt::format("expected {} operations in the part of rank {}", count, rank));
    }
    const std::size_t operations = first + 8 + roots * 4;
    const std::size_t list = operations + count * kOperationBytes;
    const std::size_t listed = (first + bytes - list) / 4;
    std::vector<std::uint32_t> dependencies(count);
    std::size_t unused = listed;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = operations + i * kOperationBytes;
      UNISONO_ASSIGN(const GoalOperation operation, operation_at(place, rank, ranks));
      messages.add(static_cast<int>(rank), operation);
      for (const std::size_t at : {place + 23, place + 31}) {
        UNISONO_TRY(dependents(at, i, {list, listed}, unused, dependencies));
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = operations + i * kOperationBytes;
      if (number<std::uint32_t>(place) == dependencies[i]) continue;
      return fail(place, fmt::format("expected {} dependencies, as others list", dependencies[i]));
    }
    return check_roots(first + 8, roots, dependencies);
  }

  base::Result<GoalOperation> operation_at(std::size_t place, std::uint32_t rank,
                                           std::uint32_t ranks) const {
    GoalOperation made{.place = static_cast<std::int64_t>(place)};
    const auto kind = number<std::uint8_t>(place + 4);
    const auto peer = number<std::uint32_t>(place + 5);
    const auto amount = number<std::uint64_t>(place + 9);
    const auto tag = number<std::uint32_t>(place + 17);
    if (kind < kSend || kind > kCalculate) {
      return fail(place + 4,
                  fmt::format("expected 1 (send), 2 (recv) or 3 (calc), found {}", kind));
    }
    made.kind = kind == kSend ? StepKind::send : kind == kReceive ? StepKind::wait : StepKind::work;
    const bool is_work = made.kind == StepKind::work;
    if (!is_work && peer >= ranks) {
      return fail(place + 5,
                  fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, peer));
    }
    if (!is_work && peer == rank) {
      return fail(place + 5, fmt::format("expected another rank than {}", rank));
    }
    const std::int64_t most = is_work ? kMostGoalNs : kMostGoalBytes;
    if (amount > static_cast<std::uint64_t>(most)) {
      return fail(place + 9, fmt::format("expected at most {} {}", most, is_work ? "ns" : "bytes"));
    }
    if (tag > kMostGoalTag)
      return fail(place + 17, fmt::format("expected a tag up to {}", kMostGoalTag));
    if (number<std::uint8_t>(place + 21) != 0 || number<std::uint8_t>(place + 22) != 0) {
      return fail(place + 21, "expected processor 0 and NIC 0");
    }
    made.peer = is_work ? 0 : static_cast<int>(peer);
    made.amount = static_cast<std::int64_t>(amount);
    made.tag = tag;
    return made;
  }

  struct List {
    std::size_t place = 0, count = 0;
  };

  // The list at which `at` points, of operations that wait for operation i.
  base::Status dependents(std::size_t at, std::size_t i, const List& list, std::size_t& unused,
                          std::vector<std::uint32_t>& dependencies) const {
    const std::size_t count = number<std::uint32_t>(at), first = number<std::uint32_t>(at + 4);
    if (count == 0) return base::success();
    // In sum they are no more than the list, so that no file takes long.
    if (first > list.count || count > list.count - first || count > unused) {
      return fail(at, "expected dependents in the list");
    }
    unused -= count;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t place = list.place + (first + k) * 4;
      const auto later = number<std::uint32_t>(place);
      if (later >= dependencies.size() || later <= i) {
        return fail(place, "expected operations in the order of their dependencies");
      }
      ++dependencies[later];
    }
    return base::success();
  }

  base::Status check_roots(std::size_t place, std::size_t roots,
                           const std::vector<std::uint32_t>& dependencies) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < dependencies.size(); ++i) {
      if (dependencies[i] > 0) continue;
      if (next == roots || number<std::uint32_t>(place + next * 4) != i) {
        return fail(place + next * 4, fmt::format("expected operation {} as a root", i));
      }
      ++next;
    }
    if (next == roots) return base::success();
    return fail(place + next * 4, "expected operations without dependencies as roots");
  }

  std::string_view all_, file_;
  std::uint64_t last_end_ = 0;
};

}  // namespace

std::string goal_binary(const ProgramSet& programs) {
  const auto ranks = static_cast<std::size_t>(programs.ranks());
  std::string parts;
  std::string head;
  append(head, kMagic);
  append(head, static_cast<std::uint32_t>(ranks));
  append(head, std::uint8_t{0});
  append(head, std::uint8_t{0});
  const std::uint64_t first = kHeadBytes + ranks * kJumpBytes;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    append(head, first + parts.size());
    append_part(parts, programs, rank);
    append(head, first + parts.size());
  }
  return head + parts;
}

bool is_goal_binary(std::string_view content) {
  std::string magic;
  append(magic, kMagic);
  return content.starts_with(magic);
}

base::Result<std::vector<Trace>> parse_goal_binary(std::string_view content,
                                                   std::string_view file) {
  return BinaryReader(content, file).read();
}

}  // namespace unisono::sim
