#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes few sources that show of each header that it compiles alone.

    test/house/header_chains.py --source ROOT --output FOLDER HEADER ...

A source includes a chain of headers, each of them twice. Each header of a chain includes, itself or
through others, all project headers that the chain has before it. So what stands before a header is
what it includes anyway, and the chain compiles if each of its headers does so alone. Includes
inside of #if count where they could hide something, and not where something relies on them. HEADER
is relative to ROOT. Prints the sources' paths, separated by semicolons; files whose content is the
same stay untouched.
"""

import argparse
import pathlib
import re

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
OPENS = re.compile(r"\s*#\s*if")
CLOSES = re.compile(r"\s*#\s*endif")
FOLDERS = ("src", "include")  # of headers, as the compiler searches them


def includes_of(text):
    """(always, perhaps): the names that a text includes outside of #if, and anywhere."""
    always, perhaps = [], []
    depth = 0
    for line in text.splitlines():
        if OPENS.match(line):
            depth += 1
        elif CLOSES.match(line):
            depth -= 1
        elif found := INCLUDE.match(line):
            perhaps.append(found[1])
            if depth == 0:
                always.append(found[1])
    return always, perhaps


def closures(direct):
    """For each header those that it includes, itself or through others."""
    reached = {}
    for header in direct:
        seen, left = set(), list(direct[header])
        while left:
            each = left.pop()
            if each not in seen and each in direct:
                seen.add(each)
                left += direct[each]
        reached[header] = seen
    return reached


def chains(headers, always, perhaps):
    """The fewest chains of the headers: a matching of each with the one that comes next."""
    surely, at_most = closures(always), closures(perhaps)
    after = {
        header: [other for other in headers
                 if other != header and ({header} | at_most[header]) <= surely[other]]
        for header in headers
    }
    before = {}  # of each header that has one before it

    def match(header, tried):
        for other in after[header]:
            if other in tried:
                continue
            tried.add(other)
            if other not in before or match(before[other], tried):
                before[other] = header
                return True
        return False

    for header in headers:
        match(header, set())
    following = {first: second for second, first in before.items()}
    result = []
    for header in headers:
        if header in before:
            continue
        chain = [header]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        result.append(chain)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()

    always, perhaps = {}, {}
    for folder in FOLDERS:
        for pattern in ("*.hpp", "*.h"):
            for path in (arguments.source / folder).rglob(pattern):
                name = path.relative_to(arguments.source / folder).as_posix()
                always[name], perhaps[name] = includes_of(path.read_text())
    headers = sorted(header.partition("/")[2] for header in arguments.headers)

    arguments.output.mkdir(parents=True, exist_ok=True)
    written = []
    for chain in chains(headers, always, perhaps):
        path = arguments.output / (re.sub(r"\W", "_", chain[-1]) + ".cpp")
        content = "".join(f'#include "{header}"\n' * 2 for header in chain)
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
        written.append(path.as_posix())
    print(";".join(written), end="")


if __name__ == "__main__":
    main()
