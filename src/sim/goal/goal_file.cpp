// SPDX-License-Identifier: BSD-3-Clause
#include "sim/goal/goal_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "sim/goal/goal_messages.hpp"

namespace unisono::sim {
namespace {

std::string_view next_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<std::int64_t> whole(std::string_view word, std::int64_t most) {
  if (word.empty() || word.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const auto value = base::parse_integer(word);
  return value && *value <= most ? value : std::nullopt;
}

class GoalReader {
 public:
  explicit GoalReader(std::string_view file) : file_(file) {}

  base::Result<std::vector<Trace>> read(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view content = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      content = content.substr(0, content.find("//"));
      UNISONO_TRY(line(content));
    }
    if (rank_) return fail("expected } at the end of the rank");
    if (!ranks_) return fail("expected num_ranks");
    if (static_cast<std::int64_t>(traces_.size()) != *ranks_) {
      return fail(fmt::format("expected all {} ranks, found {}", *ranks_, traces_.size()));
    }
    GoalMessages messages(static_cast<int>(*ranks_));
    for (const auto& [rank, operations] : traces_) {
      for (const GoalOperation& each : operations) messages.add(static_cast<int>(rank), each);
    }
    return messages.traces([this](std::int64_t line, std::string_view what) {
      return fail(static_cast<int>(line == 0 ? line_ : line), what);
    });
  }

 private:
  base::Error fail(std::string_view what) const { return fail(line_, what); }
  base::Error fail(int line, std::string_view what) const {
    return {base::Code::argument, fmt::format("{}:{}: {}", file_, line, what)};
  }

  base::Status line(std::string_view rest) {
    const std::string_view word = next_word(rest);
    if (word.empty()) return base::success();
    if (!rank_) return between_ranks(word, rest);
    if (word == "}") {
      rank_.reset();
      labels_.clear();
      return finish(rest);
    }
    if (word.back() == ':') return labelled(word.substr(0, word.size() - 1), rest);
    std::string_view after = rest;
    const std::string_view relation = next_word(after);
    if (relation == "requires" || relation == "irequires") return dependency(word, after);
    return operation(word, rest);
  }

  base::Status between_ranks(std::string_view word, std::string_view rest) {
    const auto number = whole(next_word(rest), kMostGoalRanks);
    if (word == "num_ranks" && number && *number > 0 && !ranks_) {
      ranks_ = number;
      return finish(rest);
    }
    if (word != "rank" || !ranks_ || !number || *number >= *ranks_ || next_word(rest) != "{") {
      return fail(ranks_ ? fmt::format("expected 'rank R {{' with R from 0 to {}", *ranks_ - 1)
                         : fmt::format("expected num_ranks with the number of ranks, 1 to {}",
                                       kMostGoalRanks));
    }
    if (!traces_.try_emplace(*number).second) {
      return fail(fmt::format("expected rank {} once", *number));
    }
    rank_ = number;
    return finish(rest);
  }

  base::Status labelled(std::string_view label, std::string_view rest) {
    const std::size_t place = traces_[*rank_].size();
    if (label.empty() || !labels_.emplace(std::string(label), place).second) {
      return fail(fmt::format("expected a label that is new, found '{:.40}'", label));
    }
    return operation(next_word(rest), rest);
  }

  base::Status dependency(std::string_view later, std::string_view rest) {
    const auto second = labels_.find(std::string(later));
    const auto first = labels_.find(std::string(next_word(rest)));
    if (first == labels_.end() || second == labels_.end()) {
      return fail("expected labels of operations above");
    }
    if (first->second >= second->second) {
      return fail("expected operations in the order of their dependencies");
    }
    return finish(rest);
  }

  base::Status operation(std::string_view word, std::string_view rest) {
    GoalOperation made{.place = line_};
    std::string_view amount = next_word(rest);
    if (word == "calc") {
      const auto time = whole(amount, kMostGoalNs);
      if (!time) return fail("expected nanoseconds after calc");
      made.amount = *time;
      UNISONO_ASSIGN(made.tag, options(rest));
      traces_[*rank_].push_back(made);
      return base::success();
    }
    if (word != "send" && word != "recv") {
      return fail(fmt::format("expected send, recv, calc, requires or }}, found '{:.40}'", word));
    }
    const bool sends = word == "send";
    if (!amount.empty() && amount.back() == 'b') amount.remove_suffix(1);
    const auto bytes = whole(amount, kMostGoalBytes);
    if (!bytes || next_word(rest) != (sends ? "to" : "from")) {
      return fail(fmt::format("expected '{} BYTESb {} RANK'", word, sends ? "to" : "from"));
    }
    const std::string_view rank = next_word(rest);
    const auto peer = whole(rank, *ranks_ - 1);
    if (!peer) {
      return fail(fmt::format("expected a rank from 0 to {}, found '{:.40}'", *ranks_ - 1, rank));
    }
    if (*peer == *rank_) return fail(fmt::format("expected another rank than {}", *rank_));
    UNISONO_ASSIGN(made.tag, options(rest));
    made.kind = sends ? StepKind::send : StepKind::wait;
    made.amount = *bytes;
    made.peer = static_cast<int>(*peer);
    traces_[*rank_].push_back(made);
    return base::success();
  }

  // tag T, cpu 0, nic 0; the tag.
  base::Result<std::int64_t> options(std::string_view rest) const {
    std::int64_t tag = 0;
    for (std::string_view name = next_word(rest); !name.empty(); name = next_word(rest)) {
      const auto value = whole(next_word(rest), kMostGoalTag);
      if (name == "tag" && value) {
        tag = *value;
      } else if ((name != "cpu" && name != "nic") || value != 0) {
        return fail(fmt::format("expected tag T, cpu 0 or nic 0, found '{:.40}'", name));
      }
    }
    return tag;
  }

  base::Status finish(std::string_view rest) const {
    const std::string_view more = next_word(rest);
    if (more.empty()) return base::success();
    return fail(fmt::format("expected the end of the line, found '{:.40}'", more));
  }

  std::string_view file_;
  int line_ = 0;
  std::optional<std::int64_t> ranks_, rank_;
  std::map<std::int64_t, std::vector<GoalOperation>> traces_;
  std::map<std::string, std::size_t> labels_;  // of the rank being read
};

}  // namespace

base::Result<std::vector<Trace>> parse_goal(std::string_view text, std::string_view file) {
  return GoalReader(file).read(text);
}

}  // namespace unisono::sim
