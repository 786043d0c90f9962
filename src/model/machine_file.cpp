// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "base/file/read_file.hpp"
#include "base/text.hpp"
#include "model/json_tree.hpp"

namespace unisono::model {
namespace {

// More are a mistake; the reader's time stays bounded.
constexpr std::size_t kMostPaths = 64, kMostEntries = 256, kMostText = 400;
constexpr double kMostNumber = 1e15;  // eleven days in nanoseconds
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr int kMostCount = 1 << 24;  // hosts, cores

// The first error of a file. Readers go on with what they have; the caller looks here in the end.
class Context {
 public:
  explicit Context(std::string_view file) : file_(file) {}

  void fail(int line, std::string_view what) {
    if (message_.empty()) message_ = fmt::format("{}:{}: {}", file_, line, what);
  }
  bool failed() const { return !message_.empty(); }
  base::Error error() const { return {base::Code::argument, message_}; }

 private:
  std::string_view file_;
  std::string message_;
};

// The members of an object, each taken once; finish() refuses the others.
class Members {
 public:
  Members(Context& context, const JsonNode& node, std::string_view what)
      : context_(context), node_(node), what_(what) {
    if (node.kind != JsonNode::Kind::object) {
      context.fail(node.line,
                   fmt::format("{}: expected an object, found {}", what, kind_name(node.kind)));
    }
    taken_.resize(node.members.size());
  }

  const JsonNode* find(std::string_view key) {
    known_.push_back(key);
    for (std::size_t i = 0; i < node_.members.size(); ++i) {
      if (node_.members[i].first != key) continue;
      taken_[i] = true;
      return &node_.members[i].second;
    }
    return nullptr;
  }
  const JsonNode* need(std::string_view key, JsonNode::Kind kind) {
    const JsonNode* node = find(key);
    if (node == nullptr) {
      context_.fail(node_.line, fmt::format("{}: expected key \"{}\"", what_, key));
    } else if (node->kind != kind) {
      context_.fail(node->line, fmt::format("\"{}\": expected {}, found {}", key, kind_name(kind),
                                            kind_name(node->kind)));
      return nullptr;
    }
    return node;
  }
  std::string text(std::string_view key) {
    const JsonNode* node = need(key, JsonNode::Kind::text);
    if (node == nullptr) return {};
    if (node->text.size() > kMostText) {
      context_.fail(node->line, fmt::format("\"{}\": expected at most {} bytes, found {}", key,
                                            kMostText, node->text.size()));
    }
    return node->text;
  }
  double number(std::string_view key) {
    const JsonNode* node = need(key, JsonNode::Kind::number);
    if (node == nullptr) return 0;
    if (!(node->number >= 0 && node->number <= kMostNumber)) {
      context_.fail(node->line, fmt::format("\"{}\": expected a number from 0 to {:g}, found {:g}",
                                            key, kMostNumber, node->number));
      return 0;
    }
    return node->number;
  }
  std::int64_t whole(std::string_view key, std::int64_t low, std::int64_t high) {
    const JsonNode* node = need(key, JsonNode::Kind::number);
    if (node == nullptr) return low;
    const double number = node->number;
    if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high)) ||
        number != std::floor(number)) {
      context_.fail(node->line,
                    fmt::format("\"{}\": expected a whole number from {} to {}, found {:g}", key,
                                low, high, number));
      return low;
    }
    return static_cast<std::int64_t>(number);
  }
  // One of some names; the index among them.
  std::size_t choice(std::string_view key, std::span<const std::string_view> names) {
    const JsonNode* node = need(key, JsonNode::Kind::text);
    if (node == nullptr) return 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == node->text) return i;
    }
    context_.fail(node->line, fmt::format("\"{}\": expected one of {}, found \"{:.40}\"", key,
                                          fmt::join(names, ", "), node->text));
    return 0;
  }
  void finish() {
    for (std::size_t i = 0; i < node_.members.size(); ++i) {
      if (taken_[i]) continue;
      const auto& [key, value] = node_.members[i];
      const std::string_view nearest = base::nearest_name(key, known_);
      const std::string hint = nearest.empty()
                                   ? fmt::format("known are {}", fmt::join(known_, ", "))
                                   : fmt::format("did you mean \"{}\"?", nearest);
      context_.fail(value.line, fmt::format("{}: unknown key \"{:.40}\"; {}", what_, key, hint));
    }
  }
  int line() const { return node_.line; }

 private:
  Context& context_;
  const JsonNode& node_;
  std::string_view what_;
  std::vector<std::string_view> known_;
  std::vector<bool> taken_;
};

constexpr std::array kTimeUnits = {Unit::ns, Unit::us, Unit::ms, Unit::s};
constexpr std::array kByteUnits = {Unit::ns_per_byte, Unit::mb_per_s};
constexpr std::array kBytes = {Unit::bytes};
constexpr std::array kRanks = {Unit::ranks};
constexpr std::array kRatios = {Unit::ratio};
constexpr std::array kOrigins = {Origin::measured, Origin::published, Origin::assumed};
constexpr std::array kLevels = {Level::cache, Level::memory, Level::hosts, Level::nic};
constexpr std::array kEngines = {Engine::any, Engine::inline_, Engine::helping, Engine::nic};

// An enumerator by its name.
template <class T>
T read_name(Members& members, std::string_view key, std::span<const T> all,
            std::string_view (*name)(T)) {
  std::vector<std::string_view> names;
  for (const T one : all) names.push_back(name(one));
  return all[members.choice(key, names)];
}

// The members of a value; they may stand beside others, as in a point of a curve.
Value read_value(Context& context, Members& members, std::span<const Unit> units) {
  Value value;
  value.number = members.number("number");
  value.unit = read_name<Unit>(members, "unit", units, unit_name);
  value.plus_minus = members.number("plus_minus");
  value.origin = read_name<Origin>(members, "source", kOrigins, origin_name);
  value.where = members.text("where");
  if (value.unit == Unit::mb_per_s && value.number == 0) {
    context.fail(members.line(), "\"number\": expected more than 0 MB/s");
  }
  return value;
}

std::optional<Value> read_optional(Context& context, Members& of, std::string_view key,
                                   std::span<const Unit> units) {
  const JsonNode* node = of.find(key);
  if (node == nullptr) return std::nullopt;
  Members members(context, *node, key);
  Value value = read_value(context, members, units);
  members.finish();
  return value;
}

Value read_needed(Context& context, Members& of, std::string_view key,
                  std::span<const Unit> units) {
  const JsonNode* node = of.need(key, JsonNode::Kind::object);
  if (node == nullptr) return {};
  Members members(context, *node, key);
  Value value = read_value(context, members, units);
  members.finish();
  return value;
}

// A non-empty array of objects.
template <class Read>
void read_entries(Context& context, Members& of, std::string_view key, std::size_t least,
                  std::size_t most, const Read& read) {
  const JsonNode* node = of.need(key, JsonNode::Kind::array);
  if (node == nullptr) return;
  if (node->items.size() < least || node->items.size() > most) {
    context.fail(node->line, fmt::format("\"{}\": expected {} to {} entries, found {}", key, least,
                                         most, node->items.size()));
    return;
  }
  for (const JsonNode& item : node->items) {
    if (context.failed()) return;
    Members members(context, item, key);
    read(members);
    members.finish();
  }
}

Curve read_curve(Context& context, Members& of, std::string_view key) {
  Curve curve;
  read_entries(context, of, key, 1, kMostEntries, [&](Members& members) {
    Curve::Point point;
    point.bytes = members.whole("bytes", 0, kMostBytes);
    point.value = read_value(context, members, kTimeUnits);
    if (!curve.points.empty() && curve.points.back().bytes >= point.bytes) {
      context.fail(members.line(), fmt::format("\"bytes\": expected more than the {} before",
                                               curve.points.back().bytes));
    }
    curve.points.push_back(std::move(point));
  });
  const std::size_t count = curve.points.size();
  if (!context.failed() && count > 1 &&
      curve.points[count - 1].value.ns() < curve.points[count - 2].value.ns()) {
    context.fail(of.line(), fmt::format("\"{}\": expected a last point that is not below the one "
                                        "before, because longer messages go on with that slope",
                                        key));
  }
  return curve;
}

std::optional<arith::Operator> read_operator(Context& context, Members& members) {
  const JsonNode* node = members.need("operator", JsonNode::Kind::text);
  if (node == nullptr || node->text == "any") return std::nullopt;
  const auto op = arith::operator_from_name(node->text);
  if (!op) {
    context.fail(node->line, fmt::format("\"operator\": expected any or an operator as sum, max, "
                                         "bitwise_and; found \"{:.40}\"",
                                         node->text));
  }
  return op;
}

std::optional<arith::Type> read_type(Context& context, Members& members) {
  const JsonNode* node = members.need("type", JsonNode::Kind::text);
  if (node == nullptr || node->text == "any") return std::nullopt;
  const auto type = arith::type_from_name(node->text);
  if (!type) {
    context.fail(node->line, fmt::format("\"type\": expected any or a datatype as int32, float64; "
                                         "found \"{:.40}\"",
                                         node->text));
  }
  return type;
}

PathParameters read_path(Context& context, Members& members) {
  PathParameters path;
  path.level = read_name<Level>(members, "level", kLevels, level_name);
  path.engine = read_name<Engine>(members, "engine", kEngines, engine_name);
  path.up_to_bytes = members.whole("up_to_bytes", 0, kMostBytes);
  path.latency = read_needed(context, members, "latency", kTimeUnits);
  path.overhead = read_needed(context, members, "overhead", kTimeUnits);
  path.overhead_per_byte = read_needed(context, members, "overhead_per_byte", kByteUnits);
  path.gap = read_needed(context, members, "gap", kTimeUnits);
  path.gap_per_byte = read_needed(context, members, "gap_per_byte", kByteUnits);
  path.copy_per_byte = read_needed(context, members, "copy_per_byte", kByteUnits);
  path.staged_per_byte = read_optional(context, members, "staged_per_byte", kByteUnits);
  path.staging_per_byte = read_optional(context, members, "staging_per_byte", kByteUnits);
  path.multicast_latency = read_optional(context, members, "multicast_latency", kTimeUnits);
  path.streams_from = read_optional(context, members, "streams_from", kBytes);
  path.reception = read_curve(context, members, "reception");
  read_entries(context, members, "reduction", 0, kMostEntries, [&](Members& entry) {
    ReductionCost cost;
    cost.op = read_operator(context, entry);
    cost.type = read_type(context, entry);
    cost.curve = read_curve(context, entry, "points");
    path.reduction.push_back(std::move(cost));
  });
  read_entries(context, members, "start_up", 0, kMostEntries, [&](Members& entry) {
    StartUp start;
    start.op = read_operator(context, entry);
    start.value = read_value(context, entry, kTimeUnits);
    path.start_up.push_back(std::move(start));
  });
  if (path.staged_per_byte.has_value() != path.staging_per_byte.has_value()) {
    context.fail(members.line(),
                 "expected both or neither of \"staged_per_byte\" and "
                 "\"staging_per_byte\"");
  }
  return path;
}

void read_tree(Context& context, Members& of, Machine& machine) {
  const JsonNode* node = of.find("tree");
  if (node == nullptr) return;
  Members members(context, *node, "tree");
  Tree tree;
  tree.arity = static_cast<int>(members.whole("arity", 2, 1024));
  tree.levels = static_cast<int>(members.whole("levels", 1, 24));
  tree.link_per_byte = read_needed(context, members, "link_per_byte", kByteUnits);
  tree.switch_delay = read_needed(context, members, "switch_delay", kTimeUnits);
  members.finish();
  machine.tree = std::move(tree);
}

HostMpi read_host_mpi(Context& context, Members& members) {
  HostMpi mpi;
  mpi.library = members.text("library");
  mpi.ranks = static_cast<int>(members.whole("ranks", 2, kMostCount));
  mpi.hosts = static_cast<int>(members.whole("hosts", 1, kMostCount));
  read_entries(context, members, "faster", 0, kMostEntries, [&](Members& entry) {
    ByteRange range;
    range.collective = entry.text("collective");
    range.from_bytes = entry.whole("from_bytes", 0, kMostBytes);
    range.up_to_bytes = entry.whole("up_to_bytes", 0, kMostBytes);
    if (range.up_to_bytes != 0 && range.up_to_bytes < range.from_bytes) {
      context.fail(entry.line(),
                   fmt::format("\"up_to_bytes\": expected 0 or at least the {} of \"from_bytes\"",
                               range.from_bytes));
    }
    mpi.faster.push_back(std::move(range));
  });
  return mpi;
}

std::span<const Unit> units_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes:
      return kBytes;
    case Quantity::ranks:
      return kRanks;
    case Quantity::time:
      return kTimeUnits;
    case Quantity::time_per_byte:
      return kByteUnits;
  }
  return {};
}

void read_constants(Context& context, Members& of, Machine& machine) {
  const JsonNode* node = of.find("constants");
  if (node == nullptr) return;
  Members members(context, *node, "constants");
  for (const ConstantRow& row : constant_rows()) {
    machine.constants[static_cast<std::size_t>(row.id)] =
        read_optional(context, members, row.name, units_of(row.quantity));
  }
  members.finish();
}

void read_fingerprint(Context& context, Members& of, std::string_view text, Machine& machine) {
  const JsonNode* node = of.find("fingerprint");
  if (node == nullptr) return;
  Members members(context, *node, "fingerprint");
  Fingerprint fingerprint;
  fingerprint.machine = members.text("machine");
  fingerprint.version = members.text("version");
  fingerprint.settings = members.text("settings");
  const std::string checksum = members.text("checksum");
  members.finish();
  if (context.failed()) return;
  const std::string expected = checksum_of(text);
  if (checksum != expected) {
    context.fail(node->line, fmt::format("\"checksum\": expected {}, found \"{:.40}\": the file is "
                                         "damaged or was edited",
                                         expected, checksum));
  }
  machine.fingerprint = std::move(fingerprint);
}

Machine read_machine(Context& context, const JsonNode& root, std::string_view text) {
  Machine machine;
  Members members(context, root, "machine file");
  constexpr std::array<std::string_view, 1> kSchemas = {"unisono-machine"};
  members.choice("schema", kSchemas);
  if (context.failed()) return machine;
  members.whole("version", kMachineFileVersion, kMachineFileVersion);
  if (context.failed()) return machine;  // keys of another version would mislead
  machine.name = members.text("name");
  machine.about = members.text("about");
  read_fingerprint(context, members, text, machine);
  machine.hosts = static_cast<int>(members.whole("hosts", 1, kMostCount));
  machine.cores_per_host = static_cast<int>(members.whole("cores_per_host", 1, kMostCount));
  machine.hand_over = read_optional(context, members, "hand_over", kTimeUnits);
  machine.wake_up = read_optional(context, members, "wake_up", kTimeUnits);
  machine.hardware_barrier = read_optional(context, members, "hardware_barrier", kTimeUnits);
  machine.price_error = read_optional(context, members, "price_error", kRatios);
  read_tree(context, members, machine);
  read_constants(context, members, machine);
  read_entries(context, members, "paths", 1, kMostPaths,
               [&](Members& entry) { machine.paths.push_back(read_path(context, entry)); });
  if (members.find("host_mpis") != nullptr) {
    read_entries(context, members, "host_mpis", 1, kMostEntries, [&](Members& entry) {
      machine.host_mpis.push_back(read_host_mpi(context, entry));
    });
  }
  members.finish();
  return machine;
}

}  // namespace

base::Result<Machine> parse_machine(std::string_view text, std::string_view file) {
  if (text.size() > kMostMachineFileBytes) {
    return base::Error{base::Code::argument, fmt::format("{}: expected at most {} bytes, found {}",
                                                         file, kMostMachineFileBytes, text.size())};
  }
  JsonNode root;
  UNISONO_ASSIGN(root, parse_json(text, file));
  Context context(file);
  Machine machine = read_machine(context, root, text);
  if (context.failed()) return context.error();
  return machine;
}

base::Result<Machine> read_machine_file(const std::string& path) {
  UNISONO_ASSIGN(const std::string text, base::read_file(path, kMostMachineFileBytes));
  return parse_machine(text, path);
}

}  // namespace unisono::model
