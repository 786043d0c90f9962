// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/pmix_store.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "base/thread.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

constexpr const char* kPmixFile = "libpmix.so.2";

// The standard's numbers (pmix_common.h).
constexpr int kPmixSuccess = 0;
constexpr int kPmixOperationSucceeded = -157;  // completed at once; the callback is not called
constexpr std::uint8_t kPmixGlobal = 3;        // the value is for the ranks of all hosts
constexpr std::uint16_t kPmixBool = 1;
constexpr std::uint16_t kPmixString = 3;

constexpr std::string_view kPmixCollectData = "pmix.collect";

struct PmixProcess {
  char name[256];
  std::uint32_t rank;
};
struct PmixValue {
  std::uint16_t type;
  union {
    bool flag;
    char* string;
    std::byte space[64];  // the largest of the standard's values has 32
  };
};
// Never an array of more than one: the library decides how long an element is.
struct PmixInfo {
  char key[512];
  std::uint32_t flags;
  PmixValue value;
};

using PmixFinalize = int (*)(const void*, std::size_t);
using PmixDone = void (*)(int status, void* context);
using PmixGot = void (*)(int status, PmixValue* value, void* context);

struct PmixLibrary {
  int (*init)(PmixProcess*, void*, std::size_t) = nullptr;
  PmixFinalize finalize = nullptr;
  int (*put)(std::uint8_t, const char*, PmixValue*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence_nb)(const PmixProcess*, std::size_t, const void*, std::size_t, PmixDone,
                  void*) = nullptr;
  int (*get_nb)(const PmixProcess*, const char*, const void*, std::size_t, PmixGot,
                void*) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// It stays loaded: its thread may outlive the call that has waited for it.
Result<PmixLibrary> load_pmix() {
  void* const library = dlopen(kPmixFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const why = dlerror();
    return Error{Code::unsupported, fmt::format("{} cannot be loaded ({}); it comes with libpmix2",
                                                kPmixFile, why == nullptr ? "unknown" : why)};
  }
  PmixLibrary result;
  const bool complete = find_function(library, "PMIx_Init", result.init) &&
                        find_function(library, "PMIx_Finalize", result.finalize) &&
                        find_function(library, "PMIx_Put", result.put) &&
                        find_function(library, "PMIx_Commit", result.commit) &&
                        find_function(library, "PMIx_Fence_nb", result.fence_nb) &&
                        find_function(library, "PMIx_Get_nb", result.get_nb) &&
                        find_function(library, "PMIx_Error_string", result.error_string);
  if (!complete) {
    return Error{Code::unsupported, fmt::format("{} lacks functions of PMIx 3", kPmixFile)};
  }
  return result;
}

// The answer of the library's thread. Both sides own it, since a waiting call may give up.
class PmixAnswer {
 public:
  // The context of one call of done() or got().
  static void* context_of(const std::shared_ptr<PmixAnswer>& answer) {
    return new std::shared_ptr<PmixAnswer>(answer);
  }
  static void drop(void* context) { delete static_cast<std::shared_ptr<PmixAnswer>*>(context); }
  static void done(int status, void* context) { got(status, nullptr, context); }
  static void got(int status, PmixValue* value, void* context) {
    const std::unique_ptr<std::shared_ptr<PmixAnswer>> answer(
        static_cast<std::shared_ptr<PmixAnswer>*>(context));
    std::string text;
    if (value != nullptr && value->type == kPmixString && value->string != nullptr) {
      text = value->string;
    }
    (*answer)->set(status, std::move(text));
  }

  // nullopt: no answer within that time.
  std::optional<int> wait(std::int64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                      [&] { return status_.has_value(); });
    return status_;
  }
  std::string take_text() {
    const std::lock_guard lock(mutex_);
    return std::move(text_);
  }

 private:
  void set(int status, std::string text) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    text_ = std::move(text);
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> status_;
  std::string text_;
};

// In a thread of its own, since the library's calls wait for the launcher's server without a limit.
Result<std::optional<int>> call_library(std::function<int()> call, std::int64_t timeout_ns) {
  return base::call_aside<int>("unisono-pmix", std::move(call), timeout_ns);
}

void finalize_within(PmixFinalize finalize, std::int64_t timeout_ns) {
  const auto left = call_library([finalize] { return finalize(nullptr, 0); }, timeout_ns);
  if (!left.ok()) finalize(nullptr, 0);  // the system has no thread for it
}

// PMIx counts the initializations and finalizations of a process. Called once per store.
bool finalize_at_exit(PmixFinalize finalize, std::int64_t timeout_ns) {
  static std::atomic<PmixFinalize> at_exit;
  static std::atomic<std::int64_t> at_exit_timeout_ns;
  at_exit = finalize;
  at_exit_timeout_ns = timeout_ns;
  static pid_t owner;
  owner = getpid();
  return std::atexit([] {
           const bool is_child = getpid() != owner;  // of fork(), which is not the launcher's rank
           if (!is_child) finalize_within(at_exit, at_exit_timeout_ns);
         }) == 0;
}

std::string pmix_key(std::string_view key) { return fmt::format("unisono.{}", key); }

class PmixStore : public KeyValueStore {
 public:
  PmixStore(const StoreOptions& options, const PmixLibrary& library, bool with_mpi)
      : options_(options), library_(library), with_mpi_(with_mpi) {}
  ~PmixStore() override {
    // A launcher takes a rank that has initialized and ends without finalizing for dead.
    if (!initialized_) return;
    // A process that has finalized cannot initialize again (Open MPI 4.1), and the MPI library may
    // still have to.
    if (with_mpi_ && finalize_at_exit(library_.finalize, options_.timeout_ns)) return;
    finalize_within(library_.finalize, options_.timeout_ns);
  }

  Status init() {
    const auto self = std::make_shared<PmixProcess>();
    const auto init = [self, call = library_.init] { return call(self.get(), nullptr, 0); };
    UNISONO_ASSIGN(const std::optional<int> status, call_library(init, options_.timeout_ns));
    if (!status) {
      return Error{
          Code::timeout,
          fmt::format("rank {} of {}: PMIx_Init has not returned within {} "
                      "(UNISONO_START_TIMEOUT): does the launcher still run?",
                      options_.rank, options_.ranks, base::format_time_ns(options_.timeout_ns))};
    }
    if (*status != kPmixSuccess) return error(Code::unsupported, "PMIx_Init", *status);
    self_ = *self;
    initialized_ = true;
    return base::success();
  }

  Status put(std::string_view key, std::string_view value) override {
    std::string text(value);
    PmixValue stored{};
    stored.type = kPmixString;
    stored.string = text.data();
    const int status = library_.put(kPmixGlobal, pmix_key(key).c_str(), &stored);
    return status == kPmixSuccess ? base::success() : error(Code::state, "PMIx_Put", status);
  }

  Status fence() override {
    if (const int status = library_.commit(); status != kPmixSuccess) {
      return error(Code::state, "PMIx_Commit", status);
    }
    const auto answer = std::make_shared<PmixAnswer>();
    void* const context = PmixAnswer::context_of(answer);
    // Without it, some servers return the values of the fence before (Slurm 22.05).
    PmixInfo collect{};
    std::memcpy(collect.key, kPmixCollectData.data(), kPmixCollectData.size());
    collect.value.type = kPmixBool;
    collect.value.flag = true;
    const int status = library_.fence_nb(nullptr, 0, &collect, 1, PmixAnswer::done, context);
    return wait_for("PMIx_Fence", status, *answer, context);
  }

  Result<std::string> get(int rank, std::string_view key) override {
    PmixProcess process = self_;
    process.rank = static_cast<std::uint32_t>(rank);
    const auto answer = std::make_shared<PmixAnswer>();
    void* const context = PmixAnswer::context_of(answer);
    const int status =
        library_.get_nb(&process, pmix_key(key).c_str(), nullptr, 0, PmixAnswer::got, context);
    UNISONO_TRY(wait_for("PMIx_Get", status, *answer, context));
    return answer->take_text();
  }

 private:
  // `status`: what the call has returned.
  Status wait_for(const char* what, int status, PmixAnswer& answer, void* context) {
    if (status != kPmixSuccess) {
      PmixAnswer::drop(context);
      if (status == kPmixOperationSucceeded) return base::success();
      return error(Code::state, what, status);
    }
    const std::optional<int> outcome = answer.wait(options_.timeout_ns);
    if (!outcome) {
      initialized_ = false;  // PMIx_Finalize would wait as well
      return Error{Code::timeout,
                   fmt::format("rank {} of {}: {} has not ended within {} (UNISONO_START_TIMEOUT): "
                               "have all ranks called unisono_init?",
                               options_.rank, options_.ranks, what,
                               base::format_time_ns(options_.timeout_ns))};
    }
    return *outcome == kPmixSuccess ? base::success() : error(Code::state, what, *outcome);
  }

  Error error(Code code, const char* what, int status) const {
    return {code, fmt::format("rank {} of {}: {}: {} ({})", options_.rank, options_.ranks, what,
                              library_.error_string(status), status)};
  }

  const StoreOptions options_;
  const PmixLibrary library_;
  const bool with_mpi_;
  PmixProcess self_{};
  bool initialized_ = false;
};

}  // namespace

Result<std::unique_ptr<KeyValueStore>> open_pmix_store(const StoreOptions& options, bool with_mpi) {
  UNISONO_ASSIGN(const PmixLibrary library, load_pmix());
  auto store = std::make_unique<PmixStore>(options, library, with_mpi);
  UNISONO_TRY(store->init());
  return std::unique_ptr<KeyValueStore>(std::move(store));
}

}  // namespace unisono::bootstrap
