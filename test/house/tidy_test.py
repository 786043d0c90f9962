#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of scripts/tidy.py catches a breach of it, and a clean tree passes."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TIDY = Path(__file__).resolve().parents[2] / "scripts" / "tidy.py"
SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n"
THING = SPDX + '#include "low/thing.hpp"\n'
FOLDER_README = "# x\n\n" + "".join(
    f"## {heading}\n\nText.\n\n" for heading in
    ["What it is", "May include", "Main type", "Start at", "Not here"]).rstrip("\n") + "\n"
TABLE = "\n| folder | content |\n| --- | --- |\n| `docs`, `examples` | pages |\n" + \
        "| `scripts` | rules |\n| `test` | tests |\n| `include` | headers |\n"
LEVELS = "\n| level | folder | content |\n| ---: | --- | --- |\n" + \
         "".join(f"| 1 | `{folder}` | code |\n" for folder in ("low", "left", "right", "api"))


def may_include(text):
    """The README.md of a folder with this text below "May include"."""
    return FOLDER_README.replace("May include\n\nText.", f"May include\n\n{text}")


CLEAN = {
    "README.md": "# Name\n\n[The page](docs/page.md#a-title), [there](https://example.org).\n" +
                 TABLE,
    "docs/page.md": "# Page\n\n## A title\n",
    "ARCHITECTURE.md": "# A\n" + LEVELS + TABLE, "STYLE.md": "# S\n", "CONTRIBUTING.md": "# C\n",
    "CHANGELOG.md": "# Changelog\n", "LICENSE": "BSD\n",
    "include/unisono/unisono.hpp": SPDX + "#pragma once\n",
    "scripts/layers.txt": "# levels\nlow 0\nleft 1\nright 1\napi 2\n",
    "src/low/README.md": FOLDER_README, "src/left/README.md": may_include("`low`."),
    "src/right/README.md": may_include("`low/`. Not `left/`: it is beside."),
    "src/api/README.md": may_include("Everything below."),
    "src/low/thing.hpp": SPDX + "#pragma once\nint thing();\n",
    "src/low/thing.cpp": THING + '\nint thing() { return 1; }\n',
    "src/left/kept.hpp": SPDX + '#pragma once\n#include "low/thing.hpp"\n',
    "src/left/one.hpp": SPDX + '#pragma once\n#include "low/thing.hpp"\n',
    "src/right/two.hpp": SPDX + '#pragma once\n#include "low/thing.hpp"\n',
    "src/api/entry.cpp": SPDX + '#include <unisono/unisono.h>\n\n#include "left/one.hpp"\n',
    "test/unit/low/thing_test.cpp": SPDX + '#include "low/thing.hpp"\n',
    "test/unit/api/entry_test.cpp": SPDX,
    # Also a standard header that is called like a folder.
    "examples/hello.cpp": SPDX + "#include <right>\n#include <unisono/unisono.hpp>\n",
}


def tidy(changes=(), options=("--no-format", "--no-spelling")):
    """Runs tidy.py on the clean tree with changes; a text of None takes the file away."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **dict(changes)}.items():
            if text is not None:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        run = subprocess.run([sys.executable, TIDY, "--root", folder, *options],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr


class Tidy(unittest.TestCase):
    def expect(self, changes, *messages):
        status, output = tidy(changes)
        self.assertEqual(status, 1, output)
        for message in messages:
            self.assertIn(message, output)
        self.assertIn(f"{len(messages)} problems", output)

    def test_clean_tree_passes(self):
        status, output = tidy()
        self.assertEqual(status, 0, output)
        self.assertIn("0 problems", output)

    def test_linked_worktree_passes(self):
        status, output = tidy({".git": "gitdir: /" "home/somebody/project/.git/worktrees/one\n"})
        self.assertEqual(status, 0, output)

    def test_upward_include(self):
        self.expect({"src/low/thing.hpp": SPDX + '#pragma once\n#include "left/one.hpp"\n'},
                    "src/low/thing.hpp:3: low (level 0) may not include left (level 1)")

    def test_sideways_include(self):
        self.expect({"src/left/one.hpp": SPDX + '#pragma once\n#include "right/two.hpp"\n'},
                    "src/left/one.hpp:3: left (level 1) may not include right (level 1)")

    def test_may_include_says_what_is_included(self):
        self.expect({"src/left/README.md": FOLDER_README},
                    "src/left/README.md:1: May include: lacks low (src/left/kept.hpp:3)")
        self.expect({"src/low/README.md": may_include("`right`, <vector>.")},
                    "src/low/README.md:1: May include: right is not included by any file")
        self.expect({"src/right/README.md": may_include("`low/`. `left/`.")},
                    "src/right/README.md:1: May include: left is not included by any file")
        own = may_include("`low`. Its folder `right` includes `base` too.")
        status, output = tidy({"src/left/README.md": own,
                               "src/left/right/a.hpp": SPDX + "#pragma once\n"})
        self.assertEqual(status, 0, output)

    def test_tables_name_each_folder(self):
        self.expect({"tools/new.hpp": SPDX + "#pragma once\n"},
                    "README.md:1: its tables of folders lack tools",
                    "ARCHITECTURE.md:1: its tables of folders lack tools")
        self.expect({"ARCHITECTURE.md": "# A\n" + LEVELS.replace("`right`", "right") + TABLE},
                    "ARCHITECTURE.md:1: its tables of folders lack right")
        self.expect({"README.md": "# Name\n\n[The page](docs/page.md)\n" + TABLE +
                                  "| `gone/away` | rules |\n"},
                    "README.md:11: there is no folder gone/away")

    def test_a_transport_by_its_name(self):
        self.expect({"src/api/entry.cpp": SPDX + '#include "transport/udp/udp.hpp"\n'},
                    "src/api/entry.cpp:2: names the transport udp: use transport/table.hpp")
        status, output = tidy({"src/api/entry.cpp": SPDX + '#include "transport/table.hpp"\n'
                               '#include "transport/ip/ip.hpp"\n'})
        self.assertEqual(status, 0, output)

    def test_relative_include(self):
        self.expect({"src/left/three.hpp": SPDX + "#pragma once\n",
                     "src/left/one.hpp": SPDX + '#pragma once\n#include "three.hpp"\n'},
                    'write includes from src/ on: "left/three.hpp"')

    def test_own_header_first(self):
        for first in ("#include <string>\n", "#define THING\n"):
            with self.subTest(first):
                self.expect({"src/low/thing.cpp": SPDX + first + '#include "low/thing.hpp"\n'},
                            'src/low/thing.cpp:2: what comes first is: #include "low/thing.hpp"')

    def test_namespace_of_a_test(self):
        test = SPDX + '#include "low/thing.hpp"\n\nnamespace unisono::low%s {\n}\n'
        self.expect({"test/unit/low/thing_test.cpp": test % ""},
                    "its tests are in the namespace unisono::low::thing_test")
        self.assertEqual(
            tidy({"test/unit/low/thing_test.cpp": test % "::thing_test"})[0], 0)

    def test_folder_without_level(self):
        self.expect({"src/new/README.md": FOLDER_README, "src/new/x.hpp": SPDX + "#pragma once\n"},
                    "folder new has no level",
                    "ARCHITECTURE.md:1: its tables of folders lack new")

    def test_public_header_below_api(self):
        self.expect({"src/left/one.hpp": SPDX + "#pragma once\n#include <unisono/unisono.h>\n"},
                    "only src/api includes the public headers")

    def test_example_with_inner_header(self):
        self.expect({"examples/hello.cpp": SPDX + '#include "low/thing.hpp"\n'},
                    "examples includes <unisono/...> only")

    def test_missing_guard_and_licence(self):
        self.expect({"src/left/one.hpp": "int x;\n"}, "header without #pragma once", "lack: SPDX")

    def test_banned_calls(self):
        for call, word in [('getenv("A")', "getenv"), ("strcpy(a, b)", "strcpy"),
                           ('sprintf(a, "x")', "sprintf"), ("rand()", "rand"),
                           ("usleep(1)", "usleep"), ("std::cout << 1", "std::cout"),
                           ("assert(x)", "assert")]:
            with self.subTest(call):
                self.expect({"src/low/thing.cpp": THING + f"void thing() {{ {call}; }}\n"},
                            f"banned: {word}")
        self.expect({"src/low/thing.cpp": THING + "#include <iostream>\n"}, "banned: <iostream>")

    def test_banned_words_in_comments_and_strings_are_fine(self):
        text = THING + '// getenv() is banned\nconst char* thing() { return "rand()"; }\n'
        self.assertEqual(tidy({"src/low/thing.cpp": text})[0], 0)

    def test_lines(self):
        self.expect({"src/low/thing.cpp": THING + "int x; \n"}, "trailing whitespace")
        self.expect({"src/low/thing.cpp": THING + "// " + "x" * 98 + "\n"}, "101 columns")
        self.expect({"src/low/thing.cpp": THING + "// TO" + "DO later\n"}, "unfinished work")
        self.expect({"docs/page.md": "# Page\n\n## A title\n\n/ho" + "me/me/x\n"},
                    "somebody's machine")
        self.expect({"docs/page.md": "# Page\n\n## A title"}, "no newline at the end")

    def test_tables_of_data_may_be_wide(self):
        table = "// clang-format off\nint wide[] = {" + "1, " * 50 + "};\n// clang-format on\n"
        self.assertEqual(tidy({"src/low/thing.cpp": THING + table})[0], 0)
        wide = "// " + "x" * 98 + "\n"
        self.expect({"src/low/thing.cpp": THING + table + wide}, ":6: 101 columns")

    def test_folder_names_and_readmes(self):
        self.expect({"src/low/util/x.hpp": SPDX + "#pragma once\n"}, "named after its concept")
        self.expect({"src/low/README.md": None}, "src/low:0: no README.md")
        self.expect({"src/low/README.md": "# low\n\n## What it is\n"}, "headings have to be")
        self.expect({"src/low/README.md": FOLDER_README + "More.\n" * 40}, "40 are allowed")

    def test_untested_source(self):
        self.expect({"src/low/other.cpp": SPDX + "int other() { return 1; }\n"},
                    "src/low/other.cpp:1: no file of test/ names other")

    def test_links(self):
        self.expect({"docs/page.md": "# Page\n\n## A title\n\n[x](gone.md)\n"},
                    "dead link: gone.md")
        self.expect({"docs/page.md": "# Page\n\n[x](../README.md#gone)\n"},
                    "dead anchor: ../README.md#gone", "dead anchor: docs/page.md#a-title")

    def test_page_that_nothing_links_to(self):
        self.expect({"docs/lost.md": "# Lost\n"}, "docs/lost.md:1: no page links to this one")

    def test_prose(self):
        page = "# Page\n\nYou learn one thing. You learn another. {}\n\n[Here](trees.md).\n"
        for text, message in [("This is plain.", None), ("Word " * 26 + "ends.", "27 words"),
                              ("A rank may doze.", '"doze": write')]:
            with self.subTest(text):
                changes = {"docs/explanation/trees.md": page.format(text)}
                if message is None:
                    self.assertEqual(tidy(changes)[0], 0)
                else:
                    self.expect(changes, f"docs/explanation/trees.md:3: {message}")

    def test_identifiers(self):
        code = "src/low/thing.cpp"
        for name, message in [("bool dozes_;", 'dozes_: "dozes" in a name: write'),
                              ("int kMostKnocks;", 'kMostKnocks: "knocks" in a name'),
                              ("int odd_rank;", 'odd_rank: "odd rank" in a name'),
                              ("class NewsTree;", 'NewsTree: "news" in a name'),
                              ("bool is_offered();", 'is_offered: "offered" in a name'),
                              ("Lane& lane_at(int);", None),
                              ("int verdict;", 'verdict: "verdict" in a name')]:
            with self.subTest(name):
                if message is None:
                    self.expect({code: THING + name + "\n"}, f"{code}:3: Lane: ",
                                f"{code}:3: lane_at: ")
                else:
                    self.expect({code: THING + name + "\n" + name + "\n"}, f"{code}:3: {message}")
        self.expect({"src/low/gate.hpp": SPDX + "#pragma once\n"},
                    'src/low/gate.hpp:1: the name of a file: "gate": write host relay')
        self.expect({"frontend/x.py": "# SPDX-License-Identifier: BSD-3-Clause\nseat = 1\n"},
                    'frontend/x.py:2: seat: "seat" in a name',
                    *(f"{page}:1: its tables of folders lack frontend"
                      for page in ("README.md", "ARCHITECTURE.md")))
        for name in ["int embedded, doorbell, kUnit, odd, ranks;", "// a_`seat`",
                     'auto x = "seat_of" "gate";']:
            with self.subTest(name):
                self.assertEqual(tidy({code: THING + name + "\n"})[0], 0)
        levels = CLEAN["scripts/layers.txt"]
        nic = {"scripts/layers.txt": levels + "nic 1\n", "src/nic/README.md": FOLDER_README,
               "ARCHITECTURE.md": "# A\n" + LEVELS + "| 1 | `nic` | code |\n" + TABLE}
        self.assertEqual(  # what an XDP program returns
            tidy({**nic, "src/nic/x.hpp": SPDX + "#pragma once\nint verdict;\n"})[0], 0)
        self.assertEqual(tidy({"test/unit/api/entry_test.cpp": SPDX + "int seat;\n"})[0], 0)

    @unittest.skipUnless(shutil.which("codespell"), "codespell is not installed")
    def test_spelling(self):
        mistake = "rec" "ieve"  # in pieces, so that this file passes
        for path, text in [("docs/page.md", f"# Page\n\n## A title\n\nI {mistake} it.\n"),
                           ("src/low/thing.cpp", THING + f"// {mistake}\nint x;\n")]:
            with self.subTest(path):
                status, output = tidy({path: text}, ("--no-format",))
                self.assertEqual(status, 1, output)
                self.assertIn(f"spelling: {mistake} ==> receive", output)
                self.assertIn("1 problems", output)
        self.assertEqual(tidy({"docs/page.md": "# Page\n\n## A title\n\nUpto kOwn.\n"},
                              ("--no-format",))[0], 0)

    def test_sizes(self):
        def named(functions):
            return "class Thing {\n public:\n" + "".join(functions) + "};\n"
        thing = "src/low/thing.hpp"
        head = SPDX + "#pragma once\n"
        of_data = ["  std::function<bool(int)> heard;\n", "  int a_ = value(3);\n",
                   "  Thing() = default;\n", "  friend int ask(Thing);\n", "  int b_{f(1)};\n",
                   "  struct Inner {\n    int get();\n  };\n", "  // int old();\n"]
        declared = [f"  int function_{n}(int) const;\n" for n in range(15)]
        defined = [f"  int inline_{n}(int x) {{\n    return f(x);\n  }}\n" for n in range(15)]
        at_most = named(of_data + declared + defined)
        self.assertEqual(tidy({thing: head + at_most})[0], 0)
        self.expect({thing: head + named(of_data + declared + defined + [" private:\n  void x();\n"])},
                    f"{thing}:3: member functions of Thing: 31, 30 are allowed")
        public = "include/unisono/thing.hpp"
        self.assertEqual(tidy({public: head + at_most + "int x;\n" * 600})[0], 0)
        self.expect({public: head + named(declared + defined + ["  void x();\n"])},
                    f"{public}:3: member functions of Thing: 31, 30 are allowed")
        self.assertEqual(tidy({thing: head + "int x;\n" * 598})[0], 0)
        self.expect({thing: head + "int x;\n" * 599}, f"{thing}:601: lines: 601, 600 are allowed")
        files = {f"src/low/file_{n}.hpp": head for n in range(18)}
        self.assertEqual(tidy(files)[0], 0)
        self.expect({**files, "src/low/file_18.hpp": head}, "src/low:0: files: 21, 20 are allowed")

    def test_required_files(self):
        self.expect({"CHANGELOG.md": None}, "CHANGELOG.md:0: missing")

    def test_list_names_large_functions_and_files(self):
        body = "int thing() {\n" + "  work();\n" * 80 + "}\n"
        status, output = tidy({"src/low/thing.cpp": THING + body + "int x;\n" * 600},
                              ("--no-format", "--no-spelling", "--list"))
        self.assertEqual(status, 1, output)
        self.assertIn("large function: src/low/thing.cpp:3: 82 lines", output)
        self.assertIn("large file: src/low/thing.cpp", output)

    def test_a_body_behind_initializers_ends_where_its_brace_is(self):
        maker = "Thing::Thing()\n    : a_(1),\n      b_(2) {\n  work();\n}\n"
        nested = "int far() {\n  for (;;) {\n    if (x) {\n      if (y) {\n      }\n    }\n  }\n}\n"
        status, output = tidy({"src/low/thing.cpp": THING + maker + "int x;\n" * 80 + nested},
                              ("--no-format", "--no-spelling", "--list"))
        self.assertEqual(status, 0, output)
        self.assertNotIn("large function", output)


if __name__ == "__main__":
    unittest.main()
