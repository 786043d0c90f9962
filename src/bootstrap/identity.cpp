// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/identity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {
namespace {

using base::Descriptor;
using base::Result;

base::Status fill_random(void* target, std::size_t bytes) {
  // The generator returns up to 256 bytes at once.
  if (getrandom(target, bytes, 0) != static_cast<ssize_t>(bytes)) {
    return base::system_error("getrandom", errno);
  }
  return base::success();
}

// New at each start of a kernel: 32 digits and 4 dashes.
Result<std::string> read_boot_id() {
  constexpr const char* kBootFile = "/proc/sys/kernel/random/boot_id";
  const Descriptor file(open(kBootFile, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::system_error(kBootFile, errno);
  std::string boot_id(36, ' ');
  if (read(file.get(), boot_id.data(), boot_id.size()) != static_cast<ssize_t>(boot_id.size())) {
    return base::system_error(kBootFile, EIO);
  }
  return boot_id;
}

}  // namespace

Result<HostId> own_host_id() {
  // The network namespace of this thread, in which its sockets are.
  constexpr const char* kNetworkFile = "/proc/thread-self/ns/net";
  UNISONO_ASSIGN(const std::string boot_id, read_boot_id());
  struct stat network {};
  if (stat(kNetworkFile, &network) != 0) return base::system_error(kNetworkFile, errno);
  const std::string fact = fmt::format("{} {} {}", boot_id, network.st_dev, network.st_ino);
  const wire::Key mixed = wire::key_of(fact);
  HostId id{};
  static_assert(sizeof(mixed) == sizeof(id));
  std::memcpy(id.data(), &mixed, sizeof(id));
  return id;
}

Result<Kernel> own_kernel() {
  UNISONO_ASSIGN(const std::string boot_id, read_boot_id());
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1) return base::system_error("sysconf(_SC_NPROCESSORS_ONLN)", errno);
  Kernel kernel{.cores = static_cast<std::uint32_t>(cores)};
  const wire::Key mixed = wire::key_of(boot_id);
  static_assert(sizeof(mixed) >= sizeof(kernel.id));
  std::memcpy(&kernel.id, &mixed, sizeof(kernel.id));
  kernel.id = std::max<std::uint64_t>(kernel.id, 1);
  return kernel;
}

Result<Nonce> random_nonce() {
  Nonce nonce{};
  UNISONO_TRY(fill_random(nonce.data(), nonce.size()));
  return nonce;
}

Result<std::uint64_t> random_number() {
  std::uint64_t id = 0;
  UNISONO_TRY(fill_random(&id, sizeof(id)));
  return id;
}

Result<std::string> random_job_key() {
  UNISONO_ASSIGN(const Nonce bytes, random_nonce());
  std::string key;
  for (const char byte : bytes) key += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return key;
}

}  // namespace unisono::bootstrap
