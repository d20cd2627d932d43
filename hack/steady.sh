#!/usr/bin/env bash
# Runs a command (hack/steady.sh COMMAND...) in this tree so that the Go command finds there what it knows of other
# clones: in a folder of one name, which is the tree for this command alone, and with times of files that follow from
# their content. Otherwise each test that reads a file of the tree is linked and run anew in a new clone, though nothing
# has changed. It needs to be root, as the landscape does. The folder is gone when the last such command has ended.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: hack/steady.sh COMMAND..." >&2; exit 2; }
cd "$(dirname "$0")/.."
# Tests have a folder of their own.
tree=${TRELLIS_STEADY_TREE:-/run/trellis-tree}
mkdir -p bin .cache/bin
go -C hack/tools build -o ../../.cache/bin/filetimes ./filetimes
# The Go command looks at links as well, and each clone makes those of bin anew.
.cache/bin/filetimes bin
# Who removes a folder takes away what others have mounted there. So all lock it, and one that was removed before it was
# locked is made again.
while
  mkdir -p "$tree"
  exec 9<"$tree"
  flock --shared 9
  ! [ "$tree" -ef /dev/fd/9 ]
do :; done
trap 'if flock --exclusive --nonblock 9; then rmdir "$tree"; fi' EXIT
# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount bash -euc '
  mount --bind "$0" "$1"
  cd "$1"
  shift
  exec "$@"' "$PWD" "$tree" "$@" 9<&-
