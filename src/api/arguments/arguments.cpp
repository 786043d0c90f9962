// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments/arguments.hpp"

#include <fmt/format.h>

#include <optional>

#include "api/arguments/blocks.hpp"
#include "api/arguments/buffers.hpp"
#include "api/arguments/own_blocks.hpp"
#include "api/registry.hpp"
#include "arith/type.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using schedule::Collective;

class Checker {
 public:
  Checker(const Arguments& arguments, comm::Communicator& communicator)
      : arguments_(arguments), communicator_(communicator) {}

  // Fills `checked`; gives what is wrong.
  std::optional<Error> check(Checked& checked) {
    if (arguments_.collective != Collective::barrier) {
      if (auto error = check_type()) return error;
      if (auto error = check_root()) return error;
      if (auto error = arguments_.blocks == nullptr ? check_count() : check_arrays()) return error;
      if (auto error = check_operator()) return error;
      fill_shape();
      if (auto error = check_memory(checked)) return error;
    }
    fill_call(checked.call);
    fill_blocks(checked.call, checked.rule);
    checked.input = checked.rule.input(arguments_);
    checked.output = checked.rule.output(arguments_);
    return std::nullopt;
  }

 private:
  template <class... Parts>
  Error wrong(Code code, fmt::format_string<Parts...> format, Parts&&... parts) const {
    return {code, fmt::format("{}: {}", arguments_.function,
                              fmt::format(format, std::forward<Parts>(parts)...))};
  }

  void fill_shape() {
    shape_ = {.collective = arguments_.collective,
              .ranks = communicator_.size(),
              .root = arguments_.root,
              .count = blocks_.blocks.given() ? 0 : arguments_.count,
              .blocks = blocks_.blocks};
  }

  void fill_call(plan::Call& call) const {
    call.collective = arguments_.collective;
    call.count = arguments_.count;
    call.type = arguments_.type;
    call.op = arguments_.op;
    call.root = arguments_.root;
    call.element_bytes = type_.bytes;
    call.ordered = !operator_.commutative;
    if (operator_.user.function != nullptr) {
      call.user = operator_.user;
      call.user.type = arguments_.type;
    }
  }

  void fill_blocks(plan::Call& call, const BufferRule& rule) const {
    if (!blocks_.blocks.given()) return;
    const CountScope scope = arguments_.blocks->scope;
    call.purpose = scope == CountScope::of_own_typed ? plan::Purpose::user_typed_blocks
                                                     : plan::Purpose::user_blocks;
    call.count = blocks_.blocks.are_pairs() ? blocks_.blocks.sent_total(communicator_.rank())
                                            : blocks_.blocks.total();
    call.blocks = blocks_.blocks;
    call.input_places = blocks_.input.places;
    call.output_places = blocks_.output.places;
    call.local_counts = scope != CountScope::of_all;
    call.in_place = call.local_counts && rule.in_place != InPlace::none;
  }

  std::optional<Error> check_type() {
    const auto entry = find_type(arguments_.type);
    if (!entry) {
      return wrong(Code::type,
                   "type {} is unknown; use a UNISONO_ constant or a type of unisono_type_create",
                   arguments_.type);
    }
    type_ = *entry;
    return std::nullopt;
  }

  std::optional<Error> check_count() const {
    const std::int64_t count = arguments_.count;
    if (count < 0) return wrong(Code::argument, "count is {}; it must be 0 or more", count);
    const std::int64_t blocks =
        schedule::has_blocks(arguments_.collective) ? communicator_.size() : 1;
    if (count > kMostBytes / type_.bytes / blocks) {
      return wrong(Code::argument, "count {} of {} byte elements overflows (limit {} bytes)", count,
                   type_.bytes, kMostBytes);
    }
    return std::nullopt;
  }

  std::optional<Error> check_arrays() {
    const auto check =
        arguments_.blocks->scope == CountScope::of_all ? check_blocks : check_own_blocks;
    auto blocks = check(arguments_, communicator_.rank(), communicator_.size(), type_.bytes);
    if (!blocks) return wrong(blocks.error().code, "{}", blocks.error().message);
    blocks_ = std::move(blocks).value();
    return std::nullopt;
  }

  std::optional<Error> check_root() const {
    if (!schedule::is_rooted(arguments_.collective)) return std::nullopt;
    if (arguments_.root >= 0 && arguments_.root < communicator_.size()) return std::nullopt;
    return wrong(Code::argument, "root is {}; it must be a rank in 0 .. {}", arguments_.root,
                 communicator_.size() - 1);
  }

  std::optional<Error> check_operator() {
    if (!schedule::is_reduction(arguments_.collective)) return std::nullopt;
    const auto entry = find_operator(arguments_.op);
    if (!entry) {
      return wrong(Code::type,
                   "operator {} is unknown; use a UNISONO_ constant or one of unisono_op_create",
                   arguments_.op);
    }
    operator_ = *entry;
    if (operator_.user.function != nullptr) return std::nullopt;
    const auto op = static_cast<arith::Operator>(arguments_.op);
    if (arguments_.type >= plan::kFirstUserNumber) {
      return wrong(Code::type, "operator {} is not defined on a type of the user's",
                   arith::operator_name(op));
    }
    const auto type = static_cast<arith::Type>(arguments_.type);
    if (arith::fits(op, type)) return std::nullopt;
    return wrong(Code::type, "operator {} is not defined on {}", arith::operator_name(op),
                 arith::type_name(type));
  }

  std::optional<Error> check_memory(Checked& checked) const {
    auto rule = check_buffers({arguments_, shape_, blocks_, type_, communicator_.rank()});
    if (!rule) return wrong(rule.error().code, "{}", rule.error().message);
    checked.rule = *rule;
    return std::nullopt;
  }

  const Arguments& arguments_;
  comm::Communicator& communicator_;
  TypeEntry type_;
  OperatorEntry operator_;
  CheckedBlocks blocks_;
  schedule::Shape shape_;
};

}  // namespace

base::Result<Checked> check(const Arguments& arguments, Comm& comm) {
  Checked checked;
  if (auto error = Checker(arguments, *comm.communicator).check(checked)) [[unlikely]]
    return *error;
  return checked;
}

}  // namespace unisono::api
