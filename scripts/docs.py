#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages of docs/reference that follow from the tool: are they up to date?

    scripts/docs.py --unisono build/release/bin/unisono [--write]

Compares each page that the tool prints with what it prints now and shows the difference; --write
renews them. cli.md is written by hand: its sections have to name all options that --help shows.
Links between pages are checked by scripts/tidy.py.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGES = {
    "algorithms.md": ["info", "--algorithms", "--format", "markdown"],
    "settings.md": ["info", "--config", "--format", "markdown"],
    "transports.md": ["info", "--transports", "--format", "markdown"],
}
EVERYWHERE = {"--help"}
OPTION = re.compile(r"^  ((?:-\w,)?--[a-z][a-z-]*)", re.M)
SUBCOMMAND = re.compile(r"^  ([a-z][a-z-]*)  ", re.M)


def printed(unisono, arguments):
    # A setting of the caller's must not get into the pages.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_")}
    return subprocess.run([unisono, *arguments], check=True, text=True, stdout=subprocess.PIPE,
                          env=environment).stdout


def sections(text):
    """Heading -> text below it, for headings of the second level."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def missing_options(program, command, text):
    """The options that `program command --help` shows, also of its subcommands, and text lacks."""
    shown = printed(program, [*command, "--help"])
    options, _, subcommands = shown.partition("Subcommands:")
    missing = []
    for option in OPTION.findall(options):
        names = set(option.split(","))
        if not names & EVERYWHERE and not any(
                re.search(rf"(?<![\w-]){name}(?![\w-])", text) for name in names):
            missing.append(option)
    for name in SUBCOMMAND.findall(subcommands):
        missing += missing_options(program, [*command, name], text)
    return missing


def check_command_line(unisono):
    """How many commands have options that their section lacks, and how many there are."""
    page = sections((REFERENCE / "cli.md").read_text())
    page["unisono run"] += (REFERENCE / "cli-run.md").read_text()
    commands = SUBCOMMAND.findall(printed(unisono, ["--help"]).partition("Subcommands:")[2])
    programs = {f"unisono {name}": (unisono, [name]) for name in commands}
    daemon = Path(unisono).with_name("unisonod")
    if daemon.exists():  # not where it cannot be built
        programs["unisonod"] = (daemon, [])
    faults = 0
    for title, (program, command) in programs.items():
        missing = missing_options(program, command, page.get(title, ""))
        if missing:
            faults += 1
            print(f"docs/reference/cli.md: section {title} lacks {' '.join(missing)}")
    return faults, len(programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unisono", required=True, help="the tool that prints the pages")
    parser.add_argument("--write", action="store_true", help="renew the pages")
    options = parser.parse_args()

    stale = 0
    for name, arguments in PAGES.items():
        page = REFERENCE / name
        new = printed(options.unisono, arguments)
        old = page.read_text() if page.exists() else ""
        if new == old:
            continue
        if options.write:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(new)
            print(f"renewed docs/reference/{name}")
        else:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), str(page), "printed now"))
    print(f"docs: {len(PAGES)} generated pages, {stale} out of date"
          + ("; run: ./dev docs --write" if stale else ""))
    faults, commands = check_command_line(options.unisono)
    print(f"docs: {commands} commands, {faults} with options that cli.md lacks")
    return 1 if stale or faults else 0


if __name__ == "__main__":
    sys.exit(main())
