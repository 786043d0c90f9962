// SPDX-License-Identifier: BSD-3-Clause
#include "mpirun/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "model/default_machine.hpp"
#include "model/own_machine.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Error;
using base::Result;

// Less is noise of a measurement. The aim is that no call loses more than 5 %.
constexpr double kWorthIt = 1.03;

bool is_faster(const MeasuredCell& cell) { return cell.speed_up() > kWorthIt; }

std::int64_t between(const MeasuredCell& a, const MeasuredCell& b) {
  return std::llround(std::sqrt(static_cast<double>(a.bytes) * static_cast<double>(b.bytes)));
}

// The neighbour's cell if it is of the same collective.
const MeasuredCell* neighbour(const Measured& measured, std::size_t at, int step) {
  const std::size_t other = at + static_cast<std::size_t>(step);
  if (other >= measured.cells.size()) return nullptr;  // also before the first
  const MeasuredCell& found = measured.cells[other];
  return found.collective == measured.cells[at].collective ? &found : nullptr;
}

}  // namespace

double MeasuredCell::speed_up() const {
  return std::sqrt(loop / host_loop * (single / host_single));
}

Result<Measured> parse_measured(std::string_view text, const std::string& file) {
  Measured measured;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "library") {
      std::getline(words >> std::ws, measured.library);
    } else if (key == "ranks") {
      words >> measured.ranks;
    } else if (key == "hosts") {
      words >> measured.hosts;
    } else {
      MeasuredCell cell{.collective = key};
      words >> cell.bytes >> cell.loop >> cell.host_loop >> cell.single >> cell.host_single;
      if (std::min({cell.loop, cell.host_loop, cell.single, cell.host_single}) <= 0) {
        words.setstate(std::ios::failbit);
      }
      measured.cells.push_back(std::move(cell));
    }
    if (!words) {
      return Error{Code::argument, fmt::format("{}:{}: expected a measured time, found \"{:.80}\"",
                                               file, number, line)};
    }
  }
  if (measured.library.empty() || measured.ranks < 2 || measured.hosts < 1 ||
      measured.cells.empty()) {
    return Error{Code::argument, fmt::format("{}: the measurement is not complete", file)};
  }
  return measured;
}

model::HostMpi ranges_of(const Measured& measured) {
  model::HostMpi ranges{measured.library, measured.ranks, measured.hosts, {}};
  for (std::size_t i = 0; i < measured.cells.size(); ++i) {
    const MeasuredCell& cell = measured.cells[i];
    if (!is_faster(cell)) continue;
    const MeasuredCell* const before = neighbour(measured, i, -1);
    const MeasuredCell* const after = neighbour(measured, i, 1);
    if (before == nullptr || !is_faster(*before)) {
      ranges.faster.push_back(
          {cell.collective, before == nullptr ? 0 : between(*before, cell) + 1, 0});
    }
    if (after != nullptr && !is_faster(*after)) {
      ranges.faster.back().up_to_bytes = between(cell, *after);
    }
  }
  return ranges;
}

Result<std::string> keep_ranges(const base::Settings& settings, model::HostMpi ranges) {
  const std::string& folder = settings.cache_folder();
  if (folder.empty()) {
    return Error{Code::argument, "neither XDG_CACHE_HOME nor HOME says where the machine file is"};
  }
  const model::Fingerprint fingerprint = model::own_fingerprint(settings);
  const Result<model::Machine> own = model::read_own_machine(folder, fingerprint);
  model::Machine machine = own.ok() ? *own : model::default_machine();
  machine.fingerprint = fingerprint;
  model::replace_host_mpi(machine, std::move(ranges));
  UNISONO_TRY(model::write_own_machine(machine, folder));
  return model::own_machine_path(folder);
}

}  // namespace unisono::tools
