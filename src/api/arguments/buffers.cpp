// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments/buffers.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace unisono::api {
namespace {

using base::Result;
using base::Status;
using schedule::Collective;

// Addresses from `begin` to before `end`.
struct Extent {
  std::uintptr_t begin, end;
};

// Whether this process has memory where the buffer ends. It is a system call, so only a message
// asks it.
bool ends_in_memory(const void* buffer, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t last =
      reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(bytes) - 1;
  unsigned char is_resident = 0;
  return mincore(reinterpret_cast<void*>(last / page * page), 1, &is_resident) == 0 ||
         errno != ENOMEM;
}

class BufferChecker {
 public:
  explicit BufferChecker(const BufferCall& call)
      : arguments_(call.arguments),
        shape_(call.shape),
        blocks_(call.blocks),
        type_(call.type),
        rank_(call.rank) {}

  Result<BufferRule> check() const {
    BufferRule rule;
    rule.misaligned = static_cast<std::uintptr_t>(type_.alignment) - 1;
    if (arguments_.collective == Collective::broadcast) {
      UNISONO_TRY(check_broadcast(rule));
      return rule;
    }
    UNISONO_TRY(check_in_place(rule));
    if (rule.in_place != InPlace::none) {
      UNISONO_TRY(check_one_buffer(rule));
      return rule;
    }
    rule.input_bytes = static_cast<std::uintptr_t>(input_bytes());
    rule.output_bytes = static_cast<std::uintptr_t>(output_bytes());
    UNISONO_TRY(check_buffer("output", arguments_.output, output_bytes()));
    UNISONO_TRY(check_buffer("input", arguments_.input, input_bytes()));
    UNISONO_TRY(check_overlap());
    return rule;
  }

 private:
  bool is_root() const { return rank_ == arguments_.root; }

  // Whether this rank has an input, or gets an output; if not, the argument is ignored.
  bool has_input() const { return arguments_.collective != Collective::scatter || is_root(); }
  bool has_output() const {
    switch (arguments_.collective) {
      case Collective::reduce:
      case Collective::gather:
        return is_root();
      case Collective::exscan:
        return rank_ != 0;
      case Collective::many_to_many:
        return schedule::receives(shape_, rank_);
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
    if (blocks_.input.places != nullptr) return blocks_.input.extent * type_.bytes;
    return schedule::input_count(shape_, rank_) * type_.bytes;
  }
  std::int64_t output_bytes() const {
    if (!has_output()) return 0;
    if (blocks_.output.places != nullptr) return blocks_.output.extent * type_.bytes;
    return schedule::output_count(shape_, rank_) * type_.bytes;
  }

  Status check_buffer(const char* name, const void* buffer, std::int64_t bytes) const {
    if (bytes == 0) return base::success();
    if (buffer == nullptr) {
      return wrong_argument("{} is NULL, but {} bytes are needed", name, bytes);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(buffer);
    if (address % static_cast<std::uintptr_t>(type_.alignment) != 0) {
      return wrong_argument("{} is misaligned: address {} is no multiple of {}", name,
                            fmt::ptr(buffer), type_.alignment);
    }
    if (address > UINTPTR_MAX - static_cast<std::uintptr_t>(bytes)) {
      return wrong_argument("{} with {} bytes ends beyond the address space", name, bytes);
    }
    return base::success();
  }

  Status check_broadcast(BufferRule& rule) const {
    if (arguments_.output == UNISONO_IN_PLACE) {
      return wrong_argument("UNISONO_IN_PLACE is not a buffer; broadcast has only one");
    }
    const std::int64_t bytes = arguments_.count * type_.bytes;
    rule.output_bytes = static_cast<std::uintptr_t>(bytes);
    return check_buffer("buffer", arguments_.output, bytes);
  }

  // As in MPI: in a scatter UNISONO_IN_PLACE stands for the root's output, in all other collectives
  // for the input.
  Status check_in_place(BufferRule& rule) const {
    const bool of_output = arguments_.collective == Collective::scatter;
    const void* const stand_in = of_output ? arguments_.output : arguments_.input;
    const void* const buffer = of_output ? arguments_.input : arguments_.output;
    if (buffer == UNISONO_IN_PLACE && (of_output ? has_input() : has_output())) {
      return wrong_argument("UNISONO_IN_PLACE is for the {}, not for the {}",
                            of_output ? "output" : "input", of_output ? "input" : "output");
    }
    if (stand_in != UNISONO_IN_PLACE) return base::success();
    auto place = schedule::in_place(shape_, rank_);
    // Rank 0 of an exscan keeps its buffer unchanged.
    if (arguments_.collective == Collective::exscan) place = schedule::InPlace{};
    if (!place && schedule::is_rooted(arguments_.collective)) {
      return wrong_argument("UNISONO_IN_PLACE is for the root (rank {}) only", arguments_.root);
    }
    if (!place) {
      return wrong_argument(
          "UNISONO_IN_PLACE is for ranks that get the blocks only, and receives[{}] is 0", rank_);
    }
    move_to_own_block(*place);
    rule.in_place = of_output ? InPlace::output : InPlace::input;
    rule.input_offset = place->input * type_.bytes;
    rule.output_offset = place->output * type_.bytes;
    return base::success();
  }

  // Where the own block has a place that the caller chose; an alltoall's buffers begin alike.
  void move_to_own_block(schedule::InPlace& place) const {
    const auto own = static_cast<std::size_t>(rank_);
    if (arguments_.collective == Collective::alltoall) return;
    if (blocks_.output.places != nullptr) place.input = (*blocks_.output.places)[own];
    if (blocks_.input.places != nullptr) place.output = (*blocks_.input.places)[own];
  }

  Status check_one_buffer(BufferRule& rule) const {
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

  // The parts of a buffer that count; between blocks is room for others' things.
  std::vector<Extent> extents(const void* buffer, const ReadBlocks& blocks,
                              std::int64_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
    std::vector<Extent> parts;
    const auto add = [&](std::int64_t from, std::int64_t length) {
      const std::uintptr_t first = begin + static_cast<std::uintptr_t>(from);
      if (length > 0) parts.push_back({first, first + static_cast<std::uintptr_t>(length)});
    };
    if (blocks.places == nullptr) {
      add(0, bytes);
      return parts;
    }
    for (std::size_t r = 0; r < blocks.counts.size(); ++r) {
      add((*blocks.places)[r] * type_.bytes, blocks.counts[r] * type_.bytes);
    }
    return parts;
  }

  // Buffers that overlap because a count is far too large.
  Status check_end(const char* name, const void* buffer, std::int64_t bytes) const {
    if (ends_in_memory(buffer, bytes)) return base::success();
    return wrong_argument(
        "the count is too large for the {}: {} bytes from address {} go beyond the end of the "
        "memory there",
        name, bytes, fmt::ptr(buffer));
  }

  Status check_overlap() const {
    const auto in = reinterpret_cast<std::uintptr_t>(arguments_.input);
    const auto out = reinterpret_cast<std::uintptr_t>(arguments_.output);
    if (in + static_cast<std::uintptr_t>(input_bytes()) <= out ||
        out + static_cast<std::uintptr_t>(output_bytes()) <= in) {
      return base::success();
    }
    const auto inputs = extents(arguments_.input, blocks_.input, input_bytes());
    auto outputs = extents(arguments_.output, blocks_.output, output_bytes());
    // Outputs do not overlap each other, so they end in the order in which they begin.
    std::ranges::sort(outputs, {}, &Extent::begin);
    const bool overlap = std::ranges::any_of(inputs, [&](const Extent& input) {
      const auto meets = std::ranges::upper_bound(outputs, input.begin, {}, &Extent::end);
      return meets != outputs.end() && meets->begin < input.end;
    });
    if (!overlap) return base::success();
    UNISONO_TRY(check_end("output", arguments_.output, output_bytes()));
    UNISONO_TRY(check_end("input", arguments_.input, input_bytes()));
    return wrong_argument(
        "input and output overlap; pass UNISONO_IN_PLACE as the {}, or use two buffers",
        arguments_.collective == Collective::scatter
            ? "output where the root's block may stay in the input"
            : "input where the result may replace it");
  }

  const Arguments& arguments_;
  const schedule::Shape& shape_;
  const CheckedBlocks& blocks_;
  TypeEntry type_;
  int rank_;
};

}  // namespace

Result<BufferRule> check_buffers(const BufferCall& call) { return BufferChecker(call).check(); }

}  // namespace unisono::api
