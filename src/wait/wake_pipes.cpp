// SPDX-License-Identifier: BSD-3-Clause
#include "wait/wake_pipes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <tuple>

namespace unisono::wait {
namespace {

// The namespace in which this process's number is valid; 0: unknown.
std::uint64_t process_namespace() {
  struct stat info = {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

// The process number may have been reused, so the opened file must be that pipe. It is opened for
// reading and writing, so that a write is no error after its owner has ended.
base::Descriptor open_pipe(const std::string& path, std::uint64_t inode) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {};
  if (!S_ISFIFO(info.st_mode) || info.st_ino != inode) {
    errno = ENOENT;
    return {};
  }
  return base::Descriptor(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

WakePipes::~WakePipes() {
  for (int r = 0; r < ranks_; ++r) base::Descriptor(others_[static_cast<std::size_t>(r)] - 1);
}

base::Status WakePipes::make(PipeAddress& address) {
  std::array<int, 2> ends{};
  struct stat info = {};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::Error{base::Code::system, fmt::format("pipe: {}", std::strerror(errno))};
  }
  reading_.reset(ends[0]);
  writing_.reset(ends[1]);
  if (fstat(reading_.get(), &info) != 0) {
    return base::Error{base::Code::system, fmt::format("fstat: {}", std::strerror(errno))};
  }
  address.process_namespace.store(process_namespace(), std::memory_order_relaxed);
  address.process.store(getpid(), std::memory_order_relaxed);
  address.descriptor.store(writing_.get(), std::memory_order_relaxed);
  address.inode.store(info.st_ino, std::memory_order_release);
  return base::success();
}

void WakePipes::drain() {
  std::array<char, 256> wake_sequence;
  while (read(reading_.get(), wake_sequence.data(), wake_sequence.size()) ==
         static_cast<ssize_t>(wake_sequence.size())) {
  }
}

WakePipes::Rung WakePipes::ring(int rank, const PipeAddress& address) {
  std::atomic<int>& other = others_[static_cast<std::size_t>(rank)];
  if (other.load(std::memory_order_acquire) == 0) {
    const std::uint64_t inode = address.inode.load(std::memory_order_acquire);
    if (inode == 0 ||
        address.process_namespace.load(std::memory_order_relaxed) != process_namespace()) {
      return Rung::unreachable;
    }
    base::Descriptor pipe =
        open_pipe(fmt::format("/proc/{}/fd/{}", address.process.load(std::memory_order_relaxed),
                              address.descriptor.load(std::memory_order_relaxed)),
                  inode);
    if (!pipe.valid()) return errno == ENOENT ? Rung::nobody : Rung::unreachable;
    int none = 0;
    const int opened = pipe.get() + 1;
    if (other.compare_exchange_strong(none, opened)) std::ignore = pipe.release();
  }
  // A full pipe is readable as well, so a failed write needs no handling.
  const char wake_byte = 0;
  [[maybe_unused]] const ssize_t written =
      write(other.load(std::memory_order_acquire) - 1, &wake_byte, 1);
  return Rung::yes;
}

}  // namespace unisono::wait
