// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/check.hpp"
#include "model/default_machine.hpp"

namespace unisono::model {
namespace {

bool fits(const PathParameters& path, Level level, Engine engine, std::int64_t bytes) {
  return path.level == level && (path.engine == engine || path.engine == Engine::any) &&
         (path.up_to_bytes == 0 || bytes <= path.up_to_bytes);
}

const PathParameters& first_of(const Machine& machine, Engine engine, std::int64_t bytes,
                               std::initializer_list<Level> levels) {
  for (const Level level : levels) {
    if (const PathParameters* path = find_path(machine, level, engine, bytes)) return *path;
  }
  // A machine that was measured with another engine still says more than nothing.
  for (const Level level : levels) {
    for (const PathParameters& path : machine.paths) {
      if (path.level == level && (path.up_to_bytes == 0 || bytes <= path.up_to_bytes)) return path;
    }
  }
  UNISONO_CHECK(!machine.paths.empty(), "a machine without paths");
  return machine.paths.front();
}

}  // namespace

double Value::ns() const {
  switch (unit) {
    case Unit::ns:
    case Unit::ns_per_byte:
      return number;
    case Unit::us:
      return number * 1e3;
    case Unit::ms:
      return number * 1e6;
    case Unit::s:
      return number * 1e9;
    case Unit::mb_per_s:
      return 1e3 / number;
    case Unit::bytes:
    case Unit::ranks:
    case Unit::ratio:
      break;
  }
  UNISONO_CHECK(false, "the time of a number");
}

std::int64_t Value::count() const {
  UNISONO_CHECK(unit == Unit::bytes || unit == Unit::ranks, "the number of a time");
  return static_cast<std::int64_t>(number);
}

namespace {

auto of_same_calls(std::string_view library, int ranks, int hosts) {
  return [=](const HostMpi& each) {
    return each.library == library && each.ranks == ranks && each.hosts == hosts;
  };
}

}  // namespace

const HostMpi* find_host_mpi(const Machine& machine, std::string_view library, int ranks,
                             int hosts) {
  const auto found = std::ranges::find_if(machine.host_mpis, of_same_calls(library, ranks, hosts));
  return found == machine.host_mpis.end() ? nullptr : &*found;
}

void replace_host_mpi(Machine& machine, HostMpi measured) {
  std::erase_if(machine.host_mpis, of_same_calls(measured.library, measured.ranks, measured.hosts));
  machine.host_mpis.push_back(std::move(measured));
}

const Value& constant_of(const Machine& machine, Constant constant) {
  const auto index = static_cast<std::size_t>(constant);
  if (machine.constants[index]) return *machine.constants[index];
  const auto& fallback = default_machine().constants[index];
  UNISONO_CHECK(fallback.has_value(), "a default machine without this constant");
  return *fallback;
}

double Curve::ns(std::int64_t bytes) const {
  UNISONO_CHECK(!points.empty(), "a curve without points");
  if (points.size() == 1 || bytes <= points.front().bytes) return points.front().value.ns();
  const auto above = std::find_if(points.begin() + 1, points.end() - 1,
                                  [&](const Point& p) { return bytes <= p.bytes; });
  const Point &low = *(above - 1), &high = *above;
  if (bytes == high.bytes) return high.value.ns();  // exactly
  const double share =
      static_cast<double>(bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
  return low.value.ns() + share * (high.value.ns() - low.value.ns());
}

const PathParameters* find_path(const Machine& machine, Level level, Engine engine,
                                std::int64_t bytes) {
  for (const PathParameters& path : machine.paths) {
    if (fits(path, level, engine, bytes)) return &path;
  }
  return nullptr;
}

const PathParameters& local_path(const Machine& machine, Engine engine, std::int64_t bytes) {
  return first_of(machine, engine, bytes, {Level::cache, Level::memory});
}

const PathParameters& remote_path(const Machine& machine, Engine engine, std::int64_t bytes) {
  if (engine == Engine::nic) {
    return first_of(machine, engine, bytes, {Level::nic, Level::hosts});
  }
  return first_of(machine, engine, bytes, {Level::hosts, Level::nic});
}

double reduction_ns(const PathParameters& path, arith::Operator op, arith::Type type,
                    std::int64_t bytes) {
  if (bytes == 0) return 0;
  const ReductionCost* best = nullptr;
  int best_match = -1;
  for (const ReductionCost& cost : path.reduction) {
    if ((cost.op && *cost.op != op) || (cost.type && *cost.type != type)) continue;
    const int match = (cost.op ? 2 : 0) + (cost.type ? 1 : 0);
    if (match > best_match) {
      best = &cost;
      best_match = match;
    }
  }
  return best == nullptr ? 0 : best->curve.ns(bytes);
}

double start_up_ns(const PathParameters& path, std::optional<arith::Operator> op) {
  double any = 0;
  for (const StartUp& start : path.start_up) {
    if (start.op && start.op == op) return start.value.ns();
    if (!start.op) any = start.value.ns();
  }
  return any;
}

std::optional<std::int64_t> streams_from_bytes(const Machine& machine) {
  for (const PathParameters& path : machine.paths) {
    if (path.level == Level::hosts && path.streams_from) {
      return static_cast<std::int64_t>(path.streams_from->number);
    }
  }
  return std::nullopt;
}

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::ns:
      return "ns";
    case Unit::us:
      return "us";
    case Unit::ms:
      return "ms";
    case Unit::s:
      return "s";
    case Unit::ns_per_byte:
      return "ns/byte";
    case Unit::mb_per_s:
      return "MB/s";
    case Unit::bytes:
      return "bytes";
    case Unit::ranks:
      return "ranks";
    case Unit::ratio:
      return "ratio";
  }
  return "";
}

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::measured:
      return "measured";
    case Origin::published:
      return "published";
    case Origin::assumed:
      return "assumed";
  }
  return "";
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::cache:
      return "cache";
    case Level::memory:
      return "memory";
    case Level::hosts:
      return "hosts";
    case Level::nic:
      return "nic";
  }
  return "";
}

std::string_view engine_name(Engine engine) {
  switch (engine) {
    case Engine::any:
      return "any";
    case Engine::inline_:
      return "inline";
    case Engine::helping:
      return "helping";
    case Engine::nic:
      return "nic";
  }
  return "";
}

}  // namespace unisono::model
