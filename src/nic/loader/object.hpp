// SPDX-License-Identifier: BSD-3-Clause
// The compiled NIC program (nic.bpf.c) as bytes of this library; the build makes the source file.
// Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace unisono::nic {

std::span<const std::byte> program_object();

}  // namespace unisono::nic
