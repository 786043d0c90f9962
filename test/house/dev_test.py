#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev: help, wrong commands, and how it deals with missing packages, with stand-ins for
dpkg-query, apt-get and cmake that note what they were asked."""

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

DEV = Path(__file__).resolve().parents[2] / "dev"
NOBODY = "65534"


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.top.chmod(0o777)
        shutil.copy(DEV, self.top / "dev")
        self.bin = self.top / "bin"
        self.bin.mkdir()

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.top}/calls"\n{script}\n')
        path.chmod(0o755)

    def calls(self, name):
        path = self.top / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(name + " ")]

    def dev(self, *arguments, prefix=(), cwd="/"):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run([*prefix, self.top / "dev", *arguments], cwd=cwd, env=environment,
                              capture_output=True, text=True, check=False)

    def test_help_names_every_command(self):
        for arguments in ([], ["help"], ["--help"]):
            run = self.dev(*arguments)
            self.assertEqual(run.returncode, 0)
            for command in ("demo", "build", "test", "tidy", "bench", "docs", "vm"):
                self.assertIn(f"\n  {command} ", run.stdout)

    def test_wrong_command(self):
        run = self.dev("biuld")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("dev: no such command: biuld", run.stderr)

    def test_wrong_option_of_test(self):
        run = self.dev("test", "--al")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("test takes --all, --core, --vm and a filter, not --al", run.stderr)

    def test_nothing_missing_installs_nothing(self):
        self.stand_in("dpkg-query", "echo installed")
        self.stand_in("apt-get", "exit 1")
        self.stand_in("cmake", "exit 0")
        run = self.dev("build")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.calls("apt-get"), [])
        self.assertTrue(any("--preset release" in call for call in self.calls("cmake")))

    @unittest.skipUnless(os.geteuid() == 0, "installs only as root")
    def test_root_installs_what_is_missing(self):
        self.stand_in("dpkg-query", 'case "$*" in *ninja*|*hwy*) exit 1;; *) echo installed;; esac')
        self.stand_in("apt-get", "exit 0")
        self.stand_in("cmake", "exit 0")
        run = self.dev("build")
        self.assertEqual(run.returncode, 0, run.stderr)
        update, install = self.calls("apt-get")
        self.assertIn(" update", update)
        self.assertTrue(install.endswith(" ninja-build libhwy-dev"), install)

    def test_others_are_told_the_command(self):
        self.stand_in("dpkg-query", 'case "$*" in *ninja*|*hwy*) exit 1;; *) echo installed;; esac')
        self.stand_in("apt-get", "exit 0")
        prefix = ("setpriv", "--reuid", NOBODY, "--clear-groups") if os.geteuid() == 0 else ()
        run = self.dev("build", prefix=prefix)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("run: sudo apt-get update && "
                      "sudo apt-get install -y ninja-build libhwy-dev\n", run.stderr)
        self.assertEqual(self.calls("apt-get"), [])

    def test_a_failed_configuration_shows_why(self):
        self.stand_in("dpkg-query", "echo installed")
        self.stand_in("cmake", "echo no compiler >&2; exit 1")
        run = self.dev("build")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no compiler", run.stderr)
        self.assertIn("cmake --preset release failed", run.stderr)

    def stand_ins_of_a_machine(self, qemu):
        """All that `./dev vm` calls; `qemu` is run where the shared folder is."""
        (self.top / "scripts").mkdir()
        shutil.copytree(DEV.parent / "scripts" / "vm", self.top / "scripts" / "vm")
        self.stand_in("dpkg-query", "echo installed")
        for name in ("busybox", "modprobe", "cpio"):
            self.stand_in(name, "exit 0")
        folder = self.top / "build" / "vm"
        for series, release in (("", "6.1.0-0-amd64"), ("6.12", "6.12.0-0-amd64"),
                                ("newest", "7.0.0-0-amd64")):
            kernel = folder / series / f"linux-image-{release}"
            (kernel / "lib" / "modules" / release).mkdir(parents=True)
            (folder / f"initramfs-{release}.gz").write_text("newer than its script")
        self.stand_in("qemu-system-x86_64",
                      'shared=$(echo "$*" | sed "s/.*id=shared,path=\\([^,]*\\),.*/\\1/")\n'
                      f'cd "$shared" || exit 1\n{qemu}')

    def test_vm_without_a_command(self):
        run = self.dev("vm")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("vm takes a command", run.stderr)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the machine is made for x86_64")
    def test_vm_returns_what_the_command_did(self):
        self.stand_ins_of_a_machine("bash job >stdout 2>stderr; echo $? >code")
        run = self.dev("vm", "sh", "-c", "echo \"a  b\"; echo c >&2; exit 7")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (7, "a  b\n", "c\n"))

    @unittest.skipUnless(os.uname().machine == "x86_64", "the machine is made for x86_64")
    def test_vm_shows_the_console_of_a_machine_that_gives_no_result(self):
        self.stand_ins_of_a_machine("echo panic >console; exit 3")
        run = self.dev("vm", "true")
        self.assertEqual(run.returncode, 125)
        self.assertIn("panic\n", run.stderr)
        self.assertIn("ended without a result (qemu: exit code 3)", run.stderr)

    def test_vm_says_what_to_install(self):
        self.stand_in("dpkg-query", 'case "$*" in *qemu*) exit 1;; *) echo installed;; esac')
        self.stand_in("apt-get", "exit 0")
        prefix = ("setpriv", "--reuid", NOBODY, "--clear-groups") if os.geteuid() == 0 else ()
        run = self.dev("vm", "true", prefix=prefix)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("sudo apt-get install -y qemu-system-x86\n", run.stderr)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the machine is made for x86_64")
    def test_vm_tests_need_the_machine(self):
        self.stand_ins_of_a_machine("exit 1")
        self.stand_in("cmake", "exit 0")
        shutil.rmtree(self.top / "build" / "vm")
        self.stand_in("apt-cache", "exit 0")
        run = self.dev("test", "--vm")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("apt knows no package linux-image-amd64", run.stdout)
        self.assertIn("dev: the virtual machine cannot be had: see above", run.stderr)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the machine is made for x86_64")
    def test_vm_tests_alone(self):
        self.stand_ins_of_a_machine("exit 1")
        self.stand_in("cmake", "exit 0")
        self.stand_in("ctest", f"touch {self.top}/build/results/release.xml\n"
                      f"echo $UNISONO_VM_REQUIRED >{self.top}/required")
        summary = self.top / "scripts" / "test_summary.py"
        summary.write_text("#!/bin/sh\n")
        summary.chmod(0o755)
        run = self.dev("test", "--vm", "jobs")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        [call] = self.calls("ctest")
        self.assertIn("--label-regex ^vm$", call)
        self.assertIn("--tests-regex jobs", call)
        self.assertEqual((self.top / "required").read_text(), "yes\n")

    def stand_ins_of_a_test(self, cmake, ctest):
        """All that `./dev test` calls; ctest writes the results unless its script ends before."""
        self.stand_in("dpkg-query", "echo installed")
        self.stand_in("cmake", f"cd {self.top}\n{cmake}")
        self.stand_in("ctest", f'cd {self.top}\npreset=$(basename "$2")\n{ctest}\n'
                      'touch build/results/$preset.xml')
        (self.top / "scripts").mkdir()
        (self.top / "scripts" / "vm").mkdir()
        for name in ("python_environment.py", "mpi_environments.py", "nic_possible.py",
                     "test_summary.py", "vm/vm.sh"):
            path = self.top / "scripts" / name
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
        for preset in ("release", "asan", "tsan"):
            folder = self.top / "build" / preset
            folder.mkdir(parents=True)
            for name in ("left_out.txt", "whole_with_all.txt"):
                (folder / name).write_text("nothing\n")

    def test_the_next_build_goes_on_beside_the_tests(self):
        # The tests of a preset do not end here before the build of the next one has begun. That
        # build does not end before it is waited for.
        self.stand_ins_of_a_test(
            'case "$*" in "--build --preset "*) ;; *) exit 0;; esac\n'
            'chrt -p $$ >policy_$3\n'
            'touch built_$3\n'
            'case $3 in release) exit 0;; asan) before=release;; tsan) before=asan;; esac\n'
            'for i in $(seq 600); do\n'
            '  [ -e tested_$before ] && chrt -p $$ | grep SCHED_OTHER >policy_awaited_$3 && break\n'
            '  sleep 0.1\n'
            'done',
            'case $preset in release) next=asan;; asan) next=tsan;; tsan) next=tsan;; esac\n'
            '[ -e built_$preset ] || exit 1\n'
            'for i in $(seq 600); do [ -e built_$next ] && break; sleep 0.1; done\n'
            '[ -e built_$next ] || exit 1\n'
            'touch tested_$preset')
        # The front ends' packages are not there before that, either.
        (self.top / "scripts" / "python_environment.py").write_text(
            f'#!/bin/sh\ncd {self.top}\n'
            'for i in $(seq 600); do [ -e built_asan ] && break; sleep 0.1; done\n'
            '[ -e built_asan ] && touch built_meanwhile\n')
        run = self.dev("test")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertTrue((self.top / "built_meanwhile").exists())
        tested = [call.split()[2] for call in self.calls("ctest")]
        self.assertEqual(tested, ["build/release", "build/asan", "build/tsan"])
        self.assertNotIn("SCHED_IDLE", (self.top / "policy_release").read_text())
        for preset in ("asan", "tsan"):
            self.assertIn("SCHED_IDLE", (self.top / f"policy_{preset}").read_text())
            self.assertIn("SCHED_OTHER", (self.top / f"policy_awaited_{preset}").read_text())

    def test_core_leaves_out_the_front_ends(self):
        for arguments, labels in (([], "^slow$"), (["--core"], "^slow$|^frontend$"),
                                  (["--all"], "^$"), (["--all", "--core"], "^$|^frontend$")):
            with self.subTest(arguments):
                self.setUp()
                self.stand_ins_of_a_test("", "")
                self.stand_in("chrt", "exit 0")  # an idle build waits for all of a busy machine
                for name in ("python_environment.py", "mpi_environments.py"):
                    script = self.top / "scripts" / name
                    script.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.top}/calls"\n')
                run = self.dev("test", *arguments, "unit_")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                tests = self.calls("ctest")
                self.assertEqual(len(tests), 3)
                most = 5400 if "--all" in arguments else 1200
                wanted = f" --timeout {most} --label-exclude {labels} --tests-regex unit_ "
                for call in tests:
                    self.assertIn(wanted, call)
                core, all_ = "--core" in arguments, "--all" in arguments
                self.assertEqual("not run: tests of the front ends" in run.stdout, core)
                self.assertEqual(bool(self.calls("mpi_environments.py")), not core)
                python = self.calls("python_environment.py")
                self.assertEqual(len(python), 0 if core else 2 if all_ else 1)
                packages = " ".join(self.calls("dpkg-query"))
                self.assertEqual("mpich" in packages, not core)
                self.assertIn("iproute2", packages)

    def test_what_cannot_be_had_is_said(self):
        self.stand_ins_of_a_test("", "")
        self.stand_in("chrt", "exit 0")
        for name, text in (("mpi_environments.py", "openmpi5: not installed: no index"),
                           ("vm/vm.sh", "vm: apt knows no package")):
            (self.top / "scripts" / name).write_text(f"#!/bin/sh\necho {text}\nexit 1\n")
        run = self.dev("test")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("openmpi5: not installed: no index\n"
                      "tests with the MPIs that are not installed are skipped", run.stdout)
        self.assertIn("tests in the virtual machine are skipped: see above", run.stdout)

    def test_what_can_run_has_to(self):
        """A skip of it fails: of the NIC path, and of the short part in the virtual machine."""
        nic, vm = "(^|_)nic(_|$)", "^vm_short$"
        for has_nic, has_vm, names in ((True, True, f"--must-run {nic}|{vm} "),
                                       (True, False, f"--must-run {nic} "),
                                       (False, True, f"--must-run {vm} "), (False, False, "")):
            with self.subTest(nic=has_nic, vm=has_vm):
                self.setUp()
                self.stand_ins_of_a_test("", "")
                self.stand_in("chrt", "exit 0")  # an idle build waits for all of a busy machine
                for name, has in (("nic_possible.py", has_nic), ("vm/vm.sh", has_vm)):
                    (self.top / "scripts" / name).write_text(f"#!/bin/sh\nexit {0 if has else 1}\n")
                (self.top / "scripts" / "test_summary.py").write_text(
                    f'#!/bin/sh\necho "test_summary.py $*" >>"{self.top}/calls"\n')
                run = self.dev("test")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                [summary] = self.calls("test_summary.py")
                self.assertIn(f"test_summary.py {names}release=", summary)
                self.assertEqual("verbs in the virtual machine may be skipped" in run.stdout,
                                 not has_vm)

    def test_the_end_tells_the_time_and_failure(self):
        self.stand_in("chrt", "exit 0")
        self.stand_ins_of_a_test("", 'i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done')
        run = self.dev("test")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        took = re.search(r"^took \d+:\d\d minutes, in which programs used (\d+):(\d\d) minutes of "
                         r"processor time$", run.stdout, re.MULTILINE)
        self.assertIsNotNone(took, run.stdout)
        used = 60 * int(took[1]) + int(took[2])
        mine = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        self.assertLessEqual(used, mine)
        self.assertIn("== 0:", run.stdout)
        (self.top / "scripts" / "test_summary.py").write_text("#!/bin/sh\nexit 1\n")
        run = self.dev("test")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("\ntook ", run.stdout)

    def test_a_build_that_fails_beside_the_tests_shows_why(self):
        self.stand_ins_of_a_test(
            'case "$*" in "--build --preset asan"*) echo no such type; exit 1;; esac', "")
        run = self.dev("test")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no such type", run.stderr)
        self.assertIn("dev: the build of asan failed", run.stderr)

    def test_no_build_is_left_behind(self):
        self.stand_in("chrt", "exit 0")  # an idle build waits for all of a busy machine
        self.stand_ins_of_a_test(
            'case "$*" in "--build --preset asan"*) echo $$ >building; exec sleep 600;; esac',
            'for i in $(seq 600); do [ -s building ] && exit 1; sleep 0.1; done')
        run = self.dev("test")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("ctest wrote no results for release", run.stderr)
        building = int((self.top / "building").read_text())
        for _ in range(600):
            if not Path(f"/proc/{building}").exists():
                break
            time.sleep(0.1)
        else:
            self.fail("the build goes on")


if __name__ == "__main__":
    unittest.main()
