package component

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Pair is how many replicas of a part that keeps no data itself outlast the loss of one.
const Pair int32 = 2

// Availability is what failures a control plane outlasts.
type Availability struct {
	// Tolerance is the largest failure; empty if the control plane may stop with one of its pods.
	Tolerance gardencorev1beta1.FailureToleranceType
	// IsSeedSingle: the seed has one node at most, so that replicas cannot be on several.
	IsSeedSingle bool
}

// IsHigh says whether the control plane goes on without one of the nodes, or zones.
func (a Availability) IsHigh() bool { return a.Tolerance != "" }

// Replicas returns how many replicas a part has: one, or so many if the control plane is highly available.
func (a Availability) Replicas(high int32) int32 {
	if a.IsHigh() {
		return high
	}
	return 1
}

// Spread returns how the pods with these labels keep away from each other: not on one node, if the seed has several,
// and with tolerance of a zone not in one zone either. byRevision leaves pods of an older revision of a Deployment out
// of account, which a rollout is about to end; StatefulSets have no label for that.
func (a Availability) Spread(labels map[string]string, byRevision bool) []corev1.TopologySpreadConstraint {
	if !a.IsHigh() {
		return nil
	}
	constraint := func(key string, otherwise corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: otherwise,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}
		if byRevision {
			c.MatchLabelKeys = []string{"pod-template-hash"}
		}
		return c
	}
	onNodes := corev1.DoNotSchedule
	if a.IsSeedSingle {
		onNodes = corev1.ScheduleAnyway
	}
	constraints := []corev1.TopologySpreadConstraint{constraint(corev1.LabelHostname, onNodes)}
	if a.Tolerance == gardencorev1beta1.FailureToleranceTypeZone {
		constraints = append(constraints, constraint(corev1.LabelTopologyZone, corev1.DoNotSchedule))
	}
	return constraints
}

// KeepAway is Spread for parts whose replicas are Deployments of their own: it returns how a pod keeps away from those
// with these labels. These keep away from it as well, without saying so, since anti-affinity holds in both directions.
func (a Availability) KeepAway(from map[string]string) *corev1.Affinity {
	if !a.IsHigh() {
		return nil
	}
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a.IsSeedSingle {
		preferred = append(preferred, preferredly(from, corev1.LabelHostname))
	} else {
		required = append(required, apart(from, corev1.LabelHostname))
	}
	if a.Tolerance == gardencorev1beta1.FailureToleranceTypeZone {
		required = append(required, apart(from, corev1.LabelTopologyZone))
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  required,
		PreferredDuringSchedulingIgnoredDuringExecution: preferred,
	}}
}

// PreferApart has a pod, and those with these labels, run on different nodes and in different zones where there are
// several.
func PreferApart(from map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			preferredly(from, corev1.LabelHostname), preferredly(from, corev1.LabelTopologyZone),
		},
	}}
}

func preferredly(from map[string]string, key string) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: apart(from, key)}
}

func apart(from map[string]string, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: from}, TopologyKey: key}
}

// DisruptionBudget has drains of the seed's nodes take one pod at a time. Pods that are not ready may be taken
// whenever: they are no loss.
func DisruptionBudget(namespace, name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: WithControlPlaneRole(labels)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             new(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: labels},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
