// SPDX-License-Identifier: BSD-3-Clause
//
// Unisono in C++20, a thin layer over unisono.h. Handles clean up after themselves, and ranges
// replace pointers and counts. Element types give the datatype, and errors are exceptions. It is
// header only. The C header's rules on threads, order and buffers hold unchanged.
//
//   unisono::job job;                                    // joins; the destructor leaves
//   unisono::communicator& world = job.world();
//   double total = world.allreduce(1.5, unisono::op::sum);
//   std::vector<int> mine(4), all(4 * world.size());
//   world.allgather(mine, all);
//
// Every function that calls the library throws unisono::error where the C function returns an
// error. Names follow the standard library, because they stand next to its names.
#ifndef UNISONO_UNISONO_HPP
#define UNISONO_UNISONO_HPP

#include <unisono/unisono.h>

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace unisono {

/* ---- errors ---------------------------------------------------------------------------------- */

/// A failed call: what() is the library's message, code() one of UNISONO_ERROR_*.
class error : public std::runtime_error {
 public:
  error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  int code() const noexcept { return code_; }
  const char* name() const noexcept { return unisono_error_name(code_); }

 private:
  int code_;
};

namespace detail {
inline void check(int code) {
  if (code != UNISONO_OK) throw error(code, unisono_last_error());
}
}  // namespace detail

/* ---- datatypes ------------------------------------------------------------------------------- */

/// IEEE binary16 and bfloat16 by their bits, for compilers without such types.
struct float16 {
  std::uint16_t bits;
};
struct bfloat16 {
  std::uint16_t bits;
};

/// A value and its index: the element of op::minloc and op::maxloc.
template <class Value>
struct located {
  Value value;
  std::int32_t index;

  bool operator==(const located&) const = default;
};

/// Maps a C++ type to a unisono_type_t. Specialize it to reduce your own type with an operator of
/// your own. To move a type needs no datatype: it travels as bytes.
///
///   template <> struct unisono::datatype<Matrix> {
///     static unisono_type_t value() {
///       static const unisono_type_t type = unisono::create_type<Matrix>();
///       return type;
///     }
///   };
template <class T>
struct datatype;

/// Creates an opaque datatype with T's size and alignment. All ranks create their types and
/// operators in the same order. Throws error (RESOURCES above 1000).
template <class T>
unisono_type_t create_type() {
  static_assert(std::is_trivially_copyable_v<T>, "elements are moved as bytes");
  unisono_type_t type{};
  detail::check(unisono_type_create(sizeof(T), alignof(T), &type));
  return type;
}

namespace detail {

template <unisono_type_t Type>
struct fixed_datatype {
  static constexpr unisono_type_t value() noexcept { return Type; }
};

// The integer types without bool and the character types, whose sums mean nothing. (char has a
// datatype of its own below.)
template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                  !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                  !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8;

template <class T>
constexpr unisono_type_t integer_type() {
  constexpr auto log_size = static_cast<unisono_type_t>(std::bit_width(sizeof(T)) - 1);
  return (std::signed_integral<T> ? unisono_type_t{UNISONO_INT8} : unisono_type_t{UNISONO_UINT8}) +
         log_size;
}

}  // namespace detail

template <detail::integer T>
struct datatype<T> : detail::fixed_datatype<detail::integer_type<T>()> {};
template <>
struct datatype<std::byte> : detail::fixed_datatype<UNISONO_BYTE> {};
template <>
struct datatype<char> : detail::fixed_datatype<UNISONO_BYTE> {};
template <>
struct datatype<float16> : detail::fixed_datatype<UNISONO_FLOAT16> {};
template <>
struct datatype<bfloat16> : detail::fixed_datatype<UNISONO_BFLOAT16> {};
template <>
struct datatype<float> : detail::fixed_datatype<UNISONO_FLOAT32> {};
template <>
struct datatype<double> : detail::fixed_datatype<UNISONO_FLOAT64> {};
template <>
struct datatype<std::complex<float>> : detail::fixed_datatype<UNISONO_COMPLEX64> {};
template <>
struct datatype<std::complex<double>> : detail::fixed_datatype<UNISONO_COMPLEX128> {};
template <>
struct datatype<located<std::int16_t>> : detail::fixed_datatype<UNISONO_INT16_INT32> {};
template <>
struct datatype<located<std::int32_t>> : detail::fixed_datatype<UNISONO_INT32_INT32> {};
template <>
struct datatype<located<std::int64_t>> : detail::fixed_datatype<UNISONO_INT64_INT32> {};
template <>
struct datatype<located<float>> : detail::fixed_datatype<UNISONO_FLOAT32_INT32> {};
template <>
struct datatype<located<double>> : detail::fixed_datatype<UNISONO_FLOAT64_INT32> {};

/// A type that can be reduced: it has a datatype.
template <class T>
concept element = requires {
  { datatype<T>::value() } -> std::same_as<unisono_type_t>;
};
/// A type that can be moved. An address means nothing to another process.
template <class T>
concept movable_element = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                          !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T>;

/* ---- operators ------------------------------------------------------------------------------- */

enum class op : unisono_op_t {
  sum = UNISONO_SUM,
  prod = UNISONO_PROD,
  min = UNISONO_MIN,
  max = UNISONO_MAX,
  logical_and = UNISONO_LOGICAL_AND,
  logical_or = UNISONO_LOGICAL_OR,
  logical_xor = UNISONO_LOGICAL_XOR,
  bitwise_and = UNISONO_BITWISE_AND,
  bitwise_or = UNISONO_BITWISE_OR,
  bitwise_xor = UNISONO_BITWISE_XOR,
  minloc = UNISONO_MINLOC,
  maxloc = UNISONO_MAXLOC
};

/// How unisono::communicator::query compares words.
enum class compare : unisono_compare_t {
  equal = UNISONO_EQUAL,
  not_equal = UNISONO_NOT_EQUAL,
  less = UNISONO_LESS,
  less_equal = UNISONO_LESS_EQUAL,
  greater = UNISONO_GREATER,
  greater_equal = UNISONO_GREATER_EQUAL
};

namespace detail {
constexpr unisono_op_t code(op how) noexcept { return static_cast<unisono_op_t>(how); }
}  // namespace detail

/// Whether a member takes part, as far as is known.
enum class presence : std::int32_t {
  present = UNISONO_RANK_PRESENT,
  left = UNISONO_RANK_LEFT,
  lost = UNISONO_RANK_LOST,
};
/// Of one member: see unisono::communicator::state_of.
struct rank_state {
  presence state;
  std::string why;  ///< empty: it is present
};

enum class commutes : bool { no, yes };

/// Creates an operator from a function object without state, T f(T left, T right). The function is
/// associative. If it throws, the communicator fails on all ranks, as by unisono_op_fail.
/// commutes::no keeps the order of ranks. The operator lives until the end of the process. All
/// ranks create their operators in the same order.
template <class T, class Function>
requires std::is_empty_v<Function> && std::default_initializable<Function> &&
    std::is_invocable_r_v<T, Function, const T&, const T&>
        op create_op(Function, commutes commutative = commutes::yes) {
  const auto apply = [](void* target, const void* left, const void* right, std::int64_t count,
                        unisono_type_t, void*) {
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<T*>(target)[i] =
          Function{}(static_cast<const T*>(left)[i], static_cast<const T*>(right)[i]);
    }
  };
  unisono_op_t created{};
  detail::check(unisono_op_create(apply, commutative == commutes::yes ? 1 : 0, nullptr, &created));
  return op{created};
}

/* ---- buffers --------------------------------------------------------------------------------- */

/// Stands for an input that already lies in the output (see UNISONO_IN_PLACE).
struct in_place_t {};
inline constexpr in_place_t in_place{};

/// Contiguous elements that outlive the call: a named container, an array, a span.
template <class Range>
concept buffer = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::ranges::borrowed_range<Range> && movable_element<std::ranges::range_value_t<Range>>;
template <class Range>
concept output_buffer = buffer<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;
/// A buffer with the same elements as Output, or in_place.
template <class Input, class Output>
concept input_for = std::same_as<std::remove_cvref_t<Input>, in_place_t> ||
    (buffer<Input>&&
         std::same_as<std::ranges::range_value_t<Input>, std::ranges::range_value_t<Output>>);
/// An output with the same elements as Input, or in_place. For scatters.
template <class Output, class Input>
concept output_for = std::same_as<std::remove_cvref_t<Output>, in_place_t> ||
    (output_buffer<Output>&&
         std::same_as<std::ranges::range_value_t<Output>, std::ranges::range_value_t<Input>>);
template <class Range>
concept reducible = output_buffer<Range> && element<std::ranges::range_value_t<Range>>;

/// One typed block for each rank: counts of its elements, and displacements in bytes. Without
/// displacements one block lies behind the other.
struct typed_blocks {
  std::span<const std::int64_t> counts;
  std::span<const unisono_type_t> types;
  std::span<const std::int64_t> displacements = {};
};

namespace detail {

// A call's buffers as the C API takes them. The C API cannot see lengths that do not fit each
// other. Then `problem` says how, for this rank and, by unisono_refuse, for the others. A plan
// becomes one of count -1, which the C API refuses.
struct arguments {
  const void* input = nullptr;
  void* output = nullptr;
  std::int64_t count = 0;
  unisono_type_t type = UNISONO_BYTE;
  std::string problem;

  void check(int code) const {
    if (code == UNISONO_ERROR_ARGUMENT && !problem.empty()) throw error(code, problem);
    detail::check(code);
  }
  void require_length(const char* what, std::size_t length, std::size_t expected) {
    if (length == expected || !problem.empty()) return;
    problem = std::string("the ") + what + " holds " + std::to_string(length) +
              " elements, but has to hold " + std::to_string(expected);
    count = -1;
  }
  // `end` of the last block is in the C API's units.
  void require_room(const char* what, std::size_t length, std::int64_t unit, std::int64_t end) {
    if (static_cast<std::int64_t>(length) * unit >= end || !problem.empty()) return;
    problem = std::string("the ") + what + " holds " + std::to_string(length) +
              " elements, but its blocks end at " + std::to_string(end / unit);
  }
};

// A type without a datatype travels as bytes.
template <class T>
unisono_type_t type_for_moving() {
  if constexpr (element<T>) {
    return datatype<T>::value();
  } else {
    return UNISONO_BYTE;
  }
}
template <class T>
constexpr std::int64_t units = element<T> ? 1 : static_cast<std::int64_t>(sizeof(T));

template <class Output>
arguments moving(Output& output, std::size_t length) {
  using T = std::ranges::range_value_t<Output>;
  arguments result;
  result.output = std::ranges::data(output);
  result.count = static_cast<std::int64_t>(length) * units<T>;
  result.type = type_for_moving<T>();
  return result;
}

template <class Output>
arguments broadcasting(Output& output) {
  return moving(output, std::ranges::size(output));
}

template <class Input, class Output>
arguments gathering(Input& input, Output& output, std::size_t ranks,
                    const char* what = "output of an allgather") {
  const std::size_t length = std::ranges::size(output);
  if constexpr (std::same_as<std::remove_cvref_t<Input>, in_place_t>) {
    arguments result = moving(output, length / ranks);
    result.input = UNISONO_IN_PLACE;
    result.require_length(what, length, length / ranks * ranks);
    return result;
  } else {
    arguments result = moving(output, std::ranges::size(input));
    result.input = std::ranges::data(input);
    result.require_length(what, length, std::ranges::size(input) * ranks);
    return result;
  }
}

// `receives`: this rank gets the result, so its output counts.
template <class Input, class Output>
arguments reducing(Input& input, Output& output, bool receives) {
  const std::size_t length = std::ranges::size(output);
  if constexpr (std::same_as<std::remove_cvref_t<Input>, in_place_t>) {
    arguments result = moving(output, length);
    result.input = UNISONO_IN_PLACE;
    return result;
  } else {
    arguments result = moving(output, std::ranges::size(input));
    result.input = std::ranges::data(input);
    if (receives) result.require_length("output of a reduction", length, std::ranges::size(input));
    return result;
  }
}

template <class Range>
inline constexpr bool is_in_place = std::same_as<std::remove_cvref_t<Range>, in_place_t>;

// At the root, or everywhere in an allgather (`receives`), the output holds `ranks` blocks.
template <class Input, class Output>
arguments gathering_at(Input& input, Output& output, std::size_t ranks, bool receives) {
  if (receives) return gathering(input, output, ranks, "output of a gather");
  if constexpr (is_in_place<Input>) {
    arguments result = moving(output, 0);
    result.input = UNISONO_IN_PLACE;  // the C API refuses it
    return result;
  } else {
    arguments result = moving(output, std::ranges::size(input));
    result.input = std::ranges::data(input);
    return result;
  }
}

// `gives`: this rank is the root, whose input counts.
template <class Input, class Output>
arguments scattering(Input& input, Output& output, std::size_t ranks, bool gives) {
  using T = std::ranges::range_value_t<Input>;
  arguments result;
  result.input = std::ranges::data(input);
  result.type = type_for_moving<T>();
  std::size_t length = std::ranges::size(input) / ranks;
  if constexpr (is_in_place<Output>) {
    result.output = UNISONO_IN_PLACE;
  } else {
    result.output = std::ranges::data(output);
    length = std::ranges::size(output);
  }
  result.count = static_cast<std::int64_t>(length) * units<T>;
  if (gives) result.require_length("input of a scatter", std::ranges::size(input), length * ranks);
  return result;
}

template <class Input, class Output>
arguments exchanging(Input& input, Output& output, std::size_t ranks) {
  const std::size_t length = std::ranges::size(output);
  arguments result = moving(output, length / ranks);
  result.require_length("output of an alltoall", length, length / ranks * ranks);
  if constexpr (is_in_place<Input>) {
    result.input = UNISONO_IN_PLACE;
  } else {
    result.input = std::ranges::data(input);
    result.require_length("input of an alltoall", std::ranges::size(input), length);
  }
  return result;
}

// In place, all blocks lie in the output.
template <class Input, class Output>
arguments reducing_blocks(Input& input, Output& output, std::size_t ranks) {
  const std::size_t length = std::ranges::size(output);
  if constexpr (is_in_place<Input>) {
    arguments result = moving(output, length / ranks);
    result.input = UNISONO_IN_PLACE;
    result.require_length("output of a reduce_scatter_block in place", length,
                          length / ranks * ranks);
    return result;
  } else {
    arguments result = moving(output, length);
    result.input = std::ranges::data(input);
    result.require_length("input of a reduce_scatter_block", std::ranges::size(input),
                          length * ranks);
    return result;
  }
}

// Blocks of different lengths, in the C API's units.
struct block_list {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;

  const std::int64_t* displacements_data() const {
    return displacements.empty() ? nullptr : displacements.data();
  }
  // The end of the last block. Blocks that the C API refuses count as empty.
  std::int64_t extent() const {
    std::int64_t end = 0, sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::int64_t from = displacements.empty() ? sum : displacements[i];
      if (counts[i] <= 0 || from < 0 || from > INT64_MAX - counts[i]) continue;
      sum = from + counts[i];
      if (sum > end) end = sum;
    }
    return end;
  }
};

// A call with one list of blocks.
struct block_arguments : arguments, block_list {
  // Without counts, the C API refuses the call on all ranks.
  const std::int64_t* counts_data() const { return problem.empty() ? counts.data() : nullptr; }
  void require_lists(std::size_t ranks) {
    require_length("list of counts", counts.size(), ranks);
    if (displacements.empty()) return;
    require_length("list of displacements", displacements.size(), ranks);
  }
  void require_room(const char* what, std::size_t length, std::int64_t unit) {
    arguments::require_room(what, length, unit, extent());
  }
};

inline std::vector<std::int64_t> in_units(std::span<const std::int64_t> numbers,
                                          std::int64_t unit) {
  std::vector<std::int64_t> result(numbers.begin(), numbers.end());
  for (std::int64_t& number : result) {
    number = number > INT64_MAX / unit ? INT64_MAX : number < 0 ? number : number * unit;
  }
  return result;
}

// `receives`: this rank gets the blocks.
template <class Input, class Output>
block_arguments gathering_blocks(Input& input, Output& output, std::span<const std::int64_t> counts,
                                 std::span<const std::int64_t> displacements, std::size_t ranks,
                                 bool receives) {
  using T = std::ranges::range_value_t<Output>;
  block_arguments result{moving(output, 0),
                         {in_units(counts, units<T>), in_units(displacements, units<T>)}};
  result.require_lists(ranks);
  if constexpr (is_in_place<Input>) {
    result.input = UNISONO_IN_PLACE;
  } else {
    result.input = std::ranges::data(input);
    result.count = static_cast<std::int64_t>(std::ranges::size(input)) * units<T>;
  }
  if (receives && result.problem.empty()) {
    result.require_room("output of a gather", std::ranges::size(output), units<T>);
  }
  return result;
}

template <class Input, class Output>
block_arguments reducing_unequal_blocks(Input& input, Output& output,
                                        std::span<const std::int64_t> counts, std::size_t rank,
                                        std::size_t ranks) {
  block_arguments result{moving(output, 0), {in_units(counts, 1), {}}};
  result.require_length("list of counts", counts.size(), ranks);
  if (!result.problem.empty()) return result;
  if constexpr (is_in_place<Input>) {
    result.input = UNISONO_IN_PLACE;
    result.require_room("output of a reduce_scatter in place", std::ranges::size(output), 1);
  } else {
    result.input = std::ranges::data(input);
    result.require_room("input of a reduce_scatter", std::ranges::size(input), 1);
    const auto room = static_cast<std::int64_t>(std::ranges::size(output));
    if (result.problem.empty() && room < counts[rank]) {
      result.require_length("output of a reduce_scatter", std::ranges::size(output),
                            static_cast<std::size_t>(counts[rank]));
    }
  }
  return result;
}

// At the root (`receives`) as an allgatherv; other ranks' lists are ignored.
template <class Input, class Output>
block_arguments gathering_blocks_at(Input& input, Output& output,
                                    std::span<const std::int64_t> counts,
                                    std::span<const std::int64_t> displacements, std::size_t ranks,
                                    bool receives) {
  if (receives) return gathering_blocks(input, output, counts, displacements, ranks, true);
  return {gathering_at(input, output, ranks, false), {}};
}

// `gives`: this rank is the root, whose input and lists count.
template <class Input, class Output>
block_arguments scattering_blocks(Input& input, Output& output,
                                  std::span<const std::int64_t> counts,
                                  std::span<const std::int64_t> displacements, std::size_t ranks,
                                  bool gives) {
  using T = std::ranges::range_value_t<Input>;
  block_arguments result{scattering(input, output, ranks, false), {}};
  if (!gives) return result;
  static_cast<block_list&>(result) = {in_units(counts, units<T>),
                                      in_units(displacements, units<T>)};
  result.require_lists(ranks);
  if (result.problem.empty()) {
    result.require_room("input of a scatter", std::ranges::size(input), units<T>);
  }
  return result;
}

// A call with a list of blocks to send and one to receive. The two may have different types.
struct exchange_arguments : arguments {
  block_list sent, received;
  const unisono_type_t* sent_types = nullptr;
  const unisono_type_t* received_types = nullptr;

  const std::int64_t* received_counts() const {
    return problem.empty() ? received.counts.data() : nullptr;
  }
  void require_list(const char* what, const block_list& list, std::size_t ranks) {
    require_length(what, list.counts.size(), ranks);
    if (list.displacements.empty()) return;
    require_length(what, list.displacements.size(), ranks);
  }
};

template <class Input, class Output>
exchange_arguments exchanging_blocks(Input& input, Output& output, block_list sent,
                                     block_list received, std::size_t ranks) {
  using T = std::ranges::range_value_t<Output>;
  exchange_arguments result{moving(output, 0), std::move(sent), std::move(received)};
  result.require_list("list of blocks to receive", result.received, ranks);
  result.require_room("output of an alltoallv", std::ranges::size(output), units<T>,
                      result.received.extent());
  if constexpr (is_in_place<Input>) {
    result.input = UNISONO_IN_PLACE;
  } else {
    result.input = std::ranges::data(input);
    result.require_list("list of blocks to send", result.sent, ranks);
    result.require_room("input of an alltoallv", std::ranges::size(input), units<T>,
                        result.sent.extent());
  }
  return result;
}

// Blocks that the C API refuses count as empty.
inline std::int64_t extent_in_bytes(const typed_blocks& blocks) {
  std::int64_t end = 0, sum = 0;
  for (std::size_t i = 0; i < blocks.counts.size(); ++i) {
    const auto size = static_cast<std::int64_t>(unisono_type_size(blocks.types[i]));
    const std::int64_t from = blocks.displacements.empty() ? sum : blocks.displacements[i];
    if (blocks.counts[i] <= 0 || size == 0 || from < 0) continue;
    if (blocks.counts[i] > (INT64_MAX - from) / size) continue;
    sum = from + blocks.counts[i] * size;
    if (sum > end) end = sum;
  }
  return end;
}

inline void require_typed(arguments& result, const char* what, const typed_blocks& blocks,
                          std::size_t ranks, std::size_t bytes) {
  result.require_length("list of counts", blocks.counts.size(), ranks);
  result.require_length("list of types", blocks.types.size(), ranks);
  if (!blocks.displacements.empty()) {
    result.require_length("list of displacements", blocks.displacements.size(), ranks);
  }
  if (!result.problem.empty() || static_cast<std::int64_t>(bytes) >= extent_in_bytes(blocks)) {
    return;
  }
  result.problem = std::string("the ") + what + " of an alltoallw holds " + std::to_string(bytes) +
                   " bytes, but its blocks end at " + std::to_string(extent_in_bytes(blocks));
}

inline block_list list_of(const typed_blocks& blocks) {
  return {in_units(blocks.counts, 1), in_units(blocks.displacements, 1)};
}

template <class Range>
std::size_t bytes_of(const Range& range) {
  return std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>);
}

template <class Input, class Output>
exchange_arguments exchanging_typed(Input& input, Output& output, const typed_blocks& sent,
                                    const typed_blocks& received, std::size_t ranks) {
  exchange_arguments result{moving(output, 0), {}, list_of(received)};
  require_typed(result, "output", received, ranks, bytes_of(output));
  result.received_types = received.types.data();
  if constexpr (is_in_place<Input>) {
    result.input = UNISONO_IN_PLACE;
  } else {
    result.input = std::ranges::data(input);
    result.sent = list_of(sent);
    result.sent_types = sent.types.data();
    require_typed(result, "input", sent, ranks, bytes_of(input));
  }
  return result;
}

}  // namespace detail

/* ---- operations under way -------------------------------------------------------------------- */

namespace detail {

// The one owner of a C handle; End::end ends it.
template <class Handle, class End>
struct owner {
  Handle handle = nullptr;

  owner() noexcept = default;
  owner(owner&& other) noexcept : handle(other.release()) {}
  owner& operator=(owner&& other) noexcept {
    if (this != &other) {
      reset();
      handle = other.release();
    }
    return *this;
  }
  ~owner() { reset(); }

  Handle release() noexcept { return std::exchange(handle, nullptr); }
  void reset() noexcept {
    if (handle != nullptr) End::end(release());
  }
};

// A handle that somebody else owns.
template <class Handle>
struct borrowed {
  Handle handle = nullptr;
};

struct request_handles;

struct request_end {
  static void end(unisono_request_t handle) noexcept { static_cast<void>(unisono_wait(&handle)); }
};
struct plan_end {
  static void end(unisono_plan_t handle) noexcept {
    if (unisono_plan_free(handle) != UNISONO_ERROR_STATE) return;
    static_cast<void>(unisono_plan_wait(handle));
    static_cast<void>(unisono_plan_free(handle));
  }
};
struct communicator_end {
  static void end(unisono_comm_t handle) noexcept { static_cast<void>(unisono_comm_free(handle)); }
};
struct memory_end {
  static void end(void* memory) noexcept { static_cast<void>(unisono_memory_free(memory)); }
};
struct threads_end {
  static void end(unisono_threads_t handle) noexcept {
    static_cast<void>(unisono_threads_free(handle));
  }
};

}  // namespace detail

/// A started collective. The destructor waits for its completion, because it uses the buffers until
/// then. A request is empty once complete, and after a move.
class request {
 public:
  /// False if the request is empty.
  explicit operator bool() const noexcept { return native() != nullptr; }

  void wait() { detail::check(unisono_wait(&owner_.handle)); }
  /// True if the collective is complete; the request is then empty.
  bool test() {
    int done = 0;
    detail::check(unisono_test(&owner_.handle, &done));
    return done != 0;
  }
  /// Cancels the collective. Unless it was complete, the communicator fails (see unisono_cancel).
  void cancel() { detail::check(unisono_cancel(&owner_.handle)); }

  unisono_request_t native() const noexcept { return owner_.handle; }

 private:
  template <class>
  friend class collectives;
  friend struct detail::request_handles;

  detail::owner<unisono_request_t, detail::request_end> owner_;
};

namespace detail {

// The C handles of some requests during a call that may end any of them.
struct request_handles {
  explicit request_handles(std::span<request> all) : requests(all) {
    for (const request& each : requests) handles.push_back(each.native());
  }
  ~request_handles() {
    for (std::size_t i = 0; i < handles.size(); ++i) requests[i].owner_.handle = handles[i];
  }
  int count() const noexcept { return static_cast<int>(handles.size()); }

  std::span<request> requests;
  std::vector<unisono_request_t> handles;
};

}  // namespace detail

/// Waits until one of the requests is complete and gives its index; nullopt if all are empty.
inline std::optional<std::size_t> wait_any(std::span<request> requests) {
  detail::request_handles some(requests);
  int index = -1;
  detail::check(unisono_wait_any(some.handles.data(), some.count(), &index));
  return index < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(index));
}

/// Waits until all requests are complete; skips empty ones.
inline void wait_all(std::span<request> requests) {
  detail::request_handles all(requests);
  detail::check(unisono_wait_all(all.handles.data(), all.count()));
}

/// A collective, checked and prepared once for any number of starts on the same buffers. The
/// destructor waits for a start that is still active.
class plan {
 public:
  void start() { detail::check(unisono_plan_start(native())); }
  void wait() { detail::check(unisono_plan_wait(native())); }
  bool test() {
    int done = 0;
    detail::check(unisono_plan_test(native(), &done));
    return done != 0;
  }
  /// Starts and waits.
  void run() {
    start();
    wait();
  }

  unisono_plan_t native() const noexcept { return owner_.handle; }

 private:
  template <class>
  friend class collectives;
  plan() noexcept = default;

  detail::owner<unisono_plan_t, detail::plan_end> owner_;
};

/* ---- communicators --------------------------------------------------------------------------- */

namespace detail {

// More than fit into memory stay more than fit.
template <class T>
constexpr std::size_t bytes_of(std::size_t count) noexcept {
  return count > static_cast<std::size_t>(-1) / sizeof(T) ? static_cast<std::size_t>(-1)
                                                          : count * sizeof(T);
}

// An allgather of the caller's, as the C API takes it.
template <class Allgather>
struct exchange_caller {
  Allgather& allgather;
  std::size_t ranks;
  std::exception_ptr thrown = nullptr;

  unisono_exchange_t functions() {
    const auto call = [](const void* input, void* output, std::size_t bytes, void* given) {
      auto& self = *static_cast<exchange_caller*>(given);
      try {
        self.allgather(std::span(static_cast<const std::byte*>(input), bytes),
                       std::span(static_cast<std::byte*>(output), bytes * self.ranks));
        return 0;
      } catch (...) {
        self.thrown = std::current_exception();
        return 1;
      }
    };
    return {call, this, 0};
  }
  // Throws what the allgather has thrown, or the error.
  void check(int code) {
    if (thrown != nullptr) std::rethrow_exception(thrown);
    detail::check(code);
  }
};

}  // namespace detail

/// Elements in memory that the other ranks of this host can read, from communicator::allocate(). A
/// contiguous range, so collectives take it. It must not end while an operation uses it.
template <class T>
class shared_buffer {
 public:
  shared_buffer() noexcept = default;
  shared_buffer(shared_buffer&& other) noexcept
      : owner_(std::move(other.owner_)), size_(std::exchange(other.size_, 0)) {}
  shared_buffer& operator=(shared_buffer&& other) noexcept {
    owner_ = std::move(other.owner_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() noexcept { return static_cast<T*>(owner_.handle); }
  const T* data() const noexcept { return static_cast<const T*>(owner_.handle); }
  std::size_t size() const noexcept { return size_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  friend class communicator;
  static_assert(std::is_trivially_copyable_v<T>, "elements are moved as bytes");
  shared_buffer(T* data, std::size_t size) noexcept : size_(size) { owner_.handle = data; }

  detail::owner<void*, detail::memory_end> owner_;
  std::size_t size_ = 0;
};

/// The collectives of a communicator in one form. Result is void for calls that block, `request`
/// for calls that start, and `plan` for calls that prepare. Buffers are ranges (see `buffer`); an
/// input may be `in_place`. Only calls that block take values instead of ranges.
template <class Result>
class collectives {
  static constexpr bool blocks = std::is_void_v<Result>;

 public:
  int rank() const { return number(unisono_comm_rank); }
  int size() const { return number(unisono_comm_size); }
  unisono_comm_t native() const noexcept { return owner_.handle; }

  Result barrier() {
    return call(forms{unisono_barrier, unisono_barrier_start, unisono_barrier_plan},
                detail::arguments{});
  }

  /// Copies the root's elements to every rank's buffer.
  template <output_buffer Range>
  Result broadcast(Range&& range, int root = 0) {
    const auto a = detail::broadcasting(range);
    return call(forms{unisono_broadcast, unisono_broadcast_start, unisono_broadcast_plan}, a,
                a.output, a.count, a.type, root);
  }
  /// Returns the root's value at every rank.
  template <movable_element T>
  requires(blocks && !std::ranges::range<T>) T broadcast(T value, int root = 0) {
    broadcast(std::span<T>(&value, 1), root);
    return value;
  }

  /// Combines the inputs of all ranks by `how`, in the order of ranks, to the root's output. Other
  /// ranks' output is ignored and may be empty. in_place at the root only.
  template <reducible Output, input_for<Output> Input>
  Result reduce(Input&& input, Output&& output, op how, int root = 0) {
    const auto a = detail::reducing(input, output, root == rank());
    return call(forms{unisono_reduce, unisono_reduce_start, unisono_reduce_plan}, a, a.input,
                a.output, a.count, a.type, detail::code(how), root);
  }

  /// As reduce, with the same result, bit for bit, at every rank.
  template <reducible Output, input_for<Output> Input>
  Result allreduce(Input&& input, Output&& output, op how) {
    const auto a = detail::reducing(input, output, true);
    return call(forms{unisono_allreduce, unisono_allreduce_start, unisono_allreduce_plan}, a,
                a.input, a.output, a.count, a.type, detail::code(how));
  }
  /// Reduces one value of each rank.
  template <element T>
  requires blocks T allreduce(const T& value, op how) {
    T result{};
    allreduce(std::span<const T>(&value, 1), std::span<T>(&result, 1), how);
    return result;
  }

  /// Gathers the inputs of all ranks, one after another, at every rank. The output holds size()
  /// times the input's elements.
  template <output_buffer Output, input_for<Output> Input>
  Result allgather(Input&& input, Output&& output) {
    const auto a = detail::gathering(input, output, ranks());
    return call(forms{unisono_allgather, unisono_allgather_start, unisono_allgather_plan}, a,
                a.input, a.output, a.count, a.type);
  }
  /// Gathers one value of each rank. No bool, since a std::vector<bool> is no buffer.
  template <movable_element T>
  requires(blocks && !std::ranges::range<T> &&
           !std::same_as<T, bool>) std::vector<T> allgather(const T& value) {
    std::vector<T> result(ranks());
    allgather(std::span<const T>(&value, 1), result);
    return result;
  }

  /// Gathers the inputs of all ranks, one after another, at the root. Other ranks' output is
  /// ignored and may be empty. in_place at the root only.
  template <output_buffer Output, input_for<Output> Input>
  Result gather(Input&& input, Output&& output, int root = 0) {
    const auto a = detail::gathering_at(input, output, ranks(), root == rank());
    return call(forms{unisono_gather, unisono_gather_start, unisono_gather_plan}, a, a.input,
                a.output, a.count, a.type, root);
  }

  /// Distributes the root's input in blocks, one for each rank. Other ranks' input is ignored and
  /// may be empty. in_place stands for the root's output: its block stays in the input.
  template <buffer Input, output_for<Input> Output>
  Result scatter(Input&& input, Output&& output, int root = 0) {
    const auto a = detail::scattering(input, output, ranks(), root == rank());
    return call(forms{unisono_scatter, unisono_scatter_start, unisono_scatter_plan}, a, a.input,
                a.output, a.count, a.type, root);
  }

  /// Sends block s of the input to rank s. At rank s, block r of the output is block s of rank r's
  /// input.
  template <output_buffer Output, input_for<Output> Input>
  Result alltoall(Input&& input, Output&& output) {
    const auto a = detail::exchanging(input, output, ranks());
    return call(forms{unisono_alltoall, unisono_alltoall_start, unisono_alltoall_plan}, a, a.input,
                a.output, a.count, a.type);
  }

  /// Reduces the inputs of all ranks and leaves each rank its block of the result. in_place: the
  /// output holds the whole input, and then the result at its beginning.
  template <reducible Output, input_for<Output> Input>
  Result reduce_scatter_block(Input&& input, Output&& output, op how) {
    const auto a = detail::reducing_blocks(input, output, ranks());
    return call(forms{unisono_reduce_scatter_block, unisono_reduce_scatter_block_start,
                      unisono_reduce_scatter_block_plan},
                a, a.input, a.output, a.count, a.type, detail::code(how));
  }

  /// Combines the inputs of rank 0 to this rank by `how`, in the order of ranks.
  template <reducible Output, input_for<Output> Input>
  Result scan(Input&& input, Output&& output, op how) {
    const auto a = detail::reducing(input, output, true);
    return call(forms{unisono_scan, unisono_scan_start, unisono_scan_plan}, a, a.input, a.output,
                a.count, a.type, detail::code(how));
  }

  /// Combines the inputs of the ranks before this one. Rank 0's output is ignored and may be empty.
  template <reducible Output, input_for<Output> Input>
  Result exscan(Input&& input, Output&& output, op how) {
    const auto a = detail::reducing(input, output, rank() != 0);
    return call(forms{unisono_exscan, unisono_exscan_start, unisono_exscan_plan}, a, a.input,
                a.output, a.count, a.type, detail::code(how));
  }

  /// Gathers counts[r] elements of each rank r at every rank. They begin at displacements[r] in the
  /// output; without displacements one block lies behind the other.
  template <output_buffer Output, input_for<Output> Input>
  Result allgatherv(Input&& input, Output&& output, std::span<const std::int64_t> counts,
                    std::span<const std::int64_t> displacements = {}) {
    const auto a = detail::gathering_blocks(input, output, counts, displacements, ranks(), true);
    return call(forms{unisono_allgatherv, unisono_allgatherv_start, unisono_allgatherv_plan}, a,
                a.input, a.count, a.output, a.counts_data(), a.displacements_data(), a.type);
  }

  /// An allgatherv in which only ranks r with receives[r] == 1 get the blocks. Other ranks' output
  /// is ignored and may be empty.
  template <output_buffer Output, input_for<Output> Input>
  Result many_to_many(Input&& input, Output&& output, std::span<const std::int64_t> counts,
                      std::span<const int> receives,
                      std::span<const std::int64_t> displacements = {}) {
    const auto a = receiving(input, output, counts, receives, displacements);
    return call(forms{unisono_many_to_many, unisono_many_to_many_start, unisono_many_to_many_plan},
                a, a.input, a.count, a.output, a.counts_data(), a.displacements_data(),
                receives.data(), a.type);
  }

  /// Reduces the inputs of all ranks; rank r gets counts[r] elements of the result. in_place as in
  /// reduce_scatter_block.
  template <reducible Output, input_for<Output> Input>
  Result reduce_scatter(Input&& input, Output&& output, std::span<const std::int64_t> counts,
                        op how) {
    const auto a = detail::reducing_unequal_blocks(input, output, counts,
                                                   static_cast<std::size_t>(rank()), ranks());
    return call(
        forms{unisono_reduce_scatter, unisono_reduce_scatter_start, unisono_reduce_scatter_plan}, a,
        a.input, a.output, a.counts_data(), a.type, detail::code(how));
  }

  /// Gathers counts[r] elements of each rank r at the root. They begin at displacements[r] in the
  /// output; without displacements one block lies behind the other. Other ranks' output and lists
  /// are ignored and may be empty. in_place at the root only.
  template <output_buffer Output, input_for<Output> Input>
  Result gatherv(Input&& input, Output&& output, std::span<const std::int64_t> counts, int root = 0,
                 std::span<const std::int64_t> displacements = {}) {
    const auto a =
        detail::gathering_blocks_at(input, output, counts, displacements, ranks(), root == rank());
    return call(forms{unisono_gatherv, unisono_gatherv_start, unisono_gatherv_plan}, a, a.input,
                a.count, a.output, a.counts_data(), a.displacements_data(), a.type, root);
  }

  /// Distributes the root's input, counts[r] elements to rank r. They begin at displacements[r] in
  /// the input; without displacements one block lies behind the other. Other ranks' input and lists
  /// are ignored and may be empty. in_place stands for the root's output: its block stays in the
  /// input.
  template <buffer Input, output_for<Input> Output>
  Result scatterv(Input&& input, Output&& output, std::span<const std::int64_t> counts,
                  int root = 0, std::span<const std::int64_t> displacements = {}) {
    const auto a =
        detail::scattering_blocks(input, output, counts, displacements, ranks(), root == rank());
    return call(forms{unisono_scatterv, unisono_scatterv_start, unisono_scatterv_plan}, a, a.input,
                a.counts_data(), a.displacements_data(), a.output, a.count, a.type, root);
  }

  /// Sends input_counts[r] elements to rank r and receives output_counts[r] elements from it.
  /// Blocks begin at the displacements; without displacements one lies behind the other. in_place:
  /// the input's lists are ignored and may be empty, and each block is replaced by one of its
  /// length.
  template <output_buffer Output, input_for<Output> Input>
  Result alltoallv(Input&& input, Output&& output, std::span<const std::int64_t> input_counts,
                   std::span<const std::int64_t> output_counts,
                   std::span<const std::int64_t> input_displacements = {},
                   std::span<const std::int64_t> output_displacements = {}) {
    const auto a = exchanging(input, output, input_counts, output_counts, input_displacements,
                              output_displacements);
    return call(forms{unisono_alltoallv, unisono_alltoallv_start, unisono_alltoallv_plan}, a,
                a.input, a.sent.counts.data(), a.sent.displacements_data(), a.output,
                a.received_counts(), a.received.displacements_data(), a.type);
  }

  /// An alltoallv with a type for each block. Buffers have any elements, for instance std::byte.
  template <output_buffer Output, class Input>
  requires(buffer<Input> || detail::is_in_place<Input>) Result
      alltoallw(Input&& input, Output&& output, const typed_blocks& sent,
                const typed_blocks& received) {
    const auto a = detail::exchanging_typed(input, output, sent, received, ranks());
    return call(forms{unisono_alltoallw, unisono_alltoallw_start, unisono_alltoallw_plan}, a,
                a.input, a.sent.counts.data(), a.sent.displacements_data(), a.sent_types, a.output,
                a.received_counts(), a.received.displacements_data(), a.received_types);
  }

 private:
  friend class communicator;
  friend class job;
  // A communicator owns its handle, its other forms borrow it.
  using handle = std::conditional_t<blocks, detail::owner<unisono_comm_t, detail::communicator_end>,
                                    detail::borrowed<unisono_comm_t>>;

  collectives() noexcept = default;

  template <class Block, class Start, class Plan>
  struct forms {
    Block* block;
    Start* start;
    Plan* prepare;
  };
  template <class Forms, class... Arguments>
  Result call(const Forms& c, const detail::arguments& checked, Arguments... arguments) const {
    if constexpr (!std::same_as<Result, plan>) {
      if (!checked.problem.empty())  // which the C API cannot see
        checked.check(unisono_refuse(native(), checked.problem.c_str()));
    }
    if constexpr (blocks) {
      checked.check(c.block(arguments..., native()));
    } else {
      Result result;
      if constexpr (std::same_as<Result, request>) {
        checked.check(c.start(arguments..., native(), &result.owner_.handle));
      } else {
        checked.check(c.prepare(arguments..., native(), &result.owner_.handle));
      }
      return result;
    }
  }

  int number(int (*get)(unisono_comm_t, int*)) const {
    int result = -1;
    detail::check(get(native(), &result));
    return result;
  }
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  template <class Input, class Output>
  detail::block_arguments receiving(Input& input, Output& output,
                                    std::span<const std::int64_t> counts,
                                    std::span<const int> receives,
                                    std::span<const std::int64_t> displacements) const {
    const auto own = static_cast<std::size_t>(rank());
    const bool gets = own < receives.size() && receives[own] == 1;
    auto result = detail::gathering_blocks(input, output, counts, displacements, ranks(), gets);
    result.require_length("list of receivers", receives.size(), ranks());
    return result;
  }
  template <class Input, class Output>
  detail::exchange_arguments exchanging(Input& input, Output& output,
                                        std::span<const std::int64_t> input_counts,
                                        std::span<const std::int64_t> output_counts,
                                        std::span<const std::int64_t> input_displacements,
                                        std::span<const std::int64_t> output_displacements) const {
    constexpr std::int64_t unit = detail::units<std::ranges::range_value_t<Output>>;
    return detail::exchanging_blocks(
        input, output,
        {detail::in_units(input_counts, unit), detail::in_units(input_displacements, unit)},
        {detail::in_units(output_counts, unit), detail::in_units(output_displacements, unit)},
        ranks());
  }

  handle owner_;
};

/// A group of ranks. Its own collectives block; start() and plan() have the other two forms.
class communicator : public collectives<void> {
 public:
  unisono_comm_info_t info() const {
    unisono_comm_info_t result{};
    result.size = sizeof(result);
    detail::check(unisono_comm_info(native(), &result));
    return result;
  }

  /// The same collectives, started: `world.start().allreduce(...)` returns a request.
  collectives<request> start() const noexcept { return other_form<request>(); }
  /// The same collectives, prepared: `world.plan().allreduce(...)` returns a plan.
  collectives<unisono::plan> plan() const noexcept { return other_form<unisono::plan>(); }

  /// Makes a communicator with the same members and its own order of operations. Collective.
  communicator dup() const {
    communicator result;
    detail::check(unisono_comm_dup(native(), &result.owner_.handle));
    return result;
  }
  /// Makes one communicator for each color, ordered by (key, rank). A rank with a negative color
  /// gets nullopt. Collective.
  std::optional<communicator> split(int color, int key = 0) const {
    communicator result;
    detail::check(unisono_comm_split(native(), color, key, &result.owner_.handle));
    return some(std::move(result));
  }
  /// Makes a communicator of the members `ranks`, in that order. Other ranks get nullopt.
  /// Collective over this communicator.
  std::optional<communicator> from_list(std::span<const int> ranks) const {
    communicator result;
    detail::check(unisono_comm_from_list(native(), ranks.data(), static_cast<int>(ranks.size()),
                                         &result.owner_.handle));
    return some(std::move(result));
  }
  /// The same for the ranks on the list alone, over an allgather among them (see
  /// unisono_comm_from_list_with). The function is as in the constructor of `job`.
  template <class Allgather>
  requires std::invocable<Allgather&, std::span<const std::byte>, std::span<std::byte>> communicator
  from_list(std::span<const int> ranks, Allgather&& allgather)
  const {
    communicator result;
    detail::exchange_caller<Allgather> exchange{allgather, ranks.size()};
    const unisono_exchange_t functions = exchange.functions();
    exchange.check(unisono_comm_from_list_with(
        native(), ranks.data(), static_cast<int>(ranks.size()), &functions, &result.owner_.handle));
    return result;
  }

  /// Makes a communicator of the surviving members. Every survivor calls it, and it ends this
  /// communicator (see unisono_shrink).
  communicator shrink() {
    communicator result;
    detail::check(unisono_shrink(native(), &result.owner_.handle));
    return result;
  }

  /// Sets this rank's word, which queries of all ranks read.
  void publish(std::uint64_t value) { detail::check(unisono_publish(native(), value)); }
  /// True if `word how value` holds for the word of every member. The members take no part. Throws
  /// error (RANK_LOST) if a member is lost or does not answer (see unisono_query).
  bool query(compare how, std::uint64_t value) {
    int result = 0;
    detail::check(unisono_query(native(), static_cast<unisono_compare_t>(how), value, &result));
    return result != 0;
  }

  /// The member that is the cause of this communicator's failure, as far as it is known here. None:
  /// it has not failed, or no single rank is the cause (see unisono_comm_failed_rank).
  std::optional<int> failed_rank() const {
    int rank = -1;
    detail::check(unisono_comm_failed_rank(native(), &rank));
    return rank < 0 ? std::nullopt : std::optional<int>(rank);
  }
  /// On how many hosts the members are.
  int hosts() const {
    int hosts = 0;
    detail::check(unisono_comm_hosts(native(), &hosts));
    return hosts;
  }
  /// `count` elements, zeroed, in memory that the other ranks of this host can read. Long
  /// reductions copy once less from it. It may outlive the job. Not a collective (see
  /// unisono_memory_alloc).
  template <class T>
  shared_buffer<T> allocate(std::size_t count) const {
    void* memory = nullptr;
    detail::check(unisono_memory_alloc(native(), detail::bytes_of<T>(count), &memory));
    return shared_buffer<T>(static_cast<T*>(memory), count);
  }
  /// A rank that waits for operations of this communicator asks `interrupt(user)` whether to end
  /// the wait, for all ranks (see unisono_set_interrupt). Null: none.
  void set_interrupt(unisono_interrupt_t interrupt, void* user = nullptr) {
    detail::check(unisono_set_interrupt(native(), interrupt, user));
  }

  /// The known state of a member; does not wait (see unisono_comm_rank_state).
  rank_state state_of(int rank) const {
    unisono_rank_state_t state{};
    state.size = sizeof state;
    detail::check(unisono_comm_rank_state(native(), rank, &state));
    return {static_cast<presence>(state.state), state.why};
  }

 private:
  friend class job;
  communicator() noexcept = default;

  static std::optional<communicator> some(communicator result) {
    if (result.native() == nullptr) return std::nullopt;
    return result;
  }
  template <class Result>
  collectives<Result> other_form() const noexcept {
    collectives<Result> result;
    result.owner_.handle = native();
    return result;
  }
};

/* ---- jobs ------------------------------------------------------------------------------------ */

/// A job whose ranks are threads of this process, for tests and examples. It has to outlive the
/// `job` objects of its ranks.
class threads {
 public:
  explicit threads(int ranks) { detail::check(unisono_threads_create(ranks, &owner_.handle)); }

  unisono_threads_t native() const noexcept { return owner_.handle; }

 private:
  detail::owner<unisono_threads_t, detail::threads_end> owner_;
};

/// This rank's part in a job, from construction to destruction. Requests, plans and communicators
/// of the job must end before it: declare them after it.
class job {
 public:
  /// Joins the job that the environment describes. Once per process (see unisono_init).
  job() { detail::check(unisono_init(&world_.owner_.handle)); }
  /// Joins a job of threads as `rank`.
  job(const threads& group, int rank) {
    detail::check(unisono_init_thread(group.native(), rank, &world_.owner_.handle));
  }
  /// Makes a job of `size` ranks over an allgather that the caller provides (see
  /// unisono_init_with). The function gets std::span<const std::byte> input and
  /// std::span<std::byte> output, and fills the output with the inputs of all ranks. The
  /// constructor throws its exceptions.
  template <class Allgather>
  requires std::invocable<Allgather&, std::span<const std::byte>, std::span<std::byte>> job(
      int rank, int size, Allgather&& allgather, std::int64_t timeout_ms = 0) {
    detail::exchange_caller<Allgather> exchange{allgather, static_cast<std::size_t>(size)};
    const unisono_exchange_t functions = exchange.functions();
    const unisono_init_options_t options{sizeof(options), timeout_ms, nullptr, nullptr};
    exchange.check(unisono_init_with(rank, size, &functions, &options, &world_.owner_.handle));
  }
  job(job&&) noexcept = default;
  job& operator=(job&&) = delete;
  ~job() {
    if (world_.native() != nullptr) static_cast<void>(unisono_finalize(world_.owner_.release()));
  }

  /// The communicator of all ranks. It ends with the job; do not move from it.
  communicator& world() noexcept { return world_; }

  /// Does what the destructor does, and throws an error that no earlier call has reported.
  void finalize() { detail::check(unisono_finalize(world_.owner_.release())); }

 private:
  communicator world_;
};

}  // namespace unisono

#endif
