// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments.hpp"

#include <fmt/format.h>

#include <optional>

#include "api/registry.hpp"
#include "arith/type.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using schedule::Collective;

// Byte counts of whole vectors stay far from where 64 bits end.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

class Checker {
 public:
  Checker(const Arguments& arguments, group::Communicator& group)
      : arguments_(arguments), group_(group) {}

  // Fills `checked`; gives what is wrong.
  std::optional<Error> check(Checked& checked) {
    if (arguments_.collective != Collective::barrier) {
      if (auto error = check_type()) return error;
      if (auto error = check_count()) return error;
      if (auto error = check_root()) return error;
      if (auto error = check_operator()) return error;
      if (auto error = check_buffers()) return error;
    }
    fill_rule(checked.rule);
    group::Call& call = checked.call;
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
    checked.input = in_place() ? in_place_input() : arguments_.input;
    checked.output = arguments_.output;
    return std::nullopt;
  }

 private:
  template <class... Parts>
  Error wrong(Code code, fmt::format_string<Parts...> format, Parts&&... parts) const {
    return {code, fmt::format("{}: {}", arguments_.function,
                              fmt::format(format, std::forward<Parts>(parts)...))};
  }

  bool in_place() const { return arguments_.input == UNISONO_IN_PLACE; }
  bool is_root() const { return group_.rank() == arguments_.root; }

  const void* in_place_input() const {
    if (arguments_.collective != Collective::allgather || arguments_.output == nullptr) {
      return arguments_.output;
    }
    return static_cast<const std::byte*>(arguments_.output) +
           group_.rank() * arguments_.count * type_.bytes;
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
    const std::int64_t blocks = arguments_.collective == Collective::allgather ? group_.size() : 1;
    if (count > kMostBytes / type_.bytes / blocks) {
      return wrong(Code::argument, "count {} of {} byte elements overflows (limit {} bytes)", count,
                   type_.bytes, kMostBytes);
    }
    return std::nullopt;
  }

  std::optional<Error> check_root() const {
    if (!schedule::is_rooted(arguments_.collective)) return std::nullopt;
    if (arguments_.root >= 0 && arguments_.root < group_.size()) return std::nullopt;
    return wrong(Code::argument, "root is {}; it must be a rank in 0 .. {}", arguments_.root,
                 group_.size() - 1);
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
    if (arguments_.type >= group::kFirstUserNumber) {
      return wrong(Code::type, "operator {} is not defined on a type of the user's",
                   arith::operator_name(op));
    }
    const auto type = static_cast<arith::Type>(arguments_.type);
    if (arith::fits(op, type)) return std::nullopt;
    return wrong(Code::type, "operator {} is not defined on {}", arith::operator_name(op),
                 arith::type_name(type));
  }

  std::optional<Error> check_buffer(const char* name, const void* buffer,
                                    std::int64_t bytes) const {
    if (bytes == 0) return std::nullopt;
    if (buffer == nullptr) {
      return wrong(Code::argument, "{} is NULL, but {} bytes are needed", name, bytes);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(buffer);
    if (address % static_cast<std::uintptr_t>(type_.alignment) != 0) {
      return wrong(Code::argument, "{} is misaligned: address {} is no multiple of {}", name,
                   fmt::ptr(buffer), type_.alignment);
    }
    if (address > UINTPTR_MAX - static_cast<std::uintptr_t>(bytes)) {
      return wrong(Code::argument, "{} with {} bytes ends beyond the address space", name, bytes);
    }
    return std::nullopt;
  }

  std::int64_t vector_bytes() const { return arguments_.count * type_.bytes; }
  bool has_output() const { return arguments_.collective != Collective::reduce || is_root(); }
  std::int64_t output_bytes() const {
    if (!has_output()) return 0;
    return vector_bytes() * (arguments_.collective == Collective::allgather ? group_.size() : 1);
  }

  // A broadcast has one buffer, and a barrier none.
  void fill_rule(BufferRule& rule) const {
    if (arguments_.collective == Collective::barrier) return;
    rule.misaligned = static_cast<std::uintptr_t>(type_.alignment) - 1;
    rule.output_bytes = static_cast<std::uintptr_t>(output_bytes());
    if (arguments_.collective == Collective::broadcast) return;
    rule.input_bytes = static_cast<std::uintptr_t>(vector_bytes());
    rule.in_place = in_place();
    if (arguments_.collective == Collective::allgather) {
      rule.in_place_offset = group_.rank() * vector_bytes();
    }
  }

  std::optional<Error> check_buffers() const {
    const std::int64_t bytes = vector_bytes();
    if (arguments_.collective == Collective::broadcast) {
      if (arguments_.output == UNISONO_IN_PLACE) {
        return wrong(Code::argument, "UNISONO_IN_PLACE is not a buffer; broadcast has only one");
      }
      return check_buffer("buffer", arguments_.output, bytes);
    }
    const std::int64_t output_bytes = this->output_bytes();
    if (has_output() && arguments_.output == UNISONO_IN_PLACE) {
      return wrong(Code::argument, "UNISONO_IN_PLACE is for the input, not for the output");
    }
    if (auto error = check_buffer("output", arguments_.output, output_bytes)) return error;
    if (in_place()) {
      if (has_output()) return std::nullopt;
      return wrong(Code::argument, "UNISONO_IN_PLACE is for the root (rank {}) only",
                   arguments_.root);
    }
    if (auto error = check_buffer("input", arguments_.input, bytes)) return error;
    const auto in = reinterpret_cast<std::uintptr_t>(arguments_.input);
    const auto out = reinterpret_cast<std::uintptr_t>(arguments_.output);
    if (bytes > 0 && output_bytes > 0 && in < out + static_cast<std::uintptr_t>(output_bytes) &&
        out < in + static_cast<std::uintptr_t>(bytes)) {
      return wrong(Code::argument,
                   "input and output overlap; pass UNISONO_IN_PLACE as the input "
                   "where the result may replace it, or use two buffers");
    }
    return std::nullopt;
  }

  const Arguments& arguments_;
  group::Communicator& group_;
  TypeEntry type_;
  OperatorEntry operator_;
};

}  // namespace

base::Result<Checked> check(const Arguments& arguments, Others others) {
  Checked checked;
  checked.comm = comms().get(arguments.comm);
  if (checked.comm == nullptr) [[unlikely]]
    return bad_comm(arguments.function, arguments.comm);
  group::Communicator& group = *checked.comm->group;
  if (auto error = Checker(arguments, group).check(checked)) [[unlikely]] {
    if (others == Others::wait_for_us) return group.refuse(error->code, error->message);
    return Error{error->code, fmt::format("rank {}: {}", group.rank(), error->message)};
  }
  return checked;
}

}  // namespace unisono::api
