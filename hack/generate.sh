#!/bin/sh
# Generates what is derived from the types in pkg/apis: deep copies. Run it with `make generate`; `make check` fails when the
# outcome differs from what is committed.
set -eu
cd "$(dirname "$0")/.."

tool() {
    go tool -modfile=hack/tools/go.mod "$@"
}

module=$(go list -m)
packages=""
for dir in core/v1beta1 security/v1alpha1 authentication/v1alpha1 extensions/v1alpha1 resources/v1alpha1; do
    packages="$packages $module/pkg/apis/$dir"
done

# shellcheck disable=SC2086 # one argument per package
tool deepcopy-gen --output-file zz_generated.deepcopy.go --go-header-file hack/boilerplate.go.txt $packages
