#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Style as a test: the rules of STYLE.md that a program can decide.

    scripts/tidy.py [--root DIR] [--list] [--no-format] [--no-spelling]

Prints `file:line: what is wrong` for each breach and exits with 1 if there is one. --list adds the
files and functions beyond the "large" sizes, which is information and not an error. The rules of
prose are in prose.py, those of names in identifiers.py, those of sizes in sizes.py. Standard
library only; clang-format and codespell are used if they are there.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import identifiers  # noqa: E402  (its folder is this one)
import prose  # noqa: E402
import sizes  # noqa: E402

SKIPPED = {".git", "build", "__pycache__", ".cache"}  # .git is a file in a linked worktree
CODE = {".c", ".h", ".cpp", ".hpp"}
SCRIPTS = {".py", ".sh"}
REQUIRED_FILES = ["README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "CHANGELOG.md",
                  "LICENSE"]
FOLDER_README_HEADINGS = ["What it is", "May include", "Main type", "Start at", "Not here"]
FOLDER_README_LINES = 40
LINE_COLUMNS = 100
LARGE_FILE_LINES = {"source": 600, "test": 800, "header": 300}
LARGE_FUNCTION_LINES = 70
FORBIDDEN_FOLDERS = {"util", "utils", "common", "misc", "core", "helpers"}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
# The public headers are C or sit beside C; *_inl.hpp is compiled once per processor by Highway.
GUARDS = [r"^#pragma once$", r"^#ifndef UNISONO_\w+_H(PP)?$", r"^#if .*\bHWY_TARGET_TOGGLE\b",
          r"^#error "]
TABLE = re.compile(r"(?://|/\*) clang-format (on|off)\b")
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Spelled in pieces so that this file passes its own rules.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:wo" + r"rk|ho" + r"me|ro" + r"ot|us" + r"ers)/", re.I)

# (what is banned, where by prefix, except in, what to use instead)
BANNED = [
    (r"\bgetenv\s*\(", ("src/", "tools/"),
     ("src/base/settings/", "src/bootstrap/launchers/launcher"),
     "getenv: a setting belongs into the table of base/settings"),
    (r"\bstrcpy\s*\(", ("src/", "tools/"), (), "strcpy: use std::string or fmt::format_to_n"),
    (r"\bstrcat\s*\(", ("src/", "tools/"), (), "strcat: use std::string or fmt::format_to_n"),
    (r"\bv?sprintf\s*\(", ("src/", "tools/"), (), "sprintf: use fmt::format"),
    (r"\bs?rand\s*\(", ("src/", "tools/", "test/", "bench/"), (),
     "rand: use base/prng.hpp, which has a seed"),
    (r"\busleep\s*\(", ("src/", "tools/"), (), "usleep: wait on a flag, a futex or a descriptor"),
    (r"\bstd::cout\b", ("src/",), (), "std::cout: the library does not print; see base/log.hpp"),
    (r"#\s*include\s*<iostream>", ("src/",), (),
     "<iostream>: the library does not print; see base/log.hpp"),
    (r"\bassert\s*\(", ("src/",), (),
     "assert: use UNISONO_CHECK, which stays on and names the rank"),
    (r"\bstd::shared_ptr\b", ("src/arith/", "src/schedule/", "src/transport/", "src/topology/",
                                "src/wait/", "src/engine/"),
     ("src/schedule/blocks", "src/topology/host_map"), "std::shared_ptr: one owner, or an index"),
]

# Words that codespell takes for mistakes: names of variables and a part of a pattern.
CORRECT_WORDS = "improbe,iif,get's,upto,otherways,tring,ot"
CONSTANT = r"\bk[A-Z]\w*"


class Tree:
    """The project's files, each read once; collects what is wrong with them."""

    def __init__(self, root):
        self.root = root
        self.problems = []
        self.files = []
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            self.files += [Path(folder, n).relative_to(root) for n in sorted(names)
                           if n not in SKIPPED]
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            try:
                self._texts[path] = (self.root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                self._texts[path] = ""
        return self._texts[path]

    def lines(self, path):
        return enumerate(self.text(path).split("\n"), 1)

    def code(self):
        return [f for f in self.files if f.suffix in CODE]

    def problem(self, path, line, message):
        self.problems.append(f"{path}:{line}: {message}")


def without_comments(line):
    """A line of C or C++ without its // comment and the texts of its strings."""
    return re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"', '""', line))


def read_layers(tree):
    layers = {}
    for number, line in tree.lines(Path("scripts/layers.txt")):
        if line.strip() and not line.startswith("#"):
            name, _, level = line.partition(" ")
            if not level.strip().isdigit():
                tree.problem("scripts/layers.txt", number, "expected: folder level")
                continue
            layers[name] = int(level)
    return layers


def check_levels(tree, layers):
    """src/X may include folders of a lower level and itself; the public API only in src/api."""
    for path in tree.code():
        if path.parts[0] != "src" or len(path.parts) < 3:
            continue
        own = path.parts[1]
        if own not in layers:
            tree.problem(path, 1, f"folder {own} has no level in scripts/layers.txt")
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            other = match.group(2).split("/")[0]
            if other == "unisono" and own != "api":
                tree.problem(path, number, "only src/api includes the public headers")
            elif match.group(1) == '"' and (tree.root / path.parent / match.group(2)).exists():
                tree.problem(path, number, f'write includes from src/ on: "{own}/{match.group(2)}"')
            elif match.group(1) == '"' and other != own and layers.get(other, -1) >= layers[own]:
                tree.problem(path, number, f"{own} (level {layers[own]}) may not include {other} "
                                           f"(level {layers[other]})")


def section(text, heading):
    """The text below a heading of a page, up to the next heading."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found.group(1) if found else ""


def check_may_include(tree, layers):
    """"May include" of a folder of src/ names the folders that its files include, and no others."""
    used = {folder: {} for folder in layers}
    for path in tree.code():
        if path.parts[0] != "src" or path.parts[1] not in layers:
            continue
        for number, line in tree.lines(path):
            other = m.group(2).split("/")[0] if (m := INCLUDE.match(line)) else ""
            is_lower = layers.get(other, layers[path.parts[1]]) < layers[path.parts[1]]
            if m and m.group(1) == '"' and is_lower:
                used[path.parts[1]].setdefault(other, f"{path}:{number}")
    for folder in sorted(layers):
        readme = Path("src", folder, "README.md")
        if readme not in tree.files:
            continue
        text = section(tree.text(readme), "May include")
        if "Everything below." in text:
            continue
        # "Not `x/`" says what it may not include.
        allowed = re.sub(r"\bNot `[^.:]*[.:]", "", text)
        listed = {name.split("/")[0] for name in re.findall(r"`([a-z_]+/?)`", allowed)} & {*layers}
        for other in sorted(used[folder].keys() - listed):
            tree.problem(readme, 1, f"May include: lacks {other} ({used[folder][other]})")
        parts = {f.parts[2] for f in tree.files if f.parts[:2] == ("src", folder)}
        for other in sorted(listed - used[folder].keys() - parts - {folder}):
            tree.problem(readme, 1, f"May include: {other} is not included by any file")


def check_folder_tables(tree):
    """The tables of README.md and ARCHITECTURE.md name each folder of the top level and of src/."""
    tops = {f.parts[0] for f in tree.files if len(f.parts) > 1 and not f.parts[0].startswith(".")}
    rooms = {f.parts[1] for f in tree.files if len(f.parts) > 2 and f.parts[0] == "src"}
    for page, folders in (("README.md", tops), ("ARCHITECTURE.md", tops | rooms)):
        if Path(page) not in tree.files:
            continue
        first = [(n, re.findall(r"`([\w/]+)`", cell)) for n, line in tree.lines(Path(page))
                 if (cell := folder_cell(line))]
        named = {name.split("/")[0] for _, names in first for name in names} | {"src"}
        for folder in sorted(folders - named):
            tree.problem(page, 1, f"its tables of folders lack {folder}")
        for number, names in first:
            for name in names:
                if name.split("/")[0] not in folders:
                    tree.problem(page, number, f"there is no folder {name}")


def folder_cell(line):
    """The cell of a row that names folders: the first one, or the second one behind a level."""
    match = re.match(r"\| (?:\d+ \| )?((?:`[a-z_/]+`(?:, )?)+) \|", line)
    return match.group(1) if match else ""


def check_transports(tree):
    """Rooms above src/transport ask its table; transport/ip is addresses, and no transport."""
    for path in tree.code():
        if path.parts[0] not in ("src", "tools") or path.parts[1] == "transport":
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            parts = match.group(2).split("/") if match else []
            if len(parts) > 2 and parts[0] == "transport" and parts[1] != "ip":
                tree.problem(path, number,
                             f"names the transport {parts[1]}: use transport/table.hpp")


def check_own_header(tree):
    """x.cpp includes its x.hpp before all else, which shows that the header stands alone."""
    for path in tree.code():
        own = next((path.with_suffix(end) for end in (".hpp", ".h")
                    if path.with_suffix(end) in tree.files), None)
        if path.parts[0] != "src" or path.suffix != ".cpp" or own is None:
            continue
        own = own.relative_to("src").as_posix()
        number, line = next(((n, text) for n, text in tree.lines(path)
                             if text.lstrip().startswith("#")), (1, ""))
        match = INCLUDE.match(line)
        if not match or match.group(2) != own:
            tree.problem(path, number, f'what comes first is: #include "{own}"')


def check_test_namespaces(tree):
    """Sources of a test program are compiled as one, so each is in a namespace of its own name."""
    for path in tree.code():
        if path.parts[0] != "test" or not path.name.endswith("_test.cpp"):
            continue
        opened = [(n, m.group(1)) for n, line in tree.lines(path)
                  if (m := re.match(r"namespace (unisono[\w:]*) \{", line))]
        if opened and not any(name.endswith(f"::{path.stem}") for _, name in opened):
            number, name = opened[0]
            tree.problem(path, number, f"its tests are in the namespace {name}::{path.stem}")


def check_frontends(tree, layers):
    """Front ends and examples see what users see: the public headers only."""
    for path in tree.code():
        if path.parts[0] not in ("frontend", "examples"):
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            folder, slash, _ = match.group(2).partition("/") if match else ("", "", "")
            if slash and folder in layers:  # <algorithm> is the standard's
                tree.problem(path, number, f"{path.parts[0]} includes <unisono/...> only")


def check_heads(tree):
    for path in tree.files:
        is_code = path.suffix in CODE
        if is_code or path.suffix in SCRIPTS or path == Path("dev"):
            head = "\n".join(tree.text(path).split("\n")[:3])
            if "SPDX-License-Identifier: BSD-3-Clause" not in head:
                tree.problem(path, 1, "the first lines lack: SPDX-License-Identifier: BSD-3-Clause")
        if path.suffix in (".h", ".hpp"):
            text = tree.text(path)
            if not any(re.search(guard, text, re.M) for guard in GUARDS):
                tree.problem(path, 1, "header without #pragma once")


def check_banned(tree):
    rules = [(re.compile(pattern), *rest) for pattern, *rest in BANNED]
    for path in tree.code():
        name = str(path)
        mine = [r for r in rules if name.startswith(r[1]) and not name.startswith(r[2] or ("\0",))]
        for number, line in tree.lines(path) if mine else ():
            bare = without_comments(line)
            for pattern, _, _, instead in mine:
                if pattern.search(bare):
                    tree.problem(path, number, f"banned: {instead}")


def check_lines(tree):
    """Rules for every text line: whitespace, unfinished work, paths of one machine, length."""
    for path in tree.files:
        if path.suffix in (".png", ".svg", ".json", ".txt", ".golden") or "corpus" in path.parts:
            continue
        is_table = False  # a table of data, for which clang-format is switched off
        for number, line in tree.lines(path):
            if match := TABLE.search(line):
                is_table = match.group(1) == "off"
            if line != line.rstrip() and not line.rstrip().endswith("\\"):
                tree.problem(path, number, "trailing whitespace")
            if UNFINISHED.search(line):
                tree.problem(path, number, "unfinished work belongs into the issue tracker")
            if MACHINE_PATH.search(line):
                tree.problem(path, number, "a path of somebody's machine")
            limited = path.suffix in CODE | SCRIPTS and not is_table
            if limited and len(line) > LINE_COLUMNS:
                tree.problem(path, number, f"{len(line)} columns, {LINE_COLUMNS} are allowed")
        if tree.text(path) and not tree.text(path).endswith("\n"):
            tree.problem(path, len(tree.text(path).split("\n")), "no newline at the end")


def check_folders(tree):
    folders = {p for f in tree.files for p in f.parents}
    for folder in sorted(folders):
        if folder.name in FORBIDDEN_FOLDERS:
            tree.problem(folder, 0, "a folder is named after its concept")
    for folder in sorted(f for f in folders if f.parts[:1] == ("src",) and len(f.parts) == 2):
        readme = folder / "README.md"
        if readme not in tree.files:
            tree.problem(folder, 0, "no README.md")
            continue
        lines = tree.text(readme).rstrip("\n").split("\n")
        headings = [l.lstrip("# ").strip() for l in lines if re.match(r"##+ ", l)]
        if headings != FOLDER_README_HEADINGS:
            tree.problem(readme, 1, "headings have to be: " + ", ".join(FOLDER_README_HEADINGS))
        if len(lines) > FOLDER_README_LINES:
            tree.problem(readme, len(lines),
                         f"{len(lines)} lines, {FOLDER_README_LINES} are allowed")


def check_tests_exist(tree):
    """Every source has a test that knows of it. Some file of test/ names its stem, or includes a
    header of its folder that it includes."""
    tests = [f for f in tree.files if f.parts[0] == "test" and f.suffix != ".png"]
    words = set(re.findall(r"\w+", "\n".join(tree.text(f) for f in tests)))
    words |= {f.stem.removesuffix("_test") for f in tests}
    included = {m.group(2) for f in tests for _, l in tree.lines(f) if (m := INCLUDE.match(l))}
    for path in tree.code():
        if path.parts[0] != "src" or path.suffix != ".cpp" or path.stem in words:
            continue
        if path.parts[1] == "api" and "unisono/unisono.h" in included:
            continue  # the C header is what api/ is tested by
        own = [m.group(2) for _, l in tree.lines(path) if (m := INCLUDE.match(l))]
        if not any(h in included for h in own if h.startswith(path.parts[1] + "/")):
            tree.problem(path, 1, f"no file of test/ names {path.stem} or includes its header")


def heading_anchors(text):
    """The anchors that a Markdown page offers, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).strip().replace(" ", "-") for t in titles}


def check_markdown(tree):
    """Links lead somewhere, and every page of docs/ has a link that leads to it."""
    linked = set()
    for path in [f for f in tree.files if f.suffix == ".md"]:
        fenced = False
        for number, line in tree.lines(path):
            fenced ^= line.startswith("```")
            for link in [] if fenced else MARKDOWN_LINK.findall(line):
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (tree.root / path.parent / name).resolve() if name else tree.root / path
                linked.add(target)
                if not target.exists():
                    tree.problem(path, number, f"dead link: {link}")
                elif anchor and target.suffix == ".md":
                    if anchor not in heading_anchors(target.read_text()):
                        tree.problem(path, number, f"dead anchor: {link}")
    for path in tree.files:
        if path.suffix == ".md" and path.parts[0] == "docs" and tree.root / path not in linked:
            tree.problem(path, 1, "no page links to this one; add it to the index of its folder")


def check_prose(tree):
    for path in [f for f in tree.files if f.suffix in CODE | {".md", ".py"}]:
        for line, message in prose.check(path.as_posix(), tree.text(path)):
            tree.problem(path, line, message)


def check_identifiers(tree):
    for path in tree.files:
        if path.suffix in CODE | SCRIPTS:
            for line, message in identifiers.check(path.as_posix(), tree.text(path)):
                tree.problem(path, line, message)


def check_spelling(tree):
    tool = shutil.which("codespell")
    if tool is None:
        print("tidy: codespell is not installed, so the spelling was not checked")
        return
    files = [str(f) for f in tree.files if f.suffix in CODE | SCRIPTS | {".md"}]
    run = subprocess.run([tool, "--ignore-words-list", CORRECT_WORDS, "--ignore-regex", CONSTANT,
                          *files], cwd=tree.root, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+): (\S+ ==> .*)$", run.stdout, re.M)
    for path, line, message in found:
        tree.problem(path, line, f"spelling: {message}")
    if not found and (run.returncode != 0 or run.stderr):
        sys.exit(f"tidy: codespell failed: {(run.stdout + run.stderr)[:500]}")


def check_required(tree):
    for name in REQUIRED_FILES:
        if Path(name) not in tree.files:
            tree.problem(name, 0, "missing")


def check_format(tree):
    tool = shutil.which("clang-format")
    if tool is None:
        print("tidy: clang-format is not installed, so the layout of the code was not checked")
        return
    files = [str(f) for f in tree.code()]
    half = (len(files) + 1) // 2
    runs = [subprocess.Popen([tool, "--dry-run", *part], cwd=tree.root, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for part in (files[:half], files[half:]) if part]
    message = re.compile(r"^(.+?):\d+:\d+: (?:warning|error): code should be clang-formatted", re.M)
    wrong = set()
    for run in runs:
        errors = run.communicate()[1]
        wrong |= set(message.findall(errors))
        if run.returncode != 0 and not wrong:
            sys.exit(f"tidy: clang-format failed: {errors[:500]}")
    for name in sorted(wrong):
        tree.problem(name, 1, f"not formatted; run: clang-format -i {name}")


def large_functions(text):
    """(line, length) of functions beyond the large size. Relies on the indentation that
    clang-format gives. A body opens with a line that ends in `{` and closes with `}` in the same
    column. It is left of it if that line continues another, as behind a list of initializers."""
    open_at = {}
    for number, line in enumerate(text.split("\n"), 1):
        column = len(line) - len(line.lstrip())
        if line.endswith("{") and ("(" in line or ")" in line) and not re.match(
                r"\s*(if|for|while|switch|namespace|class|struct|enum|extern|else|}|do)\b", line):
            open_at[column] = number
        elif line.lstrip().startswith("}"):
            closed = [open_at.pop(other) for other in list(open_at) if other >= column]
            if not closed:
                continue
            start = min(closed)
            if number - start + 1 > LARGE_FUNCTION_LINES:
                yield start, number - start + 1


def list_large(tree):
    for path in tree.code():
        kind = "header" if path.suffix in (".h", ".hpp") else "source"
        kind = "test" if path.parts[0] == "test" else kind
        count = tree.text(path).count("\n")
        if count > LARGE_FILE_LINES[kind]:
            print(f"large file: {path}: {count} lines ({kind}: {LARGE_FILE_LINES[kind]})")
        for line, length in large_functions(tree.text(path)):
            print(f"large function: {path}:{line}: {length} lines")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="list large files and functions")
    parser.add_argument("--no-format", action="store_true", help="leave clang-format out")
    parser.add_argument("--no-spelling", action="store_true", help="leave codespell out")
    options = parser.parse_args()

    tree = Tree(options.root.resolve())
    layers = read_layers(tree)
    check_required(tree)
    check_folders(tree)
    check_levels(tree, layers)
    check_may_include(tree, layers)
    check_folder_tables(tree)
    check_frontends(tree, layers)
    check_transports(tree)
    check_own_header(tree)
    check_test_namespaces(tree)
    check_heads(tree)
    check_banned(tree)
    check_lines(tree)
    check_tests_exist(tree)
    sizes.check(tree)
    check_markdown(tree)
    check_prose(tree)
    check_identifiers(tree)
    if not options.no_spelling:
        check_spelling(tree)
    if not options.no_format:
        check_format(tree)
    if options.list:
        list_large(tree)
    for problem in tree.problems:
        print(problem)
    print(f"tidy: {len(tree.files)} files, {len(tree.problems)} problems")
    return 1 if tree.problems else 0


if __name__ == "__main__":
    sys.exit(main())
