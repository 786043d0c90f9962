// SPDX-License-Identifier: BSD-3-Clause
// Profile: the kinds of calls that a rank has made, each with its counters. It holds a limited
// number of kinds; calls of further kinds are counted together. The rank's file is written when a
// job of the rank ends, and at exit(). Meanwhile a thread of the process saves it now and then, so
// that a rank that is killed leaves what it has counted. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/series.hpp"

namespace unisono::profile {

// A kind of call, in words.
struct Kind {
  std::string collective;
  std::string op;                // empty: it combines nothing
  std::string type;              // empty: it moves nothing
  std::int64_t bytes_class = 0;  // size_class() of its bytes
  int ranks = 0;
  int hosts = 1;
  std::string algorithm;  // with its parameters; empty: not Unisono's
  std::string engine;
  std::string reason;  // why another library did it; empty: Unisono did it

  bool operator==(const Kind&) const = default;
};
// The largest power of two that is not more than `bytes`; 0 for 0.
std::int64_t size_class(std::int64_t bytes);

// How a call is made: it returns when it is done, or it is started and completed later. The time of
// a started one includes what its caller does meanwhile.
enum class Form : std::uint8_t { blocking, started };
inline constexpr int kFormCount = 2;

struct Row {
  Kind kind;
  std::array<Series, kFormCount> series;

  Series& of(Form form) { return series[static_cast<std::size_t>(form)]; }
};

// The rank that a file describes.
struct Origin {
  int rank = 0;
  int ranks = 1;
  std::string job;      // a name that the files of a job share
  std::string machine;  // the machine file that predicted; empty: not known yet
};

class Profile {
 public:
  // Above the number of kinds in any program that we have seen. It bounds the memory to 2 MiB.
  static constexpr std::size_t kMostKinds = 512;
  static constexpr std::size_t kMostLearned = 256;

  // `file` with the rank behind it is begun at once. A folder that does not exist, or may not be
  // written to, is logged as a warning; the rank goes on without a file.
  Profile(const std::string& file, Origin origin);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // The row of a kind, which lives as long as the profile. All kinds beyond the limit share one.
  Row& row(const Kind& kind);
  // A choice that measured times have changed, in a sentence. The first kMostLearned are kept.
  void add_learned(const std::string& text);
  // Writes the file. Rows may be in use.
  void write();
  // Writes the file of a rank that has not ended, if calls have been counted since the last time.
  void save();
  // A job of the rank begins, or ends and writes. At exit(), the file is written if one has not
  // ended.
  void begin_job() { ++jobs_; }
  void end_job() {
    write();
    --jobs_;
  }
  bool has_job() const { return jobs_ != 0; }
  // The name of the file.
  const std::string& path() const { return path_; }
  const Origin& origin() const { return origin_; }
  // Unless one is known.
  void set_machine(const std::string& name);

 private:
  Row& make_row(const Kind& kind);
  // The file without its last line, which depends on whether the rank has ended.
  struct Content {
    std::string text;
    std::size_t rows = 0;
    std::vector<std::string> learned;

    bool operator==(const Content&) const = default;
  };
  Content content();
  // With file_mutex_. Empty: it is written.
  std::string replace_file(Content content, bool has_ended);

  struct Hash {
    std::size_t operator()(const Kind& kind) const;
  };

  Origin origin_;
  const std::string path_;
  const int process_;  // a child of fork() does not write
  std::mutex mutex_;
  std::unordered_map<Kind, Row*, Hash> by_kind_;
  std::array<std::unique_ptr<Row>, kMostKinds + 1> rows_;  // the last one: others
  std::size_t count_ = 0;
  std::vector<std::string> learned_;
  std::mutex file_mutex_;
  Content written_;  // with file_mutex_
  bool is_writable_ = false;
  std::atomic<int> jobs_{0};
};

// The profile of a rank that enters a job; it stays until the process ends. The later jobs of a
// process with the same file share the profile of the first one. If the ranks of a job are threads,
// each has its own.
Profile& join_profile(const std::string& file, const Origin& origin);
// The first one of this process with that file. Null: there is none yet.
Profile* find_profile(const std::string& file);
// Saves all of this process, before an end of the process that is not exit(). It waits for a second
// at most. Also for signal handlers.
void save_profiles();

// The profile of a job, which is written at its end.
class ProfileOfJob {
 public:
  ProfileOfJob() = default;
  ~ProfileOfJob() {
    if (profile_ != nullptr) profile_->end_job();
  }
  ProfileOfJob(const ProfileOfJob&) = delete;
  ProfileOfJob& operator=(const ProfileOfJob&) = delete;

  void set(Profile& profile) {
    profile_ = &profile;
    profile.begin_job();
  }
  Profile* get() const { return profile_; }  // null: calls are not recorded

 private:
  Profile* profile_ = nullptr;
};

// Where the calls of a plan are counted.
struct Recording {
  Row* row = nullptr;  // null: they are not
  std::int64_t bytes = 0;
  std::int64_t predicted_ns = -1;
};

}  // namespace unisono::profile
