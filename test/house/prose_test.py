#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of scripts/prose.py catches a breach of it, and plain prose and code pass."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import prose  # noqa: E402  (its folder has to be known first)

LONG = " ".join(["word"] * 26)
OPENING = "# Page\n\nThis page explains one thing. You learn how it works.\n"


def said(text, opened=False):
    return [f"{line}: {message}" for line, message in prose.problems(text, opened)]


class Sentences(unittest.TestCase):
    def expect(self, text, *starts):
        found = said(text)
        self.assertEqual(len(found), len(starts), found)
        for message, start in zip(found, starts):
            self.assertTrue(message.startswith(start), found)

    def test_25_words_pass_and_26_do_not(self):
        self.expect(LONG[:-5] + ".\n")
        self.expect(LONG + ".\n", "1: 26 words in a sentence, 25 are allowed: word word")

    def test_lines_are_those_where_the_sentence_begins(self):
        self.expect(f"Short.\n\nShort again. Goes\non. {LONG}.\n", "4: 26 words")

    def test_a_sentence_goes_on_behind_a_semicolon_a_colon_and_a_line_break(self):
        half = " ".join(["word"] * 13)
        for joint in ("; ", ": ", "\n", ", "):
            self.expect(f"{half}{joint}{half}.\n", "1: 26 words")

    def test_sentences_end_at_points_questions_and_brackets(self):
        half = " ".join(["word"] * 20)
        for end in (".", "?", "!", ".)", ".**"):
            self.expect(f"{half}{end} {half}.\n")
        self.expect(f"{half}, e.g. {half}.\n", "1: 41 words")
        self.expect(f"{half} 2.5 {half}.\n", "1: 41 words")

    def test_items_of_a_list_are_sentences_of_their_own(self):
        half = " ".join(["word"] * 20)
        self.expect(f"- {half}\n- {half}\n  {half}\n1. {half}\n", "2: 40 words")
        self.expect(f"- {half}\n\n    {LONG}\n", "3: 26 words")

    def test_code_is_exempt(self):
        self.expect(f"```sh\n{LONG}\n\n{LONG}\n```\n")
        self.expect(f"Text:\n\n    {LONG}\n    {LONG}\n\nText.\n")
        self.expect(f"`{LONG}` is one word.\n")

    def test_tables_and_headings_may_be_long(self):
        self.expect(f"# {LONG}\n\n| {LONG} | {LONG} |\n")

    def test_links_count_by_their_text_and_references_not_at_all(self):
        nearly = " ".join(["word"] * 23)
        self.expect(f"{nearly} [one two](a/very/long/path.md#with-an-anchor).\n")
        self.expect(f"{nearly} [one two three](path.md).\n", "1: 26 words")
        self.expect(f"{nearly} word ([decision 3](path.md)).\n")


class Words(unittest.TestCase):
    def test_words_that_do_not_come_back(self):
        for text in ["A rank may doze.", "The bed is empty.", "It knocks.", "Each rank has a seat.",
                     "It rings a bell.", "A strand ends.", "Then it naps.", "It sends a kick.",
                     "The packet hopped.", "A stranger comes.", "The launcher's board has it.",
                     "A gate relays.", "They attend.", "It says farewell.", "A verdict is reached.",
                     "If crowded, yield.", "A reduce has a root.", "| a table | with a bed |",
                     "# A bed", "Processes, of which nobody waits.", "[A bed](page.md)"]:
            with self.subTest(text):
                self.assertEqual(len(said(text + "\n")), 1, said(text + "\n"))

    def test_words_that_contain_them_are_other_words(self):
        for text in ["The doorbell is embedded.", "Aggregate on the keyboard.", "`Bell::sleep`",
                     "Pay attention to sockets.", "Clipboards.", "[It](a-gate.md) relays."]:
            with self.subTest(text):
                self.assertEqual(said(text + "\n"), [])

    def test_a_clause_is_no_subject(self):
        for text in ["Who waits asks.", "What is lost goes again.", "Whose turn it is sends.",
                     "It ends; who waits asks.", "It ends, so who waits asks.",
                     "It asks if what it needs is late.",
                     "The receiver repairs: who sees a gap asks."]:
            with self.subTest(text):
                self.assertIn("name the subject", said(text + "\n")[0])
        for text in ["What is lost?", "It says who calls, and what it costs.", "## What it costs",
                     "A user who asks gets it.", "That depends on what is kept.",
                     "Say:\n\n- what it sends,\n- who waits."]:
            with self.subTest(text):
                self.assertEqual(said(text + "\n"), [])


class Pages(unittest.TestCase):
    def test_a_page_begins_with_two_sentences(self):
        self.assertEqual(said(OPENING, opened=True), [])
        for text in ["# Page\n\nOne sentence.\n", "# Page\n\n## Title\n\nOne. Two.\n", "# Page\n",
                     "# Page\n\n- One. Two.\n"]:
            with self.subTest(text):
                self.assertEqual(len(said(text, opened=True)), 1)
                self.assertEqual(said(text), [])

    def test_which_pages_are_checked(self):
        for name, held in [("docs/explanation/trees.md", True), ("notes/README.md", False),
                           ("docs/reference/settings.md", True)]:
            with self.subTest(name):
                self.assertEqual(bool([*prose.check(name, OPENING + LONG + ".\n")]), held)


class Code(unittest.TestCase):
    def said(self, text):
        return [f"{line}: {message}" for line, message in prose.code_problems(text)]

    def expect(self, text, *starts):
        found = self.said(text)
        self.assertEqual(len(found), len(starts), found)
        for message, start in zip(found, starts):
            self.assertTrue(message.startswith(start), found)

    def test_sentences_of_comments(self):
        half = " ".join(["word"] * 13)
        self.expect(f"// {half}\n// {half}.\nint a;\n", "1: 26 words")
        self.expect(f"int a;  // {half}\n        // {half}\n", "1: 26 words")
        self.expect(f"/* {half}\n * {half} */\n", "1: 26 words")
        self.expect(f"// {half}.\n// {half}.\n")
        self.expect(f"// {half}\n//\n// {half}\n")
        self.expect(f"int a;  // {half}\nint b;  // {half}\n")
        self.expect(f"// {half}\nint a;\n// {half}\n")
        self.expect(f"// Drawn:\n//\n//     {half} {half}\n")

    def test_bare_subjects_in_comments(self):
        for text in ["// Who waits asks.", "int a;  // What is lost", "/* Of the calling rank. */",
                     "// Which ranks give: all.", "// A word. For what is no operation.",
                     "// It ends; who waits asks."]:
            with self.subTest(text):
                self.assertIn("name the subject", self.said(text + "\n")[0])
        for text in ["// Of course it ends.", "// Which one?", "int who;",
                     "// A rank that waits asks."]:
            with self.subTest(text):
                self.assertEqual(self.said(text + "\n"), [])

    def test_words_in_comments_and_texts(self):
        self.expect("// A word.\n// A rank may doze.\n", '2: "doze"')
        self.expect('log("the rank {} dozes", rank);\n', '1: "dozes"')
        self.expect('log("the rank "\n    "may doze");\n', '1: "doze"')
        self.expect('R"(A line.\n\nThe rank may doze.)";\n', '1: "doze"')
        self.expect("// `doze` and doze_ns, Gate::seat, take_gate(), SeatMap\n")
        self.expect('#include "nic/gate.hpp"\nkey == "gate"; c = \'"\'; // a word\n')

    def test_sentences_of_texts(self):
        half = " ".join(["word"] * 13)
        self.expect(f'log("{half} "\n    "{half}");\n', "1: 26 words")
        self.expect(f'log("{half}", "{half}");\n')
        self.expect(f'log("{half}\\n\\n{half}");\n')

    def test_a_name_does_not_swallow_the_end_of_its_sentence(self):
        half = " ".join(["word"] * 13)
        self.expect(f"// {half} until receive(). {half}\n")

    def test_which_code_is_checked(self):
        for name, held in [("src/base/log.cpp", True), ("src/base/README.md", True),
                           ("frontend/mpi/log.cpp", True), ("source/base/log.cpp", False)]:
            with self.subTest(name):
                self.assertEqual(bool([*prose.check(name, "// A rank may doze.\n")]), held)

    def test_python(self):
        half = " ".join(["word"] * 13)
        for text, start in [(f"# {half}\n# {half}.\n", "1: 26 words"),
                            (f"a = 1  # {half}\n       # {half}\n", "1: 26 words"),
                            (f'def f():\n    """{half}\n    {half}."""\n', "2: 26 words"),
                            ('"""A page."""\nclass A:\n    """Of the rank."""\n', "3: name"),
                            ("# A word.\n# A rank may doze.\n", '2: "doze"')]:
            with self.subTest(text):
                found = [f"{line}: {message}" for line, message in prose.python_problems(text)]
                self.assertEqual([f[:len(start)] for f in found], [start])
        for text in [f"# {half}.\n# {half}.\n", f"# {half}\n#\n# {half}\n",
                     "#!/usr/bin/env python3\n# SPDX-License-Identifier: who\n",
                     'a = "It may doze."\n', f"a = 1  # {half}\nb = 2  # {half}\n"]:
            with self.subTest(text):
                self.assertEqual([*prose.python_problems(text)], [])

    def test_which_python_is_checked(self):
        for name, held in [("frontend/python/a.py", True), ("scripts/a.py", True),
                           ("test/a.py", True), ("other/a.py", False)]:
            with self.subTest(name):
                self.assertEqual(bool([*prose.check(name, "# A rank may doze.\n")]), held)

    def test_the_listed_folders_exist(self):
        root = Path(prose.__file__).resolve().parents[1]
        listed = prose.CODE_FOLDERS + prose.PYTHON_FOLDERS
        self.assertEqual([f for f in listed if not (root / f).is_dir()], [])


if __name__ == "__main__":
    unittest.main()
