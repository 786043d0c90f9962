// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/pmix_board.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
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
constexpr int kPmixOperationSucceeded = -157;  // done at once; nobody will be called
constexpr std::uint8_t kPmixGlobal = 3;        // a note for all hosts' ranks
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
// Only ever one: an array's elements are as long as the library says.
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

// Stays loaded: its thread may outlive the call that has waited for it.
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

// What the library's thread answers with. Held by both sides: who gave up waiting may be gone.
class PmixAnswer {
 public:
  // For one call of done() or got().
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

  // nullopt: not within that time.
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

// Calls the library in a thread of its own, since its calls that wait for the launcher's server
// have no limit: nullopt if it does not return within that time. Then the thread stays behind.
Result<std::optional<int>> call_aside(std::function<int()> call, std::int64_t timeout_ns) {
  UNISONO_ASSIGN(std::future<int> outcome, base::start_aside<int>("unisono-pmix", std::move(call)));
  if (outcome.wait_for(std::chrono::nanoseconds(timeout_ns)) != std::future_status::ready) {
    return std::optional<int>();
  }
  return std::optional<int>(outcome.get());
}

void take_leave(PmixFinalize finalize, std::int64_t timeout_ns) {
  const auto left = call_aside([finalize] { return finalize(nullptr, 0); }, timeout_ns);
  if (!left.ok()) finalize(nullptr, 0);  // no thread to be had
}

// PMIx counts who has begun and who has taken leave. Called once per board.
bool finalize_at_exit(PmixFinalize finalize, std::int64_t timeout_ns) {
  static std::atomic<PmixFinalize> at_exit;
  static std::atomic<std::int64_t> at_exit_timeout_ns;
  at_exit = finalize;
  at_exit_timeout_ns = timeout_ns;
  return std::atexit([] { take_leave(at_exit, at_exit_timeout_ns); }) == 0;
}

std::string pmix_key(std::string_view key) { return fmt::format("unisono.{}", key); }

class PmixBoard : public Board {
 public:
  PmixBoard(const BoardOptions& options, const PmixLibrary& library, bool shared)
      : options_(options), library_(library), shared_(shared) {}
  ~PmixBoard() override {
    // A launcher takes a rank that has met it and ends without a word for one that has died.
    if (!joined_) return;
    // Who took leave cannot come back (Open MPI 4.1), and an MPI library may still have to begin.
    if (shared_ && finalize_at_exit(library_.finalize, options_.timeout_ns)) return;
    take_leave(library_.finalize, options_.timeout_ns);
  }

  Status join() {
    const auto self = std::make_shared<PmixProcess>();
    const auto init = [self, call = library_.init] { return call(self.get(), nullptr, 0); };
    UNISONO_ASSIGN(const std::optional<int> status, call_aside(init, options_.timeout_ns));
    if (!status) {
      return Error{
          Code::timeout,
          fmt::format("rank {} of {}: PMIx_Init has not returned within {} "
                      "(UNISONO_START_TIMEOUT): does the launcher still run?",
                      options_.rank, options_.ranks, base::format_time_ns(options_.timeout_ns))};
    }
    if (*status != kPmixSuccess) return trouble(Code::unsupported, "PMIx_Init", *status);
    self_ = *self;
    joined_ = true;
    return base::success();
  }

  Status put(std::string_view key, std::string_view note) override {
    std::string text(note);
    PmixValue value{};
    value.type = kPmixString;
    value.string = text.data();
    const int status = library_.put(kPmixGlobal, pmix_key(key).c_str(), &value);
    return status == kPmixSuccess ? base::success() : trouble(Code::state, "PMIx_Put", status);
  }

  Status fence() override {
    if (const int status = library_.commit(); status != kPmixSuccess) {
      return trouble(Code::state, "PMIx_Commit", status);
    }
    const auto answer = std::make_shared<PmixAnswer>();
    void* const context = PmixAnswer::context_of(answer);
    // Without it, some servers hand out the notes of the fence before (Slurm 22.05).
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
  // `status`: what the call said.
  Status wait_for(const char* what, int status, PmixAnswer& answer, void* context) {
    if (status != kPmixSuccess) {
      PmixAnswer::drop(context);
      if (status == kPmixOperationSucceeded) return base::success();
      return trouble(Code::state, what, status);
    }
    const std::optional<int> outcome = answer.wait(options_.timeout_ns);
    if (!outcome) {
      joined_ = false;  // to take leave would be to wait as well
      return Error{Code::timeout,
                   fmt::format("rank {} of {}: {} has not ended within {} (UNISONO_START_TIMEOUT): "
                               "have all ranks called unisono_init?",
                               options_.rank, options_.ranks, what,
                               base::format_time_ns(options_.timeout_ns))};
    }
    return *outcome == kPmixSuccess ? base::success() : trouble(Code::state, what, *outcome);
  }

  Error trouble(Code code, const char* what, int status) const {
    return {code, fmt::format("rank {} of {}: {}: {} ({})", options_.rank, options_.ranks, what,
                              library_.error_string(status), status)};
  }

  const BoardOptions options_;
  const PmixLibrary library_;
  const bool shared_;
  PmixProcess self_{};
  bool joined_ = false;
};

}  // namespace

Result<std::unique_ptr<Board>> open_pmix_board(const BoardOptions& options, bool shared) {
  UNISONO_ASSIGN(const PmixLibrary library, load_pmix());
  auto board = std::make_unique<PmixBoard>(options, library, shared);
  UNISONO_TRY(board->join());
  return std::unique_ptr<Board>(std::move(board));
}

}  // namespace unisono::bootstrap
