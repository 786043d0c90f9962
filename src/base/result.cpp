// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"

#include <cerrno>
#include <new>
#include <system_error>

namespace unisono::base {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::argument:
      return "argument";
    case Code::type:
      return "type";
    case Code::state:
      return "state";
    case Code::mismatch:
      return "mismatch";
    case Code::rank_lost:
      return "rank_lost";
    case Code::timeout:
      return "timeout";
    case Code::resources:
      return "resources";
    case Code::system:
      return "system";
    case Code::unsupported:
      return "unsupported";
    case Code::peer_argument:
      return "peer_argument";
    case Code::cancelled:
      return "cancelled";
  }
  return "unknown";
}

Error argument_error(std::string message) { return {Code::argument, std::move(message)}; }

Error system_error(std::string_view what, int error_number) {
  const std::string_view hint = error_number == EMFILE ? "; raise the limit (ulimit -n)" : "";
  return {Code::system, std::string(what) + ": " + std::generic_category().message(error_number) +
                            std::string(hint)};
}

Error error_of(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) {
    return {Code::resources, "the process gets no more memory"};
  }
  return {Code::system, thrown.what()};
}

}  // namespace unisono::base
