#!/usr/bin/env bash
# Generates again and compares: what is committed must be what the types give.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
hack/generate.sh >/dev/null
after=$(git ls-files -s -m -o --exclude-standard | sha256sum; git diff | sha256sum)
if [ "$before" != "$after" ]; then
  echo "Generated code is out of date: run make generate and commit what changes." >&2
  git status --short >&2
  exit 1
fi
