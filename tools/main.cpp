// SPDX-License-Identifier: BSD-3-Clause
// The `unisono` binary: registers the subcommands and turns CLI11's errors into one line on stderr
// and exit status 2. Everything else is in the subcommands' files.
#include <fcntl.h>
#include <unisono/unisono.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text.hpp"
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

// CLI11 says only that a subcommand is required, also where it does not know the given one.
std::string wrong_word(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  if (left.empty() || left.front().starts_with("-")) return {};
  std::vector<std::string_view> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::string_view near = unisono::base::nearest_name(left.front(), names);
  return "no subcommand is named '" + left.front() + "'" +
         (near.empty() ? "" : "; did you mean " + std::string(near) + "?");
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = app.get_subcommands().empty() ? wrong_word(app) : std::string();
  if (message.empty()) message = error.what();
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  const std::string path = command_path(app);
  std::fprintf(stderr, "%s: %s (see '%s --help')\n", path.c_str(), message.c_str(), path.c_str());
  return unisono::tools::kExitUsage;
}

// A file that the program opens must not become its standard output. Writes to this one fail.
void occupy_standard_output() {
  if (fcntl(STDOUT_FILENO, F_GETFD) >= 0) return;
  const int opened = open("/dev/null", O_RDONLY);
  if (opened < 0 || opened == STDOUT_FILENO) return;
  dup2(opened, STDOUT_FILENO);
  close(opened);
}

// Output is buffered, so a failure may show as late as here. `error_number`: of a failure that is
// known already. A reader that has left (EPIPE) wants no message.
int finish_output(int exit_status, int error_number = 0) {
  if (std::fflush(stdout) != 0 && error_number == 0) error_number = errno;
  if (std::ferror(stdout) == 0) return exit_status;
  // stdio keeps no error number: one more byte meets the same error.
  if (error_number == 0 && write(STDOUT_FILENO, "\n", 1) < 0) error_number = errno;
  if (error_number == EPIPE) return unisono::tools::kExitUsage;
  std::fprintf(stderr, "unisono: cannot write to standard output%s%s\n",
               error_number == 0 ? "" : ": ", error_number == 0 ? "" : std::strerror(error_number));
  return unisono::tools::kExitUsage;
}

// An exception that no subcommand has handled. Most often, fmt::print() could not write.
int report_thrown(const std::exception& thrown) {
  const auto* const failed = dynamic_cast<const std::system_error*>(&thrown);
  if (std::ferror(stdout) != 0) {
    return finish_output(unisono::tools::kExitUsage,
                         failed == nullptr ? 0 : failed->code().value());
  }
  std::fprintf(stderr, "unisono: %s\n", thrown.what());
  return finish_output(unisono::tools::kExitFailure);
}

// `unisono help run` is `unisono run --help`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_output();
  int exit_status = unisono::tools::kExitSuccess;
  CLI::App app("Unisono: collective communication that does not wait for host CPUs.", "unisono");
  app.formatter(std::make_shared<FirstLines>());
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string("unisono ") + unisono_version(),
                       "Print the version and exit");
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
    std::vector<std::string> words = words_of(argc, argv);
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(words);
  } catch (const CLI::Success& asked) {  // --help, --version
    return finish_output(app.exit(asked));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  } catch (const std::exception& thrown) {
    return report_thrown(thrown);
  }
  return finish_output(exit_status);
}
