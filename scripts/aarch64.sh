#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compiles the library for AArch64 on a machine of another kind, and runs tests that need one
# process only in QEMU's user emulation. Emulation shows that NEON kernels and wire formats give the
# right bits; it does not show how AArch64 orders memory.
# Usage: aarch64.sh FOLDER; FOLDER keeps Debian's packages for AArch64 (150 MiB) and the build.
# Needs clang-19, mold, cmake, ninja and apt-get with a package index; nothing is installed.
# Exit code 77: something of that cannot be had here, and the last line says what.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..")
mkdir -p "$1"
folder=$(readlink -f "$1")
readonly programs=(unit_arith unit_wire unit_wait)

unavailable() {
  printf 'aarch64: %s\n' "$*"
  exit 77
}
for tool in clang++-19 mold cmake ninja apt-get dpkg; do
  command -v "$tool" >/dev/null || unavailable "$tool is missing"
done

# apt of its own for another architecture: that of the machine stays as it is.
readonly apt=$folder/apt
# download ARCHITECTURE FOLDER PACKAGE...: they and what they need are unpacked in FOLDER.
download() {
  local architecture=$1 target=$2 package
  shift 2
  mkdir -p "$apt/$architecture"/{lists,cache/archives}/partial "$target"
  : >"$apt/$architecture/status"
  cat >"$apt/$architecture.conf" <<TEXT
APT::Architecture "$architecture";
APT::Architectures "$architecture";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Dir::State "$apt/$architecture";
Dir::State::status "$apt/$architecture/status";
Dir::Cache "$apt/$architecture/cache";
TEXT
  APT_CONFIG=$apt/$architecture.conf apt-get -qq update &&
    APT_CONFIG=$apt/$architecture.conf apt-get -qq install --yes --download-only "$@" >/dev/null ||
    return
  for package in "$apt/$architecture"/cache/archives/*.deb; do
    dpkg --extract "$package" "$target"
  done
}
if [[ ! -f $folder/ready ]]; then
  # The headers of fmt, Highway and the others, and libraries to link and run with.
  download arm64 "$folder/root" libc6-dev libstdc++-12-dev libfmt-dev libcli11-dev \
    nlohmann-json3-dev libhwy-dev libsodium-dev libgtest-dev libgmock-dev ||
    unavailable "apt-get gave no packages of arm64"
  download "$(dpkg --print-architecture)" "$folder/emulator" qemu-user-static ||
    unavailable "apt-get gave no qemu-user-static"
  touch "$folder/ready"
fi

readonly libraries=$folder/root/usr/lib/aarch64-linux-gnu
export PKG_CONFIG_SYSROOT_DIR=$folder/root
export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$folder/root/usr/share/pkgconfig
cmake -S "$root" -B "$folder/build" -G Ninja --toolchain "$root/cmake/aarch64.cmake" \
  -DCMAKE_SYSROOT="$folder/root" -DCMAKE_BUILD_TYPE=Release -DUNISONO_PRECOMPILE=ON \
  -DUNISONO_FRONT_ENDS=OFF >"$folder/configure.log" 2>&1 || {
  cat "$folder/configure.log"
  exit 1
}
cmake --build "$folder/build" --target unisono "${programs[@]}"
for program in "${programs[@]}"; do
  "$folder/emulator/usr/bin/qemu-aarch64-static" -L "$folder/root" "$folder/build/test/$program" \
    --gtest_brief=1
done
