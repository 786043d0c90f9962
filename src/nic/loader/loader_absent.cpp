// SPDX-License-Identifier: BSD-3-Clause
// Replaces loader.cpp if clang or libbpf were missing when the library was built.
#include "nic/loader/device.hpp"

namespace unisono::nic {

bool has_program() { return false; }

base::Result<std::unique_ptr<Device>> load_device(const DeviceOptions&) {
  return base::Error{base::Code::unsupported,
                     "this library was built without the NIC program: clang or libbpf were missing "
                     "(Debian: clang-19 libbpf-dev)"};
}

}  // namespace unisono::nic
