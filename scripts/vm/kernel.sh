#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints the folder of an unpacked kernel of Debian, and downloads it if it is not there. It is
# never installed, and a kernel that the distribution has replaced still works.
# Usage: kernel.sh FOLDER [KERNEL]. KERNEL is empty for the kernel of this distribution, a series
# that it also has, as 6.12, or `newest`: of the backports to the release in `newest_suite`.
set -euo pipefail

folder=$1
wanted=${2:-}
readonly newest_suite=trixie-backports
readonly most_download_s=300  # a mirror that says nothing must not hold up the tests
fail() {
  printf 'vm: %s\n' "$*" >&2
  exit 125
}

[[ $wanted =~ ^([0-9]+\.[0-9]+|newest)?$ ]] ||
  fail "no kernel is called $wanted: it is a series as 6.12, or newest (UNISONO_VM_KERNEL)"
place=$folder${wanted:+/$wanted}
mkdir -p "$place"
find_kernel() { find "$place" -maxdepth 1 -name 'linux-image-*' -type d -print -quit; }
kernel=$(find_kernel)
if [[ -n $kernel ]]; then
  echo "$kernel"
  exit
fi

download=$(mktemp -d "$place/download.XXXX")
trap 'rm -rf "$download"' EXIT
chmod 777 "$download"  # apt downloads as a user of its own
if [[ $wanted == newest ]]; then
  # Another release of Debian, which this machine's own settings of apt do not name. Their mirror
  # has it.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
    head -n 1)
  [[ -n $mirror ]] ||
    fail "apt has no mirror of Debian; unpack a kernel into $place/linux-image-VERSION"
  mkdir -p "$download"/apt/lists/partial "$download"/apt/cache/archives/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
    "$mirror $newest_suite main" >"$download/apt/sources.list"
  cat >"$download/apt/apt.conf" <<CONF
Dir::State "$download/apt";
Dir::State::status "/dev/null";
Dir::Cache "$download/apt/cache";
Dir::Etc::sourcelist "$download/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
CONF
  export APT_CONFIG=$download/apt/apt.conf
  timeout -k 5 "$most_download_s" apt-get update -qq >&2 ||
    fail "apt-get update failed for $newest_suite"
fi

# depends PACKAGE PREFIX: the packages that it depends on and whose names begin so, with a version.
depends() {
  apt-cache depends "$1" 2>/dev/null |
    awk -v prefix="$2" '/^ *Depends:/ && $2 ~ "^" prefix "[0-9]+[.]" {print $2}'
}
meta=linux-image-amd64
if [[ $wanted =~ ^[0-9] ]] && apt-cache show "linux-image-$wanted-amd64" >/dev/null 2>&1; then
  meta=linux-image-$wanted-amd64
fi
package=$(depends "$meta" linux-image- | head -n 1)
[[ -n $package ]] ||
  fail "apt knows no package $meta; unpack one into $place/linux-image-VERSION"
[[ ! $wanted =~ ^[0-9] || $package == linux-image-"$wanted".* ]] ||
  fail "this distribution has no Linux $wanted, but $package; unpack one into $place"
# Newer packages have their files in others.
mapfile -t packages < <(echo "$package"; depends "$package" 'linux-(base|binary|modules)-')
echo "vm: downloading ${packages[*]} (70 to 120 MB) into $place" >&2
(cd "$download" && timeout -k 5 "$most_download_s" apt-get download -qq \
  -o Acquire::Retries=1 -o Acquire::http::Timeout=30 "${packages[@]}" >&2) ||
  fail "apt-get download ${packages[*]} failed; run apt-get update first, or copy a build/vm here"
for file in "$download"/*.deb; do dpkg-deb -x "$file" "$download/unpacked"; done
# Debian 13 has /lib in /usr; the other scripts look for the modules in lib.
if [[ ! -e $download/unpacked/lib ]]; then ln -s usr/lib "$download/unpacked/lib"; fi
mv "$download/unpacked" "$place/$package"
find_kernel
