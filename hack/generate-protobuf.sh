#!/bin/sh
# Generates the protobuf form of what garden-apiserver serves: numbers for new fields (pkg/apis/fieldnumbers.txt says
# how they are chosen), then generated.proto and generated.pb.go beside the types. All tools are Go modules; the
# protocol compiler is hack/tools/protoc.
set -eu
cd "$(dirname "$0")/.."

served="authentication/v1alpha1 core/v1 core/v1beta1 operations/v1alpha1 security/v1alpha1 seedmanagement/v1alpha1"
module=$(go list -m)

# shellcheck disable=SC2086 # one argument per folder
go run ./hack/fieldnumbers $served

# go-to-protobuf calls these by name.
bin=$PWD/.cache/bin
mkdir -p "$bin"
go -C hack/tools build -o "$bin" ./protoc golang.org/x/tools/cmd/goimports \
    k8s.io/code-generator/cmd/go-to-protobuf k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo
export PATH="$bin:$PATH:$(go env GOROOT)/bin"

# Files import each other by the path of their Go package, so every module lies below one folder.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
place() {
    mkdir -p "$tree/$(dirname "$1")"
    ln -s "$2" "$tree/$1"
}
place "$module" "$PWD"
for imported in k8s.io/api k8s.io/apiextensions-apiserver k8s.io/apimachinery; do
    place "$imported" "$(go list -m -f '{{.Dir}}' "$imported")"
done
place github.com/gogo/protobuf "$(go -C hack/tools list -m -f '{{.Dir}}' github.com/gogo/protobuf)"

# What others have generated is only read, which the minus says.
imports=""
for package in apimachinery/pkg/util/intstr apimachinery/pkg/api/resource apimachinery/pkg/runtime/schema \
    apimachinery/pkg/runtime apimachinery/pkg/apis/meta/v1 api/core/v1 api/rbac/v1 api/autoscaling/v1 \
    api/networking/v1 apiextensions-apiserver/pkg/apis/apiextensions/v1; do
    imports="$imports,-k8s.io/$package"
done
packages=""
for folder in $served; do
    packages="$packages,$module/pkg/apis/$folder"
done
go-to-protobuf --go-header-file hack/boilerplate.go.txt --output-dir "$tree" \
    --apimachinery-packages "${imports#,}" --packages "${packages#,}"
