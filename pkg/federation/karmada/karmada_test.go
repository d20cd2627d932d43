package karmada

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func placement(t *testing.T, text string) *policyv1alpha1.Placement {
	t.Helper()
	p := &policyv1alpha1.Placement{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStrategy(t *testing.T) {
	tests := map[string]struct {
		placement string
		want      core.Strategy
	}{
		"absent means duplicated":      {`{}`, core.Duplicated},
		"an absent type means divided": {`{replicaScheduling: {}}`, core.StaticWeight},
		"duplicated":                   {`{replicaScheduling: {replicaSchedulingType: Duplicated}}`, core.Duplicated},
		"aggregated": {
			`{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`,
			core.Aggregated,
		},
		"weighted, no weights": {
			`{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}`,
			core.StaticWeight,
		},
		"dynamic wins over static": {
			`{replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas, staticWeightList: [{targetCluster: {}, weight: 1}]}}}`, core.DynamicWeight,
		},
	}
	for name, tc := range tests {
		got, err := Placement(placement(t, tc.placement))
		if err != nil || got.Strategy != tc.want {
			t.Errorf("%s: got %v, %v", name, got.Strategy, err)
		}
	}
}

func TestPlacementKeepsThePathsOfFields(t *testing.T) {
	got, err := Placement(placement(t, `
clusterAffinities:
- {affinityName: first, clusterNames: [a]}
- {affinityName: second, fieldSelector: {matchExpressions: [{key: zone, operator: NotIn, values: [z]}]}}
spreadConstraints: [{maxGroups: 1}, {spreadByField: region, minGroups: 2}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Terms[1].Path != "spec.placement.clusterAffinities[1]" || got.Terms[1].Name != "second" ||
		!got.Terms[1].Fields[0].Not {
		t.Errorf("got %+v", got.Terms[1])
	}
	first, second := got.Spread[0], got.Spread[1]
	if first.Field != core.FieldCluster || first.Min != 1 || *first.Max != 1 || second.Min != 2 || second.Max != nil ||
		second.Path != "spec.placement.spreadConstraints[1]" {
		t.Errorf("got %+v", got.Spread)
	}
}

func TestPlacementNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: b, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]}]}`: "spec.placement.clusterAffinities[0].overflowAffinities[0].labelSelector",
		`{replicaScheduling: {limits: [{targetCluster: {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}}]}}`:                                "spec.placement.replicaScheduling.limits[0].targetCluster.labelSelector",
		`{clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: Near, values: [b]}]}}}`:                                                  "spec.placement.clusterAffinity.labelSelector",
	} {
		if _, err := Placement(placement(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestPlacementExtensions(t *testing.T) {
	got, err := Placement(placement(t, `{
		spreadConstraints: [{spreadByLabel: team, maxGroups: 2}],
		replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Even, limits: [{minReplicas: 2}, {maxReplicas: 5, targetCluster: {clusterNames: [m1]}}]},
		clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: b, clusterNames: [m2]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Spread[0].Field != core.FieldLabel || got.Spread[0].Label != "team" || got.Strategy != core.Even ||
		len(got.Terms[0].Overflow) != 1 {
		t.Errorf("got %+v", got)
	}
	if got.Limits[0].Min != 2 || got.Limits[0].Max != nil || *got.Limits[1].Max != 5 || got.Limits[1].Names[0] != "m1" {
		t.Errorf("got %+v", got.Limits)
	}
}

func TestFresh(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	tests := map[string]struct {
		triggered, scheduled *metav1.Time
		want                 bool
	}{
		"never asked":                {nil, at(1), false},
		"asked after":                {at(2), at(1), true},
		"asked at the same time":     {at(1), at(1), false},
		"asked before the first one": {at(2), nil, false},
	}
	for name, tc := range tests {
		got := Fresh(&workv1alpha2.ResourceBindingSpec{RescheduleTriggeredAt: tc.triggered},
			&workv1alpha2.ResourceBindingStatus{LastScheduledTime: tc.scheduled})
		if got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCluster(t *testing.T) {
	c := &clusterv1alpha1.Cluster{}
	c.Spec.Zone = "a"
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Ki")},
	}
	var translator Translator
	got := translator.Cluster(c)
	if len(got.Zones) != 1 || len(*got.APIs) != 1 || got.Room.Free.CPU != 1500 || got.Room.Free.Memory != 1024 {
		t.Errorf("got %+v", got)
	}
	if translator.Cluster(&clusterv1alpha1.Cluster{}).Room != nil {
		t.Error("a cluster of which nothing is known has no room to speak of")
	}
}

func TestFreshDecisionsBeginWithTheFirstAffinity(t *testing.T) {
	last := metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	status := &workv1alpha2.ResourceBindingStatus{LastScheduledTime: &last, SchedulerObservedAffinityName: "second"}
	for after, want := range map[time.Duration]string{-time.Second: "second", 0: "second", time.Second: ""} {
		spec := &workv1alpha2.ResourceBindingSpec{RescheduleTriggeredAt: new(metav1.NewTime(last.Add(after)))}
		if b, err := Binding(spec, status); err != nil || b.PreviousTerm != want || b.Fresh != (after > 0) {
			t.Errorf("asked for %v after the decision: term %q, fresh %v, %v", after, b.PreviousTerm, b.Fresh, err)
		}
	}
}

// Free in sum is not free in one piece: nodes are known one by one.
func TestClusterHasRoomByNode(t *testing.T) {
	three := corev1.ResourceList{"cpu": resource.MustParse("3"), "pods": resource.MustParse("9")}
	c := (&Translator{}).Cluster(&clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Status: clusterv1alpha1.ClusterStatus{ResourceSummary: &clusterv1alpha1.ResourceSummary{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("12"), "pods": resource.MustParse("36")},
			NodeClasses: []clusterv1alpha1.NodeClass{
				{Count: 3, Free: three, Labels: map[string]string{"disk": "fast"}},
				{Count: 1, Free: three, Taints: []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}},
			},
		}},
	})
	for cpu, want := range map[string]int64{"1": 9, "2": 3, "4": 0} {
		request := Resources(corev1.ResourceList{"cpu": resource.MustParse(cpu)})
		if got := core.NewSnapshot([]core.Cluster{c}).Estimate("m",
			core.Binding{Workload: true, Request: request}); got != want {
			t.Errorf("replicas of %s CPU: got %d, want %d", cpu, got, want)
		}
	}
}
