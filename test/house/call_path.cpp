// SPDX-License-Identifier: BSD-3-Clause
// Executes one blocking allreduce of 8 bytes instruction by instruction, and prints the address of
// each instruction of the library, as "FILE ADDRESS". call_path_test.py finds their source files.
//
//   unisono run -n 2 -- call_path ready|waits SHARED_FILE
//
// ready: the other rank's message is there. waits: the other rank makes its call when this one
// sleeps for it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unisono/unisono.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace {

constexpr int kWarmUps = 2000;  // the plan is known, and the communicator's buffers were all used
constexpr int kAsleepMs = 100;  // an instruction that takes twice as long sleeps
constexpr int kMostMs = 300'000;

constexpr itimerval kNoTicks{};

// Between the two ranks and the process that follows rank 0, in a file that all map.
struct Shared {
  std::atomic<bool> followed;   // rank 0 may call
  std::atomic<bool> released;   // rank 1 may call
  std::atomic<bool> called;     // rank 1 is about to call
  std::atomic<bool> completed;  // rank 0's call has returned
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void nap() { usleep(1000); }

void await(const std::atomic<bool>& flag) {
  for (int ms = 0; !flag.load(); ++ms) {
    if (ms == kMostMs) give_up("call_path: the other process has not come");
    nap();
  }
}

void allreduce(unisono_comm_t world) {
  std::int64_t value = 1;
  if (unisono_allreduce(UNISONO_IN_PLACE, &value, 1, UNISONO_INT64, UNISONO_SUM, world) !=
          UNISONO_OK ||
      value != 2) {
    std::fprintf(stderr, "call_path: %s\n", unisono_last_error());
    std::_Exit(1);
  }
}

template <class Call>
int run_rank(const Call& call) {
  unisono_comm_t world = nullptr;
  if (unisono_init(&world) != UNISONO_OK) {
    std::fprintf(stderr, "call_path: %s\n", unisono_last_error());
    return 1;
  }
  for (int i = 0; i < kWarmUps; ++i) allreduce(world);
  call(world);
  return unisono_finalize(world) == UNISONO_OK ? 0 : 1;
}

int run_other(Shared& shared) {
  return run_rank([&](unisono_comm_t world) {
    await(shared.released);
    shared.called = true;
    allreduce(world);
  });
}

// The process that is followed.
int run_followed(Shared& shared) {
  return run_rank([&](unisono_comm_t world) {
    raise(SIGSTOP);
    while (!shared.followed.load()) {
    }
    allreduce(world);
    shared.completed = true;
    raise(SIGSTOP);
  });
}

// Where the library lies in a process: its file and the address of its first byte.
struct Library {
  std::string file;
  std::uint64_t begin = 0, end = 0;
};

Library find_library(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  Library found;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libunisono.so") == std::string::npos) continue;
    std::istringstream fields(line);
    std::uint64_t begin = 0, end = 0;
    char dash = 0;
    fields >> std::hex >> begin >> dash >> end;
    if (found.begin == 0) found = {line.substr(line.find('/')), begin, end};
    found.end = end;
  }
  return found;
}

std::uint64_t instruction_of(pid_t process) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, process, nullptr, &registers) != 0) give_up("PTRACE_GETREGS");
  return registers.rip;
#else
  static_cast<void>(process);
  std::fprintf(stderr, "call_path: not for this processor\n");
  std::_Exit(77);
#endif
}

// From now on, a signal ends blocking system calls every kAsleepMs.
void start_ticks() {
  struct sigaction ignore {};
  ignore.sa_handler = [](int) {};
  const timeval interval{.tv_sec = 0, .tv_usec = kAsleepMs * 1000};
  const itimerval ticks{.it_interval = interval, .it_value = interval};
  if (sigaction(SIGALRM, &ignore, nullptr) != 0 || setitimer(ITIMER_REAL, &ticks, nullptr) != 0) {
    give_up("setitimer");
  }
}

// One instruction. If the process sleeps in it, rank 1 is released. It waits without polling: on
// busy cores a tracer that polls keeps the followed process from its turn.
void step(pid_t process, Shared& shared) {
  if (ptrace(PTRACE_SINGLESTEP, process, nullptr, nullptr) != 0) give_up("PTRACE_SINGLESTEP");
  int status = 0;
  for (int ticks = 0; waitpid(process, &status, 0) != process;) {
    if (errno != EINTR) give_up("waitpid");
    ++ticks;
    if (ticks == 2) shared.released = true;  // the first one may have come at once
    if (ticks * kAsleepMs >= kMostMs) give_up("call_path: the call does not end");
  }
  if (!WIFSTOPPED(status)) give_up("call_path: the followed process has ended");
}

int follow(pid_t process, Shared& shared, bool is_ready) {
  int status = 0;
  if (waitpid(process, &status, 0) != process || !WIFSTOPPED(status)) give_up("waitpid");
  const Library library = find_library(process);
  if (is_ready) {
    shared.released = true;
    await(shared.called);
    for (int i = 0; i < kAsleepMs; ++i) nap();  // by then its message lies there
  }
  shared.followed = true;
  start_ticks();
  std::set<std::uint64_t> seen;
  while (!shared.completed.load()) {
    const std::uint64_t address = instruction_of(process);
    if (address >= library.begin && address < library.end) seen.insert(address - library.begin);
    step(process, shared);
  }
  setitimer(ITIMER_REAL, &kNoTicks, nullptr);
  ptrace(PTRACE_DETACH, process, nullptr, nullptr);
  waitpid(process, &status, WUNTRACED);
  kill(process, SIGCONT);
  if (waitpid(process, &status, 0) != process || status != 0) give_up("call_path: rank 0");
  if (!is_ready && !shared.released.load()) give_up("call_path: the call did not sleep");
  for (const std::uint64_t address : seen) {
    std::printf("%s 0x%llx\n", library.file.c_str(), static_cast<unsigned long long>(address));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const rank = std::getenv("UNISONO_RANK");
  if (argc != 3 || rank == nullptr) {
    std::fprintf(stderr, "usage: unisono run -n 2 -- call_path ready|waits SHARED_FILE\n");
    return 2;
  }
  const int file = open(argv[2], O_RDWR | O_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) give_up(argv[2]);
  void* const mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) give_up("mmap");
  auto& shared = *static_cast<Shared*>(mapped);
  if (std::strcmp(rank, "0") != 0) return run_other(shared);
  const pid_t process = fork();
  if (process < 0) give_up("fork");
  if (process > 0) return follow(process, shared, std::strcmp(argv[1], "ready") == 0);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    std::fprintf(stderr, "call_path: ptrace: %s\n", std::strerror(errno));
    std::_Exit(77);
  }
  std::_Exit(run_followed(shared));
}
