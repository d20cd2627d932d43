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

// settledTaints leaves out those that keep new objects away from a cluster that is ready: the fleet removes them a
// moment after it has written that it is. Decisions of that moment would choose others.
func settledTaints(c *clusterv1alpha1.Cluster) []corev1.Taint {
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) ||
		!slices.ContainsFunc(c.Spec.Taints, keepsNewAway) {
		return c.Spec.Taints
	}
	return slices.DeleteFunc(slices.Clone(c.Spec.Taints), keepsNewAway)
}

func keepsNewAway(taint corev1.Taint) bool {
	return isOurs(taint) && taint.Effect == corev1.TaintEffectNoSchedule
}

// peoplesTaints leaves out those by which the fleet says that a cluster is not ready, which it cannot know yet.
func peoplesTaints(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), isOurs)
}

// isOurs tells whether the fleet says by a taint that a cluster is not ready.
func isOurs(taint corev1.Taint) bool {
	return taint.Key == clusterv1alpha1.TaintNotReady || taint.Key == clusterv1alpha1.TaintUnreachable
}
