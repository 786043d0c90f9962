// SPDX-License-Identifier: BSD-3-Clause
// How all ranks of a job get the machine file of its first rank. That rank says how long the file
// is. The first rank of each host makes room for it, at the same place in every host's memory, and
// confirms that. Then the file's text goes there.
#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "job/start/exchanges.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "model/own_machine.hpp"

namespace unisono::job {
namespace {

constexpr int kSharer = 0;
// JobHeader::machine_size
constexpr std::uint64_t kDefault = 1;
constexpr std::uint64_t kOfNoBytes = 2;

std::uint64_t word_of(Vote vote) { return static_cast<std::uint64_t>(vote); }

// The end of each step of the exchange is a word, which waiting ranks of this host read.
class MachineExchange {
 public:
  MachineExchange(StartUp& start, memory::JobMemory& memory)
      : start_(start),
        ranks_(start.ranks()),
        header_(start.header()),
        network_(start.network()),
        memory_(memory) {}

  base::Status share(const std::string& text) {
    if (text.empty()) {
      set_everywhere(header_.machine_size, kDefault, {});
      return base::success();
    }
    UNISONO_TRY(make_room(text.size()));
    std::memcpy(room(), text.data(), text.size());
    set_everywhere(header_.machine_size, kOfNoBytes + text.size(), {});
    UNISONO_TRY(await_rooms());
    set_everywhere(header_.machine_is_there, word_of(Vote::yes), {room(), text.size()});
    return base::success();
  }

  // The text, or nothing for the default machine.
  base::Result<std::string_view> take() {
    UNISONO_TRY(await(header_.machine_size));
    const std::uint64_t size = header_.machine_size.load(std::memory_order_acquire);
    if (size == kDefault) return std::string_view();
    const std::size_t bytes = size - kOfNoBytes;
    if (ranks_.is_first_here() && ranks_.own() != kSharer) {
      UNISONO_TRY(make_room(bytes));
      confirm_room();
    }
    UNISONO_TRY(await(header_.machine_is_there));
    return std::string_view(reinterpret_cast<const char*>(room()), bytes);
  }

 private:
  std::byte* room() const {
    return memory_.at(header_.machine_offset.load(std::memory_order_acquire));
  }

  base::Status make_room(std::size_t bytes) {
    const auto most = static_cast<std::int64_t>(bytes);
    UNISONO_ASSIGN(const std::int64_t offset, memory_.allocate(most));
    UNISONO_TRY(memory_.commit(offset, most, "the machine file"));
    header_.machine_offset.store(offset, std::memory_order_release);
    return base::success();
  }

  void confirm_room() {
    auto& word = ranks_.entry(ranks_.own()).has_machine_room;
    network_->put({.target = kSharer,
                   .flag = reinterpret_cast<std::uint64_t*>(&word),
                   .flag_value = word_of(Vote::yes)});
  }

  base::Status await_rooms() {
    const auto all_have = [this] {
      for (const int first : ranks_.hosts().firsts()) {
        if (first == kSharer || ranks_.entry(first).has_machine_room.load() != 0) continue;
        network_->awaits(first);
        return false;
      }
      return true;
    };
    return start_.await(all_have, [this] {
      return "the hosts of these have made no room for the machine file: " +
             ranks_.names_of_late(ranks_.hosts().firsts(), [this](int first) {
               return first == kSharer || ranks_.entry(first).has_machine_room.load() != 0;
             });
    });
  }

  base::Status await(const std::atomic<std::uint64_t>& word) {
    const bool is_remote = ranks_.is_first_here() && ranks_.own() != kSharer;
    const auto is_set = [this, &word, is_remote] {
      if (is_remote) network_->awaits(kSharer);
      return word.load(std::memory_order_acquire) != 0;
    };
    return start_.await(is_set, [] { return "rank 0 did not share its machine file"; });
  }

  // With data that stand at the same place of each host's memory.
  void set_everywhere(std::atomic<std::uint64_t>& word, std::uint64_t value,
                      std::span<std::byte> data) {
    word.store(value, std::memory_order_release);
    for (const int first : ranks_.hosts().firsts_elsewhere()) {
      network_->put({.target = first,
                     .source = data.data(),
                     .place = data.data(),
                     .bytes = data.size(),
                     .flag = reinterpret_cast<std::uint64_t*>(&word),
                     .flag_value = value});
    }
  }

  StartUp& start_;
  const Ranks& ranks_;
  JobHeader& header_;
  network::Network* const network_;  // null in a job of one host
  memory::JobMemory& memory_;
};

std::shared_ptr<const model::Machine> the_default() {
  return {std::shared_ptr<void>(), &model::default_machine()};
}

}  // namespace

base::Result<std::string> machine_to_share(const StartUp& start) {
  if (start.ranks().own() != kSharer) return std::string();
  UNISONO_ASSIGN(const model::FoundMachine found, model::find_machine(start.settings()));
  if (!found.note.empty()) base::log(base::LogLevel::warn, "select", "{}", found.note);
  if (found.path.empty()) return std::string();
  base::log(base::LogLevel::info, "select", "the library chooses by the machine \"{}\" of {}",
            found.machine.name, found.path);
  return model::machine_text(found.machine);
}

base::Result<std::shared_ptr<const model::Machine>> agree_on_machine(StartUp& start,
                                                                     const bootstrap::JobInfo& info,
                                                                     memory::JobMemory& memory,
                                                                     const std::string& own) {
  if (!info.shares_machine) return the_default();
  MachineExchange exchange(start, memory);
  if (start.ranks().own() == kSharer) UNISONO_TRY(exchange.share(own));
  UNISONO_ASSIGN(const std::string_view text, exchange.take());
  if (text.empty()) return the_default();
  UNISONO_ASSIGN(model::Machine machine, model::parse_machine(text, "rank 0's machine file"));
  base::log(base::LogLevel::debug, "select", "rank {} chooses by the machine \"{}\" of rank 0",
            start.ranks().own(), machine.name);
  return std::shared_ptr<const model::Machine>(
      std::make_shared<model::Machine>(std::move(machine)));
}

}  // namespace unisono::job
