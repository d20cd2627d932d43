package failover

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
)

// PolicyTaints gives the taints of a cluster after a ClusterTaintPolicy that targets it: its taints are added when all
// conditions for adding hold, and then removed when all for removing do. Other taints stay as they are. A taint is told
// by key and effect.
func PolicyTaints(taints []corev1.Taint, policy *policyv1alpha1.ClusterTaintPolicySpec, conditions []metav1.Condition,
	now time.Time) []corev1.Taint {
	result := slices.Clone(taints)
	if allHold(policy.AddOnConditions, conditions) {
		for _, t := range policy.Taints {
			result = withTaint(result, t, now)
		}
	}
	if allHold(policy.RemoveOnConditions, conditions) {
		result = slices.DeleteFunc(result, func(t corev1.Taint) bool {
			return slices.ContainsFunc(policy.Taints, func(p policyv1alpha1.Taint) bool { return same(t, p) })
		})
	}
	return result
}

func same(t corev1.Taint, p policyv1alpha1.Taint) bool { return t.Key == p.Key && t.Effect == p.Effect }

// withTaint keeps the time of a taint whose value alone changes.
func withTaint(taints []corev1.Taint, wanted policyv1alpha1.Taint, now time.Time) []corev1.Taint {
	if i := slices.IndexFunc(taints, func(t corev1.Taint) bool { return same(t, wanted) }); i >= 0 {
		taints[i].Value = wanted.Value
		return taints
	}
	return append(taints, corev1.Taint{
		Key: wanted.Key, Value: wanted.Value, Effect: wanted.Effect, TimeAdded: &metav1.Time{Time: now},
	})
}

// allHold is false without any condition.
func allHold(wanted []policyv1alpha1.MatchCondition, conditions []metav1.Condition) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted,
		func(m policyv1alpha1.MatchCondition) bool { return !holds(m, conditions) })
}

func holds(m policyv1alpha1.MatchCondition, conditions []metav1.Condition) bool {
	condition := meta.FindStatusCondition(conditions, m.ConditionType)
	if condition == nil {
		return false
	}
	return slices.Contains(m.StatusValues, condition.Status) == (m.Operator == policyv1alpha1.MatchConditionIn)
}
