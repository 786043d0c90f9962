#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs one command as root in a small virtual machine, and returns its output and exit code. The
# machine has Debian's kernel with soft-RoCE (rdma_rxe), which many kernels lack. Its root is this
# machine's, read only: what the command writes is lost. `./dev vm` installs what it needs.
# Usage: vm.sh FOLDER COMMAND [ARGUMENT...]; FOLDER keeps the kernel and the lock. Or, to have all
# that a command needs and run none: vm.sh --prepare FOLDER
# UNISONO_VM_CPUS (2), UNISONO_VM_MEMORY (1024, MiB) and UNISONO_VM_LIMIT (seconds, 900) change it.
# Exit code 125: the machine gave no answer; its console is shown.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
only_prepare=
if [[ ${1:-} == --prepare ]]; then
  only_prepare=yes
  shift
fi
mkdir -p "$1"
folder=$(readlink -f "$1")
shift
[[ -n $only_prepare || $# -gt 0 ]] || {
  echo "vm: no command; for example: ./dev vm rdma link" >&2
  exit 2
}
fail() {
  printf 'vm: %s\n' "$*" >&2
  exit 125
}

[[ $(uname -m) == x86_64 ]] || fail "it is made for x86_64, and this machine is $(uname -m)"
for tool in qemu-system-x86_64 busybox modprobe cpio; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
    fail "$tool is missing: sudo apt-get install -y qemu-system-x86 busybox-static kmod cpio"
done
PATH=$PATH:/usr/sbin:/sbin
readonly most_download_s=300  # a mirror that says nothing must not hold up the tests

# A second machine would take the processors of the first.
exec 9>"$folder/lock"
flock 9

# The kernel is unpacked, never installed. A package that the distribution has replaced still works.
kernel=$(find "$folder" -maxdepth 1 -name 'linux-image-*' -type d -print -quit)
if [[ -z $kernel ]]; then
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends/ {print $2; exit}')
  [[ -n $package ]] ||
    fail "apt knows no package linux-image-amd64; unpack one into $folder/linux-image-VERSION"
  echo "vm: downloading $package (70 MB) into $folder" >&2
  download=$(mktemp -d "$folder/download.XXXX")
  trap 'rm -rf "$download"' EXIT
  chmod 777 "$download"  # apt downloads as a user of its own
  (cd "$download" && timeout -k 5 "$most_download_s" apt-get download -qq \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=30 "$package" >&2) ||
    fail "apt-get download $package failed; run apt-get update first, or copy a build/vm here"
  dpkg-deb -x "$download/$package"_*.deb "$download/unpacked"
  mv "$download/unpacked" "$folder/$package"
  rm -rf "$download"
  kernel=$folder/$package
fi
version=$(basename "$(echo "$kernel"/lib/modules/*)")
initramfs=$folder/initramfs-$version.gz
[[ $initramfs -nt $here/initramfs.sh ]] || "$here/initramfs.sh" "$kernel" "$initramfs"
[[ -z $only_prepare ]] || exit 0

# /dev/kvm alone proves nothing: some hosts offer one that cannot run this kernel.
accelerator=(-accel "tcg,thread=multi,tb-size=256" -cpu max)
if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]]; then
  accelerator=(-accel kvm -cpu host)
fi

shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
{
  printf 'cd %q\n' "$PWD"
  printf 'exec'
  printf ' %q' "$@"
  echo
} >"$shared/job"
# On a busy machine the kernel measures the time stamp counter wrongly, and its clock runs up to ten
# times too fast. The frequency of the HPET is known.
command_line="console=ttyS0 panic=-1 quiet mitigations=off nokaslr clocksource=hpet tsc=unstable"
code=0
timeout -k 5 "${UNISONO_VM_LIMIT:-900}" qemu-system-x86_64 -M q35 "${accelerator[@]}" \
  -smp "${UNISONO_VM_CPUS:-2}" -m "${UNISONO_VM_MEMORY:-1024}" \
  -nodefaults -no-user-config -display none -no-reboot -nic none \
  -serial "file:$shared/console" -device virtio-rng-pci \
  -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
  -device virtio-9p-pci,fsdev=root,mount_tag=root \
  -fsdev "local,id=shared,path=$shared,security_model=none" \
  -device virtio-9p-pci,fsdev=shared,mount_tag=shared \
  -kernel "$kernel/boot/vmlinuz-$version" -initrd "$initramfs" \
  -append "$command_line KERNEL_FOLDER=$kernel VM_INIT=$here/init.sh" \
  >"$shared/qemu" 2>&1 9>&- || code=$?
cat "$shared/stdout" 2>/dev/null || true
cat "$shared/stderr" >&2 2>/dev/null || true
[[ ! -s $shared/code ]] || exit "$(<"$shared/code")"
cat "$shared/qemu" >&2
tail -n 20 "$shared/console" >&2 || true
[[ $code -ne 124 ]] || fail "no result within ${UNISONO_VM_LIMIT:-900} s (UNISONO_VM_LIMIT)"
fail "the machine ended without a result (qemu: exit code $code)"
