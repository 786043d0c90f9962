// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

namespace unisono::bench {

Options::Options(const std::string& about) : app_(std::make_unique<CLI::App>(about)) {}
Options::~Options() = default;

void Options::word(const std::string& name, std::string& value) { app_->add_option(name, value); }

void Options::word(const std::string& name, std::string& value,
                   const std::vector<std::string>& allowed) {
  app_->add_option(name, value)->check(CLI::IsMember(allowed));
}

void Options::words(const std::string& name, std::vector<std::string>& values,
                    const std::vector<std::string>& allowed) {
  app_->add_option(name, values)->delimiter(',')->check(CLI::IsMember(allowed));
}

void Options::flag(const std::string& name, bool& value, const std::string& about) {
  app_->add_flag(name, value, about);
}

void Options::parse(int count, char** arguments) {
  try {
    app_->parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->exit(error));
  }
}

void Options::add_number(const std::string& name, std::int64_t least, std::int64_t most,
                         std::function<void(std::int64_t)> set) {
  app_->add_option_function<std::int64_t>(name, std::move(set))->check(CLI::Range(least, most));
}

}  // namespace unisono::bench
