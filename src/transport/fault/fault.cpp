// SPDX-License-Identifier: BSD-3-Clause
#include "transport/fault/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;

// At most this many datagrams are held; beyond it the oldest is sent, due or not.
constexpr std::size_t kMostHeld = 1024;

// "5%", "0.1%" or "0.05".
std::optional<double> parse_share(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (percent) value /= 100;
  if (!(value >= 0 && value <= 1)) return std::nullopt;
  return value;
}

bool set_field(FaultOptions& options, std::string_view name, std::string_view value) {
  for (const auto& [known, field] : {std::pair{"loss", &options.loss},
                                     {"duplicates", &options.duplicates},
                                     {"reorder", &options.reorder}}) {
    if (name != known) continue;
    const auto share = parse_share(value);
    if (share) *field = *share;
    return share.has_value();
  }
  if (name == "delay") {
    const auto time = base::parse_time_ns(value);
    if (time && *time >= 0) options.delay_ns = *time;
    return time && *time >= 0;
  }
  if (name != "seed") return false;
  const auto seed = base::parse_integer(value);
  if (seed && *seed >= 0) options.seed = static_cast<std::uint64_t>(*seed);
  return seed && *seed >= 0;
}

}  // namespace

base::Result<FaultOptions> parse_fault(std::string_view text) {
  FaultOptions options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos ||
        !set_field(options, item.substr(0, equals), item.substr(equals + 1))) {
      return Error{Code::argument,
                   fmt::format("'{}' is no fault: write loss=1%, duplicates=5%, reorder=1%, "
                               "delay=200us or seed=7, joined by commas",
                               item)};
    }
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return options;
}

FaultyDatagrams::FaultyDatagrams(std::unique_ptr<Datagrams> inner, const FaultOptions& options,
                                 Clock now_ns)
    : inner_(std::move(inner)),
      options_(options),
      now_ns_(std::move(now_ns)),
      prng_(options.seed ^ (static_cast<std::uint64_t>(inner_->rank()) << 40)) {}

std::size_t FaultyDatagrams::send(std::span<const Outgoing> datagrams) {
  release_due();
  std::size_t taken = 0;
  for (const Outgoing& datagram : datagrams) {
    if (chance(options_.loss)) {
      ++faults_.lost;
    } else if (chance(options_.reorder)) {
      Held held{now_ns_() + options_.delay_ns,
                datagram.target,
                {datagram.head.begin(), datagram.head.end()},
                datagram.urgent};
      held.bytes.insert(held.bytes.end(), datagram.body.begin(), datagram.body.end());
      held_.push_back(std::move(held));
      ++faults_.held;
    } else {
      if (inner_->send({&datagram, 1}) == 0) return taken;
      if (chance(options_.duplicates) && inner_->send({&datagram, 1}) == 1) ++faults_.duplicated;
    }
    ++taken;
  }
  return taken;
}

std::size_t FaultyDatagrams::receive(std::span<Incoming> datagrams) {
  release_due();
  return inner_->receive(datagrams);
}

// They lie in the order of their times, because all wait equally long.
void FaultyDatagrams::release_due() {
  std::size_t done = 0;
  while (done < held_.size() &&
         (held_[done].due_ns <= now_ns_() || held_.size() - done > kMostHeld)) {
    const Outgoing late{held_[done].target, held_[done].bytes, {}, held_[done].urgent};
    if (inner_->send({&late, 1}) == 0) ++faults_.dropped_late;
    ++done;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(done));
}

base::Result<std::unique_ptr<Datagrams>> wrap_with_faults(std::unique_ptr<Datagrams> inner,
                                                          const std::string& text) {
  UNISONO_ASSIGN(FaultOptions options, parse_fault(text));
  options.seed += static_cast<std::uint64_t>(inner->rank());
  return std::unique_ptr<Datagrams>(
      std::make_unique<FaultyDatagrams>(std::move(inner), options, base::now_ns));
}

}  // namespace unisono::transport
