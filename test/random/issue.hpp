// SPDX-License-Identifier: BSD-3-Clause
// issue: one call of a random program by the C API, in one of its three forms. For tests only.
#pragma once

#include "random/call_memory.hpp"
#include "random/program.hpp"
#include "unisono/unisono.h"

namespace unisono::test::programs {

enum class Form { blocking, started, planned };

struct Handles {
  unisono_request_t request = nullptr;  // of a started call
  unisono_plan_t plan = nullptr;        // made, but not started
};

// The error of the library.
int issue(Form form, const Call& call, const Arguments& arguments, unisono_comm_t comm,
          Handles& handles);

}  // namespace unisono::test::programs
