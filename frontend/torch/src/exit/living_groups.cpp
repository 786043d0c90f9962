// SPDX-License-Identifier: BSD-3-Clause
#include "exit/living_groups.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "group_backend.hpp"
#include "signals.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;
using GroupPtr = c10::intrusive_ptr<GroupBackend>;

// Between two checks for pending operations.
constexpr std::chrono::milliseconds kPause{1};

using WeakGroups = std::vector<c10::weak_intrusive_ptr<GroupBackend>>;

struct Registry {
  std::mutex mutex;
  WeakGroups groups;
};

// Lives until the very end of the process: groups may be destroyed late.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

std::vector<GroupPtr> living() {
  std::vector<GroupPtr> all;
  const std::lock_guard lock(registry().mutex);
  for (const auto& group : registry().groups) {
    if (GroupPtr strong = group.lock(); strong && strong->is_own()) all.push_back(strong);
  }
  return all;
}

bool is_any_busy(const std::vector<GroupPtr>& groups) {
  return std::ranges::any_of(groups, [](const GroupPtr& each) { return !each->is_idle(); });
}

// Ctrl-C ends the grace.
void wait_until_idle(const std::vector<GroupPtr>& groups, std::chrono::milliseconds grace) {
  const Clock::time_point limit = Clock::now() + grace;
  while (is_any_busy(groups) && Clock::now() < limit && !exception_of_signals()) {
    std::this_thread::sleep_for(kPause);
  }
}

std::string line_of(const GroupBackend& group, const std::vector<std::string>& names) {
  std::string text = "unisono: rank " + std::to_string(group.getRank()) + " of " +
                     std::to_string(group.getSize()) +
                     " ends without destroy_process_group() while ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > 1 ? " are" : " is") + " under way; cancelled for all ranks";
}

}  // namespace

void remember(const GroupPtr& group) {
  const std::lock_guard lock(registry().mutex);
  registry().groups.emplace_back(group);
}

void forget_ended() {
  WeakGroups ended;  // destroyed without the mutex
  const std::lock_guard lock(registry().mutex);
  WeakGroups& all = registry().groups;
  const auto lives = [](const auto& each) { return !each.expired(); };
  const auto first = std::partition(all.begin(), all.end(), lives);
  std::move(first, all.end(), std::back_inserter(ended));
  all.erase(first, all.end());
}

std::vector<std::string> end_living_groups(std::chrono::milliseconds grace) {
  note_end_of_interpreter();
  const std::vector<GroupPtr> groups = living();
  wait_until_idle(groups, grace);
  // From here on, groups refuse new operations. The ones that began before are found below.
  for (const GroupPtr& group : groups) group->stop_accepting();
  std::vector<std::string> lines;
  // All are aborted before the first is waited for: a thread may use several.
  for (const GroupPtr& group : groups) {
    const std::vector<std::string> names = group->names_under_way();
    if (names.empty()) continue;
    lines.push_back(line_of(*group, names));
    group->abort();
  }
  for (const GroupPtr& group : groups) group->shutdown();
  return lines;
}

}  // namespace unisono::pytorch
