// SPDX-License-Identifier: BSD-3-Clause
#include "profile/profile.hpp"

#include <fmt/format.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "base/thread.hpp"
#include "profile/text.hpp"

namespace unisono::profile {
namespace {

struct Known {
  std::string file;
  std::unique_ptr<Profile> profile;
};

// The profiles of this process, in the order in which its ranks have joined their jobs; and the
// thread that saves them.
struct Registry {
  std::mutex mutex;
  std::vector<Known> all;
  std::atomic<int> process{0};  // that has started the thread: a child of fork() is without
  std::atomic<bool> ends{false};
  sem_t wake, saved;          // the thread has something to do; it has done what was asked
  std::atomic<int> asked{0};  // of how many callers
  std::unique_ptr<std::thread> saver;
  std::atomic<bool> has_saver{false};                    // it runs
  std::vector<std::unique_ptr<std::thread>> of_parents;  // not in this process
};

// The first pauses are short, for the sake of short jobs. A rank that is killed loses at most its
// last second, and about the second half of its time.
constexpr std::chrono::milliseconds kFirstPause{8}, kMostPause{1000};

void wait_for_post(sem_t& semaphore, std::chrono::milliseconds most) {
  constexpr long kNsPerMs = 1'000'000, kMsPerSecond = 1'000;
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += most.count() / kMsPerSecond;
  end.tv_nsec += most.count() % kMsPerSecond * kNsPerMs;
  if (end.tv_nsec >= kMsPerSecond * kNsPerMs) {
    ++end.tv_sec;
    end.tv_nsec -= kMsPerSecond * kNsPerMs;
  }
  while (sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end) != 0 && errno == EINTR) {
  }
}

void save_all(Registry& known) {
  std::vector<Profile*> all;
  {
    const std::lock_guard lock(known.mutex);
    for (const Known& each : known.all) all.push_back(each.profile.get());
  }
  for (Profile* const each : all) each->save();
}

void save_now_and_then(Registry& known) {
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kMostPause)) {
    wait_for_post(known.wake, pause);
    if (known.ends) return;
    const int asked = known.asked.exchange(0);
    save_all(known);
    for (int i = 0; i < asked; ++i) sem_post(&known.saved);
  }
}

// At exit(). In a child of fork() a thread of the parent may hold the mutex for ever.
void end_registry(Registry& known) {
  if (known.process != getpid()) return;
  known.ends = true;
  sem_post(&known.wake);
  if (known.saver != nullptr) known.saver->join();
  for (const Known& each : known.all) {
    if (each.profile->has_job()) each.profile->write();
  }
}

// Null: nothing has asked for a profile. For signal handlers, which must not make one.
std::atomic<Registry*> registry_in_use{nullptr};

Registry& registry() {
  // Never destroyed: in a child of fork() its thread is not there to be joined.
  static Registry* const known = [] {
    auto* const made = new Registry;
    sem_init(&made->wake, 0, 0);
    sem_init(&made->saved, 0, 0);
    std::atexit([] { end_registry(registry()); });
    registry_in_use = made;
    return made;
  }();
  return *known;
}

// With the mutex.
void start_saver(Registry& known) {
  if (known.process == getpid()) return;
  known.process = getpid();
  // In a child of fork() the parent's thread can be neither joined nor given up.
  if (known.saver != nullptr) known.of_parents.push_back(std::move(known.saver));
  auto started = base::start_thread("unisono-profile", [&known] { save_now_and_then(known); });
  if (started) {
    known.saver = std::make_unique<std::thread>(std::move(*started));
  } else {
    base::log(base::LogLevel::warn, "profile",
              "no thread saves the profile, so a rank that is killed leaves none: {}",
              started.error().message);
  }
  known.has_saver = started.ok();
}

// The program may change its folder before the file is written.
std::string path_of(const std::string& file, int rank) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error);
  return fmt::format("{}.{}", error ? file : path.string(), rank);
}

std::string own_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

// Empty: it is written.
std::string write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return base::system_error(path, errno).message;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed) return "";
  return base::system_error(path, is_written ? errno : why).message;
}

// Beside the file, for its next content. Its name begins with a dot, so that `p.*` leaves it out.
std::string next_path(const std::string& path) {
  const std::filesystem::path of_file(path);
  return of_file.parent_path() / ("." + of_file.filename().string() + ".next");
}

}  // namespace

std::int64_t size_class(std::int64_t bytes) {
  return bytes <= 0 ? 0
                    : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
}

// A rank that is killed leaves the first line, and a file of an earlier job is not taken for its.
Profile::Profile(const std::string& file, Origin origin)
    : origin_(std::move(origin)), path_(path_of(file, origin_.rank)), process_(getpid()) {
  const std::string why = write_file(path_, first_line(origin_, own_host(), process_));
  is_writable_ = why.empty();
  if (!is_writable_) {
    base::log(base::LogLevel::warn, "profile", "rank {} writes no profile: {}", origin_.rank, why);
  }
}

std::size_t Profile::Hash::operator()(const Kind& kind) const {
  std::size_t hash = static_cast<std::size_t>(kind.bytes_class);
  const auto mix = [&hash](std::size_t more) { hash = (hash ^ more) * 0x9e3779b97f4a7c15U; };
  for (const std::string* const text :
       {&kind.collective, &kind.op, &kind.type, &kind.algorithm, &kind.engine, &kind.reason}) {
    mix(std::hash<std::string_view>()(*text));
  }
  mix(static_cast<std::size_t>(kind.ranks));
  mix(static_cast<std::size_t>(kind.hosts));
  return hash;
}

Row& Profile::row(const Kind& kind) {
  const std::lock_guard lock(mutex_);
  const auto found = by_kind_.find(kind);
  if (found != by_kind_.end()) return *found->second;
  if (count_ == kMostKinds) {
    std::unique_ptr<Row>& others = rows_[kMostKinds];
    if (others == nullptr) {
      others = std::make_unique<Row>();
      others->kind.collective = "others";
    }
    return *others;
  }
  Row& made = make_row(kind);
  by_kind_.emplace(kind, &made);
  return made;
}

Row& Profile::make_row(const Kind& kind) {
  auto made = std::make_unique<Row>();
  made->kind = kind;
  rows_[count_] = std::move(made);
  return *rows_[count_++];
}

void Profile::set_machine(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (origin_.machine.empty()) origin_.machine = name;
}

void Profile::add_learned(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (learned_.size() < kMostLearned) learned_.push_back(text);
}

Profile::Content Profile::content() {
  const std::lock_guard lock(mutex_);
  Content content;
  content.text = first_line(origin_, own_host(), process_);
  for (const std::unique_ptr<Row>& row : rows_) {
    if (row != nullptr) content.text += lines_of(*row, content.rows);
  }
  content.learned = learned_;
  return content;
}

// A reader always finds a whole file: the last content or this one. A rank that is killed meanwhile
// leaves one of them.
std::string Profile::replace_file(Content content, bool has_ended) {
  const std::string next = next_path(path_);
  const std::string text = content.text + last_line(content.rows, content.learned, has_ended);
  const std::string why = write_file(next, text);
  if (!why.empty()) return why;
  if (std::rename(next.c_str(), path_.c_str()) != 0) {
    return base::system_error(path_, errno).message;
  }
  written_ = std::move(content);
  return "";
}

void Profile::write() {
  if (!is_writable_ || getpid() != process_) return;
  const std::lock_guard lock(file_mutex_);
  const std::string why = replace_file(content(), true);
  if (!why.empty()) {
    base::log(base::LogLevel::warn, "profile", "rank {} has no whole profile: {}", origin_.rank,
              why);
  }
}

// If it cannot be written, the end of the job says so.
void Profile::save() {
  if (!is_writable_) return;
  const std::lock_guard lock(file_mutex_);
  Content now = content();
  if (now.rows != 0 && now != written_) replace_file(std::move(now), false);
}

// The thread does it, because the caller may have been interrupted anywhere, with any lock.
void save_profiles() {
  constexpr std::chrono::seconds kMost{1};
  Registry* const known = registry_in_use;
  if (known == nullptr || known->process != getpid() || !known->has_saver) return;
  ++known->asked;
  sem_post(&known->wake);
  wait_for_post(known->saved, kMost);
}

Profile* find_profile(const std::string& file) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  for (const Known& each : known.all) {
    if (each.file == file) return each.profile.get();
  }
  return nullptr;
}

Profile& join_profile(const std::string& file, const Origin& origin) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  Profile* of_process = nullptr;
  bool is_of_threads = false;  // this job's ranks are threads of this process
  for (const Known& each : known.all) {
    if (each.file != file) continue;
    const Origin& other = each.profile->origin();
    if (other.job == origin.job && other.rank == origin.rank) return *each.profile;
    is_of_threads |= other.job == origin.job;
    if (of_process == nullptr) of_process = each.profile.get();
  }
  if (of_process != nullptr && !is_of_threads) {
    of_process->set_machine(origin.machine);
    return *of_process;
  }
  known.all.push_back({file, std::make_unique<Profile>(file, origin)});
  start_saver(known);
  return *known.all.back().profile;
}

}  // namespace unisono::profile
