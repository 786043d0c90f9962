#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev package makes a Debian package that dpkg installs, whose programs run, and that dpkg
removes without a rest. dpkg works below a folder, so the machine itself is not changed."""

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = 77


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}")
    return done.stdout


class Package(unittest.TestCase):
    source = None

    @classmethod
    def setUpClass(cls):
        built = run(cls.source / "dev", "package")
        cls.deb = Path(built.split("built: ")[-1].strip())
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.top = Path(folder.name, "root")
        for name in ("info", "updates", "triggers"):
            (cls.top / "var/lib/dpkg" / name).mkdir(parents=True)
        (cls.top / "var/lib/dpkg/status").touch()

    def dpkg(self, *arguments):
        # No shell and no library is below the folder: what the package needs is on the machine.
        return run("dpkg", f"--root={self.top}", "--force-depends", "--force-script-chrootless",
                   f"--log={self.top}/dpkg.log", *arguments)

    def files(self):
        return {str(p.relative_to(self.top)) for p in self.top.rglob("*")
                if not p.is_dir() and not str(p).startswith(str(self.top / "var"))
                and p.name != "dpkg.log"}

    def test_fields(self):
        depends = run("dpkg-deb", "--field", self.deb, "Depends")
        for library in ("libc6", "libstdc++6", "libbpf1"):
            self.assertRegex(depends, rf"\b{library.replace('+', '[+]')} \(>= ")
        self.assertEqual(run("dpkg-deb", "--field", self.deb, "Package").strip(), "unisono")

    @unittest.skipUnless(shutil.which("lintian"), "no lintian here")
    def test_lintian_finds_no_errors(self):
        # The mail address is for those who publish a package: -DUNISONO_MAINTAINER=.
        run("lintian", "--fail-on", "error", "--allow-root", "--suppress-tags",
            "bogus-mail-host,bogus-mail-host-in-debian-changelog", self.deb)

    def test_installs_runs_and_goes(self):
        self.dpkg("--install", self.deb)
        self.check_files()
        self.check_programs()
        self.check_completion()
        self.dpkg("--remove", "unisono")
        self.assertEqual(self.files(), {"etc/default/unisonod"}, "configuration stays")
        self.dpkg("--purge", "unisono")
        self.assertEqual(self.files(), set())

    def check_files(self):
        modes = {name: stat.S_IMODE((self.top / name).lstat().st_mode)
                 for name in self.files() if not (self.top / name).is_symlink()}
        for name in ("usr/bin/unisono", "usr/sbin/unisonod"):
            self.assertEqual(modes.pop(name), 0o755, name)
        for name in ("etc/default/unisonod", "usr/lib/systemd/system/unisonod@.service",
                     "usr/include/unisono/unisono.h", "usr/share/man/man1/unisono.1.gz",
                     "usr/share/man/man8/unisonod.8.gz", "usr/share/doc/unisono/copyright",
                     "usr/share/bash-completion/completions/unisono"):
            self.assertEqual(modes[name], 0o644, name)
        for name, mode in modes.items():
            self.assertIn(mode, (0o644, 0o755), name)
            self.assertEqual((self.top / name).stat().st_uid, os.getuid(), name)
        unit = (self.top / "usr/lib/systemd/system/unisonod@.service").read_text()
        self.assertIn("\nEnvironmentFile=-/etc/default/unisonod\n", unit)
        self.assertIn("\nExecStart=/usr/sbin/unisonod ", unit)

    def check_programs(self):
        library = next(p for p in (self.top / "usr/lib").rglob("libunisono.so.0"))
        environment = {"PATH": f"{self.top}/usr/bin:{self.top}/usr/sbin:{os.environ['PATH']}",
                       "LD_LIBRARY_PATH": str(library.parent)}
        version = run("dpkg-deb", "--field", self.deb, "Version").strip()
        self.assertEqual(run("unisono", "--version", env=environment), f"unisono {version}\n")
        self.assertIn(f"unisonod {version}\n", run("unisonod", "--version", env=environment))
        self.assertIn("allreduce", run("unisono", "check", "allreduce", "--ranks", "4",
                                       env=environment))

    def check_completion(self):
        script = self.top / "usr/share/bash-completion/completions/unisono"
        said = run("bash", "-c", f"source {script}; COMP_WORDS=(unisono nic st); COMP_CWORD=2; "
                                 "_unisono; echo \"${COMPREPLY[@]}\"; complete -p unisono")
        self.assertEqual(said.splitlines()[0], "status")
        self.assertIn("-F _unisono unisono", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    options, rest = parser.parse_known_args()
    Package.source = options.source
    if os.getuid() != 0 or not shutil.which("dpkg"):
        print("skipped: needs root and dpkg")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
