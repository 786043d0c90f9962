#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plain words as a test: the rules of prose that a program can decide. scripts/tidy.py runs them.

    scripts/prose.py FILE...        prints `file:line: what is wrong`, whatever list the file is on

A sentence has 25 words at most. Some words and forms do not come back (WORDS, BARE_SUBJECT). A page
of docs/explanation, docs/howto and docs/tutorial begins with two sentences: what the reader learns.
Blocks of code and code in `quotes` are exempt from everything, tables and headings from the length.

In the folders of CODE_FOLDERS the same holds for README.md, comments and the texts of the code:
messages and help. The texts of tests are data and exempt, and so are names. A comment does not
begin with a bare subject or with "Of ..." either. In PYTHON_FOLDERS it holds for comments and
docstrings.
"""

import ast
import fnmatch
import io
import re
import sys
import tokenize
from pathlib import Path

MOST_WORDS = 25
PAGES = ["docs/*.md", "README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
# Pages that begin with two sentences; `*` also stands for `/`.
OPENED = ["docs/explanation/*.md", "docs/howto/*.md", "docs/tutorial/*.md"]

# Folders whose comments, texts and README.md are checked.
CODE_FOLDERS = ["bench", "examples", "frontend", "include", "machines", "packaging", "src", "test",
                "tools"]
CODE_SUFFIXES = (".c", ".h", ".cpp", ".hpp")
PYTHON_FOLDERS = ["examples", "frontend", "scripts", "test"]

# (pattern, what to write instead)
WORDS = [
    (r"beds?|do(?:ze|zes|zed|zing)|naps?|napping", "sleep, poll-sleep, SleepTarget"),
    (r"knock(?:s|ed|ing)?", "mark contended"),
    (r"seats?", "JobInfo"),
    (r"bells?|towers?", "doorbell, sleeper table"),
    (r"strands?", "wait segment"),
    (r"kick(?:s|ed|ing)?", "doorbell packet; to send one"),
    (r"hopp(?:ed|ing)", "forwarded, forwarding"),
    (r"strangers?|visitors?", "rejected peer, connection"),
    (r"boards?", "key-value store (KVS)"),
    (r"gates?", "host relay"),
    (r"attend(?:s|ed|ing)?", "join"),
    (r"farewells?|take leave", "leave record; finalize"),
    (r"verdicts?", "vote"),
    (r"crowded", "oversubscribed"),
    (r"odd rank", "mismatching rank"),
    (r"ha(?:s|ve|d) a root", "rooted collective"),
    (r"(?:in|with) the stead of|many a", "a plain word of today"),
    (r"of wh(?:om|ich) nobody", "no rank"),
]
WORD_RULES = [(re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.I), instead)
              for pattern, instead in WORDS]
# A clause as the subject, "What is lost goes ...", but no question.
BARE_SUBJECT = re.compile(
    r"^(?:Who|What|Whose|Whoever|Whichever)\b(?!.*\?)"
    r"|: (?:who|whose)\b(?!.*\?)"
    r"|(?:; |\b(?:so|because|if|when|while|that) )(?:who|what|whose|whoever|whichever)\b(?!.*\?)")

# Comments that begin with what another sentence would have as its noun: "Of a rank: ...".
BARE_COMMENT = re.compile(r"^(?:Of (?!course)|(?:Which|For what|To what|By what)\b(?!.*\?))")

# A comment of a line, or a string; strings first, so that "//" within one begins no comment.
TOKEN = re.compile(r'R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:\\.|[^"\\\n])*)"'
                   r"|'(?:\\.|[^'\\\n])+'|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/", re.S)
NOT_PROSE = re.compile(r"\s*(?:SPDX-|clang-format |NOLINT)")
# Names: with a sign of code in them, or with a capital letter within.
NAME = re.compile(r"[\w.:/*&<>{}\[\]=+-]*(?:_|::|->|\(\)|[a-z]\.[a-z]|/)[\w.:/*&<>{}\[\]=+()-]*"
                  r"|\b\w*[a-z][A-Z]\w*|\{[^{}]*\}")

FENCE = re.compile(r"\s*(```|~~~)")
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) +")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
REFERENCE = re.compile(r"\((?:see )?\[[^\]]*\]\([^)]*\)\)")  # nothing but a link in parentheses
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|al|Fig)\.$")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=\W*\w)")


class Block:
    """A paragraph, an item of a list, a row of a table or a heading."""

    def __init__(self, line, kind, text):
        self.line = line
        self.kind = kind
        self.text = text


def blocks(text):
    """The blocks of a page without its code, in their order."""
    found = []
    fenced = False
    begins = True  # whether this line begins a block
    in_list = False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line):
            fenced = not fenced
            begins = True
        elif fenced:
            pass
        elif not line.strip():
            begins = True
        elif begins and line.startswith("    ") and not in_list:
            pass  # indented code, which lasts until a line that is not indented
        elif line.startswith("|"):
            found.append(Block(number, "row", line))
            begins = True
        elif line.startswith("#"):
            found.append(Block(number, "heading", line.lstrip("# ")))
            begins, in_list = True, False
        elif item := LIST_ITEM.match(line):
            found.append(Block(number, "item", line[item.end():]))
            begins, in_list = False, True
        elif begins:
            in_list = in_list and line.startswith(" ")
            found.append(Block(number, "paragraph", line))
            begins = False
        else:
            found[-1].text += "\n" + line
    return found


def plain(text):
    """Markdown without its signs; code is one word, links are their texts. Lines stay lines."""
    text = re.sub(r"`[^`]*`", lambda m: "code" + "\n" * m.group().count("\n"), text)
    text = REFERENCE.sub(lambda m: "\n" * m.group().count("\n"), text)
    text = LINK.sub(r"\1", text)
    return re.sub(r"<[a-z/][^>]*>|\*\*|[\\]", "", text)


def sentences(text):
    """(line within the text, sentence) of a plain text."""
    start = 0
    for end in [m.end() for m in SENTENCE_END.finditer(text)] + [len(text)]:
        sentence = text[start:end]
        if ABBREVIATION.search(sentence.rstrip()) and end < len(text):
            continue
        if sentence.strip():
            yield text.count("\n", 0, start), " ".join(sentence.split())
        start = end


def words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def problems(text, opened=False):
    """(line, what is wrong) of a page's text; opened: it has to begin with two sentences."""
    page = blocks(text)
    for block in page:
        bare = plain(block.text)
        for pattern, instead in WORD_RULES:
            for match in pattern.finditer(bare):
                yield (block.line + bare.count("\n", 0, match.start()),
                       f"\"{match.group()}\": write {instead}")
        for offset, sentence in sentences(bare) if block.kind in ("paragraph", "item") else ():
            if words(sentence) > MOST_WORDS:
                yield (block.line + offset, f"{words(sentence)} words in a sentence, {MOST_WORDS} "
                                            f"are allowed: {' '.join(sentence.split()[:6])} ...")
            if BARE_SUBJECT.search(sentence):
                yield (block.line + offset,
                       f"name the subject: {' '.join(sentence.split()[:6])} ...")
    if opened:
        first = page[1] if len(page) > 1 and page[0].kind == "heading" else None
        if first is None or first.kind != "paragraph" or len([*sentences(plain(first.text))]) < 2:
            yield (1, "a page begins with two sentences that say what the reader will learn")


def comments(text):
    """(line, text) of the comments of C or C++; lines whose signs stand in one column are one."""
    found = []
    last = None  # (line, column) of the comment before, if the next line may go on from it
    for token in TOKEN.finditer(text):
        if token.group("line") is None and token.group("block") is None:
            continue
        line = text.count("\n", 0, token.start()) + 1
        begin = text.rfind("\n", 0, token.start()) + 1
        column = token.start() - begin
        alone = not text[begin:token.start()].strip()
        said = token.group("line")
        if said is None:
            said = re.sub(r"(?m)^[ ]*\*(?=\s|$) ?", "", token.group("block").lstrip("*<!"))
            found.append((line, said))
            last = None
        elif alone and last == (line - 1, column):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + said.removeprefix(" "))
            last = (line, column)
        else:
            found.append((line, said.removeprefix(" ")))
            last = (line, column)
    return found


def python_comments(text):
    """(line, text) of the comments and docstrings of Python; comments in one column are one."""
    found = []
    last = None  # (line, column) of the comment before, if the next line may go on from it
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        line, column = token.start
        said = token.string[1:].removeprefix(" ")
        if not token.line[:column].strip() and last == (line - 1, column):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + said)
        else:
            found.append((line, said))
        last = (line, column)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if said := ast.get_docstring(node):
                found.append((node.body[0].lineno, said))
    return found


def comment_blocks(found):
    """Comments as blocks, with the lines of the file."""
    for line, said in found:
        if not NOT_PROSE.match(said):
            for block in blocks(said):
                block.line += line - 1
                yield block


def text_blocks(code):
    """The texts of C or C++ that are prose: strings of two words and more. Neighbours are one."""
    found = []
    last = 0  # where the string before ended
    for token in TOKEN.finditer(code):
        said = token.group("text") if token.group("raw") is None else token.group("raw")
        if said is None:
            continue
        begin = code.rfind("\n", 0, token.start()) + 1
        if code[begin:token.start()].lstrip().startswith(("#", "[[")):
            continue
        said = said.replace("\\n", " \n\n").replace('\\"', '"')
        if found and not code[last:token.start()].strip():
            found[-1][1] += said
        else:
            found.append([code.count("\n", 0, token.start()) + 1, said])
        last = token.end()
    for line, said in found:
        said = re.sub(r"(?m)^\|.*$", "", said)  # rows of tables
        for part in re.split(r"\n{2,}", said):  # texts have no lines of their own: report the first
            if len(part.split()) > 1:
                yield Block(line, "text", part)


def code_problems(text, with_texts=True):
    """(line, what is wrong) of the comments and texts of a file of C or C++."""
    yield from block_problems([*comment_blocks(comments(text)),
                               *(text_blocks(text) if with_texts else ())])


def python_problems(text):
    """The problems (line, message) of the comments and docstrings of a file of Python."""
    yield from block_problems(comment_blocks(python_comments(text)))


def block_problems(found):
    for block in found:
        bare = NAME.sub(lambda m: "code" + "." * m.group().endswith("."), plain(block.text))
        lines = block.kind != "text"
        for pattern, instead in WORD_RULES:
            for match in pattern.finditer(bare):
                yield (block.line + lines * bare.count("\n", 0, match.start()),
                       f"\"{match.group()}\": write {instead}")
        for offset, sentence in sentences(bare) if block.kind != "row" else ():
            start = " ".join(sentence.split()[:6])
            if words(sentence) > MOST_WORDS:
                yield (block.line + lines * offset, f"{words(sentence)} words in a sentence, "
                                                    f"{MOST_WORDS} are allowed: {start} ...")
            if BARE_SUBJECT.search(sentence) or BARE_COMMENT.search(sentence):
                yield (block.line + lines * offset, f"name the subject: {start} ...")


def any_of(patterns, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def file_problems(name, text):
    """(line, what is wrong) of the file with this path, whatever list it is on."""
    if name.endswith(CODE_SUFFIXES):
        return code_problems(text, not name.startswith("test/"))
    if name.endswith(".py"):
        return python_problems(text)
    return problems(text, any_of(OPENED, name))


def check(name, text):
    """The same, if the file is one that the rules hold for."""
    in_code = name.startswith(tuple(f + "/" for f in CODE_FOLDERS))
    in_python = name.startswith(tuple(f + "/" for f in PYTHON_FOLDERS)) and name.endswith(".py")
    if any_of(PAGES, name) or in_python or (
            in_code and name.endswith((*CODE_SUFFIXES, "README.md"))):
        yield from file_problems(name, text)


def main():
    root = Path(__file__).resolve().parent.parent
    count = 0
    for page in sys.argv[1:]:
        path = Path(page).resolve()
        name = str(path.relative_to(root)) if path.is_relative_to(root) else page
        for line, message in file_problems(name, path.read_text(encoding="utf-8")):
            print(f"{page}:{line}: {message}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
