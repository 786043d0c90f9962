// SPDX-License-Identifier: BSD-3-Clause
#include "wait/background.hpp"

namespace unisono::wait {
namespace {

thread_local bool own_thread_is_background = false;

}  // namespace

void set_background_thread(bool is_background) { own_thread_is_background = is_background; }

bool is_background_thread() { return own_thread_is_background; }

}  // namespace unisono::wait
