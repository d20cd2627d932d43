package failover_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
)

// epoch is second 0 of the time lines.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

func stamp(n int) *metav1.Time { return &metav1.Time{Time: second(n)} }

func targets(names ...string) []workv1alpha2.TargetCluster {
	var result []workv1alpha2.TargetCluster
	for _, name := range names {
		result = append(result, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	return result
}

func copies(health workv1alpha2.ResourceHealth, names ...string) map[string]workv1alpha2.AggregatedStatusItem {
	result := map[string]workv1alpha2.AggregatedStatusItem{}
	for _, name := range names {
		result[name] = workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true, Health: health}
	}
	return result
}

// TestTimeLines are the examples of how Karmada's newest line moves an object from m1 (taint at 30 s, tolerated for 60
// s) to m2, with the difference that time alone removes nothing unless the task has a grace period.
func TestTimeLines(t *testing.T) {
	for _, test := range []struct {
		name    string
		policy  failover.Eviction
		healthy int // the second at which the new copy is healthy; never if negative
		gone    int // the second at which the old copy goes; never if negative
	}{
		{"the replacement becomes healthy", failover.Eviction{}, 110, 110},
		{"it never does: the old copy stays", failover.Eviction{}, -1, -1},
		{
			"it never does, but the policy has a grace period", failover.Eviction{GracePeriodSeconds: new(int32(600))},
			-1, 690,
		},
		{
			"it becomes healthy before the grace period ends", failover.Eviction{GracePeriodSeconds: new(int32(600))},
			200, 200,
		},
		{"never purged", failover.Eviction{PurgeMode: policyv1alpha1.PurgeModeNever}, 110, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets("m1")}
			taints := []corev1.Taint{{Key: "down", Effect: corev1.TaintEffectNoExecute, TimeAdded: stamp(30)}}
			tolerations := []corev1.Toleration{
				{Key: "down", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(60))},
			}
			left, gone := -1, -1
			for n := 30; n < 2000; n++ {
				if left < 0 {
					if failover.NoExecute(taints, tolerations, second(n)).Due(second(n)) {
						left = n
						test.policy.Cluster, test.policy.Reason = "m1", "TaintUntolerated"
						failover.Evict(spec, test.policy, second(n))
						spec.Clusters = targets("m2")
					}
					continue
				}
				seen := failover.Observation{
					Decided: true, Scheduled: true, Current: true, Present: map[string]bool{"m1": true},
					Timeout: 10 * time.Minute,
					Copies:  copies(workv1alpha2.ResourceUnhealthy, "m2"),
				}
				if test.healthy >= 0 && n >= test.healthy {
					seen.Copies = copies(workv1alpha2.ResourceHealthy, "m2")
				}
				if outcome := failover.Tend(spec, seen, second(n)); len(outcome.Dropped) > 0 && gone < 0 {
					gone = n
				}
			}
			if left != 90 || gone != test.gone {
				t.Errorf("left at %d, removed at %d; want 90 and %d", left, gone, test.gone)
			}
		})
	}
}

func TestNoExecute(t *testing.T) {
	taint := func(key string, added int) corev1.Taint {
		return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: stamp(added)}
	}
	tolerate := func(key string, seconds ...int64) corev1.Toleration {
		result := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
		if len(seconds) > 0 {
			result.TolerationSeconds = &seconds[0]
		}
		return result
	}
	for _, test := range []struct {
		name        string
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		leave       bool
		at          time.Time
	}{
		{"no taint", nil, nil, false, time.Time{}},
		{"other effects", []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, nil, false, time.Time{}},
		{"not tolerated: now", []corev1.Taint{taint("a", 0)}, nil, true, time.Time{}},
		{"tolerated for ever", []corev1.Taint{taint("a", 0)}, []corev1.Toleration{tolerate("a")}, false, time.Time{}},
		{"for some time", []corev1.Taint{taint("a", 10)}, []corev1.Toleration{tolerate("a", 60)}, true, second(70)},
		{
			"the shortest of two tolerations", []corev1.Taint{taint("a", 10)},
			[]corev1.Toleration{tolerate("a", 60), tolerate("a", 20)}, true, second(30),
		},
		{
			"the first of two taints", []corev1.Taint{taint("a", 10), taint("b", 0)},
			[]corev1.Toleration{tolerate("a", 60), tolerate("b", 60)}, true, second(60),
		},
		{
			"one of two for ever", []corev1.Taint{taint("a", 10), taint("b", 0)},
			[]corev1.Toleration{tolerate("a", 60), tolerate("b")}, true, second(70),
		},
		{
			"one of two not at all", []corev1.Taint{taint("a", 10), taint("b", 0)},
			[]corev1.Toleration{tolerate("a", 60)}, true, time.Time{},
		},
		{"negative seconds", []corev1.Taint{taint("a", 10)}, []corev1.Toleration{tolerate("a", -5)}, true, second(10)},
		{
			"everything tolerated", []corev1.Taint{taint("a", 10)},
			[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, false, time.Time{},
		},
		{
			"another value", []corev1.Taint{taint("a", 10)}, []corev1.Toleration{{Key: "a", Value: "x"}}, true,
			time.Time{},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			eviction := failover.NoExecute(test.taints, test.tolerations, second(20))
			if eviction.Leave != test.leave || !eviction.At.Equal(test.at) {
				t.Errorf("got %v at %v", eviction.Leave, eviction.At)
			}
		})
	}
}

func TestEvict(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets("m1", "m2")}
	if failover.Evict(spec, failover.Eviction{Cluster: "m3"}, second(0)) {
		t.Error("a cluster that has nothing was evicted")
	}
	failover.Evict(spec, failover.Eviction{
		Cluster: "m1", Reason: "R", Producer: "P", PurgeMode: policyv1alpha1.PurgeModeImmediately,
		GracePeriodSeconds: new(int32(5)), Affinity: "first", Remember: true,
	}, second(0))
	failover.Evict(spec, failover.Eviction{
		Cluster: "m2", Reason: "R", Producer: "P", Affinity: "second", Remember: true,
	}, second(1))
	first := spec.GracefulEvictionTasks[0]
	if first.PurgeMode != policyv1alpha1.PurgeModeDirectly || *first.Replicas != 2 || first.GracePeriodSeconds != nil ||
		!slices.Equal(first.ClustersBeforeFailover, []string{"m1", "m2"}) {
		t.Errorf("task %+v", first)
	}
	before := spec.BeforeFailover
	if len(spec.Clusters) != 0 || len(before.Clusters) != 2 || before.AffinityName != "first" ||
		len(before.Failed) != 2 {
		t.Errorf("remembered %+v", before)
	}
}

func TestTend(t *testing.T) {
	task := func(change func(*workv1alpha2.GracefulEvictionTask)) workv1alpha2.GracefulEvictionTask {
		result := workv1alpha2.GracefulEvictionTask{
			FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "R",
			Producer: workv1alpha2.EvictionProducerTaintManager,
			Replicas: new(int32(2)), CreationTimestamp: stamp(0),
		}
		if change != nil {
			change(&result)
		}
		return result
	}
	withState := func(t *workv1alpha2.GracefulEvictionTask) {
		t.PurgeMode, t.PreservedLabelState = policyv1alpha1.PurgeModeDirectly,
			map[string]string{"resume.example.com/replicas": "2"}
	}
	good := failover.Observation{
		Decided: true, Scheduled: true, Current: true, Timeout: time.Minute,
		Present: map[string]bool{"m1": true, "m2": true}, Copies: copies(workv1alpha2.ResourceHealthy, "m2", "m3"),
	}
	with := func(change func(*failover.Observation)) failover.Observation {
		result := good
		change(&result)
		return result
	}
	type want struct {
		kept, dropped, restored, overdue int
		next                             time.Duration
	}
	for _, test := range []struct {
		name     string
		clusters []workv1alpha2.TargetCluster
		task     workv1alpha2.GracefulEvictionTask
		seen     failover.Observation
		want     want
	}{
		{"replaced", targets("m2"), task(nil), good, want{dropped: 1}},
		{"one of two is unhealthy", targets("m2", "m3"), task(nil), with(func(o *failover.Observation) {
			o.Copies = copies(workv1alpha2.ResourceHealthy, "m2")
			o.Copies["m3"] = copies(workv1alpha2.ResourceUnhealthy, "m3")["m3"]
		}), want{kept: 1, next: 50 * time.Second}},
		{"one of two is not reported", targets("m2", "m4"), task(nil), good, want{kept: 1, next: 50 * time.Second}},
		{
			"a kind without health", targets("m2"), task(nil),
			with(func(o *failover.Observation) { o.Copies = copies(workv1alpha2.ResourceUnknown, "m2") }),
			want{dropped: 1},
		},
		{"an empty decision replaces nothing", nil, task(nil), good, want{kept: 1, next: 50 * time.Second}},
		{
			"an old status proves nothing", targets("m2"), task(nil),
			with(func(o *failover.Observation) { o.Current = false }), want{kept: 1, next: 50 * time.Second},
		},
		{
			"not all replicas have a place", targets("m2"), task(nil),
			with(func(o *failover.Observation) { o.Scheduled = false }), want{kept: 1, next: 50 * time.Second},
		},
		{
			"the scheduler hasn't looked yet", targets("m2"), task(nil),
			with(func(o *failover.Observation) { o.Decided = false }), want{kept: 1, next: 50 * time.Second},
		},
		{
			"deletion suppressed", targets("m2"),
			task(func(t *workv1alpha2.GracefulEvictionTask) { t.SuppressDeletion = new(true) }), good, want{kept: 1},
		},
		{
			"deletion asked for", nil, task(func(t *workv1alpha2.GracefulEvictionTask) {
				t.SuppressDeletion = new(false)
			}), good, want{
				dropped: 1,
			},
		},
		{
			"grace period over", nil, task(func(t *workv1alpha2.GracefulEvictionTask) {
				t.GracePeriodSeconds = new(int32(10))
			}), good, want{
				dropped: 1,
			},
		},
		{
			"grace period not over", nil, task(func(t *workv1alpha2.GracefulEvictionTask) {
				t.GracePeriodSeconds = new(int32(15))
			}), good, want{
				kept: 1, next: 5 * time.Second,
			},
		},
		{
			"overdue", nil, task(func(t *workv1alpha2.GracefulEvictionTask) { t.CreationTimestamp = stamp(-60) }), good,
			want{kept: 1, overdue: 1},
		},
		{
			"no time yet", nil, task(func(t *workv1alpha2.GracefulEvictionTask) { t.CreationTimestamp = nil }), good,
			want{kept: 1, next: time.Minute},
		},
		{
			"purged directly, still there", targets("m2"),
			task(func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeImmediately }),
			good, want{kept: 1},
		},
		{"purged directly, gone", targets("m2"),
			task(func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeDirectly }),
			with(func(o *failover.Observation) {
				o.Present = nil
			}), want{dropped: 1}},
		{
			"purged directly, its state has nowhere to go yet", targets("m2"), task(withState),
			with(func(o *failover.Observation) { o.Present = nil }), want{kept: 1},
		},
		{
			"purged directly, no cluster was chosen for its state", nil, task(withState),
			with(func(o *failover.Observation) { o.Present = nil }), want{kept: 1},
		},
		{"purged directly, its state was handed over", targets("m2"), task(withState),
			with(func(o *failover.Observation) {
				o.Present = map[string]bool{"m2": true}
			}), want{dropped: 1}},
		{
			"back before anything replaced it", nil, task(nil),
			with(func(o *failover.Observation) { o.Welcome = map[string]bool{"m1": true} }), want{restored: 1},
		},
		{
			"back, but something replaces it", targets("m4"), task(nil),
			with(func(o *failover.Observation) { o.Welcome = map[string]bool{"m1": true} }),
			want{kept: 1, next: 50 * time.Second},
		},
		{"chosen again", targets("m1"), task(nil), good, want{}},
		{"shrinks after a return", []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m4", Replicas: 1}},
			task(func(t *workv1alpha2.GracefulEvictionTask) {
				t.Producer = workv1alpha2.EvictionProducerFailBack
			}), good, want{kept: 1, next: 50 * time.Second}},
		{"grown again after a return",
			[]workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m4", Replicas: 1}},
			task(func(t *workv1alpha2.GracefulEvictionTask) {
				t.Producer = workv1alpha2.EvictionProducerFailBack
			}), good, want{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Clusters: test.clusters, GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{test.task},
			}
			outcome := failover.Tend(spec, test.seen, second(10))
			got := want{
				len(spec.GracefulEvictionTasks), len(outcome.Dropped), len(outcome.Restored), len(outcome.Overdue),
				outcome.Next,
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if len(outcome.Restored) > 0 && !reflect.DeepEqual(spec.Clusters, targets("m1")) {
				t.Errorf("restored to %v", spec.Clusters)
			}
		})
	}
}
