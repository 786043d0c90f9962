// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/block_list.hpp"

#include <fmt/format.h>

#include "arguments/number_list.hpp"
#include "schedule/text.hpp"

namespace unisono::tools {
namespace {

// One list of as many counts as there are ranks.
base::Status add_counts(std::string_view text, int ranks, std::vector<std::int64_t>& counts) {
  const auto list = parse_number_list(text, Step::one, 0, schedule::kMaxTextCount);
  if (!list) return base::argument_error("--blocks: " + list.error().message);
  if (std::cmp_not_equal(list->size(), ranks)) {
    return base::argument_error(
        fmt::format("--blocks: '{}' are {} counts; write one for each of the {} ranks", text,
                    list->size(), ranks));
  }
  counts.insert(counts.end(), list->begin(), list->end());
  return base::success();
}

base::Result<std::vector<bool>> marks_of(int ranks, std::string_view text) {
  if (text.empty()) return std::vector<bool>();
  const auto list = parse_number_list(text, Step::one, 0, ranks - 1);
  if (!list) return base::argument_error("--receivers: " + list.error().message);
  std::vector<bool> marks(static_cast<std::size_t>(ranks));
  for (const std::int64_t rank : *list) marks[static_cast<std::size_t>(rank)] = true;
  return marks;
}

}  // namespace

base::Result<schedule::Blocks> parse_blocks(schedule::Collective collective, int ranks,
                                            std::string_view text, std::string_view receivers) {
  const std::string_view name = schedule::collective_name(collective);
  if (!schedule::has_blocks(collective)) {
    return base::argument_error(fmt::format("--blocks: {} has no blocks: use --count", name));
  }
  if (!receivers.empty() && collective != schedule::Collective::many_to_many) {
    return base::argument_error(
        fmt::format("--receivers: {} has none; they are for many_to_many", name));
  }
  std::vector<std::int64_t> counts;
  if (!schedule::has_pairs(collective)) {
    UNISONO_TRY(add_counts(text, ranks, counts));
    UNISONO_ASSIGN(std::vector<bool> marks, marks_of(ranks, receivers));
    return schedule::Blocks::of_ranks(counts, std::move(marks));
  }
  int senders = 0;
  for (std::string_view rest = text;;) {
    const std::size_t slash = rest.find('/');
    UNISONO_TRY(add_counts(rest.substr(0, slash), ranks, counts));
    ++senders;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (senders != ranks) {
    return base::argument_error(
        fmt::format("--blocks: {} lists; write one for each of the {} senders, with / in "
                    "between, as in 1,2/3,4",
                    senders, ranks));
  }
  return schedule::Blocks::of_pairs(ranks, counts);
}

}  // namespace unisono::tools
