// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/identity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

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

}  // namespace

Result<HostId> own_host_id() {
  constexpr const char* kBootFile = "/proc/sys/kernel/random/boot_id";
  // The network namespace of this thread, in which its sockets are.
  constexpr const char* kNetworkFile = "/proc/thread-self/ns/net";
  const Descriptor file(open(kBootFile, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::system_error(kBootFile, errno);
  std::array<char, 36> boot_id{};  // 32 digits and 4 dashes
  if (read(file.get(), boot_id.data(), boot_id.size()) != static_cast<ssize_t>(boot_id.size())) {
    return base::system_error(kBootFile, EIO);
  }
  struct stat network {};
  if (stat(kNetworkFile, &network) != 0) return base::system_error(kNetworkFile, errno);
  const std::string fact = fmt::format("{} {} {}", std::string_view(boot_id.data(), boot_id.size()),
                                       network.st_dev, network.st_ino);
  const wire::Key mixed = wire::key_of(fact);
  HostId id{};
  static_assert(sizeof(mixed) == sizeof(id));
  std::memcpy(id.data(), &mixed, sizeof(id));
  return id;
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
