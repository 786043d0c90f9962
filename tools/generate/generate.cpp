// SPDX-License-Identifier: BSD-3-Clause
// unisono generate: texts for packages, from the options of this binary (texts.hpp).
#include <fmt/format.h>
#include <unisono/unisono.h>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "generate/texts.hpp"

namespace unisono::tools {

void add_generate(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("generate", "Print bash's completion or the manual page of this command");
  command->require_subcommand(1);
  command->footer("Example:\n  source <(unisono generate bash-completion)");
  command->add_subcommand("bash-completion", "Print the script for bash")
      ->callback([&app, &exit_status] {
        fmt::print("{}", bash_completion(app));
        exit_status = kExitSuccess;
      });
  command->add_subcommand("man-page", "Print the manual page, in roff")
      ->callback([&app, &exit_status] {
        fmt::print("{}", man_page(app, unisono_version()));
        exit_status = kExitSuccess;
      });
}

}  // namespace unisono::tools
