// SPDX-License-Identifier: BSD-3-Clause
#include "random/rank_run.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "random/disturbance.hpp"
#include "random/types.hpp"

namespace unisono::test::programs {

RankRun::RankRun(const Program& program, int rank, unisono_comm_t world)
    : program_(program),
      rank_(rank),
      world_(world),
      own_(harness::mixed(program.seed, 7000 + static_cast<std::uint64_t>(rank))),
      derived_(program.derivations.size()) {
  constexpr std::uint64_t kOneIn[] = {0, 40, 8, 3};
  idles_one_in_ = kOneIn[own_.below(4)];
  for (std::size_t e = 0; e < program.entries.size(); ++e) {
    if (concerns(program.entries[e])) entries_.push_back(static_cast<int>(e));
  }
}

// The library may still use the memory of calls after a failure, so it stays.
RankRun::~RankRun() {
  for (Issued& issued : under_way_) new std::shared_ptr<CallMemory>(std::move(issued.memory));
  for (auto& [call, planned] : planned_) {
    if (planned.active_entry >= 0) new std::shared_ptr<CallMemory>(std::move(planned.memory));
  }
}

void RankRun::run() {
  OwnKinds::get();
  if (draw(6)) unisono_set_background_thread(1);
  std::optional<Disturbance> disturbance;
  if (draw(2)) {
    constexpr long kMost[] = {100, 300, 1000};
    disturbance.emplace(kMost[own_.below(3)]);
  }
  for (std::size_t next = 0; next < entries_.size(); ++next) {
    if (may_come_first(next)) {
      take(entries_[next + 1]);
      take(entries_[next]);
      ++next;
    } else {
      take(entries_[next]);
    }
    complete_some();
  }
  complete_all();
  end();
  look_back();
}

const Call& RankRun::call_of(int entry) const {
  const int call = program_.entries[static_cast<std::size_t>(entry)].call;
  return program_.calls[static_cast<std::size_t>(call)];
}

int RankRun::rank_in(int group) const {
  const Members& members = program_.groups[static_cast<std::size_t>(group)].members;
  const auto at = std::ranges::find(members, rank_);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

unisono_comm_t RankRun::comm_of(int group) const {
  const int origin = program_.groups[static_cast<std::size_t>(group)].origin;
  return origin < 0 ? world_ : derived_[static_cast<std::size_t>(origin)];
}

bool RankRun::concerns(const Entry& entry) const {
  if (entry.derivation >= 0) {
    return rank_in(program_.derivations[static_cast<std::size_t>(entry.derivation)].parent) >= 0;
  }
  return rank_in(program_.calls[static_cast<std::size_t>(entry.call)].group) >= 0;
}

// Computes, yields or sleeps for a time, as programs do.
void RankRun::idle() {
  if (idles_one_in_ == 0 || !draw(idles_one_in_)) return;
  const std::uint64_t kind = own_.below(8);
  if (kind < 3) {
    static thread_local volatile std::uint64_t sink = 0;
    for (std::uint64_t turns = own_.below(50'000); turns > 0; --turns) sink = sink + turns;
  } else if (kind < 5) {
    sched_yield();
  } else {
    const std::uint64_t most = kind == 7 ? 3000 : 200;
    std::this_thread::sleep_for(std::chrono::microseconds(own_.below(most)));
  }
}

// Calls on different communicators may start in any order, as long as none of them waits.
bool RankRun::may_come_first(std::size_t next) {
  if (next + 1 >= entries_.size() || !draw(3) || program_.same_forms) return false;
  const Entry& one = program_.entries[static_cast<std::size_t>(entries_[next])];
  const Entry& other = program_.entries[static_cast<std::size_t>(entries_[next + 1])];
  if (one.derivation >= 0 || other.derivation >= 0) return false;
  if (comm_of(call_of(entries_[next]).group) == comm_of(call_of(entries_[next + 1]).group)) {
    return false;
  }
  // A plan's start may wait for its last one, and a blocking call always may.
  for (const Entry* entry : {&one, &other}) {
    if (is_planned_.contains(entry->call)) return false;
  }
  is_planned_[one.call] = is_planned_[other.call] = false;
  must_start_ = 2;
  return true;
}

Form RankRun::form_of(int entry) {
  const Entry& here = program_.entries[static_cast<std::size_t>(entry)];
  if (program_.same_forms) {
    const std::uint64_t key = key_of(program_, here.call, 63);
    if (key % 3 == 0) return Form::planned;
    return key_of(program_, here.call, here.round) % 2 == 0 ? Form::blocking : Form::started;
  }
  if (must_start_ > 0) {
    --must_start_;
    return Form::started;
  }
  const auto [at, is_new] = is_planned_.try_emplace(here.call, false);
  if (is_new) at->second = draw(3);
  if (at->second) return Form::planned;
  return draw(2) ? Form::blocking : Form::started;
}

void RankRun::take(int entry) {
  idle();
  if (program_.entries[static_cast<std::size_t>(entry)].derivation >= 0) return derive(entry);
  const Form form = form_of(entry);
  if (form == Form::planned) return start_planned(entry);
  make(entry, form);
}

void RankRun::derive(int entry) {
  const int number = program_.entries[static_cast<std::size_t>(entry)].derivation;
  const Derivation& made = program_.derivations[static_cast<std::size_t>(number)];
  const unisono_comm_t parent = comm_of(made.parent);
  unisono_comm_t& result = derived_[static_cast<std::size_t>(number)];
  const auto own = static_cast<std::size_t>(rank_in(made.parent));
  switch (made.how) {
    case Derivation::How::dup:
      return expect(unisono_comm_dup(parent, &result), entry, "dup");
    case Derivation::How::split:
      return expect(unisono_comm_split(parent, made.colors[own], made.keys[own], &result), entry,
                    "split");
    case Derivation::How::list:
      return expect(unisono_comm_from_list(parent, made.list.data(),
                                           static_cast<int>(made.list.size()), &result),
                    entry, "from_list");
  }
}

void RankRun::make(int entry, Form form) {
  const Entry& here = program_.entries[static_cast<std::size_t>(entry)];
  const Call& call = call_of(entry);
  Issued issued;
  issued.entry = entry;
  issued.memory =
      std::make_shared<CallMemory>(program_, here.call, rank_in(call.group), world_, own_);
  issued.memory->fill(here.round);
  Handles handles;
  under_way_.push_back(issued);
  expect(issue(form, call, issued.memory->arguments(), comm_of(call.group), handles), entry,
         "call");
  under_way_.back().request = handles.request;
  if (form == Form::blocking) complete(std::prev(under_way_.end()));
}

void RankRun::start_planned(int entry) {
  const Entry& here = program_.entries[static_cast<std::size_t>(entry)];
  const Call& call = call_of(entry);
  Planned& planned = planned_[here.call];
  if (planned.plan == nullptr) {
    planned.memory =
        std::make_shared<CallMemory>(program_, here.call, rank_in(call.group), world_, own_);
    Handles handles;
    expect(issue(Form::planned, call, planned.memory->arguments(), comm_of(call.group), handles),
           entry, "plan");
    planned.plan = handles.plan;
  } else if (planned.active_entry >= 0) {
    complete(planned);
  }
  planned.memory->fill(here.round);
  planned.active_entry = entry;
  expect(unisono_plan_start(planned.plan), entry, "plan_start");
}

void RankRun::complete_some() {
  while (draw(3) && !under_way_.empty()) complete_any();
  if (!draw(4)) return;
  for (auto& [call, planned] : planned_) {
    if (planned.active_entry >= 0 && draw(2)) complete(planned);
  }
}

void RankRun::complete_all() {
  std::vector<Planned*> active;
  for (auto& [call, planned] : planned_) {
    if (planned.active_entry >= 0) active.push_back(&planned);
  }
  std::shuffle(active.begin(), active.end(), own_);
  while (!under_way_.empty() || !active.empty()) {
    idle();
    if (active.empty() || (!under_way_.empty() && draw(2))) {
      complete_any();
    } else {
      complete(*active.back());
      active.pop_back();
    }
  }
}

// One of those under way, or several.
void RankRun::complete_any() {
  if (draw(4)) return complete_together();
  auto at =
      std::next(under_way_.begin(), static_cast<std::ptrdiff_t>(own_.below(under_way_.size())));
  int done = 0;
  for (std::uint64_t looks = draw(3) ? own_.below(200) : 0; looks > 0 && done == 0; --looks) {
    expect(unisono_test(&at->request, &done), at->entry, "test");
    idle();
  }
  if (done == 0) expect(unisono_wait(&at->request), at->entry, "wait");
  complete(at);
}

void RankRun::complete_together() {
  std::vector<std::list<Issued>::iterator> some;
  std::vector<unisono_request_t> requests;
  for (auto at = under_way_.begin(); at != under_way_.end(); ++at) {
    if (draw(3)) continue;
    some.push_back(at);
    requests.push_back(at->request);
  }
  if (some.empty()) return;
  const auto count = static_cast<int>(requests.size());
  if (draw(2)) {
    int index = -1;
    expect(unisono_wait_any(requests.data(), count, &index), some.front()->entry, "wait_any");
    if (index < 0 || index >= count) fail(some.front()->entry, "wait_any gave no index");
    return complete(some[static_cast<std::size_t>(index)]);
  }
  expect(unisono_wait_all(requests.data(), count), some.front()->entry, "wait_all");
  for (const auto& at : some) complete(at);
}

void RankRun::complete(std::list<Issued>::iterator issued) {
  check(issued->entry, *issued->memory);
  retire(issued->entry, std::move(issued->memory));
  under_way_.erase(issued);
}

void RankRun::complete(Planned& planned) {
  const int entry = planned.active_entry;
  int done = 0;
  for (std::uint64_t looks = draw(3) ? own_.below(200) : 0; looks > 0 && done == 0; --looks) {
    expect(unisono_plan_test(planned.plan, &done), entry, "plan_test");
    idle();
  }
  if (done == 0) expect(unisono_plan_wait(planned.plan), entry, "plan_wait");
  planned.active_entry = -1;
  check(entry, *planned.memory);
}

void RankRun::check(int entry, CallMemory& memory) {
  if (const std::string wrong = memory.difference(); !wrong.empty()) fail(entry, wrong);
  if (draw(2)) memory.scribble();  // ranks that read there later would get that
}

// Its memory is looked at once more in the end, or goes to other uses at once.
void RankRun::retire(int entry, std::shared_ptr<CallMemory> memory) {
  if (draw(2)) return;
  memory->scribble();
  left_.push_back({entry, std::move(memory)});
}

void RankRun::look_back() const {
  for (const Left& left : left_) {
    const std::string wrong = left.memory->difference_from_scribble();
    if (!wrong.empty()) fail(left.entry, wrong);
  }
}

void RankRun::end() {
  for (auto& [call, planned] : planned_) {
    expect(unisono_plan_free(planned.plan), -1, "plan_free");
  }
  if (program_.ends_together) expect(unisono_barrier(world_), -1, "the last barrier");
  for (unisono_comm_t comm : derived_) {
    if (comm != nullptr && draw(2)) expect(unisono_comm_free(comm), -1, "comm_free");
  }
}

void RankRun::expect(int error, int entry, const char* what) const {
  if (error == UNISONO_OK) return;
  fail(entry, fmt::format("{}: {}, {}", what, unisono_error_name(error), unisono_last_error()));
}

void RankRun::fail(int entry, const std::string& why) const {
  throw std::runtime_error(fmt::format(
      "rank {}: {}\n  in {}", rank_, why,
      entry < 0
          ? "the end"
          : fmt::format("{}: {}", entry,
                        describe(program_, program_.entries[static_cast<std::size_t>(entry)]))));
}

}  // namespace unisono::test::programs
