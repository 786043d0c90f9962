// SPDX-License-Identifier: BSD-3-Clause
#include "host/types.hpp"

#include <algorithm>
#include <array>
#include <cwchar>
#include <string>

#include "host/derived.hpp"
#include "host/host.hpp"

namespace unisono::mpi {
namespace {

// The groups of types of the MPI standard, of which it says to which operators they belong.
// `pair`: those of MPI_MINLOC and MPI_MAXLOC. `moved`: to none.
enum class Group : std::uint8_t {
  integer,
  fortran_integer,
  floating,
  complex,
  logical,
  byte,
  multi,
  pair,
  moved
};

struct TypeRow {
  const char* open_mpi;  // symbol behind "ompi_mpi_"
  Handle mpich;
  Handle standard;
  Group group;
  unisono_type_t type;
  std::int64_t size;
  bool is_by_host = false;  // Unisono has no such type: the host reduces
};

// clang-format off
constexpr TypeRow kTypes[] = {
    {"char", 0x4c000101, 0x243, Group::moved, UNISONO_INT8, 1},
    {"signed_char", 0x4c000118, 0x244, Group::integer, UNISONO_INT8, 1},
    {"unsigned_char", 0x4c000102, 0x245, Group::integer, UNISONO_UINT8, 1},
    {"byte", 0x4c00010d, 0x247, Group::byte, UNISONO_UINT8, 1},
    {"packed", 0x4c00010f, 0x207, Group::moved, UNISONO_BYTE, 1},
    {"wchar", 0x4c00040e, 0x23c, Group::moved, UNISONO_INT32, sizeof(wchar_t)},
    {"short", 0x4c000203, 0x208, Group::integer, UNISONO_INT16, 2},
    {"unsigned_short", 0x4c000204, 0x20c, Group::integer, UNISONO_UINT16, 2},
    {"int", 0x4c000405, 0x209, Group::integer, UNISONO_INT32, 4},
    {"unsigned", 0x4c000406, 0x20d, Group::integer, UNISONO_UINT32, 4},
    {"long", 0x4c000807, 0x20a, Group::integer, UNISONO_INT64, 8},
    {"unsigned_long", 0x4c000808, 0x20e, Group::integer, UNISONO_UINT64, 8},
    {"long_long_int", 0x4c000809, 0x20b, Group::integer, UNISONO_INT64, 8},
    {"unsigned_long_long", 0x4c000819, 0x20f, Group::integer, UNISONO_UINT64, 8},
    {"float", 0x4c00040a, 0x210, Group::floating, UNISONO_FLOAT32, 4},
    {"double", 0x4c00080b, 0x214, Group::floating, UNISONO_FLOAT64, 8},
    {"long_double", 0x4c00100c, 0x220, Group::floating, UNISONO_BYTE, 16, true},
    {"int8_t", 0x4c000137, 0x240, Group::integer, UNISONO_INT8, 1},
    {"int16_t", 0x4c000238, 0x248, Group::integer, UNISONO_INT16, 2},
    {"int32_t", 0x4c000439, 0x250, Group::integer, UNISONO_INT32, 4},
    {"int64_t", 0x4c00083a, 0x258, Group::integer, UNISONO_INT64, 8},
    {"uint8_t", 0x4c00013b, 0x241, Group::integer, UNISONO_UINT8, 1},
    {"uint16_t", 0x4c00023c, 0x249, Group::integer, UNISONO_UINT16, 2},
    {"uint32_t", 0x4c00043d, 0x251, Group::integer, UNISONO_UINT32, 4},
    {"uint64_t", 0x4c00083e, 0x259, Group::integer, UNISONO_UINT64, 8},
    {"c_bool", 0x4c00013f, 0x238, Group::logical, UNISONO_UINT8, 1},
    {"c_complex", 0x4c000840, 0x212, Group::complex, UNISONO_COMPLEX64, 8},
    {"c_float_complex", 0x4c000840, 0x212, Group::complex, UNISONO_COMPLEX64, 8},
    {"c_double_complex", 0x4c001041, 0x216, Group::complex, UNISONO_COMPLEX128, 16},
    {"c_long_double_complex", 0x4c002042, 0x224, Group::complex, UNISONO_BYTE, 32, true},
    {"aint", 0x4c000843, 0x201, Group::multi, UNISONO_INT64, 8},
    {"offset", 0x4c000844, 0x203, Group::multi, UNISONO_INT64, 8},
    {"count", 0x4c000845, 0x202, Group::multi, UNISONO_INT64, 8},
    {"cxx_bool", 0x4c000133, 0x239, Group::logical, UNISONO_UINT8, 1},
    {"cxx_cplex", 0x4c000834, 0x213, Group::complex, UNISONO_COMPLEX64, 8},
    {"cxx_dblcplex", 0x4c001035, 0x217, Group::complex, UNISONO_COMPLEX128, 16},
    {"short_int", 0x8c000003, 0x22c, Group::pair, UNISONO_INT16_INT32, 8},
    {"2int", 0x4c000816, 0x22b, Group::pair, UNISONO_INT32_INT32, 8},
    {"long_int", 0x8c000002, 0x22a, Group::pair, UNISONO_INT64_INT32, 16},
    {"float_int", 0x8c000000, 0x228, Group::pair, UNISONO_FLOAT32_INT32, 8},
    {"double_int", 0x8c000001, 0x229, Group::pair, UNISONO_FLOAT64_INT32, 16},
    {"longdbl_int", 0x8c000004, 0x22d, Group::pair, UNISONO_BYTE, 32, true},
    // Fortran, as gfortran and others have it without options that widen types.
    {"character", 0x4c00011a, 0x21e, Group::moved, UNISONO_INT8, 1},
    {"logical", 0x4c00041d, 0x218, Group::logical, UNISONO_BYTE, 4, true},
    {"integer", 0x4c00041b, 0x219, Group::fortran_integer, UNISONO_INT32, 4},
    {"2integer", 0x4c000820, 0x232, Group::pair, UNISONO_INT32_INT32, 8},
    {"2real", 0x4c000821, 0x230, Group::pair, UNISONO_BYTE, 8, true},
    {"2dblprec", 0x4c001023, 0x231, Group::pair, UNISONO_BYTE, 16, true},
    {"integer1", 0x4c00012d, 0x2c1, Group::fortran_integer, UNISONO_INT8, 1},
    {"integer2", 0x4c00022f, 0x2c9, Group::fortran_integer, UNISONO_INT16, 2},
    {"integer4", 0x4c000430, 0x2d1, Group::fortran_integer, UNISONO_INT32, 4},
    {"integer8", 0x4c000831, 0x2d9, Group::fortran_integer, UNISONO_INT64, 8},
    {"real", 0x4c00041c, 0x21a, Group::floating, UNISONO_FLOAT32, 4},
    {"real4", 0x4c000427, 0x2d2, Group::floating, UNISONO_FLOAT32, 4},
    {"real8", 0x4c000829, 0x2da, Group::floating, UNISONO_FLOAT64, 8},
    {"dblprec", 0x4c00081f, 0x21c, Group::floating, UNISONO_FLOAT64, 8},
    {"cplex", 0x4c00081e, 0x21b, Group::complex, UNISONO_COMPLEX64, 8},
    {"dblcplex", 0x4c001022, 0x21d, Group::complex, UNISONO_COMPLEX128, 16},
    {"complex8", 0x4c000828, 0x2db, Group::complex, UNISONO_COMPLEX64, 8},
    {"complex16", 0x4c00102a, 0x2e3, Group::complex, UNISONO_COMPLEX128, 16},
};
// clang-format on

struct OpRow {
  const char* open_mpi;  // symbol behind "ompi_mpi_op_"
  Handle mpich;
  Handle standard;
  unisono_op_t op;
  std::uint16_t groups;  // bits of Group

  bool takes(Group group) const { return (groups >> static_cast<unsigned>(group) & 1U) != 0; }
};

constexpr std::uint16_t bits(std::initializer_list<Group> groups) {
  unsigned set = 0;
  for (const Group group : groups) set |= 1U << static_cast<unsigned>(group);
  return static_cast<std::uint16_t>(set);
}
// MPI 4.1, section 6.9.2. The host refuses or computes all other pairs of operator and type.
constexpr std::uint16_t kOrdered =
    bits({Group::integer, Group::fortran_integer, Group::floating, Group::multi});
constexpr std::uint16_t kSummed =
    bits({Group::integer, Group::fortran_integer, Group::floating, Group::multi, Group::complex});
constexpr std::uint16_t kLogical = bits({Group::integer, Group::logical});
constexpr std::uint16_t kBitwise =
    bits({Group::integer, Group::fortran_integer, Group::byte, Group::multi});

constexpr OpRow kOps[] = {
    {"max", 0x58000001, 0x23, UNISONO_MAX, kOrdered},
    {"min", 0x58000002, 0x22, UNISONO_MIN, kOrdered},
    {"sum", 0x58000003, 0x21, UNISONO_SUM, kSummed},
    {"prod", 0x58000004, 0x24, UNISONO_PROD, kSummed},
    {"land", 0x58000005, 0x30, UNISONO_LOGICAL_AND, kLogical},
    {"band", 0x58000006, 0x28, UNISONO_BITWISE_AND, kBitwise},
    {"lor", 0x58000007, 0x31, UNISONO_LOGICAL_OR, kLogical},
    {"bor", 0x58000008, 0x29, UNISONO_BITWISE_OR, kBitwise},
    {"lxor", 0x58000009, 0x32, UNISONO_LOGICAL_XOR, kLogical},
    {"bxor", 0x5800000a, 0x2a, UNISONO_BITWISE_XOR, kBitwise},
    {"minloc", 0x5800000b, 0x38, UNISONO_MINLOC, bits({Group::pair})},
    {"maxloc", 0x5800000c, 0x39, UNISONO_MAXLOC, bits({Group::pair})},
    // For one-sided calls only.
    {"replace", 0x5800000d, 0x3c, UNISONO_SUM, 0},
    {"no_op", 0x5800000e, 0x3d, UNISONO_SUM, 0},
    {"null", 0x18000000, 0x20, UNISONO_SUM, 0},
};

// From a handle to its row. Never full, so a search ends.
template <class Row, std::size_t Slots>
class HandleMap {
 public:
  void add(Handle handle, const Row& row) {
    std::size_t at = slot(handle);
    while (handles_[at] != 0) {
      if (handles_[at] == handle) return;
      at = (at + 1) % Slots;
    }
    handles_[at] = handle;
    rows_[at] = &row;
  }
  const Row* find(Handle handle) const {
    for (std::size_t at = slot(handle); handles_[at] != 0; at = (at + 1) % Slots) {
      if (handles_[at] == handle) return rows_[at];
    }
    return nullptr;
  }

 private:
  static std::size_t slot(Handle handle) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>((handle * kGolden) >> 40) % Slots;
  }
  std::array<Handle, Slots> handles_{};
  std::array<const Row*, Slots> rows_{};
};

struct Maps {
  HandleMap<TypeRow, 256> types;
  HandleMap<OpRow, 64> ops;

  Maps() {
    for (const TypeRow& row : kTypes) add(types, row, "ompi_mpi_");
    for (const OpRow& row : kOps) add(ops, row, "ompi_mpi_op_");
  }

 private:
  template <class Map, class Row>
  void add(Map& map, const Row& row, const char* prefix) {
    const Host& mpi = host();
    if (mpi.abi == Abi::mpich) return map.add(row.mpich, row);
    if (mpi.abi == Abi::standard) return map.add(row.standard, row);
    const std::string symbol = std::string(prefix) + row.open_mpi;
    void* const address = find_object(mpi, symbol.c_str());
    if (address != nullptr) map.add(reinterpret_cast<Handle>(address), row);
  }
};

const Maps& make_maps() {
  static const Maps all;
  return all;
}
// Inline, as each call of a collective looks up some handles.
inline const Maps& maps() {
  static const Maps& all = make_maps();
  return all;
}

// Whether an operator that Unisono does not know is one of the MPI's own, such as MPICH's
// MPIX_EQUAL. These take only calls of the MPI. By the values of handles in each mpi.h.
bool is_built_in(Handle op) {
  constexpr Handle kMpichKinds = 0xff00'0000, kMpichBuiltIn = 0x5800'0000;
  constexpr Handle kStandardBuiltIn = 0x1000;  // below: the first page, where no object lies
  if (host().abi == Abi::mpich) return (op & kMpichKinds) == kMpichBuiltIn;
  return host().abi == Abi::standard && op < kStandardBuiltIn;
}

// Pairs may have a gap at their end.
bool is_plain(const TypeRow* row) { return row != nullptr && row->group != Group::pair; }

}  // namespace

TypeInfo type_info(Handle type) {
  const TypeRow* const row = maps().types.find(host().handle(type));
  if (is_plain(row)) {
    TypeInfo info;
    info.size = info.extent = info.true_extent = row->size;
    info.direct = info.valid = true;
    return info;
  }
  return derived_type_info(type);
}

std::int64_t plain_bytes(Handle type) {
  const TypeRow* const row = maps().types.find(host().handle(type));
  return is_plain(row) ? row->size : 0;
}

std::optional<Reduction> find_reduction(Handle type, Handle op) {
  const Host& mpi = host();
  const TypeRow* const row = maps().types.find(mpi.handle(type));
  const OpRow* const by = maps().ops.find(mpi.handle(op));
  if (row == nullptr || by == nullptr || row->is_by_host || !by->takes(row->group)) {
    return std::nullopt;
  }
  // A pair's parts are as long as its half, a complex number's at most 8 bytes.
  constexpr std::int64_t kGreatest = 8;
  const std::int64_t part = row->group == Group::pair ? row->size / 2 : row->size;
  return Reduction{row->type, by->op, row->size, std::min(part, kGreatest),
                   row->group == Group::pair};
}

bool is_reduced_by_host(Handle type, Handle op) {
  const Host& mpi = host();
  const OpRow* const by = maps().ops.find(mpi.handle(op));
  if (by == nullptr) return !is_built_in(mpi.handle(op));
  const TypeRow* const row = maps().types.find(mpi.handle(type));
  return row != nullptr && row->is_by_host && by->takes(row->group);
}

}  // namespace unisono::mpi
