// SPDX-License-Identifier: BSD-3-Clause
// RankRun: one rank of a random program. It starts the entries in their order, blocking, split
// phase or by plans that it starts again, late or at once, completes them in an order of its own,
// and compares every byte. For tests only; the rank's thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "random/call_memory.hpp"
#include "random/issue.hpp"
#include "random/program.hpp"
#include "unisono/unisono.h"

namespace unisono::test::programs {

class RankRun {
 public:
  RankRun(const Program& program, int rank, unisono_comm_t world);
  ~RankRun();
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  // Throws std::runtime_error that says what is wrong.
  void run();

 private:
  // A call that is under way, or was.
  struct Issued {
    int entry = 0;
    std::shared_ptr<CallMemory> memory;
    unisono_request_t request = nullptr;
  };
  // A call that this rank makes by a plan.
  struct Planned {
    unisono_plan_t plan = nullptr;
    std::shared_ptr<CallMemory> memory;
    int active_entry = -1;
  };

  bool draw(std::uint64_t one_in) { return own_.below(one_in) == 0; }
  const Call& call_of(int entry) const;
  int rank_in(int group) const;  // -1: no member
  unisono_comm_t comm_of(int group) const;
  bool concerns(const Entry& entry) const;

  void idle();
  void take(int entry);
  void derive(int entry);
  void make(int entry, Form form);
  void start_planned(int entry);
  Form form_of(int entry);
  bool may_come_first(std::size_t next);

  void complete_some();
  void complete_all();
  void complete_any();
  void complete_together();
  void complete(std::list<Issued>::iterator issued);
  void complete(Planned& planned);
  void check(int entry, CallMemory& memory);
  void retire(int entry, std::shared_ptr<CallMemory> memory);
  void look_back() const;
  void end();
  void expect(int error, int entry, const char* what) const;
  [[noreturn]] void fail(int entry, const std::string& why) const;

  const Program& program_;
  const int rank_;
  const unisono_comm_t world_;
  base::Prng own_;
  std::uint64_t idles_one_in_ = 0;  // 0: never
  int must_start_ = 0;              // of so many of the next calls the form is decided
  std::vector<unisono_comm_t> derived_;
  std::vector<int> entries_;  // those that concern this rank
  std::list<Issued> under_way_;
  std::map<int, Planned> planned_;  // by call
  std::map<int, bool> is_planned_;  // by call
  // Memory whose call is over. It stays as it was left.
  struct Left {
    int entry = 0;
    std::shared_ptr<CallMemory> memory;
  };
  std::vector<Left> left_;
};

}  // namespace unisono::test::programs
