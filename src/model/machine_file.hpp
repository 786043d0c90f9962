// SPDX-License-Identifier: BSD-3-Clause
// Machine files: a Machine as JSON, docs/reference/machine-file.md. A file is read whole or refused
// with file, line and what was expected; unknown keys are refused. The written text of a machine
// that was read is the text that was read, if it has this writer's layout. Control path; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/machine.hpp"

namespace unisono::model {

inline constexpr int kMachineFileVersion = 1;
// A file of all levels, engines, operators and types has some 200 KiB.
inline constexpr std::size_t kMostMachineFileBytes = std::size_t{1} << 20;

// `file` is its name in errors.
base::Result<Machine> parse_machine(std::string_view text, std::string_view file);
base::Result<Machine> read_machine_file(const std::string& path);

std::string machine_text(const Machine& machine);
// The checksum of a text whose own checksum reads as zeros; 16 digits. It detects accidents, not
// intentions.
std::string checksum_of(std::string_view text);
// Where the 16 digits of the checksum stand in a text; npos if there are none.
std::size_t checksum_place(std::string_view text);
// Whole or not at all: other processes see the old file or the new one.
base::Status write_machine_file(const Machine& machine, const std::string& path);

}  // namespace unisono::model
