// SPDX-License-Identifier: BSD-3-Clause
// A forked child reports to its parent over a pipe that its setup is complete, or the error: the
// number of a code and the message. One answer for each pipe.
#pragma once

#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::tools {

struct AnswerPipe {
  base::Descriptor reading;
  base::Descriptor writing;
};
base::Result<AnswerPipe> make_answer_pipe();

// False if the parent no longer waits for it.
bool send_answer(const base::Descriptor& writing, const base::Status& answer);
// Waits for it. If the child dies first, the error names `who`. All writing ends here must be
// closed.
base::Status receive_answer(const base::Descriptor& reading, const std::string& who);

}  // namespace unisono::tools
