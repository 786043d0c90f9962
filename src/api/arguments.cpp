// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/blocks.hpp"
#include "api/registry.hpp"
#include "arith/type.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using schedule::Collective;

class Checker {
 public:
  Checker(const Arguments& arguments, group::Communicator& group)
      : arguments_(arguments), group_(group) {}

  // Fills `checked`; gives what is wrong.
  std::optional<Error> check(Checked& checked) {
    if (arguments_.collective != Collective::barrier) {
      if (auto error = check_type()) return error;
      if (auto error = arguments_.blocks == nullptr ? check_count() : check_arrays()) return error;
      if (auto error = check_root()) return error;
      if (auto error = check_operator()) return error;
      fill_shape();
      if (auto error = check_buffers(checked.rule)) return error;
    }
    fill_call(checked.call);
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

  bool is_root() const { return group_.rank() == arguments_.root; }

  void fill_shape() {
    shape_ = {.collective = arguments_.collective,
              .ranks = group_.size(),
              .root = arguments_.root,
              .count = blocks_.blocks.given() ? 0 : arguments_.count,
              .blocks = blocks_.blocks};
  }

  void fill_call(group::Call& call) const {
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
    if (!blocks_.blocks.given()) return;
    call.purpose = group::Purpose::user_blocks;
    call.count = blocks_.blocks.total();
    call.blocks = blocks_.blocks;
    call.output_places = blocks_.places;
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
    const std::int64_t blocks = schedule::has_blocks(arguments_.collective) ? group_.size() : 1;
    if (count > kMostBytes / type_.bytes / blocks) {
      return wrong(Code::argument, "count {} of {} byte elements overflows (limit {} bytes)", count,
                   type_.bytes, kMostBytes);
    }
    return std::nullopt;
  }

  std::optional<Error> check_arrays() {
    auto blocks = check_blocks(arguments_, group_.rank(), group_.size(), type_.bytes);
    if (!blocks) return wrong(blocks.error().code, "{}", blocks.error().message);
    blocks_ = std::move(blocks).value();
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

  // Whether this rank has an input, or gets an output; if not, the argument is ignored.
  bool has_input() const { return arguments_.collective != Collective::scatter || is_root(); }
  bool has_output() const {
    switch (arguments_.collective) {
      case Collective::reduce:
      case Collective::gather:
        return is_root();
      case Collective::exscan:
        return group_.rank() != 0;
      case Collective::many_to_many:
        return schedule::receives(shape_, group_.rank());
      case Collective::barrier:
      case Collective::broadcast:
      case Collective::allreduce:
      case Collective::allgather:
      case Collective::scatter:
      case Collective::alltoall:
      case Collective::reduce_scatter:
      case Collective::scan:
        return true;
    }
    return true;
  }
  std::int64_t input_bytes() const {
    return schedule::input_count(shape_, group_.rank()) * type_.bytes;
  }
  std::int64_t output_bytes() const {
    if (!has_output()) return 0;
    if (blocks_.places != nullptr) return blocks_.extent * type_.bytes;
    return schedule::output_count(shape_, group_.rank()) * type_.bytes;
  }

  std::optional<Error> check_buffers(BufferRule& rule) const {
    rule.misaligned = static_cast<std::uintptr_t>(type_.alignment) - 1;
    if (arguments_.collective == Collective::broadcast) {
      if (arguments_.output == UNISONO_IN_PLACE) {
        return wrong(Code::argument, "UNISONO_IN_PLACE is not a buffer; broadcast has only one");
      }
      const std::int64_t bytes = arguments_.count * type_.bytes;
      rule.output_bytes = static_cast<std::uintptr_t>(bytes);
      return check_buffer("buffer", arguments_.output, bytes);
    }
    if (auto error = check_in_place(rule)) return error;
    if (rule.in_place != InPlace::none) return check_one_buffer(rule);
    rule.input_bytes = static_cast<std::uintptr_t>(input_bytes());
    rule.output_bytes = static_cast<std::uintptr_t>(output_bytes());
    if (auto error = check_buffer("output", arguments_.output, output_bytes())) return error;
    if (auto error = check_buffer("input", arguments_.input, input_bytes())) return error;
    return check_overlap();
  }

  // As in MPI: a scatter leaves the root's output out, all others the input.
  std::optional<Error> check_in_place(BufferRule& rule) const {
    const bool of_output = arguments_.collective == Collective::scatter;
    const void* const stand_in = of_output ? arguments_.output : arguments_.input;
    const void* const buffer = of_output ? arguments_.input : arguments_.output;
    if (buffer == UNISONO_IN_PLACE && (of_output ? has_input() : has_output())) {
      return wrong(Code::argument, "UNISONO_IN_PLACE is for the {}, not for the {}",
                   of_output ? "output" : "input", of_output ? "input" : "output");
    }
    if (stand_in != UNISONO_IN_PLACE) return std::nullopt;
    auto place = schedule::in_place(shape_, group_.rank());
    // Rank 0 of an exscan keeps what it has.
    if (arguments_.collective == Collective::exscan) place = schedule::InPlace{};
    if (!place && schedule::is_rooted(arguments_.collective)) {
      return wrong(Code::argument, "UNISONO_IN_PLACE is for the root (rank {}) only",
                   arguments_.root);
    }
    if (!place) {
      return wrong(Code::argument,
                   "UNISONO_IN_PLACE is for ranks that get the blocks only, and receives[{}] is 0",
                   group_.rank());
    }
    if (blocks_.places != nullptr) {
      place->input = (*blocks_.places)[static_cast<std::size_t>(group_.rank())];
    }
    rule.in_place = of_output ? InPlace::output : InPlace::input;
    rule.input_offset = place->input * type_.bytes;
    rule.output_offset = place->output * type_.bytes;
    return std::nullopt;
  }

  std::optional<Error> check_one_buffer(BufferRule& rule) const {
    const std::int64_t input_end = input_bytes() == 0 ? 0 : rule.input_offset + input_bytes();
    const std::int64_t output_end = output_bytes() == 0 ? 0 : rule.output_offset + output_bytes();
    const std::int64_t bytes = std::max(input_end, output_end);
    if (rule.in_place == InPlace::output) {
      rule.input_bytes = static_cast<std::uintptr_t>(bytes);
      return check_buffer("input", arguments_.input, bytes);
    }
    rule.output_bytes = static_cast<std::uintptr_t>(bytes);
    return check_buffer("output", arguments_.output, bytes);
  }

  // Whether the input lies in `count` elements of the output.
  bool input_meets(std::int64_t place, std::int64_t count) const {
    const auto bytes = [this](std::int64_t n) {
      return static_cast<std::uintptr_t>(n * type_.bytes);
    };
    const auto in = reinterpret_cast<std::uintptr_t>(arguments_.input);
    const auto out = reinterpret_cast<std::uintptr_t>(arguments_.output) + bytes(place);
    return count > 0 && in < out + bytes(count) &&
           out < in + static_cast<std::uintptr_t>(input_bytes());
  }

  std::optional<Error> check_overlap() const {
    if (input_bytes() == 0 || output_bytes() == 0) return std::nullopt;
    bool overlap = false;
    if (blocks_.places == nullptr) {
      overlap = input_meets(0, output_bytes() / type_.bytes);
    } else {  // between the blocks is room for others' things
      for (int r = 0; r < group_.size(); ++r) {
        overlap |=
            input_meets((*blocks_.places)[static_cast<std::size_t>(r)], blocks_.blocks.of(r).count);
      }
    }
    if (!overlap) return std::nullopt;
    return wrong(Code::argument,
                 "input and output overlap; pass UNISONO_IN_PLACE as the {}, or use two buffers",
                 arguments_.collective == Collective::scatter
                     ? "output where the root's block may stay in the input"
                     : "input where the result may replace it");
  }

  const Arguments& arguments_;
  group::Communicator& group_;
  TypeEntry type_;
  OperatorEntry operator_;
  CheckedBlocks blocks_;
  schedule::Shape shape_;
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
