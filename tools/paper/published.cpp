// SPDX-License-Identifier: BSD-3-Clause
#include "paper/published.hpp"

#include <fmt/format.h>

#include "base/file/read_file.hpp"

namespace unisono::tools {
namespace {

struct Reason {
  std::string_view prefix;
  std::string_view why;
};
constexpr std::string_view kMachine = "describes the machine";
constexpr std::string_view kParameter = "a parameter, in the machine files";
constexpr Reason kReasons[] = {
    {"/nic-reduce/machines", kMachine},
    {"/nic-reduce/nic_model_us", kParameter},
    {"/nic-reduce/latency_us", "says which reduction was measured"},
    {"/nic-reduce/consistency_900_nodes_float64_sum_us/operations", "says what was measured"},
    {"/nic-reduce/consistency_900_nodes_float64_sum_us/trim", "says what was measured"},
    {"/nic-reduce/sage_profile", "an application that nobody else has; unisono does not run it"},
    {"/fat-tree/machine", kMachine},
    {"/fat-tree/parameters", kParameter},
    {"/fat-tree/link", kParameter},
    {"/fat-tree/effective_bandwidth_MBps_per_node_256KB",
     "the native MPI, whose algorithm is not published"},
    {"/fat-tree/thresholds", "needs the native MPI or the run-time system's overheads"},
    {"/fat-tree/defaults", "a choice of the authors, the default of the algorithms here"},
    {"/fat-tree/bisection_share_256_nodes_percent",
     "the bandwidth of kPrefix on 256 nodes in other words"},
    {"/nic-allgather/machine", kMachine},
    {"/nic-allgather/iterations", "says what was measured"},
    {"/asci-q/machine", kMachine},
    {"/asci-q/elite", kParameter},
    {"/asci-q/hot_spot", "a flaw of a protocol, for which the paper has no figures"},
    {"/rdma-mcast/machines", kMachine},
    {"/rdma-mcast/multicast_us", kParameter},
    {"/rdma-mcast/rdma_write_us", kParameter},
    {"/rdma-mcast/protocol", "describes the protocol, which the library has"},
};

}  // namespace

base::Result<Published> Published::read(const std::string& path) {
  UNISONO_ASSIGN(const std::string text, base::read_file(path));
  nlohmann::json numbers = nlohmann::json::parse(text, nullptr, false);
  if (!numbers.is_object()) {
    return base::Error{base::Code::argument, fmt::format("{}: expected a JSON object", path)};
  }
  return Published(std::move(numbers));
}

double Published::at(const std::string& place) {
  if (const auto number = find(place)) return *number;
  if (fault_.empty()) fault_ = place;
  return 1;
}

std::optional<double> Published::find(const std::string& place) {
  used_.insert(place);
  const nlohmann::json::json_pointer pointer(place);
  if (!numbers_.contains(pointer) || !numbers_[pointer].is_number()) return std::nullopt;
  return numbers_[pointer].get<double>();
}

std::vector<std::string> Published::unused() const {
  std::vector<std::string> places;
  const nlohmann::json flat = numbers_.flatten();
  for (const auto& [place, value] : flat.items()) {
    if (value.is_number() && !used_.contains(place)) places.push_back(place);
  }
  return places;
}

std::string_view why_without_claim(std::string_view place) {
  for (const Reason& reason : kReasons) {
    if (place.starts_with(reason.prefix)) return reason.why;
  }
  return {};
}

}  // namespace unisono::tools
