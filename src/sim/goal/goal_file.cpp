// SPDX-License-Identifier: BSD-3-Clause
#include "sim/goal/goal_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/text.hpp"

namespace unisono::sim {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20, kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostNs = 1'000'000'000'000;  // a quarter of an hour
constexpr std::int64_t kMostTag = 1'000'000'000;

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

// Source, target and tag of messages.
using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

struct End {
  int rank = 0;
  std::size_t step = 0;
  int line = 0;
};

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
    UNISONO_TRY(match());
    std::vector<Trace> result;
    for (auto& [rank, trace] : traces_) result.push_back(std::move(trace));
    UNISONO_TRY(ends(result));
    return result;
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
    const auto number = whole(next_word(rest), kMostRanks);
    if (word == "num_ranks" && number && *number > 0 && !ranks_) {
      ranks_ = number;
      return finish(rest);
    }
    if (word != "rank" || !ranks_ || !number || *number >= *ranks_ || next_word(rest) != "{") {
      return fail(ranks_ ? "expected 'rank R {' with a rank below num_ranks"
                         : "expected num_ranks with the number of ranks");
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
    TraceStep step;
    std::string_view amount = next_word(rest);
    if (word == "calc") {
      const auto time = whole(amount, kMostNs);
      if (!time) return fail("expected nanoseconds after calc");
      step.kind = StepKind::work;
      step.work = to_time(static_cast<double>(*time));
      UNISONO_ASSIGN(const std::int64_t tag, options(rest));
      (void)tag;
      traces_[*rank_].push_back(step);
      return base::success();
    }
    if (word != "send" && word != "recv") {
      return fail(fmt::format("expected send, recv, calc, requires or }}, found '{:.40}'", word));
    }
    const bool sends = word == "send";
    if (!amount.empty() && amount.back() == 'b') amount.remove_suffix(1);
    const auto bytes = whole(amount, kMostBytes);
    if (!bytes || next_word(rest) != (sends ? "to" : "from")) {
      return fail(fmt::format("expected '{} BYTESb {} RANK'", word, sends ? "to" : "from"));
    }
    const auto peer = whole(next_word(rest), *ranks_ - 1);
    if (!peer || *peer == *rank_) return fail("expected another rank");
    UNISONO_ASSIGN(const std::int64_t tag, options(rest));
    step.kind = sends ? StepKind::send : StepKind::wait;
    step.bytes = *bytes;
    step.peer = static_cast<int>(*peer);
    const End end{static_cast<int>(*rank_), traces_[*rank_].size(), line_};
    if (sends) {
      sends_[{*rank_, *peer, tag}].push_back(end);
    } else {
      receptions_[{*peer, *rank_, tag}].push_back(end);
      step.slot = slots_[*rank_]++;
    }
    traces_[*rank_].push_back(step);
    return base::success();
  }

  // tag T, cpu 0, nic 0; the tag.
  base::Result<std::int64_t> options(std::string_view rest) const {
    std::int64_t tag = 0;
    for (std::string_view name = next_word(rest); !name.empty(); name = next_word(rest)) {
      const auto value = whole(next_word(rest), kMostTag);
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

  base::Status match() {
    for (const auto& [channel, receptions] : receptions_) {
      const auto sent = sends_.find(channel);
      const std::size_t count = sent == sends_.end() ? 0 : sent->second.size();
      if (count < receptions.size()) {
        return fail(receptions[count].line, "expected a send to this reception");
      }
    }
    for (const auto& [channel, sent] : sends_) {
      const auto received = receptions_.find(channel);
      const std::size_t count = received == receptions_.end() ? 0 : received->second.size();
      if (count < sent.size()) return fail(sent[count].line, "expected a reception of this send");
      for (std::size_t i = 0; i < count; ++i) {
        const End& to = received->second[i];
        traces_[sent[i].rank][sent[i].step].slot = traces_[to.rank][to.step].slot;
      }
    }
    return base::success();
  }

  // Runs all ranks without times.
  base::Status ends(const std::vector<Trace>& traces) const {
    std::vector<std::size_t> next(traces.size());
    std::vector<std::vector<bool>> arrived(traces.size());
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      arrived[rank].resize(traces[rank].size());
    }
    std::vector<std::int32_t> awaited(traces.size(), -1);
    std::vector<std::size_t> ready(traces.size());
    for (std::size_t rank = 0; rank < ready.size(); ++rank) ready[rank] = rank;
    std::size_t ended = 0;
    while (!ready.empty()) {
      const std::size_t rank = ready.back();
      ready.pop_back();
      awaited[rank] = -1;
      for (; next[rank] < traces[rank].size(); ++next[rank]) {
        const TraceStep& step = traces[rank][next[rank]];
        const auto slot = static_cast<std::size_t>(step.slot);
        const auto peer = static_cast<std::size_t>(step.peer);
        if (step.kind == StepKind::wait && !arrived[rank][slot]) {
          awaited[rank] = step.slot;
          break;
        }
        if (step.kind != StepKind::send) continue;
        arrived[peer][slot] = true;
        if (awaited[peer] != step.slot) continue;
        awaited[peer] = -1;
        ready.push_back(peer);
      }
      if (next[rank] == traces[rank].size()) ++ended;
    }
    if (ended == traces.size()) return base::success();
    return fail("expected ranks that end; some wait for each other");
  }

  std::string_view file_;
  int line_ = 0;
  std::optional<std::int64_t> ranks_, rank_;
  std::map<std::int64_t, Trace> traces_;
  std::map<std::int64_t, std::int32_t> slots_;
  std::map<std::string, std::size_t> labels_;  // of the rank being read
  std::map<Channel, std::vector<End>> sends_, receptions_;
};

}  // namespace

base::Result<std::vector<Trace>> parse_goal(std::string_view text, std::string_view file) {
  return GoalReader(file).read(text);
}

}  // namespace unisono::sim
