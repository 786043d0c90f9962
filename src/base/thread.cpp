// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.hpp"

#include <linux/close_range.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
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

Status call_with_own_descriptors(const char* name, const std::function<void()>& body) {
  const auto call = [&body]() -> Status {
    // The kernel copies the table first: the process keeps its descriptors.
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
      return system_error("close_range", errno);
    }
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    body();
    return success();
  };
  std::packaged_task<Status()> task(call);
  std::future<Status> outcome = task.get_future();
  UNISONO_ASSIGN(std::thread started, start_thread(name, [&task] { task(); }));
  started.join();
  return outcome.get();
}

}  // namespace unisono::base
