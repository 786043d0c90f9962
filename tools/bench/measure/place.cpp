// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/place.hpp"

namespace unisono::tools::bench {
namespace {

base::Status reduce_in_place(const Place& place, void* values, std::size_t count,
                             unisono_type_t type, unisono_op_t op) {
  return to_status(unisono_allreduce(UNISONO_IN_PLACE, values, static_cast<std::int64_t>(count),
                                     type, op, place.control));
}

}  // namespace

base::Status to_status(int code) {
  if (code == UNISONO_OK) return base::success();
  return base::Error{static_cast<base::Code>(code), unisono_last_error()};
}

base::Result<std::int64_t> agree(const Place& place, std::int64_t value) {
  UNISONO_TRY(to_status(unisono_broadcast(&value, 1, UNISONO_INT64, 0, place.control)));
  return value;
}

base::Status combine(const Place& place, std::vector<double>& values, unisono_op_t op) {
  return reduce_in_place(place, values.data(), values.size(), UNISONO_FLOAT64, op);
}

base::Status combine(const Place& place, std::vector<std::int64_t>& values, unisono_op_t op) {
  return reduce_in_place(place, values.data(), values.size(), UNISONO_INT64, op);
}

}  // namespace unisono::tools::bench
