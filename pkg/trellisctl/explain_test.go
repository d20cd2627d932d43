package trellisctl

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// Fleets drop what an earlier version wrote about each cluster when they read it.
func TestExplainOfDecisionsThatTellOfNoCluster(t *testing.T) {
	chosen := []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}}
	tests := map[string]struct {
		clusters []workv1alpha2.TargetCluster
		decision workv1alpha2.PlacementDecision
		want     string
		table    bool
	}{
		"by an earlier version": {
			chosen, workv1alpha2.PlacementDecision{Strategy: "Aggregated"}, "An earlier version of the fleet decided",
			false,
		},
		"without clusters": {
			nil, workv1alpha2.PlacementDecision{Strategy: "Aggregated"}, "the fleet had none, or an earlier version",
			false,
		},
		"with a ranking": {chosen, workv1alpha2.PlacementDecision{
			Ranking: workv1alpha2.NewRanking([]workv1alpha2.RankedCluster{{Name: "member1", Chosen: true}}),
		}, "member1", true},
		"with rejections": {nil, workv1alpha2.PlacementDecision{
			Rejections: []workv1alpha2.DecisionRejection{
				{Reason: "AffinityMismatch", Message: "no", Clusters: "member1"},
			},
		}, "AffinityMismatch: no", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Clusters, b.Status.Decision = tc.clusters, &tc.decision
			var out bytes.Buffer
			if err := explainClusters(&out, b); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if !strings.Contains(got, tc.want) || strings.Contains(got, "CLUSTER") != tc.table ||
				strings.Contains(got, "WorkloadRebalancer") == tc.table {
				t.Errorf("got\n%s\nwant %q, with a table: %v", got, tc.want, tc.table)
			}
			for line := range strings.Lines(got) {
				if !tc.table && len(line) > 81 {
					t.Errorf("%q has more than 80 columns", line)
				}
			}
		})
	}
}

// placed is the binding of a Deployment with two replicas in one and none in two, which was rejected.
func placed() *workv1alpha2.ResourceBinding {
	available := int64(7)
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
	}
	b.Spec.Replicas = 2
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "one", Replicas: 2}}
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: "Success"},
	}
	b.Status.Decision = &workv1alpha2.PlacementDecision{
		Strategy: "Aggregated",
		Ranking: workv1alpha2.NewRanking([]workv1alpha2.RankedCluster{
			{Name: "one", Chosen: true, Replicas: 2, Available: &available, Score: 100}, {Name: "three"},
		}),
		Rejections: []workv1alpha2.DecisionRejection{
			{Reason: "TaintToleration", Message: "it has a taint", Clusters: "two four"},
			{Reason: "SpreadConstraint", Message: "not needed", Clusters: "three"},
		},
		Omitted: 3,
	}
	return b
}

// Candidates come in the order of preference with their numbers, then those that cannot have the object, each with its
// reason.
func TestExplainTable(t *testing.T) {
	b := placed()
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "one", Applied: true, Health: "Healthy"},
	}
	var out bytes.Buffer
	err := explainClusters(&out, b)
	check(t, "clusters", lines(t, &out, err), []string{
		"", "CLUSTER FITS SCORE WEIGHT AVAILABLE REPLICAS WHY",
		"one yes 100 - 7 2 chosen; applied, healthy", "three yes 0 - - - SpreadConstraint: not needed",
		"four no - - - - TaintToleration: it has a taint", "two no - - - - TaintToleration: it has a taint",
		"… and 3 clusters more that were left out",
	})
}

func TestStateInACluster(t *testing.T) {
	for want, items := range map[string][]workv1alpha2.AggregatedStatusItem{
		"chosen; not reported yet":            {{ClusterName: "two", Applied: true}},
		"chosen; not applied: not yet":        {{ClusterName: "one"}},
		"chosen; not applied: quota exceeded": {{ClusterName: "one", AppliedMessage: "quota exceeded"}},
		"chosen; applied, unknown":            {{ClusterName: "one", Applied: true}},
		"chosen; applied, unhealthy":          {{ClusterName: "one", Applied: true, Health: "Unhealthy"}},
	} {
		b := placed()
		b.Status.AggregatedStatus = items
		if got := stateIn(b, "one"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestExplainSummary(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   []string
	}{
		"placed": {func(*workv1alpha2.ResourceBinding) {}, []string{
			"Deployment shop/web", "Policy: none", "Scheduled: True (Success)", "Division: Aggregated of 2 replicas",
		}},
		"not looked at": {func(b *workv1alpha2.ResourceBinding) { b.Status = workv1alpha2.ResourceBindingStatus{} },
			[]string{
				"Deployment shop/web", "Policy: none", "Scheduled: not decided yet",
			}},
		"nowhere": {func(b *workv1alpha2.ResourceBinding) {
			b.Status.Conditions = []metav1.Condition{
				{
					Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Reason: "NoClusterFit",
					Message: "no cluster has room",
				},
			}
			b.Status.Decision = nil
		}, []string{"Deployment shop/web", "Policy: none", "Scheduled: False (NoClusterFit): no cluster has room"}},
		"of a group": {func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "backup"
			b.Status.Decision.SkippedAffinities = []workv1alpha2.SkippedAffinity{
				{AffinityName: "main", Message: "no room"},
			}
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "app"}}
		}, []string{
			"Deployment shop/web", "Policy: none; it follows app", "Scheduled: True (Success)", "Affinity: backup",
			"Division: Aggregated of 2 replicas",
			"Skipped: affinity main: no room",
		}},
	} {
		b := placed()
		test.change(b)
		var out bytes.Buffer
		explainSummary(&out, b)
		check(t, name, lines(t, &out, nil), test.want)
	}
}

// Machines that may come are told of only while the object waits for them.
func TestExplainGrowth(t *testing.T) {
	scheme := fleetscheme.Scheme()
	growing := &fleetv1alpha1.FleetGrowth{ObjectMeta: metav1.ObjectMeta{Name: "growing"}}
	growing.Status.Conditions = []metav1.Condition{
		{Type: fleetv1alpha1.GrowthSatisfied, Status: metav1.ConditionFalse, Message: "one machine is being made"},
	}
	fleet := &Fleet{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(growing),
			&fleetv1alpha1.FleetGrowth{ObjectMeta: metav1.ObjectMeta{Name: "new"}}).Build(),
	}
	for name, test := range map[string]struct {
		growth  string
		waiting bool
		want    string
	}{
		"placed already": {"growing", false, ""},
		"no growth":      {"", true, ""},
		"on its way":     {"growing", true, "Growth:     FleetGrowth growing: one machine is being made\n"},
		"just made":      {"new", true, "Growth:     FleetGrowth new: not looked at yet\n"},
		"mistyped": {
			"none", true,
			`Growth:     none: the fleet has no FleetGrowth "none", which spec.placement.growth of the policy names (kubectl get fleetgrowths)` + "\n",
		},
	} {
		b := placed()
		b.Spec.Placement = &policyv1alpha1.Placement{Growth: test.growth}
		if test.waiting {
			b.Status.Conditions = nil
		}
		var out bytes.Buffer
		if err := fleet.explainGrowth(t.Context(), &out, b); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q, %v", name, out.String(), err)
		}
	}
}

// Values in tables stay short, and whole characters.
func TestShortValues(t *testing.T) {
	if got := shortValue(nil); got != "(removed)" {
		t.Errorf("got %s", got)
	}
	if got := shortValue(3); got != "3" {
		t.Errorf("got %s", got)
	}
	long := shortValue(strings.Repeat("ü", 100))
	if !utf8.ValidString(long) || utf8.RuneCountInString(long) != 61 || !strings.HasSuffix(long, "ü…") {
		t.Errorf("got %q", long)
	}
}

func TestObjectsAreTypeAndName(t *testing.T) {
	for _, wrong := range []string{"", "deployment", "/web", "deployment/", "deployment/web/x"} {
		if _, err := (&Fleet{}).objectKey(wrong, "shop"); err == nil ||
			!strings.Contains(err.Error(), "write TYPE/NAME, such as deployment/nginx") {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
}
