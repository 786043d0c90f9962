// SPDX-License-Identifier: BSD-3-Clause
// The writer of machine files: one value a line, so that two files compare well.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/descriptor.hpp"
#include "model/machine_file.hpp"

namespace unisono::model {
namespace {

constexpr std::string_view kChecksumKey = "\"checksum\": \"";
constexpr std::string_view kNoChecksum = "0000000000000000";

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string members_of(const Value& value) {
  return fmt::format(R"("number": {}, "unit": "{}", "plus_minus": {}, "source": "{}", "where": {})",
                     value.number, unit_name(value.unit), value.plus_minus,
                     origin_name(value.origin), json_quoted(value.where));
}

// Lines of an object or array, joined by commas.
class Lines {
 public:
  explicit Lines(int indent) : indent_(indent) {}

  void add(const std::string& line) {
    text_ += fmt::format("{}{:{}}{}", text_.empty() ? "" : ",\n", "", indent_, line);
  }
  void add(std::string_view key, const Value& value) {
    add(fmt::format("\"{}\": {{{}}}", key, members_of(value)));
  }
  void add(std::string_view key, const std::optional<Value>& value) {
    if (value) add(key, *value);
  }
  // An array or object that holds other lines.
  void add(std::string_view head, const Lines& inner, std::string_view tail) {
    if (inner.text_.empty()) {
      add(fmt::format("{}{}", head, tail));
    } else {
      add(fmt::format("{}\n{}\n{:{}}{}", head, inner.text_, "", indent_, tail));
    }
  }
  const std::string& text() const { return text_; }

 private:
  int indent_;
  std::string text_;
};

Lines points_of(const Curve& curve, int indent) {
  Lines lines(indent);
  for (const Curve::Point& point : curve.points) {
    lines.add(fmt::format("{{\"bytes\": {}, {}}}", point.bytes, members_of(point.value)));
  }
  return lines;
}

Lines lines_of(const PathParameters& path) {
  Lines lines(6);
  lines.add(fmt::format("\"level\": \"{}\", \"engine\": \"{}\", \"up_to_bytes\": {}",
                        level_name(path.level), engine_name(path.engine), path.up_to_bytes));
  lines.add("latency", path.latency);
  lines.add("overhead", path.overhead);
  lines.add("overhead_per_byte", path.overhead_per_byte);
  lines.add("gap", path.gap);
  lines.add("gap_per_byte", path.gap_per_byte);
  lines.add("copy_per_byte", path.copy_per_byte);
  lines.add("staged_per_byte", path.staged_per_byte);
  lines.add("staging_per_byte", path.staging_per_byte);
  lines.add("multicast_latency", path.multicast_latency);
  lines.add("streams_from", path.streams_from);
  lines.add("\"reception\": [", points_of(path.reception, 8), "]");
  Lines reduction(8);
  for (const ReductionCost& cost : path.reduction) {
    const auto op = cost.op ? arith::operator_name(*cost.op) : "any";
    const auto type = cost.type ? arith::type_name(*cost.type) : "any";
    reduction.add(fmt::format(R"({{"operator": "{}", "type": "{}", "points": [)", op, type),
                  points_of(cost.curve, 10), "]}");
  }
  lines.add("\"reduction\": [", reduction, "]");
  Lines start_up(8);
  for (const StartUp& start : path.start_up) {
    start_up.add(fmt::format(R"({{"operator": "{}", {}}})",
                             start.op ? arith::operator_name(*start.op) : "any",
                             members_of(start.value)));
  }
  lines.add("\"start_up\": [", start_up, "]");
  return lines;
}

Lines lines_of(const HostMpi& mpi) {
  Lines lines(6);
  lines.add(fmt::format("\"library\": {}, \"ranks\": {}, \"hosts\": {}", json_quoted(mpi.library),
                        mpi.ranks, mpi.hosts));
  Lines faster(8);
  for (const ByteRange& range : mpi.faster) {
    faster.add(fmt::format(R"({{"collective": {}, "from_bytes": {}, "up_to_bytes": {}}})",
                           json_quoted(range.collective), range.from_bytes, range.up_to_bytes));
  }
  lines.add("\"faster\": [", faster, "]");
  return lines;
}

base::Status write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::system_error(fmt::format("writing {}", path), errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(descriptor) != 0) return base::system_error(fmt::format("writing {}", path), errno);
  return base::success();
}

}  // namespace

std::string machine_text(const Machine& machine) {
  Lines lines(2);
  lines.add(fmt::format(R"("schema": "unisono-machine", "version": {})", kMachineFileVersion));
  lines.add(fmt::format("\"name\": {}", json_quoted(machine.name)));
  lines.add(fmt::format("\"about\": {}", json_quoted(machine.about)));
  if (machine.fingerprint) {
    Lines fingerprint(4);
    fingerprint.add(fmt::format("\"machine\": {}", json_quoted(machine.fingerprint->machine)));
    fingerprint.add(fmt::format("\"version\": {}", json_quoted(machine.fingerprint->version)));
    fingerprint.add(fmt::format("\"settings\": {}", json_quoted(machine.fingerprint->settings)));
    fingerprint.add(fmt::format("{}{}\"", kChecksumKey, kNoChecksum));
    lines.add("\"fingerprint\": {", fingerprint, "}");
  }
  lines.add(
      fmt::format(R"("hosts": {}, "cores_per_host": {})", machine.hosts, machine.cores_per_host));
  lines.add("hand_over", machine.hand_over);
  lines.add("wake_up", machine.wake_up);
  lines.add("hardware_barrier", machine.hardware_barrier);
  lines.add("price_error", machine.price_error);
  if (machine.tree) {
    Lines tree(4);
    tree.add(
        fmt::format(R"("arity": {}, "levels": {})", machine.tree->arity, machine.tree->levels));
    tree.add("link_per_byte", machine.tree->link_per_byte);
    tree.add("switch_delay", machine.tree->switch_delay);
    lines.add("\"tree\": {", tree, "}");
  }
  Lines constants(4);
  for (const ConstantRow& row : constant_rows()) {
    constants.add(row.name, machine.constants[static_cast<std::size_t>(row.id)]);
  }
  if (!constants.text().empty()) lines.add("\"constants\": {", constants, "}");
  Lines paths(4);
  for (const PathParameters& path : machine.paths) paths.add("{", lines_of(path), "}");
  lines.add("\"paths\": [", paths, "]");
  Lines host_mpis(4);
  for (const HostMpi& each : machine.host_mpis) host_mpis.add("{", lines_of(each), "}");
  if (!host_mpis.text().empty()) lines.add("\"host_mpis\": [", host_mpis, "]");
  std::string text = fmt::format("{{\n{}\n}}\n", lines.text());
  if (machine.fingerprint) {
    text.replace(checksum_place(text), kNoChecksum.size(), checksum_of(text));
  }
  return text;
}

std::size_t checksum_place(std::string_view text) {
  // The fingerprint stands before anything that may hold such a text, but for names.
  const std::size_t at = text.find(kChecksumKey);
  if (at == text.npos || text.size() - at < kChecksumKey.size() + kNoChecksum.size()) {
    return text.npos;
  }
  return at + kChecksumKey.size();
}

std::string checksum_of(std::string_view text) {
  const std::size_t own = checksum_place(text);
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_own = i >= own && i - own < kNoChecksum.size();
    hash = (hash ^ static_cast<unsigned char>(is_own ? '0' : text[i])) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

base::Status write_machine_file(const Machine& machine, const std::string& path) {
  std::string draft = path + ".XXXXXX";
  const base::Descriptor file(::mkostemp(draft.data(), O_CLOEXEC));
  if (!file.valid()) return base::system_error(fmt::format("creating {}", draft), errno);
  base::Status status = write_all(file.get(), machine_text(machine), draft);
  if (status.ok() && ::rename(draft.c_str(), path.c_str()) != 0) {
    status = base::system_error(fmt::format("renaming {} to {}", draft, path), errno);
  }
  if (!status.ok()) ::unlink(draft.c_str());
  return status;
}

}  // namespace unisono::model
