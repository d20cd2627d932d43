#!/usr/bin/env bash
# Generates again and compares: what is committed must be what the types give. What was found right stays so as long as
# neither the types and generators nor the outcome change, so that it is not generated again then, in no clone of this
# user. That is remembered until nobody has asked for 14 days.
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything that hack/generate.sh reads and writes.
parts=(go.mod go.sum hack pkg/apis pkg/client charts/crds docs/api extensions/federation/pkg/apis
  docs/trellisctl pkg/trellisctl pkg/federation/registration pkg/federation/plan)
state() {
  {
    go version
    # A file that is missing is missing in the list.
    git ls-files -co --exclude-standard -z -- "${parts[@]}" | sort -zu | xargs -0 sha256sum 2>/dev/null || true
  } | sha256sum | cut -c1-64
}

# Makes a folder if it is missing, and tells whether it is this user's alone, as in pkg/images/shared.go.
own() {
  [ -e "$1" ] || mkdir -p -m 700 "$1"
  [ ! -L "$1" ] && [ -O "$1" ] && [ -z "$(find "$1" -maxdepth 0 -perm /022)" ]
}
shared=${XDG_CACHE_HOME:-$HOME/.cache}/trellis
found=$shared/generated
if own "$shared" && own "$found"; then
  find "$found" -type f -mmin +$((14 * 24 * 60)) -delete
  known=$found/$(state)
  if [ -f "$known" ]; then
    touch "$known"
    exit 0
  fi
else
  echo "$found is not used, as it belongs to somebody else, others may write it, or it is a link: remove $shared" >&2
  found=""
fi

before=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
hack/generate.sh >/dev/null
after=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
if [ "$before" != "$after" ]; then
  echo "Generated code is out of date: run make generate and commit what changes." >&2
  git status --short >&2
  exit 1
fi
[ -z "$found" ] || touch "$found/$(state)"
