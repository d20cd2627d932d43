package component

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	toleratesNode = gardencorev1beta1.FailureToleranceTypeNode
	toleratesZone = gardencorev1beta1.FailureToleranceTypeZone
)

// spread is one constraint in short.
type spread struct {
	key       string
	otherwise corev1.UnsatisfiableConstraintAction
}

// Replicas are on several nodes, in several zones if a zone may fail, and on the one node of a seed that has no other.
func TestReplicasKeepAwayFromEachOther(t *testing.T) {
	labels := Labels("kubernetes", "part")
	const never, rather = corev1.DoNotSchedule, corev1.ScheduleAnyway
	for name, test := range map[string]struct {
		availability Availability
		replicas     int32
		want         []spread
	}{
		"none":              {Availability{}, 1, nil},
		"none, single node": {Availability{IsSeedSingle: true}, 1, nil},
		"node":              {Availability{Tolerance: toleratesNode}, 2, []spread{{corev1.LabelHostname, never}}},
		"node, single node": {
			Availability{Tolerance: toleratesNode, IsSeedSingle: true}, 2, []spread{{corev1.LabelHostname, rather}},
		},
		"zone": {
			Availability{Tolerance: toleratesZone}, 2,
			[]spread{{corev1.LabelHostname, never}, {corev1.LabelTopologyZone, never}},
		},
		"zone, single node": {
			Availability{Tolerance: toleratesZone, IsSeedSingle: true}, 2,
			[]spread{{corev1.LabelHostname, rather}, {corev1.LabelTopologyZone, never}},
		},
	} {
		if got := test.availability.Replicas(Pair); got != test.replicas {
			t.Errorf("%s: %d replicas, want %d", name, got, test.replicas)
		}
		var got []spread
		for _, c := range test.availability.Spread(labels, true) {
			got = append(got, spread{c.TopologyKey, c.WhenUnsatisfiable})
			if c.MaxSkew != 1 || !apiequality.Semantic.DeepEqual(c.LabelSelector.MatchLabels, labels) ||
				!slices.Equal(c.MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey}) {
				t.Errorf("%s: constraint %+v", name, c)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: spread by %v, want %v", name, got, test.want)
		}
		for _, c := range test.availability.Spread(labels, false) {
			if len(c.MatchLabelKeys) > 0 {
				t.Errorf("%s: a StatefulSet's pods have no label %v", name, c.MatchLabelKeys)
			}
		}
	}
}

// Pods of two Deployments keep away from each other as those of one do. Terms that one of them requires hold for both.
func TestDeploymentsKeepAwayFromEachOther(t *testing.T) {
	from := Labels("vpn-seed-server", "vpn")
	for name, test := range map[string]struct {
		availability        Availability
		required, preferred []string
	}{
		"none": {Availability{}, nil, nil},
		"node": {Availability{Tolerance: toleratesNode}, []string{corev1.LabelHostname}, nil},
		"node, single node": {
			Availability{Tolerance: toleratesNode, IsSeedSingle: true}, nil, []string{corev1.LabelHostname},
		},
		"zone": {
			Availability{Tolerance: toleratesZone}, []string{corev1.LabelHostname, corev1.LabelTopologyZone}, nil,
		},
		"zone, single node": {
			Availability{Tolerance: toleratesZone, IsSeedSingle: true}, []string{corev1.LabelTopologyZone},
			[]string{corev1.LabelHostname},
		},
	} {
		affinity := test.availability.KeepAway(from)
		if affinity == nil {
			affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		}
		required, preferred := keysOf(t, affinity.PodAntiAffinity, from)
		if !slices.Equal(required, test.required) || !slices.Equal(preferred, test.preferred) {
			t.Errorf("%s: required %q, preferred %q", name, required, preferred)
		}
	}
	required, preferred := keysOf(t, PreferApart(from).PodAntiAffinity, from)
	if len(required) > 0 || !slices.Equal(preferred, []string{corev1.LabelHostname, corev1.LabelTopologyZone}) {
		t.Errorf("where there are several: required %q, preferred %q", required, preferred)
	}
}

// keysOf are what pods are kept apart by, all of them from those with labels.
func keysOf(t *testing.T, apart *corev1.PodAntiAffinity, from map[string]string) (required, preferred []string) {
	t.Helper()
	key := func(term corev1.PodAffinityTerm) string {
		if !maps.Equal(term.LabelSelector.MatchLabels, from) {
			t.Errorf("apart from %v, want %v", term.LabelSelector.MatchLabels, from)
		}
		return term.TopologyKey
	}
	for _, term := range apart.RequiredDuringSchedulingIgnoredDuringExecution {
		required = append(required, key(term))
	}
	for _, term := range apart.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred = append(preferred, key(term.PodAffinityTerm))
	}
	return required, preferred
}

// A part that elects a leader is updated such that one serves; a part without replicas is as it was.
func TestDeploymentsOfAPair(t *testing.T) {
	one, two := deploymentOf(1), pairOf()
	if one.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType ||
		one.Spec.Template.Spec.TopologySpreadConstraints != nil {
		t.Errorf("one replica: %+v", one.Spec)
	}
	update := two.Spec.Strategy.RollingUpdate
	if update == nil || update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 ||
		len(two.Spec.Template.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("two replicas: %+v", two.Spec)
	}
}

// pairOf is a Deployment of a highly available control plane.
func pairOf() *appsv1.Deployment {
	return ControlPlaneDeployment(ControlPlaneDeploymentValues{
		Namespace: "ns", Name: "part", Labels: Labels("kubernetes", "part"), Replicas: Pair, Image: "part:1",
		Availability: Availability{Tolerance: toleratesNode},
	})
}

// A drain takes one of the pods, and never waits for one that does not serve.
func TestDisruptionBudget(t *testing.T) {
	labels := Labels("kubernetes", "part")
	got := DisruptionBudget("ns", "part", labels)
	want := policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
	}
	if got.Namespace != "ns" || got.Name != "part" || got.Labels[LabelGardenRole] != GardenRoleControlPlane ||
		!apiequality.Semantic.DeepEqual(got.Spec, want) {
		t.Errorf("got %+v", got)
	}
}
