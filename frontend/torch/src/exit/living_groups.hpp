// SPDX-License-Identifier: BSD-3-Clause
// The groups of this process that no program has destroyed yet. At the end of the interpreter they
// are ended, before threads of theirs could meet an interpreter that is gone. Any thread.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <vector>

namespace unisono::pytorch {

class GroupBackend;

void remember(const c10::intrusive_ptr<GroupBackend>& group);
// Call it in release_resources() of a group: while this list refers to it, it is not destroyed.
void forget_ended();
// Ends all of them. Operations that are under way get `grace` to complete, all together, and are
// cancelled for all ranks then. Returns a line for each group of which one has been cancelled. In a
// forked child: nothing, as the groups are its parent's. Other threads of Python that come back
// from a call stay (signals.hpp).
std::vector<std::string> end_living_groups(std::chrono::milliseconds grace);

}  // namespace unisono::pytorch
