#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the first file system of the virtual machine of `./dev vm`: a static busybox, the kernel
# modules that mount this machine's root, and an /init that does so.
# Usage: initramfs.sh KERNEL_FOLDER OUTPUT, with KERNEL_FOLDER/lib/modules/VERSION.
set -euo pipefail

kernel=$1
output=$2
version=$(basename "$(echo "$kernel"/lib/modules/*)")
[[ -e $kernel/lib/modules/$version/modules.dep ]] || depmod -b "$kernel" "$version"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,dev,proc,sys,modules,newroot,lower,upper}
cp "$(command -v busybox)" "$folder/bin/busybox"

# busybox's insmod takes modules that are not compressed, in the order of their dependencies.
for module in virtio_pci 9pnet_virtio 9p overlay; do
  modprobe -d "$kernel" -S "$version" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r file; do
  name=$(basename "$file")
  name=${name%.xz}
  name=${name%.zst}
  case $file in
    *.xz) xz -dc "$file" ;;
    *.zst) zstd -dc "$file" ;;
    *) cat "$file" ;;
  esac >"$folder/modules/$name"
  echo "$name" >>"$folder/modules/order"
done

cat >"$folder/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in $(cat /modules/order); do
  insmod "/modules/$module" || echo "vm: insmod $module failed"
done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose root /lower || {
  echo "vm: the root of the machine outside cannot be mounted"
  poweroff -f
}
mount -t tmpfs -o mode=755 tmpfs /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /newroot
for each in dev proc sys; do mount --move "/$each" "/newroot/$each"; done
exec switch_root /newroot /bin/bash "$VM_INIT"
INIT
chmod +x "$folder/init"
(cd "$folder" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$output.new"
mv "$output.new" "$output"
