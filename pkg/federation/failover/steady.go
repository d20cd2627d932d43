package failover

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// SteadySince tells since when neither readiness nor the taints of a cluster have changed; false if that was not noted
// yet.
func SteadySince(cluster *clusterv1alpha1.Cluster) (time.Time, bool) {
	text, digest, _ := strings.Cut(cluster.Annotations[clusterv1alpha1.SteadySinceAnnotation], " ")
	since, err := time.Parse(time.RFC3339, text)
	if err != nil || digest != stateDigest(cluster) {
		return time.Time{}, false
	}
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil &&
		ready.LastTransitionTime.After(since) {
		since = ready.LastTransitionTime.Time
	}
	return since, true
}

// SteadyNote is the value of the annotation that SteadySince reads: a new one if the cluster has changed.
func SteadyNote(cluster *clusterv1alpha1.Cluster, now time.Time) string {
	if _, known := SteadySince(cluster); known {
		return cluster.Annotations[clusterv1alpha1.SteadySinceAnnotation]
	}
	return now.UTC().Format(time.RFC3339) + " " + stateDigest(cluster)
}

// stateDigest changes with readiness and with the taints that keep objects away.
func stateDigest(cluster *clusterv1alpha1.Cluster) string {
	ready := meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	parts := []string{fmt.Sprint(ready)}
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			parts = append(parts, taint.ToString())
		}
	}
	slices.Sort(parts)
	h := fnv.New32a()
	h.Write([]byte(strings.Join(parts, ";")))
	return fmt.Sprintf("%08x", h.Sum32())
}

// Away is a member that is not ready.
type Away struct {
	// Taint is the key that fits.
	Taint string
	// Since is when it became so.
	Since time.Time
}

// AwayOf gives nil for clusters that are ready, asleep, or were never asked.
func AwayOf(cluster *clusterv1alpha1.Cluster) *Away {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason == clusterv1alpha1.ReasonHibernated ||
		cluster.Status.KubernetesVersion == "" {
		return nil
	}
	key := clusterv1alpha1.TaintNotReady
	if ready.Status == metav1.ConditionUnknown {
		key = clusterv1alpha1.TaintUnreachable
	}
	return &Away{Taint: key, Since: ready.LastTransitionTime.Time}
}

// AwayTaints gives the taints of a cluster with the NoExecute taint that it needs because it is away for longer than
// the limit, and without those that it doesn't need. next is when it will need one; zero if only a change can tell. A
// limit of 0 adds none, nor does spare, which is for times when so many clusters are away that the fault is more likely
// here.
func AwayTaints(taints []corev1.Taint, away *Away, limit time.Duration, spare bool,
	now time.Time) (result []corev1.Taint, next time.Duration) {
	wanted := ""
	if away != nil {
		wanted = away.Taint
	}
	present := false
	for _, t := range taints {
		ours := t.Effect == corev1.TaintEffectNoExecute &&
			(t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable)
		if ours && away == nil {
			continue
		}
		// Of a cluster that answers now and then the first taint stays, so that its time does.
		present = present || ours
		result = append(result, t)
	}
	if wanted == "" || present || limit <= 0 || spare {
		return result, 0
	}
	if left := limit - now.Sub(away.Since); left > 0 {
		return result, left
	}
	return append(result, corev1.Taint{
		Key: wanted, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now},
	}), 0
}

// MostAway tells whether more than half of the clusters that should be awake are away. Of one or two that proves
// nothing.
func MostAway(awake, away int) bool { return awake > 2 && 2*away > awake }

// StampTaints gives NoExecute taints the time they were first seen, if they have none: toleration counts from then.
func StampTaints(taints []corev1.Taint, now time.Time) []corev1.Taint {
	result := slices.Clone(taints)
	for i := range result {
		if result[i].Effect == corev1.TaintEffectNoExecute && result[i].TimeAdded == nil {
			result[i].TimeAdded = &metav1.Time{Time: now}
		}
	}
	return result
}
