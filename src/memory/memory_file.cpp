// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace unisono::memory {

base::Result<base::Descriptor> create_memory(std::uint64_t bytes) {
  rlimit limit{};
  // Beyond this limit ftruncate would not only fail, but also raise SIGXFSZ.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    return base::Error{
        base::Code::resources,
        fmt::format(
            "the job's memory file of {} is over the limit of file sizes of {} (ulimit -f); "
            "raise the limit or lower UNISONO_SHARED_LIMIT",
            base::format_size(static_cast<std::int64_t>(bytes)),
            base::format_size(static_cast<std::int64_t>(limit.rlim_cur)))};
  }
  base::Descriptor memory(memfd_create("unisono", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return base::system_error("memfd_create", errno);
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    return base::system_error("ftruncate of the job's memory file", errno);
  }
  if (fchmod(memory.get(), S_IRUSR | S_IWUSR) != 0) return base::system_error("fchmod", errno);
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return base::system_error("F_ADD_SEALS", errno);
  }
  return memory;
}

base::Status verify_memory(const base::Descriptor& memory, std::uint64_t bytes) {
  struct stat status {};
  if (fstat(memory.get(), &status) != 0) return base::system_error("fstat", errno);
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      static_cast<std::uint64_t>(status.st_size) != bytes) {
    return base::Error{base::Code::state,
                       "the rendezvous sent something else than the job's memory file"};
  }
  return base::success();
}

}  // namespace unisono::memory
