#!/usr/bin/env bash
# Fuzzes every target of the tree, one after the other, each for a time (default 10m), with as many workers as are given
# (default: all processors): hack/fuzz.sh [time] [workers] [target ...]
#
# A failure stops the run; go test has written the input to testdata/fuzz of the package, where it is a test case from
# then on. Of what else widened the coverage, the smallest inputs of a target become test cases too, so that its corpus
# has a few dozen at most. Making such inputs smaller is bounded: where coverage differs from run to run, as it does
# with cryptography, a minute would be spent on each in vain.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:-10m}
workers=${2:-$(nproc)}
wanted=("${@:3}")
# kept is how many new inputs of a target become test cases.
kept=8
# largest is the most bytes of such an input.
largest=4096

fuzz() { # fuzz FOLDER TARGET
  local corpus="$1/testdata/fuzz/$2" found
  go test -run '^$' -fuzz "^$2\$" -fuzztime "$duration" -fuzzminimizetime 100x -parallel "$workers" "$1"
  found="$(go env GOCACHE)/fuzz/$(go list "$1")/$2"
  [ -d "$found" ] || return 0
  mkdir -p "$corpus"
  find "$found" -type f -size "-$((largest + 1))c" -printf '%s %p\n' | sort -n |
    awk -v kept="$kept" 'NR <= kept { print $2 }' | xargs -r cp -n -t "$corpus"
}

git grep -n --untracked -E '^func Fuzz[A-Za-z0-9]*\(' -- '*_test.go' | while IFS=: read -r file _ declaration; do
  target=${declaration#func }
  target=${target%%(*}
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $target "* ]]; then
    continue
  fi
  echo "== $target of $(dirname "$file"), $duration"
  fuzz "./$(dirname "$file")" "$target" < /dev/null
done
