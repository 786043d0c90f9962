// SPDX-License-Identifier: BSD-3-Clause
#include "random/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "algorithm/algorithm.hpp"
#include "model/constants.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"

namespace unisono::test::programs {
namespace {

using algorithm::Algorithm;

const char* one_of(base::Prng& prng, std::initializer_list<const char*> values) {
  return *(values.begin() + prng.below(values.size()));
}

// Any parameters. Where they are illegal, the library passes the rule over.
std::string draw_rule(base::Prng& prng, const Algorithm& row) {
  algorithm::Parameters parameters;
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    const algorithm::ParameterSpec& spec = row.parameters[i];
    const int high = spec.high == 0 ? std::max(spec.low, 9) : std::min(spec.high, spec.low + 12);
    const auto values = static_cast<std::uint64_t>(high - spec.low + 1);
    const bool is_usual = prng.below(2) == 0;
    parameters.values[i] =
        is_usual ? spec.fallback : spec.low + static_cast<int>(prng.below(values));
  }
  std::string range = one_of(prng, {"", "", "", "@0-4K", "@4K-inf", "@64K-inf", "@100-1M"});
  if (row.collective == schedule::Collective::barrier) range.clear();  // it carries no bytes
  return std::string(schedule::collective_name(row.collective)) + ": " +
         algorithm::describe(row, parameters) + range;
}

const Algorithm& draw_row(base::Prng& prng) {
  const auto table = algorithm::table();
  return table[prng.below(table.size())];
}

std::string draw_rules(base::Prng& prng, schedule::Collective often) {
  std::string all;
  const auto add = [&](const Algorithm& row) {
    all += (all.empty() ? "" : " | ") + draw_rule(prng, row);
  };
  for (std::uint64_t tries = 60; tries > 0; --tries) {
    const Algorithm& row = draw_row(prng);
    if (row.collective == often) add(row);
  }
  for (std::uint64_t count = prng.below(16); count > 0; --count) add(draw_row(prng));
  return all;
}

}  // namespace

std::map<std::string, std::string> draw_settings(base::Prng& prng, bool hosts,
                                                 schedule::Collective often) {
  std::map<std::string, std::string> all{
      {"UNISONO_MACHINE", "default"},
      {"UNISONO_ENGINE", one_of(prng, {"auto", "inline", "inline", "helping"})},
      {"UNISONO_BUFFERS", one_of(prng, {"64M", "64M", "64K", "128K", "256K", "1M", "4M"})},
      {"UNISONO_SINGLE_COPY", one_of(prng, {"auto", "auto", "off", "on"})},
      {"UNISONO_SINGLE_COPY_FROM", one_of(prng, {"auto", "auto", "64", "5000", "100K"})},
      {"UNISONO_CHANNELS", one_of(prng, {"0", "0", "1", "2", "4", "16"})},
      {"UNISONO_AGENT", one_of(prng, {"auto", "on", "off"})},
      {"UNISONO_SPIN", one_of(prng, {"auto", "0", "0", "20us"})},
      {"UNISONO_REPRODUCIBLE", one_of(prng, {"0", "0", "0", "1", "ranks"})},
      {"UNISONO_HETEROGENEOUS", one_of(prng, {"off", "off", "off", "on"})},
      {"UNISONO_CHECK", one_of(prng, {"off", "off", "off", "on"})},
      {"UNISONO_LEARN", one_of(prng, {"off", "off", "off", "on"})},
      // Shortly before the sequence numbers wrap around at some number of bits.
      {"UNISONO_FIRST_SEQUENCE",
       one_of(prng, {"1", "1", "250", "65500", "2147483600", "4294967280", "1099511627760"})},
  };
  if (prng.below(3) != 0) all["UNISONO_ALGORITHM"] = draw_rules(prng, often);
  if (!hosts) return all;
  all["UNISONO_MULTICAST"] = one_of(prng, {"auto", "off"});
  all["UNISONO_BULK"] = one_of(prng, {"auto", "udp", "tcp"});
  all["UNISONO_BULK_FROM"] = one_of(prng, {"auto", "auto", "1K", "20000"});
  all["UNISONO_BULK_TAGS"] = one_of(prng, {"on", "off"});
  all["UNISONO_DATAGRAM"] = one_of(prng, {"auto", "auto", "508", "8000"});
  return all;
}

Constants draw_constants(base::Prng& prng) {
  constexpr std::int64_t kBytes[] = {0, 1, 8, 64, 500, 4096, 20'000, 131'072, 1 << 30};
  constexpr std::int64_t kRanks[] = {0, 1, 2, 3, 4, 8, 100};
  constexpr std::int64_t kNs[] = {0, 1'000, 100'000};
  const auto value_of = [&](model::Quantity quantity) {
    switch (quantity) {
      case model::Quantity::bytes:
        return kBytes[prng.below(std::size(kBytes))];
      case model::Quantity::ranks:
        return kRanks[prng.below(std::size(kRanks))];
      case model::Quantity::time:
      case model::Quantity::time_per_byte:
        break;
    }
    return kNs[prng.below(std::size(kNs))];
  };
  Constants all;
  for (const model::ConstantRow& row : model::constant_rows()) {
    if (row.quantity == model::Quantity::time_per_byte || prng.below(2) == 0) continue;
    const std::int64_t value = value_of(row.quantity);
    // A message for every element of a long vector takes minutes.
    const bool is_piece = row.id == model::Constant::streamed_piece;
    all.emplace(row.name, is_piece ? std::max<std::int64_t>(value, 500) : value);
  }
  return all;
}

std::string write_machine(const Constants& constants, const std::string& folder) {
  model::Machine machine = model::default_machine();
  for (const model::ConstantRow& row : model::constant_rows()) {
    const auto found = constants.find(std::string(row.name));
    if (found == constants.end()) continue;
    model::Value& value = machine.constants[static_cast<std::size_t>(row.id)].emplace();
    value.number = static_cast<double>(found->second);
    if (row.quantity == model::Quantity::bytes) value.unit = model::Unit::bytes;
    if (row.quantity == model::Quantity::ranks) value.unit = model::Unit::ranks;
    value.where = "drawn";
  }
  std::string path = folder + "/machine.json";
  const base::Status written = model::write_machine_file(machine, path);
  EXPECT_TRUE(written.ok()) << written.error().message;
  return path;
}

}  // namespace unisono::test::programs
