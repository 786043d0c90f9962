// SPDX-License-Identifier: BSD-3-Clause
// Reads a schedule op by op, as an engine would execute it, and records the node's part of the
// tree. The order of ops is the order of time. Contributions come in and are combined. One message
// goes up or, at the root, the result goes out. Then the result comes down and is passed on.
#include "nic/lowering/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "nic/lowering/schedule_reader.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {
namespace {

using base::Code;
using base::Error;
using base::Status;
using schedule::Collective;
using schedule::Memory;
using schedule::Op;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;
using schedule::SlotId;

// Elements of the vector.
struct Part {
  std::int64_t offset = 0, count = 0;

  auto operator<=>(const Part&) const = default;
};
Part part_of(const Range& range) { return {range.offset, range.count}; }

// The part to which each op belongs. For a wait, the op that reads its slot and writes the vector
// shows it.
class PartReader : ScheduleReader {
 public:
  explicit PartReader(const Schedule& schedule) : ScheduleReader(schedule) {}

  base::Result<std::vector<Part>> read() {
    for (const Op& op : schedule_.ops) {
      const Range& from = op.kind == OpKind::copy ? op.left : op.right;
      const bool reads_slot = op.kind == OpKind::copy || op.kind == OpKind::reduce;
      if (reads_slot && from.memory == Memory::slot) {
        slots_.emplace(from.slot, part_of(op.target));
      }
    }
    std::vector<Part> parts;
    UNISONO_TRY(each_op([&](const Op& op) -> Status {
      const Part* part = find(op);
      if (part == nullptr) return refuse("it is about no piece of the vector");
      parts.push_back(*part);
      return base::success();
    }));
    return parts;
  }

 private:
  const Part* find(const Op& op) {
    if (op.kind == OpKind::wait || op.left.memory == Memory::slot) {
      const auto found = slots_.find(op.kind == OpKind::wait ? op.slot : op.left.slot);
      return found == slots_.end() ? nullptr : &found->second;
    }
    own_ = part_of(schedule::writes_range(op) ? op.target : op.left);
    return &own_;
  }

  std::map<SlotId, Part> slots_;
  Part own_;
};

// The ops of one part, from a schedule with several.
class TreeReader : ScheduleReader {
 public:
  explicit TreeReader(const Schedule& schedule)
      : TreeReader(schedule, {0, schedule.shape.count}, {}) {}
  // `parts`: by op; empty: all ops belong to this one.
  TreeReader(const Schedule& schedule, Part part, std::span<const Part> parts)
      : ScheduleReader(schedule),
        part_(part),
        parts_(parts),
        sum_(schedule::input(part.offset, part.count)) {
    node_.rank = schedule.rank;
    node_.ranks = schedule.shape.ranks;
    node_.returns_values = schedule.shape.collective == Collective::allreduce;
  }

  base::Result<Node> read() {
    UNISONO_TRY(check_shape());
    UNISONO_TRY(each_op([this](const Op& op) {
      const auto at = static_cast<std::size_t>(&op - schedule_.ops.data());
      return parts_.empty() || parts_[at] == part_ ? take(op) : base::success();
    }));
    UNISONO_TRY(check_whole());
    return node_;
  }

 private:
  enum class Stage { gathering, reported, released };

  Status take(const Op& op) {
    switch (op.kind) {
      case OpKind::wait:
        return stage_ == Stage::gathering ? take_child(op) : take_result(op);
      case OpKind::reduce:
        return combine(op);
      case OpKind::send:
        return stage_ == Stage::gathering && !is_child(target(op)) ? report(op) : forward(op);
      case OpKind::multicast:
        return multicast(op);
      case OpKind::copy:
        return copy(op);
      case OpKind::sum:
        return refuse("it sums in one step");
    }
    return refuse("the op is of no known kind");
  }

  Status check_shape() const {
    const schedule::Shape& shape = schedule_.shape;
    const bool known = shape.collective == Collective::barrier ||
                       shape.collective == Collective::reduce ||
                       shape.collective == Collective::allreduce;
    if (!known) return refuse("its program knows barrier, reduce and allreduce only");
    if (shape.ranks < 2) return refuse("a single rank has nobody to send to");
    return base::success();
  }

  Status take_child(const Op& op) {
    if (waited_ >= 0) return refuse(fmt::format("slot {} is not combined at once", waited_));
    const auto number = static_cast<SlotId>(node_.children.size());
    if (number == 0) node_.first_slot = op.slot;
    if (op.slot != node_.first_slot + number) {
      return refuse(fmt::format("children are numbered by their slots, and slot {} comes after {}",
                                op.slot, node_.first_slot + number - 1));
    }
    if (number == UNISONO_NIC_CHILDREN_MAX) {
      return refuse(fmt::format("a node takes {} children; a tree of lower degree has fewer",
                                UNISONO_NIC_CHILDREN_MAX));
    }
    node_.children.push_back(slot(op.slot).source);
    if (schedule_.shape.collective != Collective::barrier) waited_ = op.slot;
    return base::success();
  }

  Status combine(const Op& op) {
    if (stage_ != Stage::gathering) return refuse("it combines after it has sent its sum");
    if (part_of(op.target) != part_) {
      return refuse(fmt::format("it combines elements {} to {} of {}; a NIC takes vectors whole",
                                op.target.offset, op.target.offset + op.target.count, part_.count));
    }
    if (op.left != sum_ || op.right.memory != Memory::slot || op.right.slot != waited_) {
      return refuse(
          "the operands are not what there is so far and then the child that has arrived");
    }
    sum_ = op.target;
    waited_ = -1;
    return base::success();
  }

  Status report(const Op& op) {
    if (is_root_of_reduce()) return refuse("the root sends; the tree has to end at it");
    if (waited_ >= 0 || op.left != sum_) return refuse("it sends up something other than its sum");
    node_.parent = target(op).peer;
    node_.own_slot = target(op).slot;
    stage_ = Stage::reported;
    return base::success();
  }

  Status take_result(const Op& op) {
    if (stage_ != Stage::reported || node_.parent < 0) {
      return refuse("it waits for more than the result after it has sent");
    }
    if (schedule_.shape.collective == Collective::reduce) {
      return refuse("it waits for a result, which a reduce has at the root only");
    }
    node_.down_source = slot(op.slot).source;
    sum_ = schedule::slot_range(op.slot, 0, part_.count);
    stage_ = Stage::released;
    return base::success();
  }

  Status forward(const Op& op) {
    if (stage_ == Stage::reported && node_.parent >= 0) {
      return refuse(fmt::format("it sends to rank {} after it has reported to rank {}",
                                target(op).peer, node_.parent));
    }
    if (waited_ >= 0 || !is_current(op.left)) return refuse("it passes on something else");
    if (stage_ == Stage::gathering) stage_ = Stage::released;
    node_.forwards.push_back(target(op).peer);
    return base::success();
  }

  Status multicast(const Op& op) {
    if (node_.parent >= 0 || stage_ != Stage::gathering) {
      return refuse("only the root of the tree multicasts, once");
    }
    if (waited_ >= 0 || !is_current(op.left)) return refuse("it multicasts something else");
    if (op.target_count != node_.ranks - 1) {
      return refuse(fmt::format("it multicasts to {} of the {} other ranks", op.target_count,
                                node_.ranks - 1));
    }
    node_.multicasts = true;
    stage_ = Stage::released;
    return base::success();
  }

  Status copy(const Op& op) const {
    const bool is_result = stage_ == Stage::released && node_.parent >= 0 && op.left == sum_ &&
                           op.target == schedule::output(part_.offset, part_.count);
    if (!is_result) return refuse("it copies something other than the result to the output");
    return base::success();
  }

  Status check_whole() {
    if (waited_ >= 0) return refuse(fmt::format("slot {} is never combined", waited_));
    if (schedule_.shape.collective == Collective::reduce) {
      if (!node_.forwards.empty() || node_.multicasts) return refuse("it sends the sum on");
      if (!is_root_of_reduce() && node_.parent < 0) return refuse("it gives its vector to nobody");
      node_.multicasts = is_root_of_reduce();
      node_.down_source = is_root_of_reduce() ? -1 : schedule_.shape.root;
      return base::success();
    }
    if (stage_ != Stage::released) return refuse("the result does not come back");
    return base::success();
  }

  bool is_root_of_reduce() const {
    return schedule_.shape.collective == Collective::reduce && node_.rank == schedule_.shape.root;
  }
  // Signals have no source.
  bool is_current(const Range& range) const {
    return schedule_.shape.collective == Collective::barrier || range == sum_;
  }
  bool is_child(schedule::Target target) const {
    return std::find(node_.children.begin(), node_.children.end(), target.peer) !=
           node_.children.end();
  }

  const Part part_;
  const std::span<const Part> parts_;
  Node node_;
  Range sum_;           // the sum so far, later the result
  SlotId waited_ = -1;  // arrived and not yet combined
  Stage stage_ = Stage::gathering;
};

Error misfit(int rank, std::string_view what) {
  return {Code::unsupported, fmt::format("no tree for the NIC: rank {} {}", rank, what)};
}

}  // namespace

base::Result<Node> lower(const Schedule& schedule) { return TreeReader(schedule).read(); }

base::Result<std::vector<Node>> lower_pieces(const Schedule& schedule) {
  UNISONO_ASSIGN(const std::vector<Part> parts, PartReader(schedule).read());
  const std::set<Part> pieces(parts.begin(), parts.end());
  std::int64_t end = 0;
  for (const Part& piece : pieces) {
    if (piece.offset != end || piece.count == 0) {
      return Error{Code::unsupported,
                   fmt::format("the NIC cannot run this: elements {} to {} of {} are no piece of "
                               "the vector that others have nothing of",
                               piece.offset, piece.offset + piece.count, schedule.shape.count)};
    }
    end += piece.count;
  }
  std::vector<Node> nodes;
  for (const Part& piece : pieces) {
    UNISONO_ASSIGN(Node node, TreeReader(schedule, piece, parts).read());
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Status check_tree(std::span<const Node> nodes) {
  int roots = 0;
  for (const Node& node : nodes) {
    roots += node.parent < 0;
    if (node.parent < 0) continue;
    const Node& parent = nodes[static_cast<std::size_t>(node.parent)];
    const int number = node.own_slot - parent.first_slot;
    if (number < 0 || number >= static_cast<int>(parent.children.size()) ||
        parent.children[static_cast<std::size_t>(number)] != node.rank) {
      return misfit(node.rank,
                    fmt::format("reports to slot {} of rank {}, which does not expect it",
                                node.own_slot, node.parent));
    }
    const Node& giver = nodes[static_cast<std::size_t>(node.down_source)];
    const bool given = giver.multicasts || std::find(giver.forwards.begin(), giver.forwards.end(),
                                                     node.rank) != giver.forwards.end();
    if (!given) {
      return misfit(
          node.rank,
          fmt::format("expects the result from rank {}, which does not send it", node.down_source));
    }
  }
  if (roots != 1) {
    return Error{Code::unsupported, fmt::format("no tree for the NIC: {} ranks are roots", roots)};
  }
  return base::success();
}

base::Result<std::uint32_t> lower_operator(arith::Operator op, arith::Type type) {
  using arith::Operator;
  using arith::Type;
  struct Row {
    Operator op;
    Type type;
    std::uint32_t combine;
  };
  // clang-format off
  static constexpr Row kRows[] = {
      {Operator::sum, Type::int32, UNISONO_NIC_SUM_INT32},
      {Operator::sum, Type::uint32, UNISONO_NIC_SUM_INT32},
      {Operator::sum, Type::int64, UNISONO_NIC_SUM_INT64},
      {Operator::sum, Type::uint64, UNISONO_NIC_SUM_INT64},
      {Operator::sum, Type::float32, UNISONO_NIC_SUM_FLOAT32},
      {Operator::sum, Type::float64, UNISONO_NIC_SUM_FLOAT64},
      {Operator::min, Type::int32, UNISONO_NIC_MIN_INT32},
      {Operator::min, Type::int64, UNISONO_NIC_MIN_INT64},
      {Operator::min, Type::uint32, UNISONO_NIC_MIN_UINT32},
      {Operator::min, Type::uint64, UNISONO_NIC_MIN_UINT64},
      {Operator::min, Type::float32, UNISONO_NIC_MIN_FLOAT32},
      {Operator::min, Type::float64, UNISONO_NIC_MIN_FLOAT64},
      {Operator::max, Type::int32, UNISONO_NIC_MAX_INT32},
      {Operator::max, Type::int64, UNISONO_NIC_MAX_INT64},
      {Operator::max, Type::uint32, UNISONO_NIC_MAX_UINT32},
      {Operator::max, Type::uint64, UNISONO_NIC_MAX_UINT64},
      {Operator::max, Type::float32, UNISONO_NIC_MAX_FLOAT32},
      {Operator::max, Type::float64, UNISONO_NIC_MAX_FLOAT64},
      {Operator::sum, Type::int16, UNISONO_NIC_SUM_INT16},
      {Operator::sum, Type::uint16, UNISONO_NIC_SUM_INT16},
      {Operator::sum, Type::int8, UNISONO_NIC_SUM_INT8},
      {Operator::sum, Type::uint8, UNISONO_NIC_SUM_INT8},
      {Operator::sum, Type::float16, UNISONO_NIC_SUM_FLOAT16},
      {Operator::sum, Type::bfloat16, UNISONO_NIC_SUM_BFLOAT16},
      {Operator::sum, Type::complex64, UNISONO_NIC_SUM_FLOAT32},
      {Operator::sum, Type::complex128, UNISONO_NIC_SUM_FLOAT64},
      {Operator::min, Type::int16, UNISONO_NIC_MIN_INT16},
      {Operator::min, Type::int8, UNISONO_NIC_MIN_INT8},
      {Operator::min, Type::uint16, UNISONO_NIC_MIN_UINT16},
      {Operator::min, Type::uint8, UNISONO_NIC_MIN_UINT8},
      {Operator::min, Type::float16, UNISONO_NIC_MIN_FLOAT16},
      {Operator::min, Type::bfloat16, UNISONO_NIC_MIN_BFLOAT16},
      {Operator::max, Type::int16, UNISONO_NIC_MAX_INT16},
      {Operator::max, Type::int8, UNISONO_NIC_MAX_INT8},
      {Operator::max, Type::uint16, UNISONO_NIC_MAX_UINT16},
      {Operator::max, Type::uint8, UNISONO_NIC_MAX_UINT8},
      {Operator::max, Type::float16, UNISONO_NIC_MAX_FLOAT16},
      {Operator::max, Type::bfloat16, UNISONO_NIC_MAX_BFLOAT16},
      {Operator::prod, Type::float64, UNISONO_NIC_PRODUCT_FLOAT64},
      {Operator::prod, Type::float32, UNISONO_NIC_PRODUCT_FLOAT32},
      {Operator::prod, Type::float16, UNISONO_NIC_PRODUCT_FLOAT16},
      {Operator::prod, Type::bfloat16, UNISONO_NIC_PRODUCT_BFLOAT16},
  };
  // clang-format on
  for (const Row& row : kRows) {
    if (row.op == op && row.type == type) return row.combine;
  }
  // The rows of an operator stand by the width of its elements: 8, 4, 2, 1 bytes.
  const auto by_width = [type](std::uint32_t first) {
    return first + static_cast<std::uint32_t>(std::countl_zero(arith::type_size(type)) - 60);
  };
  if (arith::fits(Operator::logical_and, type)) {
    if (op == Operator::prod) return by_width(UNISONO_NIC_PRODUCT_INT64);
    if (op == Operator::logical_and) return by_width(UNISONO_NIC_BOTH_INT64);
    if (op == Operator::logical_or) return by_width(UNISONO_NIC_EITHER_INT64);
    if (op == Operator::logical_xor) return by_width(UNISONO_NIC_ONE_INT64);
  }
  const bool is_integer = arith::fits(Operator::bitwise_and, type);
  if (is_integer && op == Operator::bitwise_and) return std::uint32_t{UNISONO_NIC_AND};
  if (is_integer && op == Operator::bitwise_or) return std::uint32_t{UNISONO_NIC_OR};
  if (is_integer && op == Operator::bitwise_xor) return std::uint32_t{UNISONO_NIC_XOR};
  return Error{Code::unsupported,
               fmt::format("the NIC cannot combine {} by {}: it knows all operators of integers "
                           "and of real numbers, sums of complex numbers, and no pairs",
                           arith::type_name(type), arith::operator_name(op))};
}

}  // namespace unisono::nic
