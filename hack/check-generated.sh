#!/usr/bin/env bash
# Generates again and compares: what is committed must be what the types give. What was found right stays so as long as
# neither the types and generators nor the outcome change, so that it is not generated again then.
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything that hack/generate.sh reads and writes.
parts=(go.mod go.sum hack pkg/apis pkg/client charts/crds docs/api extensions/federation/pkg/apis)
state() {
  go version
  # A file that is missing is missing in the list.
  git ls-files -co --exclude-standard -z -- "${parts[@]}" | sort -zu | xargs -0 sha256sum 2>/dev/null || true
}
found=.cache/generated.sha256
if [ -f "$found" ] && [ "$(state)" = "$(cat "$found")" ]; then
  exit 0
fi

before=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
hack/generate.sh >/dev/null
after=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
if [ "$before" != "$after" ]; then
  echo "Generated code is out of date: run make generate and commit what changes." >&2
  git status --short >&2
  exit 1
fi
mkdir -p .cache
state >"$found"
