// SPDX-License-Identifier: BSD-3-Clause
// OwnProcess: the process in which an object was made. A forked child has a copy of the object, but
// none of its threads, and its locks may be held by one of them for ever. Any thread.
#pragma once

namespace unisono::pytorch {

class OwnProcess {
 public:
  OwnProcess();
  // Not a child that it has forked since.
  bool is_here() const;
  // Throws DistBackendError in such a child. `name` is that of the operation.
  void require(const char* name) const;

 private:
  unsigned forks_;
};

}  // namespace unisono::pytorch
