#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An installed copy is all a user needs. The test installs to a new prefix with cmake --install. It
builds the examples against it by find_package and by pkg-config, and runs them with the installed
tool."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HELLO = "4 ranks, the sum of 1 to 4 is 10\n"


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout


class Install(unittest.TestCase):
    options = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        first = Path(cls.folder.name, "first")
        run(cls.options.cmake, "--install", cls.options.build, "--prefix", first)
        # The package is used from a place that it was not installed to.
        cls.prefix = first.rename(Path(cls.folder.name, "prefix"))
        cls.work = Path(cls.folder.name, "work")
        cls.work.mkdir()
        cls.tool = cls.prefix / "bin" / "unisono"

    def example(self, name):
        build = self.work / name
        run(self.options.cmake, "-S", self.options.source / "examples" / name, "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_C_COMPILER={self.options.cc}", f"-DCMAKE_CXX_COMPILER={self.options.cxx}")
        run(self.options.cmake, "--build", build)
        return build

    def pkg_config(self, *arguments):
        path = ":".join(str(p.parent) for p in self.prefix.rglob("unisono.pc"))
        return run("pkg-config", *arguments, "unisono",
                   env={**os.environ, "PKG_CONFIG_PATH": path}).split()

    def test_only_the_public_headers_are_installed(self):
        headers = sorted(p.name for p in (self.prefix / "include").rglob("*") if p.is_file())
        self.assertEqual(headers, ["unisono.h", "unisono.hpp"])

    def test_one_target_makes_all_that_is_installed(self):
        """`./dev build` makes unisono_installed, and `cmake --install` has to work after it."""
        build = self.options.build.resolve()
        scripts = [p.read_text() for p in build.rglob("cmake_install.cmake")]
        copied = {Path(name).relative_to(build) for text in scripts
                  for name in re.findall(rf'"({re.escape(str(build))}/[^"]+)"', text)}
        ninja = ["ninja", "-C", build]
        made = {path for path in copied if subprocess.run(
            [*ninja, "-t", "query", path], check=False, capture_output=True).returncode == 0}
        made = {(build / path).resolve().relative_to(build) for path in made}
        names = {path.name for path in made}
        self.assertLessEqual({"unisono", "unisonod", "unisono.1"}, names)
        needed = re.findall(r'label="([^"]+)"', run(*ninja, "-t", "graph", "unisono_installed"))
        self.assertEqual(made - {Path(name) for name in needed}, set())

    def test_the_daemon_comes_with_its_unit_and_manual(self):
        daemon = self.prefix / "sbin" / "unisonod"
        self.assertIn("unisonod", run(daemon, "--version"))
        unit = (self.prefix / "lib" / "systemd" / "system" / "unisonod@.service").read_text()
        self.assertRegex(unit,
                         r"\nExecStart=/.*/sbin/unisonod --interface %i \$UNISONOD_OPTIONS\n")
        self.assertRegex(unit, r"\nEnvironmentFile=-/.*etc/default/unisonod\n"
                               r"EnvironmentFile=-/.*etc/default/unisonod-%i\n")
        self.assertIn("\nRestart=on-failure\n", unit)
        manual = next(self.prefix.rglob("man8/unisonod.8")).read_text()
        options = set(re.findall(r"--[a-z-]+", run(daemon, "--help"))) - {"--help", "--version"}
        for option in options:
            self.assertIn(option.replace("-", "\\-"), manual)

    def test_the_daemons_options_are_shell_text(self):
        """The form that both a shell and systemd read."""
        defaults = self.prefix / "etc" / "default" / "unisonod"
        options = run("sh", "-euc", f'. {defaults}; printf "[%s]" "$UNISONOD_OPTIONS"')
        self.assertEqual(options, "[]")
        example = re.search(r'# UNISONOD_OPTIONS="(.*)"', defaults.read_text()).group(1)
        daemon = self.prefix / "sbin" / "unisonod"
        # It takes the example's options, and then asks for an interface that there is.
        failed = subprocess.run([daemon, "--interface", "nosuch0", *example.split()], check=False,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual((failed.returncode, failed.stderr), (
            1, "unisonod: there is no interface nosuch0; `ip link` lists them\n"))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
    def test_systemd_takes_the_unit_and_finds_it_closed(self):
        unit = (self.prefix / "lib" / "systemd" / "system" / "unisonod@.service").read_text()
        unit = re.sub(r"ExecStart=\S+", f"ExecStart={self.prefix}/sbin/unisonod", unit)
        made = self.work / "unisonod@eth0.service"
        made.write_text(unit)
        # A word or a value that systemd does not know is a warning, and fails here. The manual is
        # not where man looks for it.
        said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", made)
        self.assertNotIn("unisonod@eth0.service", said)
        # 0 is closed, 100 is open; by a unit without any restriction it is above 90.
        run("systemd-analyze", "security", "--offline=true", "--threshold=25", made)

    def test_only_versioned_public_symbols_are_exported(self):
        library = next(self.prefix.rglob("libunisono.so.0"))
        symbols = run("nm", "--dynamic", "--defined-only", "--with-symbol-versions", library)
        names = [line.split()[-1] for line in symbols.splitlines()]
        functions = [n for n in names if not n.startswith("UNISONO_0")]
        self.assertIn("unisono_allreduce@@UNISONO_0", functions)
        for name in functions:
            self.assertRegex(name, r"^unisono_\w+@@UNISONO_0$")

    def test_every_declared_function_is_exported(self):
        header = (self.prefix / "include/unisono/unisono.h").read_text()
        declared = set(re.findall(r"UNISONO_API [^;(]*?\b(unisono_\w+)\(", header))
        library = next(self.prefix.rglob("libunisono.so.0"))
        symbols = run("nm", "--dynamic", "--defined-only", library)
        self.assertGreater(len(declared), 40)
        self.assertEqual(declared - set(re.findall(r"\b(unisono_\w+)", symbols)), set())

    def test_fmt_is_compiled_in(self):
        """By src/base/fmt_definitions.cpp, or header-only."""
        library = next(self.prefix.rglob("libunisono.so.0"))
        undefined = run("nm", "--dynamic", "--undefined-only", "--demangle", library)
        self.assertNotIn("fmt::", undefined)
        self.assertNotIn("libfmt", run("readelf", "--dynamic", library))

    def test_what_the_library_needs(self):
        library = next(self.prefix.rglob("libunisono.so.0"))
        needed = re.findall(r"NEEDED.*\[(lib\w+)", run("readelf", "--dynamic", library))
        self.assertEqual(set(needed) - {"libstdc", "libm", "libgcc_s", "libc", "ld"}, {"libsodium"})

    def test_only_the_daemon_needs_libbpf(self):
        for program in (self.tool, next(self.prefix.rglob("libunisono.so.0"))):
            self.assertNotIn("libbpf", run("readelf", "--dynamic", program))

    def test_find_package(self):
        build = self.example("01-hello")
        for program in ("hello", "hello-cpp"):
            self.assertEqual(run(self.tool, "run", "-n", 4, build / program), HELLO)

    def test_second_example(self):
        build = self.example("02-overlap")
        output = run(self.tool, "run", "-n", 3, build / "overlap")
        self.assertRegex(output, r"^3 ranks agree on 1\.414214 after \d+ turns\n$")

    def test_third_example(self):
        build = self.example("03-exchange")
        output = run(self.tool, "run", "-n", 3, build / "exchange")
        self.assertEqual(output, "3 ranks sorted 3000 numbers\n")

    def test_pkg_config(self):
        source = self.options.source / "examples" / "01-hello" / "hello.c"
        program = self.work / "hello-pc"
        libraries = self.pkg_config("--libs")
        library_path = next(flag[2:] for flag in libraries if flag.startswith("-L"))
        run(self.options.cc, *self.pkg_config("--cflags"), source, "-o", program, *libraries,
            f"-Wl,-rpath,{library_path}")
        self.assertEqual(run(self.tool, "run", "-n", 4, program), HELLO)

    def test_without_a_launcher_a_program_is_a_job_of_one_rank(self):
        build = self.example("01-hello")
        bare = {k: v for k, v in os.environ.items()
                if not k.startswith(("UNISONO_", "OMPI_", "PMI", "SLURM_", "RANK", "WORLD_SIZE"))}
        self.assertEqual(run(build / "hello", env=bare), "1 ranks, the sum of 1 to 1 is 1\n")

    def test_versions_agree(self):
        header = (self.prefix / "include/unisono/unisono.h").read_text()
        parts = [re.search(rf"UNISONO_VERSION_{p} (\d+)", header).group(1)
                 for p in ("MAJOR", "MINOR", "PATCH")]
        version = ".".join(parts)
        self.assertEqual(self.pkg_config("--modversion"), [version])
        self.assertIn(version, run(self.tool, "--version"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    Install.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
