// SPDX-License-Identifier: BSD-3-Clause
#include "paper/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file/read_file.hpp"

namespace unisono::tools {
namespace {

// The scripts write far less; a larger file is another one.
constexpr std::size_t kMostMeasurementBytes = std::size_t{64} << 20;

base::Error expected(const std::string& path, std::string_view what) {
  return {base::Code::argument, fmt::format("{}: expected {}", path, what)};
}

bool has_all(const nlohmann::json& result, const nlohmann::json& row) {
  for (const auto& [name, value] : row.items()) {
    const auto found = result.find(name);
    if (found == result.end() || *found != value) return false;
  }
  return true;
}

bool all_objects(const nlohmann::json& list) {
  return list.is_array() &&
         std::ranges::all_of(list, [](const nlohmann::json& each) { return each.is_object(); });
}

// Empty if there is no command.
std::string command_of(const nlohmann::json& content) {
  if (const auto one = content.find("command"); one != content.end() && one->is_string()) {
    return one->get<std::string>();
  }
  const auto several = content.find("commands");
  if (several == content.end() || !several->is_array()) return {};
  std::string commands;
  for (const nlohmann::json& each : *several) {
    if (!each.is_string()) return {};
    commands += (commands.empty() ? "" : "; ") + each.get<std::string>();
  }
  return commands;
}

// Empty if the file does not say.
std::string machine_of(const nlohmann::json& content) {
  const auto machine = content.find("machine");
  if (machine == content.end()) return {};
  if (machine->is_string()) return machine->get<std::string>();
  if (!machine->is_object()) return {};
  const auto processor = machine->find("processor"), cores = machine->find("usable_cores");
  if (processor == machine->end() || !processor->is_string() || cores == machine->end() ||
      !cores->is_number_unsigned()) {
    return {};
  }
  return fmt::format("{} cores of an {}", cores->get<std::uint64_t>(),
                     processor->get<std::string>());
}

}  // namespace

std::string Measurements::path(const MeasurementFile& file) const {
  return fmt::format("{}/{}", folder_, file.name);
}

base::Result<const nlohmann::json*> Measurements::content(const MeasurementFile& file) {
  if (const auto known = read_.find(file.name); known != read_.end()) return &known->second;
  const std::string from = path(file);
  UNISONO_ASSIGN(const std::string text, base::read_file(from, kMostMeasurementBytes));
  nlohmann::json content = nlohmann::json::parse(text, nullptr, false);
  if (!content.is_object()) return expected(from, "a JSON object");
  const auto tool = content.find("tool");
  if (tool == content.end() || *tool != file.tool) {
    return expected(from, fmt::format(R"("tool": "{}")", file.tool));
  }
  if (command_of(content).empty()) {
    return expected(from, R"(a text in "command", or a list of texts in "commands")");
  }
  if (machine_of(content).empty()) {
    return expected(from, R"(a text in "machine", or "processor" and "usable_cores" in it)");
  }
  const auto results = content.find("results");
  if (results == content.end() || !all_objects(*results)) {
    return expected(from, R"(a list of objects in "results")");
  }
  return &read_.emplace(file.name, std::move(content)).first->second;
}

base::Result<double> Measurements::at(const MeasurementFile& file, const nlohmann::json& row,
                                      const std::string& place) {
  UNISONO_ASSIGN(const nlohmann::json* content, this->content(file));
  const nlohmann::json* only = nullptr;
  int count = 0;
  for (const nlohmann::json& result : (*content)["results"]) {
    if (!has_all(result, row)) continue;
    only = &result;
    ++count;
  }
  if (count != 1) {
    return expected(path(file), fmt::format("one result with {}, found {}", row.dump(), count));
  }
  const nlohmann::json::json_pointer pointer(place);
  const nlohmann::json found = only->contains(pointer) ? (*only)[pointer] : nlohmann::json();
  if (!found.is_number() || !std::isfinite(found.get<double>()) || found.get<double>() <= 0) {
    return expected(path(file),
                    fmt::format("a positive number at {} of the result with {}, found {}", place,
                                row.dump(), found.is_number() ? found.dump() : found.type_name()));
  }
  return found.get<double>();
}

base::Result<MeasurementSource> Measurements::source(const MeasurementFile& file) {
  UNISONO_ASSIGN(const nlohmann::json* content, this->content(file));
  return MeasurementSource{std::string(file.name), command_of(*content), machine_of(*content)};
}

}  // namespace unisono::tools
