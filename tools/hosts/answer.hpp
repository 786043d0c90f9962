// SPDX-License-Identifier: BSD-3-Clause
// How a forked child tells its parent over a pipe that what it was to set up is there, or why not:
// the number of a code and the message. One answer for each pipe.
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

// False if nobody waits for it any more.
bool send_answer(const base::Descriptor& writing, const base::Status& answer);
// Waits for it. `who` is named if the child dies instead. All writing ends here must be closed.
base::Status receive_answer(const base::Descriptor& reading, const std::string& who);

}  // namespace unisono::tools
