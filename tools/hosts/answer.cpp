// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/answer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace unisono::tools {

using base::Code;
using base::Error;

base::Result<AnswerPipe> make_answer_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{Code::resources, fmt::format("pipe: {}", std::strerror(errno))};
  }
  return AnswerPipe{base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

bool send_answer(const base::Descriptor& writing, const base::Status& answer) {
  std::string text(1, static_cast<char>(answer.ok() ? Code::ok : answer.error().code));
  if (!answer.ok()) text += answer.error().message;
  return write(writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

base::Status receive_answer(const base::Descriptor& reading, const std::string& who) {
  // The child writes once, and less than a pipe writes as a whole (pipe(7)).
  std::array<char, 4096> text{};
  ssize_t count = 0;
  do {
    count = read(reading.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return Error{Code::system, fmt::format("{} died in the making", who)};
  const Code code = static_cast<Code>(text[0]);
  if (code == Code::ok) return base::success();
  return Error{code, std::string(text.data() + 1, static_cast<std::size_t>(count - 1))};
}

}  // namespace unisono::tools
