// SPDX-License-Identifier: BSD-3-Clause
// The `unisono` binary: registers the subcommands and turns CLI11's errors into one line on stderr
// and exit status 2. Everything else is in the subcommands' files.
#include <unisono/unisono.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include "commands.hpp"

namespace {

// A subcommand's description may have paragraphs; the list of subcommands shows its first line.
class FirstLines : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* subcommand) const override {
    const std::string description = subcommand->get_description();
    std::stringstream out;
    CLI::detail::format_help(out, subcommand->get_display_name(true),
                             description.substr(0, description.find('\n')), column_width_);
    return out.str();
  }
};

// The subcommand that was being read when parsing stopped, for "see '... --help'".
std::string command_path(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + command_path(*chosen.front());
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  const std::string path = command_path(app);
  std::fprintf(stderr, "%s: %s (see '%s --help')\n", path.c_str(), message.c_str(), path.c_str());
  return unisono::tools::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_status = unisono::tools::kExitSuccess;
  CLI::App app("Unisono: collective communication that does not wait for host CPUs.", "unisono");
  app.formatter(std::make_shared<FirstLines>());
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("unisono ") + unisono_version(),
                       "Print the version and leave");
  app.footer("Example:\n  unisono bench allreduce -n 2");
  unisono::tools::add_run(app, exit_status);
  unisono::tools::add_bench(app, exit_status);
  unisono::tools::add_check(app, exit_status);
  unisono::tools::add_info(app, exit_status);
  unisono::tools::add_explain(app, exit_status);
  unisono::tools::add_show(app, exit_status);
  unisono::tools::add_hosts(app, exit_status);
  unisono::tools::add_nic(app, exit_status);
  unisono::tools::add_mpirun(app, exit_status);
  unisono::tools::add_topology(app, exit_status);
  unisono::tools::add_sim(app, exit_status);
  unisono::tools::add_paper(app, exit_status);
  unisono::tools::add_tune(app, exit_status);
  unisono::tools::add_profile(app, exit_status);
  unisono::tools::add_generate(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  return exit_status;
}
