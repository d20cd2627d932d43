#!/usr/bin/env bash
# Static checks: formatting, modules as they were published, vet, staticcheck, imports between layers, one way for each
# thing, fields of the API without effect, the pages of the dashboard, generated code.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'Not formatted (run gofmt -w):\n%s\n' "$unformatted" >&2
  exit 1
fi
step() { hack/timed.sh "  $1" "${@:2}"; }
step "modules" go mod verify
step "vet" go vet ./...
step "vet of end-to-end tests" go vet -tags e2e,upgrade,nodes,lostseed,outage ./test/e2e
step "vet of the autoscaler's peer" go -C test/schedulerfilters vet ./...
step "vet of tools" go -C hack/tools vet ./...
mkdir -p .cache/bin
go build -modfile=hack/tools/go.mod -o .cache/bin/staticcheck honnef.co/go/tools/cmd/staticcheck
step "staticcheck" .cache/bin/staticcheck ./...
step "imports between layers" hack/check-imports.sh
step "tests of tools" go -C hack/tools test ./...
go -C hack/tools build -o ../../.cache/bin/stylecheck ./stylecheck
go -C hack/tools build -o ../../.cache/bin/linelength ./linelength
step "one way for each thing" .cache/bin/stylecheck
# Without what is generated: docs/api and docs/trellisctl by make generate, docs/benchmarks.md by make bench.
git ls-files -co --exclude-standard '*.go' '*.md' '*.sh' Makefile .ci/run '*/machine-boot' \
  ':!docs/api' ':!docs/trellisctl' ':!docs/benchmarks.md' | xargs .cache/bin/linelength
go -C hack/tools build -o ../../.cache/bin/fieldcheck ./fieldcheck
step "fields without effect" .cache/bin/fieldcheck hack/fieldcheck.txt
# As they are built for images, which take them from there: types, lint, format, tests, what is unused, licences, size.
go build -o bin/landscape ./cmd/landscape
step "pages of the dashboard" bin/landscape pages
if [ "${1:-}" != "--fast" ]; then
  step "generated code" hack/check-generated.sh
fi
