package operatingsystemconfig

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// nodeLabels renders the labels that the node registers with. The others of the pool are set by
// machine-controller-manager.
func nodeLabels(v Values) string {
	labels := maps.Clone(v.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return !kubeletMaySet(key) })
	labels[gardencorev1beta1.LabelWorkerPool] = v.PoolName
	labels[gardencorev1beta1.LabelWorkerKubernetesVersion] = v.KubernetesVersion
	if v.SystemComponents {
		labels[gardencorev1beta1.LabelWorkerPoolSystemComponents] = "true"
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// labelsOfKubelets are the labels in the namespaces of Kubernetes that a kubelet may give to its own node.
var labelsOfKubelets = []string{
	"beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
	"failure-domain.beta.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone", "kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os",
	corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
}

// kubeletMaySet says whether a kubelet starts with the label: it refuses those by which a node could make itself look
// like what only others may say it is.
func kubeletMaySet(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found || slices.Contains(labelsOfKubelets, key) {
		return true
	}
	within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	return !within("kubernetes.io") && !within("k8s.io") || within("kubelet.kubernetes.io") ||
		within("node.kubernetes.io")
}
