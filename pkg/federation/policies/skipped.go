package policies

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// DefaultSkippedNamespaces is what a fleet's controllers use unless they are told otherwise.
const DefaultSkippedNamespaces = "kube-.*"

// Skipped namespaces are never propagated from.
type Skipped struct{ pattern *regexp.Regexp }

// NewSkipped takes a regular expression that has to match the whole name of a namespace.
func NewSkipped(pattern string) (Skipped, error) {
	compiled, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return Skipped{}, fmt.Errorf("namespaces to skip: %w", err)
	}
	return Skipped{compiled}, nil
}

// Skips protects what belongs to the fleet itself.
func (s Skipped) Skips(template *unstructured.Unstructured) bool {
	namespace := template.GetNamespace()
	if template.GetKind() == "Namespace" && template.GetAPIVersion() == "v1" {
		namespace = template.GetName()
	}
	return namespace == clusterv1alpha1.CredentialsNamespace || namespace == "karmada-system" ||
		strings.HasPrefix(namespace, clusterv1alpha1.ExecutionNamespacePrefix) ||
		namespace != "" && s.pattern.MatchString(namespace)
}
