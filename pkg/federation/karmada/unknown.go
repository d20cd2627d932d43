package karmada

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// unknownSince tells whether nothing is known of a cluster yet, and since when that may be waited for: nobody has asked
// it, or there is nobody to ask, since its credentials or its agent are still on the way. One that was asked and does
// not answer is known. While nothing asked members, none of them could answer.
func (t *Translator) unknownSince(c *clusterv1alpha1.Cluster) (since time.Time, unknown bool) {
	created := c.CreationTimestamp.Time
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil {
		if t.Began.After(created) {
			return t.Began, true
		}
		return created, true
	}
	switch ready.Reason {
	case clusterv1alpha1.ReasonNotAccepted, clusterv1alpha1.ReasonNotReported:
		return created, true
	case clusterv1alpha1.ReasonNotConnected:
		return created, c.Status.KubernetesVersion == ""
	}
	return time.Time{}, false
}

// peoplesTaints leaves out those by which the fleet says that a cluster is not ready, which it cannot know yet.
func peoplesTaints(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(taint corev1.Taint) bool {
		return taint.Key == clusterv1alpha1.TaintNotReady || taint.Key == clusterv1alpha1.TaintUnreachable
	})
}
