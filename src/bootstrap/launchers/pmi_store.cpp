// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/pmi_store.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

std::string pmi_key(int rank, std::string_view key) {
  return fmt::format("unisono-{}-{}", key, rank);
}

bool mpi_is_initialized() {
  using Initialized = int (*)(int*);
  const auto initialized = reinterpret_cast<Initialized>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int answer = 0;
  return initialized != nullptr && initialized(&answer) == 0 && answer != 0;
}

std::string errno_text(int number) { return std::generic_category().message(number); }

}  // namespace

Result<std::unique_ptr<KeyValueStore>> PmiStore::open(const StoreOptions& options, bool with_mpi) {
  std::unique_ptr<PmiStore> store(new PmiStore(options, with_mpi));
  UNISONO_TRY(store->init());
  return std::unique_ptr<KeyValueStore>(std::move(store));
}

Status PmiStore::init() {
  if (!with_mpi_) {
    const auto answer =
        ask(pmi_line("init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}}), "response_to_init");
    // Then there is nothing to finalize: the descriptor may not even be of a launcher.
    broken_ = broken_ || !answer.ok();
    UNISONO_TRY(answer);
    if (answer->value("pmi_version") != "1") {
      broken_ = true;
      return error(Code::unsupported, fmt::format("it speaks PMI version {}, but Unisono needs 1",
                                                  answer->value("pmi_version")));
    }
  }
  UNISONO_ASSIGN(const PmiLine named, ask(pmi_line("get_my_kvsname", {}), "my_kvsname"));
  space_ = named.value("kvsname");
  if (space_.empty()) return error(Code::state, "it names no key-value space");
  return base::success();
}

PmiStore::~PmiStore() {
  if (broken_) return;
  if (!with_mpi_) {
    finalize();
    return;
  }
  // MPI finalizes for both, if it is ever initialized.
  static StoreOptions at_exit;
  static pid_t owner;
  at_exit = options_;
  owner = getpid();
  std::atexit([] {
    const bool is_child = getpid() != owner;  // of fork(), which is not the launcher's rank
    if (!is_child && !mpi_is_initialized()) PmiStore(at_exit, true).finalize();
  });
}

// A launcher takes a rank that ends without this for dead.
void PmiStore::finalize() {
  static_cast<void>(ask(pmi_line("finalize", {}), "finalize_ack"));
  broken_ = true;
}

Error PmiStore::error(Code code, std::string_view what) const {
  return {code, fmt::format("rank {} of {}: the launcher at PMI_FD={}: {}", options_.rank,
                            options_.ranks, options_.descriptor, what)};
}

Status PmiStore::put(std::string_view key, std::string_view value) {
  const std::string name = pmi_key(options_.rank, key);
  UNISONO_TRY(
      ask(pmi_line("put", {{"kvsname", space_}, {"key", name}, {"value", value}}), "put_result"));
  return base::success();
}

Status PmiStore::fence() {
  UNISONO_TRY(ask(pmi_line("barrier_in", {}), "barrier_out"));
  return base::success();
}

Result<std::string> PmiStore::get(int rank, std::string_view key) {
  const std::string name = pmi_key(rank, key);
  UNISONO_ASSIGN(const PmiLine answer,
                 ask(pmi_line("get", {{"kvsname", space_}, {"key", name}}), "get_result"));
  return std::string(answer.value("value"));
}

Result<PmiLine> PmiStore::ask(const std::string& line, std::string_view expected) {
  UNISONO_TRY(send(line));
  UNISONO_ASSIGN(const std::string text, receive());
  Result<PmiLine> answer = parse_pmi_line(text);
  if (!answer.ok() || answer->command != expected) {
    broken_ = true;
    return error(Code::state,
                 fmt::format("it answered \"{}\" instead of {}", text.substr(0, 128), expected));
  }
  const std::string_view code = answer->value("rc");
  if (!code.empty() && code != "0") {
    return error(Code::state,
                 fmt::format("its {} has rc={} {}", expected, code, answer->value("msg")));
  }
  return answer;
}

Status PmiStore::send(std::string_view line) {
  const std::int64_t deadline_ns = base::now_ns() + options_.timeout_ns;
  while (!line.empty()) {
    const ssize_t count =
        ::send(options_.descriptor, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting{options_.descriptor, POLLOUT, 0};
      const int ready = poll(&waiting, 1, base::poll_timeout_ms(deadline_ns));
      if (ready > 0 || (ready < 0 && errno == EINTR)) continue;
      broken_ = true;
      return error(Code::timeout, fmt::format("it has read nothing for {} "
                                              "(UNISONO_START_TIMEOUT)",
                                              base::format_time_ns(options_.timeout_ns)));
    }
    if (count < 0) {
      broken_ = true;
      return error(errno == EBADF || errno == ENOTSOCK ? Code::unsupported : Code::rank_lost,
                   errno_text(errno));
    }
    line.remove_prefix(static_cast<std::size_t>(count));
  }
  return base::success();
}

// The launcher sends only answers, so everything up to the line end is one line.
Result<std::string> PmiStore::receive() {
  const std::int64_t deadline_ns = base::now_ns() + options_.timeout_ns;
  std::string text;
  while (text.size() <= PmiLine::kMostBytes) {
    pollfd waiting{options_.descriptor, POLLIN, 0};
    const int ready = poll(&waiting, 1, base::poll_timeout_ms(deadline_ns));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      broken_ = true;
      return error(Code::timeout,
                   fmt::format("no answer within {} (UNISONO_START_TIMEOUT): have all ranks called "
                               "unisono_init?",
                               base::format_time_ns(options_.timeout_ns)));
    }
    std::array<char, 1024> bytes{};
    // An MPI library may have read meanwhile what poll() reported.
    const ssize_t count = recv(options_.descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) {
      broken_ = true;
      return error(Code::rank_lost, "it closed the connection");
    }
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.back() == '\n') {
      text.pop_back();
      return text;
    }
  }
  broken_ = true;
  return error(Code::state, "it sent a line of more than 4096 bytes");
}

}  // namespace unisono::bootstrap
