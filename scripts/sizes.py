#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sizes as a test: files of a folder, lines of a file, member functions of a class.

    scripts/sizes.py [ROOT]     the largest classes below ROOT; scripts/tidy.py judges

Private member functions count; functions that are only defaulted or deleted do not. Classes are
found by their text, which clang-format keeps regular.
"""

import re
import sys
from pathlib import Path

MOST_FILES = 20
MOST_LINES = 600
MOST_MEMBERS = 30

CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([A-Za-z_]\w*)(?:\s+final)?"
                   r"\s*(?::[^;{()]*)?\{")
NO_FUNCTION = re.compile(r"(?:using|friend|static_assert|typedef|enum|class|struct|union)\b")
ENTERS_TYPE = re.compile(r"\s*(?:template\s*<[^>]*>\s*)?(?:class|struct|enum|union)\b")


def bare(text):
    """The text without comments, preprocessor lines and the contents of strings."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(\\.|[^'\\\n])'", "' '", text)
    return re.sub(r"^[ \t]*#.*(?:\\\n.*)*$", "", text, flags=re.M)


def body_from(text, start):
    """The text between the brace at `start` and the one that closes it."""
    depth = 0
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return text[start + 1:start + match.start()]
    return text[start + 1:]


def statements(body):
    """The statements of a class's body, without what stands in inner braces."""
    statement, depth = "", 0
    for character in body:
        if character == "}":
            depth -= 1
            # A function's body or a type ends a statement; initial values of data do not.
            if depth == 0 and ("(" in statement or ENTERS_TYPE.match(statement)):
                yield statement
                statement = ""
        elif character == "{":
            depth += 1
        elif depth == 0 and character == ";":
            yield statement
            statement = ""
        elif depth == 0:
            statement += character


def is_function(statement):
    statement = re.sub(r"\b(?:public|private|protected)\s*:", "", statement)
    statement = re.sub(r"\[\[[^\]]*\]\]", "", statement).strip()
    if NO_FUNCTION.match(statement) or re.search(r"=\s*(?:default|delete)$", statement):
        return False
    before = None
    while before != statement:  # template arguments may hold types of functions
        before, statement = statement, re.sub(r"<[^<>]*>", "", statement)
    name, parenthesis, _ = statement.partition("(")
    return bool(parenthesis) and ("=" not in name or "operator" in name)


def classes(text):
    """(name, line, member functions) of each class of a file."""
    text = bare(text)
    for match in CLASS.finditer(text):
        body = body_from(text, match.end() - 1)
        line = text[:match.start()].count("\n") + 1
        yield match.group(1), line, sum(map(is_function, statements(body)))


def check(tree):
    """`tree` as in tidy.py."""
    folders = {}
    for path in tree.files:
        if path.parts[0] not in ("src", "tools", "frontend", "include"):
            continue
        if path.name not in ("README.md", "CMakeLists.txt"):
            folders[path.parent.as_posix()] = folders.get(path.parent.as_posix(), 0) + 1
        if path.suffix not in (".c", ".h", ".cpp", ".hpp"):
            continue
        lines = tree.text(path).count("\n")
        # A program includes one public header for its language, whatever its length.
        if lines > MOST_LINES and path.parts[0] != "include":
            tree.problem(path, lines, f"lines: {lines}, {MOST_LINES} are allowed")
        for name, line, members in classes(tree.text(path)):
            if members > MOST_MEMBERS:
                tree.problem(path, line, f"member functions of {name}: {members}, "
                                         f"{MOST_MEMBERS} are allowed")
    for folder, files in sorted(folders.items()):
        if files > MOST_FILES:
            tree.problem(folder, 0, f"files: {files}, {MOST_FILES} are allowed")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = [(members, f"{name} {path}:{line}") for path in root.rglob("*.[hc]pp")
             if "build" not in path.parts
             for name, line, members in classes(path.read_text(encoding="utf-8"))]
    for members, where in sorted(found, reverse=True)[:20]:
        print(f"{members:4} {where}")


if __name__ == "__main__":
    main()
