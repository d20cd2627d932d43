package karmada

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func TestWhatIsKnownOfAClusterYet(t *testing.T) {
	const unreachable = "ClusterNotReachable"
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	minutes := func(n time.Duration) time.Time { return noon.Add(n * time.Minute) }
	soon, version := noon.Add(time.Second), "v1.36.3"
	for name, tc := range map[string]struct {
		reason, version string
		began           time.Time
		want            time.Time
	}{
		"nobody asked it":               {"", "", minutes(-9), soon},
		"nobody could ask it":           {"", "", minutes(9), minutes(9).Add(time.Second)},
		"it does not answer":            {unreachable, "", minutes(-9), time.Time{}},
		"it is ready":                   {"ClusterReady", version, minutes(-9), time.Time{}},
		"it sleeps":                     {clusterv1alpha1.ReasonHibernated, "", minutes(-9), time.Time{}},
		"it has no credentials":         {clusterv1alpha1.ReasonNotConnected, "", minutes(9), soon},
		"it has lost its credentials":   {clusterv1alpha1.ReasonNotConnected, version, minutes(9), time.Time{}},
		"no agent was accepted":         {clusterv1alpha1.ReasonNotAccepted, "", minutes(9), soon},
		"its agent has not reported":    {clusterv1alpha1.ReasonNotReported, "", minutes(-9), soon},
		"its first report was not read": {clusterv1alpha1.ReasonNotReported, version, minutes(9), soon},
	} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
		c.Status.KubernetesVersion = tc.version
		c.Spec.Taints = []corev1.Taint{
			{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule},
			{Key: "people", Effect: corev1.TaintEffectNoSchedule},
		}
		if tc.reason != "" {
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Reason: tc.reason}}
		}
		translator := Translator{Began: tc.began, FirstAnswer: time.Second}
		got := translator.Cluster(c)
		if !got.AwaitedUntil.Equal(tc.want) {
			t.Errorf("%s: awaited until %v, want %v", name, got.AwaitedUntil, tc.want)
		}
		if ours := len(got.Taints) == 2; ours != tc.want.IsZero() {
			t.Errorf("%s: taints %v", name, got.Taints)
		}
		if !slices.ContainsFunc(got.Taints, func(taint corev1.Taint) bool { return taint.Key == "people" }) {
			t.Errorf("%s: people's taint is missing", name)
		}
	}
}

// That a cluster is ready is written a moment before its taint is removed, and the other way round.
func TestTaintsOfAClusterThatHasBecomeReady(t *testing.T) {
	for ready, want := range map[metav1.ConditionStatus]string{
		metav1.ConditionTrue:    "not-ready:NoExecute people:NoSchedule",
		metav1.ConditionUnknown: "not-ready:NoSchedule not-ready:NoExecute people:NoSchedule",
	} {
		c := &clusterv1alpha1.Cluster{}
		c.Status.KubernetesVersion = "v1.36.3"
		c.Status.Conditions = []metav1.Condition{
			{Type: clusterv1alpha1.ConditionReady, Status: ready, Reason: "ClusterReady"},
		}
		c.Spec.Taints = []corev1.Taint{
			{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule},
			{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoExecute},
			{Key: "people", Effect: corev1.TaintEffectNoSchedule},
		}
		var got []string
		translated := (&Translator{}).Cluster(c)
		for _, taint := range translated.Taints {
			got = append(got, strings.TrimPrefix(taint.Key, "cluster.karmada.io/")+":"+string(taint.Effect))
		}
		if strings.Join(got, " ") != want || len(c.Spec.Taints) != 3 {
			t.Errorf("Ready is %s: got %s, want %s", ready, got, want)
		}
	}
}

func TestPatienceIsForFirstPlacements(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	decided := func(ago time.Duration, reason string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			SetDecided(b, Decided{Generation: 1, Time: metav1.NewTime(noon.Add(-ago)), Reason: reason, Message: "m"})
		}
	}
	applied := func(b *workv1alpha2.ResourceBinding) {
		bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, "{}")
	}
	placed := func(b *workv1alpha2.ResourceBinding) {
		applied(b)
		decided(time.Hour, workv1alpha2.ReasonSuccess)(b)
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	}
	type change = func(*workv1alpha2.ResourceBinding)
	for name, tc := range map[string]struct {
		changes []change
		left    time.Duration
	}{
		"new":                {nil, 30 * time.Second},
		"it has waited":      {[]change{decided(20*time.Second, workv1alpha2.ReasonWaiting)}, 10 * time.Second},
		"it has waited long": {[]change{decided(time.Hour, workv1alpha2.ReasonWaiting)}, 30*time.Second - time.Hour},
		"placed":             {[]change{placed}, 0},
		"placed by another policy": {[]change{placed, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
		}}, 30 * time.Second},
		"no cluster fitted": {[]change{applied, decided(time.Hour, workv1alpha2.ReasonNoClusterFit)}, 30 * time.Second},
		"none fitted, and it has waited": {
			[]change{applied, decided(20*time.Second, workv1alpha2.ReasonWaiting)}, 10 * time.Second,
		},
		"it lacks room": {[]change{applied, decided(time.Hour, workv1alpha2.ReasonUnschedulable)}, 0},
		"it lost its last cluster": {[]change{placed, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = nil
		}}, 0},
		"it is being evicted": {[]change{func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
		}}, 0},
		"asked for": {[]change{placed, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
			b.Spec.RescheduleTriggeredAt = new(metav1.NewTime(noon))
		}}, 0},
	} {
		b := &workv1alpha2.ResourceBinding{}
		b.Spec.Placement = &policyv1alpha1.Placement{}
		for _, change := range tc.changes {
			change(b)
		}
		want := core.Patience{}
		if tc.left != 0 {
			want = core.Patience{Now: noon, Until: noon.Add(tc.left)}
		}
		if got := Patience(b, 30*time.Second, noon); !got.Now.Equal(want.Now) || !got.Until.Equal(want.Until) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
