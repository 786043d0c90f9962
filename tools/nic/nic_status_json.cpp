// SPDX-License-Identifier: BSD-3-Clause
#include "nic/nic_status_json.hpp"

#include <arpa/inet.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <optional>

#include "nic/loader/device.hpp"
#include "nic/loader/kernel.hpp"

namespace unisono::tools {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_of(const Capability& capability) {
  const std::optional<bool> suffices = nic::kernel_suffices(capability.kernel);
  Json json;
  json["daemon_file"] = text_or_null(capability.daemon);
  json["has_program"] = capability.has_program;
  json["kernel"] = capability.kernel;
  json["kernel_suffices"] = suffices ? Json(*suffices) : Json();
  json["missing_privileges"] = missing_privileges(capability);
  json["in_user_namespace"] = capability.in_user_namespace;
  return json;
}

Json json_of(const nic::Interface& interface) {
  const std::string why_not = why_unusable(interface);
  Json json;
  json["name"] = interface.name;
  json["driver"] = text_or_null(interface.driver);
  json["address"] = interface.ipv4 == 0 ? Json() : Json(nic::ipv4_text(interface.ipv4));
  json["prefix_bits"] = std::popcount(interface.mask);
  json["mac"] = nic::mac_text(interface.mac);
  json["mtu_bytes"] = interface.mtu;
  json["up"] = interface.up;
  json["usable"] = why_not.empty();
  json["why_unusable"] = text_or_null(why_not);
  return json;
}

Json json_of(const nic::GroupLine& group) {
  Json json;
  json["job"] = group.job;
  json["communicator"] = group.communicator;
  json["rank"] = group.rank;
  json["children"] = group.children;
  json["bytes"] = group.bytes;
  json["process"] = group.process;
  json["user"] = group.user;
  return json;
}

// By kind, so that a reader may sum up dropped packets without knowing the reasons.
Json packets_of(const nic::ServiceStatus& status) {
  Json json;
  for (std::size_t i = 0; i < status.counters.size(); ++i) {
    const auto counter = static_cast<unisono_nic_counter>(i);
    const char* const kind = nic::counter_kind_name(nic::counter_kind(counter));
    json[kind][nic::counter_name(counter)] = status.counters[i];
  }
  return json;
}

void add_interface(Json& json, const nic::ServiceStatus& status) {
  const nic::Served& served = status.served;
  json["interface"] = served.interface;
  json["driver"] = text_or_null(served.driver);
  json["mode"] = served.native != 0 ? "native" : "generic";
  json["address"] = nic::ipv4_text(served.own.ipv4);
  json["port"] = ntohs(served.own.port);
  json["mac"] = nic::mac_text(served.own.mac);
}

// The keys of an interface are those of the first one.
Json json_of(std::span<const nic::ServiceStatus> all) {
  const nic::ServiceStatus& status = all.front();
  const nic::Served& served = status.served;
  Json json;
  json["process"] = status.process;
  json["connections"] = status.connections;
  add_interface(json, status);
  json["groups"] = status.groups;
  json["bytes"] = status.bytes;
  json["retained_bytes"] = status.retained_bytes;
  json["groups_left"] = served.groups_left;
  json["bytes_left"] = served.bytes_left;
  json["own_groups"] = Json::array();
  for (const nic::GroupLine& group : status.own_groups) {
    json["own_groups"].push_back(json_of(group));
  }
  json["counters"] = packets_of(status);
  nic::ServiceCounters::each(status.service,
                             [&json](const char* name, const char*, std::uint64_t value) {
                               json["counters"]["service"][name] = value;
                             });
  json["served"] = Json::array();
  for (const nic::ServiceStatus& each : all) {
    Json of_interface;
    add_interface(of_interface, each);
    of_interface["packets"] = packets_of(each);
    json["served"].push_back(of_interface);
  }
  return json;
}

}  // namespace

std::string status_json(const Capability& capability, std::span<const nic::Interface> interfaces,
                        const std::string& path,
                        const base::Result<std::vector<nic::ServiceStatus>>& all) {
  Json json;
  json["schema"] = "unisono-nic-status";
  json["version"] = kStatusVersion;
  json["capability"] = json_of(capability);
  json["interfaces"] = Json::array();
  for (const nic::Interface& interface : interfaces) {
    json["interfaces"].push_back(json_of(interface));
  }
  json["socket"] = path;
  json["daemon"] = all.ok() ? json_of(*all) : Json();
  json["why_no_daemon"] = all.ok() ? Json() : Json(all.error().message);
  // A file system may hold names that are not UTF-8; JSON may not.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace unisono::tools
