# SPDX-License-Identifier: BSD-3-Clause
"""Plain words in names as a test: identifiers use the field's terms. scripts/tidy.py runs it.

An identifier is split at `_` and at capital letters. Its words are those of prose.py (WORDS), and
some more that are common words in a sentence, but wrong in a name (NAME_WORDS). EXCEPTIONS lists
names that stay, each with its reason. The identifiers of src/, include/ and frontend/ are checked,
and the names of their files.
"""

import re
import sys

sys.dont_write_bytecode = True
import prose  # noqa: E402  (its folder is this one)

FOLDERS = ("src/", "include/", "frontend/")

# (pattern, what to write instead); words that sentences may use.
NAME_WORDS = [
    (r"alarm(?:s|ed)?", "event"),
    (r"standings?", "progress"),
    (r"news", "update"),
    (r"offer(?:s|ed)?", "advertise, capabilities"),
    (r"lanes?", "size class queue"),
    (r"guests?|doors?", "relayed rank, relay socket"),
    (r"lent", "with_agent"),
    (r"record number", "call code"),
]

# (start of the path, pattern of the name, why it stays)
EXCEPTIONS = [
    ("src/nic/", r"verdict(?:_of)?", "what an XDP program returns is called so"),
    ("src/arith/", r"\w*lanes?|UNISONO_LANES|unisono_lanes_\w+|\w*Lanes?", "those of a vector"),
    ("src/nic/program/", r"\w*lanes?\w*", "those of a vector"),
    ("src/wire/payload_digest", r"\w*[lL]anes?\w*", "those of a vector"),
    ("src/wire/packet_filter", r"lane", "those of a vector"),
    ("frontend/python/src/dlpack", r"lanes", "a member of DLPack's data type"),
]

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
RULES = [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.I), instead)
         for pattern, instead in prose.WORDS + NAME_WORDS]


def said(name):
    """The words of a name: kFirstPause_ns is "k first pause ns"."""
    return " ".join(part.lower() for part in PART.findall(name))


def condemned(path, name):
    """(word, what to write instead) of a name; None if it may stay."""
    words = said(name)
    for pattern, instead in RULES:
        match = pattern.search(words)
        if match and not any(path.startswith(start) and re.fullmatch(names, name)
                             for start, names, _ in EXCEPTIONS):
            return match.group(), instead
    return None


def without_texts(path, text):
    """Code with its comments and texts taken out, its lines as they are."""
    def blank(match):
        return " " + "\n" * match.group().count("\n")
    if path.endswith(".py"):
        text = re.sub(r'"""(?:\\.|[^\\])*?"""' r"|'''(?:\\.|[^\\])*?'''", blank, text)
        return re.sub(r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'|#[^\n]*", blank, text)
    return prose.TOKEN.sub(blank, text)


def problems(path, text):
    """The problems (line, message) of the file's name and its identifiers; each name once."""
    for part in path.split("/"):
        found = condemned(path, part.split(".")[0])
        if found:
            yield 1, f"the name of a file: \"{found[0]}\": write {found[1]}"
    seen = set()
    for number, line in enumerate(without_texts(path, text).split("\n"), 1):
        for name in IDENTIFIER.findall(line):
            if name not in seen and (found := condemned(path, name)):
                yield number, f"{name}: \"{found[0]}\" in a name: write {found[1]}"
            seen.add(name)


def check(path, text):
    """The same, if the file is one that the rules hold for."""
    if path.startswith(FOLDERS) and path.endswith((*prose.CODE_SUFFIXES, ".py")):
        yield from problems(path, text)
