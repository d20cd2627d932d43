#!/usr/bin/env bash
# Runs a command (hack/steady.sh COMMAND...) in this tree so that the Go command finds there what it knows of other
# clones: in a folder of one name, which is the tree for this command alone, and with times of files that follow from
# their content. Otherwise each test that reads a file of the tree is linked and run anew in a new clone, though nothing
# has changed. It needs to be root, as the landscape does.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: hack/steady.sh COMMAND..." >&2; exit 2; }
cd "$(dirname "$0")/.."
mkdir -p bin .cache/bin /run/trellis-tree
go -C hack/tools build -o ../../.cache/bin/filetimes ./filetimes
# The Go command looks at links as well, and each clone makes those of bin anew.
.cache/bin/filetimes bin
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount bash -euc '
  mount --bind "$0" /run/trellis-tree
  cd /run/trellis-tree
  exec "$@"' "$PWD" "$@"
