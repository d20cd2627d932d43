#!/bin/sh
# inside.sh ROOT WORK PROGRAM ARGUMENT...: runs a program in a root file system, with mounts and processes of its own.
# WORK is the only folder of the host that it sees, by the same path, and its home. What it starts ends with it, and the
# root file system stays as it was, but for an empty folder where WORK is.
set -eu
if [ "${TRELLIS_INSIDE:-}" != yes ]; then
  TRELLIS_INSIDE=yes exec unshare --mount --pid --ipc --fork --kill-child -- "$0" "$@"
fi
unset TRELLIS_INSIDE
root=$1 work=$2
shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$work"
mount --bind "$work" "$root$work"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -m 1777 "$root/dev/shm"
mount -t tmpfs tmpfs "$root/dev/shm"
for node in null zero full random urandom; do
  touch "$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
export HOME="$work" XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache" PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$root" "$@"
