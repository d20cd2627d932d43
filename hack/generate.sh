#!/bin/sh
# Generates what is derived from the types in pkg/apis: deep copies and CustomResourceDefinitions. Run it with `make generate`; `make check` fails when the
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

# CustomResourceDefinitions that seeds get. Of the Gateway API only routes by TLS server name are of use; the API server asks for
# the annotation because the group lies under k8s.io.
crds=charts/crds/seed
rm -rf "$crds"
tool controller-gen crd paths=./pkg/apis/extensions/v1alpha1 paths=./pkg/apis/resources/v1alpha1 output:crd:dir="$crds"
tool controller-gen crd:maxDescLen=0,generateEmbeddedObjectMeta=true \
    paths=github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1 output:crd:dir="$crds"

gateway=$(mktemp -d)
trap 'rm -rf "$gateway"' EXIT
tool controller-gen crd:maxDescLen=0 paths=sigs.k8s.io/gateway-api/apis/v1 output:crd:dir="$gateway"
sed 's|^  annotations:$|&\n    api-approved.kubernetes.io: https://github.com/kubernetes-sigs/gateway-api/pull/4530|' \
    "$gateway"/gateway.networking.k8s.io_tlsroutes.yaml >"$crds"/gateway.networking.k8s.io_tlsroutes.yaml
