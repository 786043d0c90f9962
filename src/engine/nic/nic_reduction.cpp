// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_reduction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "algorithm/pattern/blocks.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::engine {

using base::Code;
using base::Error;
using base::Status;

Status NicReduction::start(const plan::NicCall& call, const void* input, void* output) {
  UNISONO_CHECK(!ports_.nodes().empty(), "NicReduction::start without a tree");
  call_ = call;
  output_ = output;
  repeats_ = false;
  const nic::Contribution own = {input, call_.offset, call_.gives};
  if (ranks_ != nullptr) {
    UNISONO_TRY(post_sum(own));
  } else {
    UNISONO_TRY(vector_.post(call_.combine, cut(call_), own, giving()));
  }
  repeats_ = call_.asks && leads_ && vector_.queries();
  back_off_.restart();  // it begins when the host's last rank has come and asked
  return base::success();
}

// A post reuses the program's memory for an operation a depth or more before. It comes when all
// ranks of this host have contributed to the later one. A rank contributes only when the ports have
// room, so it has taken the earlier result. So no rank still reads what a post overwrites, however
// late it looks.
Status NicReduction::post_sum(const nic::Contribution& own) {
  if (!ranks_->give({call_.combine, call_.bytes, own})) {
    vector_.follow(cut(call_));
    return base::success();
  }
  mismatching_place_ = ranks_->mismatching_place();
  if (mismatching_place_) {
    return Error{Code::mismatch,
                 fmt::format("NIC path: the contributions of this host's ranks to operation {} "
                             "differ in length or operator: they called different things",
                             ports_.next())};
  }
  const auto sum = ranks_->combine(call_.kernel, call_.count);
  return vector_.post(call_.combine, cut(call_), {sum.data(), 0, call_.bytes}, giving());
}

nic::TreeCut NicReduction::cut(const plan::NicCall& call) const {
  nic::TreeCut cut;
  cut.pieces = 1 << plan::splits_of(call, splits_);
  const auto elements = static_cast<std::int64_t>(call.bytes / call.element_bytes);
  const algorithm::pattern::Blocks blocks(elements, cut.pieces);
  for (int piece = 0; piece < cut.pieces; ++piece) {
    const std::int64_t end = blocks.offset(piece) + blocks.count(piece);
    cut.bounds[static_cast<std::size_t>(piece) + 1] =
        static_cast<std::size_t>(end) * call.element_bytes;
  }
  return cut;
}

base::Result<bool> NicReduction::poll() {
  if (vector_.is_done()) return true;
  if (!vector_.is_broken()) {
    if (repeats_ && is_host_complete() && back_off_.ends(base::now_ns())) {
      UNISONO_TRY(vector_.query());
    }
    return false;
  }
  return Error{Code::mismatch, fmt::format("NIC path: the contributions to operation {} differ in "
                                           "length or operator: the ranks called different things",
                                           vector_.number())};
}

std::int64_t NicReduction::question_in_ns(std::int64_t now_ns) const {
  const std::int64_t due_ns = back_off_.due_ns();
  if (due_ns == std::numeric_limits<std::int64_t>::max()) return due_ns;
  return std::max<std::int64_t>(due_ns - now_ns, 0);
}

Status NicReduction::take() {
  if (vector_.take(call_.takes ? output_ : nullptr)) return base::success();
  return Error{Code::mismatch, fmt::format("NIC path: operation {} has no result of {} bytes: the "
                                           "ranks called different things",
                                           vector_.number(), call_.bytes)};
}

// Either the ranks of a host differ from each other, or all of them differ from another host.
std::optional<NicRank> NicReduction::mismatching_rank() const {
  if (mismatching_place_) return NicRank{host_, *mismatching_place_};
  const int host = vector_.mismatching_rank();
  if (host < 0) return std::nullopt;
  return NicRank{host, 0};
}

std::string NicReduction::describe() const {
  std::string text = fmt::format("operation {} on host {} ", vector_.number(), host_);
  if (!is_host_complete()) return text + "waits for other ranks of this host";
  std::set<int> below;
  std::set<int> above;
  bool is_unasked = false;
  for (std::size_t tree = 0; tree < ports_.nodes().size(); ++tree) {
    const nic::Node& node = ports_.nodes()[tree];
    if ((vector_.lacking() >> tree & 1) == 0) continue;
    const bool given = (vector_.given() >> tree & 1) != 0;
    if (given && node.down_source >= 0) above.insert(node.down_source);
    if (!given) below.insert(node.children.begin(), node.children.end());
    is_unasked |= !given && node.children.empty();
  }
  if (is_unasked && below.empty()) return text + "waits for the root's question";
  if (below.empty() && above.empty()) return text + "has its result";
  text += "lacks";
  if (!below.empty()) text += fmt::format(" a contribution of hosts {}", fmt::join(below, " "));
  if (!below.empty() && !above.empty()) text += " and";
  if (!above.empty()) text += fmt::format(" the result of host {}", fmt::join(above, " "));
  return text;
}

}  // namespace unisono::engine
