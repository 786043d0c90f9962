// SPDX-License-Identifier: BSD-3-Clause
// What the loader makes of the kernel's words: whether a release is new enough, and what of the
// verifier's log an error shows. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unisono::nic {

// Whether a kernel of that release ("6.18.44") has the TCX links that attach the NIC program;
// nothing if the release is not a version.
std::optional<bool> kernel_suffices(const std::string& release);

// A text of at most 1500 bytes. A longer one is replaced by its beginning, which says what failed,
// and its end, where the verifier says why.
std::string shorten_log(std::string_view text);

}  // namespace unisono::nic
