#!/bin/sh
# Generates what is derived from the types in pkg/apis: protobuf, deep copies, OpenAPI definitions, the API's reference,
# clients and CustomResourceDefinitions; and the reference of trellisctl from its commands. Run it with `make generate`;
# `make check` fails when the outcome differs from what is committed.
set -eu
cd "$(dirname "$0")/.."

tool() {
    go tool -modfile=hack/tools/go.mod "$@"
}

# The protobuf form of what garden-apiserver serves.
hack/generate-protobuf.sh

module=$(go list -m)
packages=""
for dir in core/v1beta1 core/v1 security/v1alpha1 seedmanagement/v1alpha1 operations/v1alpha1 authentication/v1alpha1 \
    extensions/v1alpha1 resources/v1alpha1 policy/v1alpha1 work/v1alpha1 work/v1alpha2 cluster/v1alpha1 \
    config/v1alpha1 apps/v1alpha1 autoscaling/v1alpha1 fleet/v1alpha1; do
    packages="$packages $module/pkg/apis/$dir"
done

# shellcheck disable=SC2086 # one argument per package
tool deepcopy-gen --output-file zz_generated.deepcopy.go --go-header-file hack/boilerplate.go.txt $packages

# OpenAPI definitions of what garden-apiserver serves. The kinds of Kubernetes are there because ours refer to them;
# their model names come with their modules.
kubernetes="k8s.io/api/autoscaling/v1 k8s.io/api/core/v1 k8s.io/api/networking/v1 k8s.io/api/rbac/v1 \
    k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 \
    k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime \
    k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/version"
readonly_flags=""
for package in $kubernetes; do
    readonly_flags="$readonly_flags --readonly-pkg $package"
done
# shellcheck disable=SC2086
tool openapi-gen --output-dir pkg/apis/generated/openapi --output-pkg "$module/pkg/apis/generated/openapi" \
    --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
    --go-header-file hack/boilerplate.go.txt --report-filename /dev/null $readonly_flags \
    "$module/pkg/apis/core/v1beta1" "$module/pkg/apis/core/v1" "$module/pkg/apis/security/v1alpha1" \
    "$module/pkg/apis/seedmanagement/v1alpha1" "$module/pkg/apis/operations/v1alpha1" \
    "$module/pkg/apis/authentication/v1alpha1" $kubernetes

# The same of custom resources, for the reference only: their OpenAPI definitions come from CustomResourceDefinitions,
# see below.
tool openapi-gen --output-dir hack/apidocs/openapi --output-pkg "$module/hack/apidocs/openapi" \
    --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
    --go-header-file hack/boilerplate.go.txt --report-filename /dev/null \
    "$module/pkg/apis/extensions/v1alpha1" "$module/pkg/apis/resources/v1alpha1" \
    "$module/pkg/apis/policy/v1alpha1" "$module/pkg/apis/work/v1alpha1" "$module/pkg/apis/work/v1alpha2" \
    "$module/pkg/apis/cluster/v1alpha1" "$module/pkg/apis/config/v1alpha1" "$module/pkg/apis/apps/v1alpha1" \
    "$module/pkg/apis/autoscaling/v1alpha1" "$module/pkg/apis/fleet/v1alpha1" "$module/extensions/federation/pkg/apis"

# The reference of the API, from all those definitions.
go run ./hack/apidocs docs/api

# The reference of trellisctl, from its commands.
go run ./hack/clidocs docs/trellisctl

# Typed clients, listers and informers for what garden-apiserver serves.
client=pkg/client
rm -rf "$client/clientset" "$client/listers" "$client/informers"
inputs=""
served=""
for dir in core/v1beta1 core/v1 security/v1alpha1 seedmanagement/v1alpha1 operations/v1alpha1; do
    inputs="$inputs --input $dir"
    served="$served $module/pkg/apis/$dir"
done
# shellcheck disable=SC2086
tool client-gen --clientset-name versioned --prefers-protobuf --input-base "$module/pkg/apis" $inputs \
    --go-header-file hack/boilerplate.go.txt --output-dir "$client/clientset" --output-pkg "$module/$client/clientset"
# shellcheck disable=SC2086
tool lister-gen --go-header-file hack/boilerplate.go.txt --output-dir "$client/listers" \
    --output-pkg "$module/$client/listers" $served
# shellcheck disable=SC2086
tool informer-gen --go-header-file hack/boilerplate.go.txt --output-dir "$client/informers" \
    --output-pkg "$module/$client/informers" --versioned-clientset-package "$module/$client/clientset/versioned" \
    --listers-package "$module/$client/listers" $served

# CustomResourceDefinitions that seeds get. Of the Gateway API only routes by TLS server name are of use; the API server
# asks for the annotation because the group lies under k8s.io.
crds=charts/crds/seed
rm -rf "$crds"
tool controller-gen crd paths=./pkg/apis/extensions/v1alpha1 paths=./pkg/apis/resources/v1alpha1 output:crd:dir="$crds"
tool controller-gen crd:maxDescLen=0,generateEmbeddedObjectMeta=true \
    paths=github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1 output:crd:dir="$crds"

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
tool controller-gen crd:maxDescLen=0 paths=sigs.k8s.io/gateway-api/apis/v1 output:crd:dir="$temporary"
sed 's|^  annotations:$|&\n    api-approved.kubernetes.io: https://github.com/kubernetes-sigs/gateway-api/pull/4530|' \
    "$temporary"/gateway.networking.k8s.io_tlsroutes.yaml >"$crds"/gateway.networking.k8s.io_tlsroutes.yaml

# CustomResourceDefinitions that fleets get.
fleet=charts/crds/fleet
rm -rf "$fleet"
tool controller-gen crd paths=./pkg/apis/policy/v1alpha1 paths=./pkg/apis/work/v1alpha1 paths=./pkg/apis/work/v1alpha2 \
    paths=./pkg/apis/cluster/v1alpha1 paths=./pkg/apis/config/v1alpha1 paths=./pkg/apis/apps/v1alpha1 \
    paths=./pkg/apis/autoscaling/v1alpha1 paths=./pkg/apis/fleet/v1alpha1 output:crd:dir="$fleet"

# What is wrong with a quantity that users write is told in words: controller-gen knows only a regular expression for
# them. Maps of them get a size and their lists have MaxItems, for the API server to know that the rule is cheap.
for kind in autoscaling.karmada.io_federatedhpas cluster.karmada.io_clusters fleet.trellis.garden_fleetgrowths \
    policy.karmada.io_federatedresourcequotas; do
    awk '
        /^          [a-z]/ { spec = ($1 == "spec:") }
        { indent = substr($0, 1, match($0, /[^ ]/) - 1) }
        spec && $1 == "additionalProperties:" { map = indent }
        spec && $1 == "pattern:" && /KMGTPE/ {
            print indent "maxLength: 64"
            quantity = 1
            if (indent == map "  ") sized = map
            next
        }
        sized != "" && indent == sized && $1 == "type:" { print indent "maxProperties: 128"; sized = "" }
        { print }
        quantity && $1 == "x-kubernetes-int-or-string:" {
            print indent "x-kubernetes-validations:"
            print indent "- message: must be a quantity such as 2, 500m or 1.5Gi"
            print indent "  rule: type(self) == int || isQuantity(self)"
            quantity = 0
        }
    ' "$fleet/$kind.yaml" >"$temporary/$kind.yaml"
    cp "$temporary/$kind.yaml" "$fleet/$kind.yaml"
done
