// SPDX-License-Identifier: BSD-3-Clause
// Texts that follow from the tree of options of the `unisono` binary, so that they cannot go stale:
// bash's completion and the manual page. Pure; main thread, as CLI11's objects are not shared.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace unisono::tools {

// A script for /usr/share/bash-completion/completions: subcommands, options, and the values of
// options that have a list of them; files otherwise.
std::string bash_completion(const CLI::App& app);

// A page of section 1, with a section for each subcommand. `version`: "0.1.0"
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace unisono::tools
