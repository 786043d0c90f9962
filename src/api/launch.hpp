// SPDX-License-Identifier: BSD-3-Clause
// Runs, starts or plans the Arguments that an entry point has filled. A blocking call that equals
// the one before goes straight to its plan. One thread per communicator.
#pragma once

#include "api/error.hpp"
#include "api/objects.hpp"

namespace unisono::api {

// Each checks, and returns the C API's error code.
int run_new(const Arguments& arguments);
int start(const Arguments& arguments, unisono_request_t* handle);
int make_plan(const Arguments& arguments, unisono_plan_t* handle);

// Refuses a collective call on `comm` that this rank cannot make, before it has begun. The other
// ranks, which would wait for it, are informed. `what` begins with the function's name.
int refuse(Comm& comm, base::Code code, const std::string& what);

// Handles the error of a call of a remembered plan.
int fail_repeat(Comm& comm, const base::Error& error);

// Handles an exception thrown in a call on `comm` that others take part in, or that progresses its
// operations. All ranks get an error. `comm` may be null.
int fail_thrown(Comm* comm, const char* function, const std::exception& thrown) noexcept;

// For calls without block arrays. In place and by value, so that the arguments stay in registers.
[[gnu::always_inline]] inline int run(Arguments arguments) {
  try {
    Comm* comm = find_comm(arguments.comm);
    if (comm != nullptr) [[likely]] {
      const LastCall& last = comm->last_calls[static_cast<int>(arguments.collective)];
      if (last.fits(arguments) && last.generation == comm->communicator->plans().generation())
          [[likely]] {
        const auto status = comm->communicator->run(*last.plan, last.buffers.input(arguments),
                                                    last.buffers.output(arguments));
        return status ? UNISONO_OK : fail_repeat(*comm, status.error());
      }
    }
    const Arguments in_memory = arguments;
    return run_new(in_memory);
  } catch (const std::exception& thrown) {
    return fail_thrown(comms().get(arguments.comm), arguments.function, thrown);
  }
}

// For calls with block arrays.
int run_blocks(const Arguments& arguments);

}  // namespace unisono::api
