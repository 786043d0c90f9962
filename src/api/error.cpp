// SPDX-License-Identifier: BSD-3-Clause
#include "api/error.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "unisono/unisono.h"

namespace unisono::api {
namespace {

using base::Code;

static_assert(static_cast<int>(Code::ok) == UNISONO_OK);
static_assert(static_cast<int>(Code::argument) == UNISONO_ERROR_ARGUMENT);
static_assert(static_cast<int>(Code::type) == UNISONO_ERROR_TYPE);
static_assert(static_cast<int>(Code::state) == UNISONO_ERROR_STATE);
static_assert(static_cast<int>(Code::mismatch) == UNISONO_ERROR_MISMATCH);
static_assert(static_cast<int>(Code::rank_lost) == UNISONO_ERROR_RANK_LOST);
static_assert(static_cast<int>(Code::timeout) == UNISONO_ERROR_TIMEOUT);
static_assert(static_cast<int>(Code::resources) == UNISONO_ERROR_RESOURCES);
static_assert(static_cast<int>(Code::system) == UNISONO_ERROR_SYSTEM);
static_assert(static_cast<int>(Code::unsupported) == UNISONO_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(Code::peer_argument) == UNISONO_ERROR_PEER_ARGUMENT);
static_assert(static_cast<int>(Code::cancelled) == UNISONO_ERROR_CANCELLED);

// A pointer: the main thread's objects end before those that are static, whose destructors may call
// the library. Null: no message.
thread_local std::string* last_message = nullptr;

struct LastMessage {
  ~LastMessage() { delete std::exchange(last_message, nullptr); }
};

void keep_last_message(std::string text) {
  static thread_local const LastMessage ends_with_thread{};
  if (last_message == nullptr) last_message = new std::string;
  *last_message = std::move(text);
}

}  // namespace

int fail(const base::Error& error) {
  keep_last_message(error.message);
  return static_cast<int>(error.code);
}

int fail(Code code, std::string message) { return fail(base::Error{code, std::move(message)}); }

int fail(const char* function, const base::Error& error) {
  return fail(error.code, fmt::format("{}: {}", function, error.message));
}

int fail(const char* function, const std::exception& thrown) noexcept {
  const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr;
  try {
    keep_last_message(fmt::format(
        "{}: {}", function, lacks_memory ? "the process gets no more memory" : thrown.what()));
  } catch (const std::exception&) {
    if (last_message != nullptr) last_message->clear();  // no memory for the message either
  }
  return static_cast<int>(lacks_memory ? Code::resources : Code::system);
}

}  // namespace unisono::api

extern "C" {

const char* unisono_last_error(void) {
  const std::string* const message = unisono::api::last_message;
  return message == nullptr ? "" : message->c_str();
}

const char* unisono_error_name(int error) {
  return unisono::base::code_name(static_cast<unisono::base::Code>(error));
}

const char* unisono_version(void) { return UNISONO_VERSION; }

}  // extern "C"
