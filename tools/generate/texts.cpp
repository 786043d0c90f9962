// SPDX-License-Identifier: BSD-3-Clause
#include "generate/texts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>
#include <vector>

namespace unisono::tools {
namespace {

// Subcommands and options without a group are not shown to people.
std::vector<const CLI::App*> children_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* child) {
    return !child->get_name().empty() && !child->get_group().empty();
  });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Those of "auto|native", and those that CLI11 makes of a list, as in "TEXT:{text,markdown}".
// Nothing if it is no list of words.
std::vector<std::string> values_of(const CLI::Option& option) {
  std::vector<std::string> values = CLI::detail::split(option.get_option_text(), '|');
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open < close && close != std::string::npos) {
    values = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  }
  const bool words = std::ranges::all_of(values, [](const std::string& value) {
    return !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
    });
  });
  return words && values.size() > 1 ? values : std::vector<std::string>{};
}

// Calls visit(app, "unisono nic status") for the application and all below it.
void each_command(const CLI::App& app, const std::string& path,
                  const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, path);
  for (const CLI::App* child : children_of(app)) {
    each_command(*child, path + " " + child->get_name(), visit);
  }
}

// For roff: no line begins a request, and a hyphen can be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

// An empty line separates paragraphs.
std::string paragraphs(std::string_view text) {
  std::string out;
  for (const std::string& line : CLI::detail::split(std::string(text), '\n')) {
    out += line.empty() ? ".PP\n" : roff(line) + "\n";
  }
  return out;
}

std::string option_text(const CLI::Option& option) {
  std::string head = fmt::format("{}", fmt::join(names_of(option), ", "));
  if (head.empty()) head = option.get_name(true);
  if (option.get_items_expected_max() > 0) {
    const std::string text = option.get_option_text();
    if (!text.empty() || !names_of(option).empty()) {
      head += " " + (text.empty() ? option.get_type_name() : text);
    }
  }
  std::string description = option.get_description();
  if (!option.get_default_str().empty()) {
    description += fmt::format(" (default: {})", option.get_default_str());
  }
  return fmt::format(".TP\n.B {}\n{}\n", roff(head), roff(description));
}

std::string command_text(const CLI::App& app, const std::string& path) {
  std::string out = fmt::format(".SS {}\n{}", roff(path), paragraphs(app.get_description()));
  for (const CLI::Option* option : options_of(app)) {
    if (option->get_lnames() != std::vector<std::string>{"help"}) out += option_text(*option);
  }
  if (app.get_footer().empty()) return out;
  return out + fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string paths;
  std::string words;
  std::string values;
  each_command(app, app.get_name(), [&](const CLI::App& command, const std::string& path) {
    if (&command != &app) paths += fmt::format("      '{}') path=$path' '$word ;;\n", path);
    std::vector<std::string> all;
    for (const CLI::App* child : children_of(command)) all.push_back(child->get_name());
    for (const CLI::Option* option : options_of(command)) {
      const std::vector<std::string> names = names_of(*option);
      all.insert(all.end(), names.begin(), names.end());
      if (option->get_items_expected_max() < 1) continue;
      for (const std::string& name : names) {
        values += fmt::format("    '{} {}') words='{}' ;;\n", path, name,
                              fmt::join(values_of(*option), " "));
      }
    }
    words += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(all, " "));
  });
  return fmt::format(
      "# bash completion for {0}, printed by `{0} generate bash-completion`.\n"
      "_{0}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local path={0} words='' word i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=${{COMP_WORDS[i]}}\n"
      "    case \"$path $word\" in\n{1}"
      "    esac\n"
      "  done\n"
      "  case $path in\n{2}"
      "  esac\n"
      "  case \"$path $prev\" in\n{3}"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}}\n"
      "complete -o bashdefault -o default -F _{0} {0}\n",
      app.get_name(), paths, words, values);
}

std::string man_page(const CLI::App& app, const std::string& version) {
  const std::string name = app.get_name();
  std::string out = fmt::format(
      ".TH {} 1 \"\" \"Unisono {}\" \"User Commands\"\n.SH NAME\n{} \\- run, explain and measure "
      "collective communication\n.SH SYNOPSIS\n.B {}\n.I COMMAND\n.RI [ options ]\n"
      ".SH DESCRIPTION\n{}.SH OPTIONS\n",
      "UNISONO", version, name, name, paragraphs(app.get_description()));
  for (const CLI::Option* option : options_of(app)) out += option_text(*option);
  out += ".SH COMMANDS\n";
  each_command(app, name, [&](const CLI::App& command, const std::string& path) {
    if (&command != &app) out += command_text(command, path);
  });
  return out +
         ".SH EXIT STATUS\n0: success. 1: the answer is no, or a failure. 2: the command line "
         "makes "
         "no sense.\n.SH SEE ALSO\n.BR unisonod (8)\n";
}

}  // namespace unisono::tools
