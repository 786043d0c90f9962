// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.hpp"

#include <pthread.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "base/thread_signals.hpp"

namespace unisono::base {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  UNISONO_CHECK(std::strlen(name) < 16, "the name of a thread that the system would refuse");
  const NoSignals quiet;
  try {
    std::thread started(std::move(body));
    pthread_setname_np(started.native_handle(), name);  // the name is only an aid, so its failure
                                                        // is ignored
    return started;
  } catch (const std::system_error& failure) {
    return Error{Code::resources, failure.what()};
  }
}

}  // namespace unisono::base
