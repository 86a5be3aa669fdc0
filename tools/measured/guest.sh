#!/usr/bin/env bash
# What a small guest gains by huge pages on its host: tools/measured/guest.sh LOOKASIDE (some six minutes; as root; needs
# gcc, cpio, qemu-system-x86 and apt, which downloads Debian's kernel). The host's setting is `never` meanwhile, so that
# the guest's memory is in small pages at first, and put back at the end.
set -euo pipefail
case "${1:-}" in
'' | -h | --help) sed -n '2,4s/^# //p' "$0"; [ "${1:-}" ] && exit 0 || exit 2 ;;
esac
lookaside=$(realpath "$1")
source=$(realpath "$(dirname "$0")/guest.c")
setting=/sys/kernel/mm/transparent_hugepage/enabled
before=$(sed 's/.*\[\(.*\)\].*/\1/' "$setting")
work=$(mktemp -d)
cd "$work"
guest=
trap '[ -z "$guest" ] || kill "$guest"; echo "$before" >"$setting"; rm -rf "$work"' EXIT
image=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
apt-get -o APT::Sandbox::User=root -qq download "$image"
dpkg -x ./*.deb kernel
gcc -O2 -static -o init "$source"
echo init | cpio --quiet -o -H newc | gzip >init.cpio.gz
echo never >"$setting"
qemu-system-x86_64 -accel tcg -M q35 -cpu max -m 768 -nodefaults -display none -no-reboot -kernel kernel/boot/vmlinuz-* \
	-initrd init.cpio.gz -append 'console=ttyS0 quiet rdinit=/init' -serial file:serial.log &
guest=$!
# It boots, and fills its memory.
until [ "$(grep -c '^read' serial.log 2>/dev/null || true)" -ge 5 ]; do sleep 1; done
XDG_STATE_HOME=$work "$lookaside" trial --pid "$guest" --by referenced --budget 160 --memory 400 --for 4m --phase 8s \
	--settle 1s --max-stall 2s --metric log:serial.log --number 'read ([0-9.]+) ns' --measure-only
