package controllers

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestTaintsFor(t *testing.T) {
	own := corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}
	unreachable := corev1.Taint{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct {
		taints []corev1.Taint
		ready  metav1.ConditionStatus
		want   []corev1.Taint
	}{
		"ready":                {[]corev1.Taint{own, notReady}, metav1.ConditionTrue, []corev1.Taint{own}},
		"not ready":            {[]corev1.Taint{own}, metav1.ConditionFalse, []corev1.Taint{own, notReady}},
		"still not ready":      {[]corev1.Taint{notReady}, metav1.ConditionFalse, []corev1.Taint{notReady}},
		"now doesn't answer":   {[]corev1.Taint{notReady}, metav1.ConditionUnknown, []corev1.Taint{unreachable}},
		"nothing to do at all": {nil, metav1.ConditionTrue, nil},
		"an executing one stays": {
			[]corev1.Taint{{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoExecute}},
			metav1.ConditionTrue, []corev1.Taint{
				{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoExecute},
			},
		},
	}
	for name, tc := range tests {
		got := taintsFor(tc.taints, tc.ready)
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: got %v, want %v", name, got, tc.want)
			}
		}
	}
}

func TestReadinessIsDamped(t *testing.T) {
	now := time.Unix(0, 0)
	c := &clusters{
		now: func() time.Time { return now }, options: DefaultClusterOptions(), since: map[string]time.Time{},
	}
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name = "m1"
	is := func(status metav1.ConditionStatus) {
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: status}}
	}
	steps := []struct {
		what   string
		before func()
		after  time.Duration
		answer metav1.ConditionStatus
		want   metav1.ConditionStatus
	}{
		{"the first answer counts", func() {}, 0, metav1.ConditionUnknown, metav1.ConditionUnknown},
		{
			"so does the first good one", func() { is(metav1.ConditionUnknown) }, time.Second, metav1.ConditionTrue,
			metav1.ConditionTrue,
		},
		{
			"a failure is not believed", func() { is(metav1.ConditionTrue); cluster.Status.KubernetesVersion = "v1" },
			time.Second, metav1.ConditionUnknown, "",
		},
		{"nor after a while", func() {}, 29 * time.Second, metav1.ConditionUnknown, ""},
		{"but then it is", func() {}, time.Second, metav1.ConditionUnknown, metav1.ConditionUnknown},
		{"recovery is not believed", func() { is(metav1.ConditionUnknown) }, time.Second, metav1.ConditionTrue, ""},
		{"a relapse starts anew", func() {}, 20 * time.Second, metav1.ConditionUnknown, metav1.ConditionUnknown},
		{"so this is the first again", func() {}, 15 * time.Second, metav1.ConditionTrue, ""},
		{"until it lasts", func() {}, 30 * time.Second, metav1.ConditionTrue, metav1.ConditionTrue},
		{"after it slept, the first answer counts", func() {
			is(metav1.ConditionFalse)
			cluster.Status.Conditions[0].Reason = clusterv1alpha1.ReasonHibernated
		}, time.Second, metav1.ConditionTrue, metav1.ConditionTrue},
		{"so does the first report of an agent, with which the version comes", func() {
			is(metav1.ConditionFalse)
			cluster.Status.Conditions[0].Reason = clusterv1alpha1.ReasonNotAccepted
		}, time.Second, metav1.ConditionTrue, metav1.ConditionTrue},
		{"also if it was accepted long before", func() {
			is(metav1.ConditionUnknown)
			cluster.Status.Conditions[0].Reason = clusterv1alpha1.ReasonNotReported
		}, time.Second, metav1.ConditionTrue, metav1.ConditionTrue},
	}
	for _, step := range steps {
		step.before()
		now = now.Add(step.after)
		if got := c.damped(cluster, step.answer); got != step.want {
			t.Fatalf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
}

// What members still have although it was taken away from them is told on their Clusters.
func TestPendingRemovals(t *testing.T) {
	scheme := fleetscheme.Scheme()
	now := time.Unix(1000, 0)
	work := func(name, binding string, asked int64, held bool) client.Object {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.ExecutionNamespace("m1"), Name: name,
			Finalizers: []string{workv1alpha1.Finalizer},
			Annotations: map[string]string{
				workv1alpha2.NamespaceAnnotation: "shop", workv1alpha2.NameAnnotation: binding,
			},
		}}
		if asked > 0 {
			w.DeletionTimestamp = &metav1.Time{Time: time.Unix(asked, 0)}
		}
		if held {
			w.Status.Conditions = []metav1.Condition{
				{Type: workv1alpha1.ConditionDeletionHeld, Status: metav1.ConditionTrue},
			}
		}
		return w
	}
	moved := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "moved"}}
	c := &clusters{now: func() time.Time { return now }, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		moved, work("there", "there", 0, false), work("moved", "moved", 900, false), work("gone", "gone", 900, false),
		work("just-now", "just-now", 990, false), work("held", "held", 900, true),
	).Build()}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	for _, test := range []struct {
		ready           metav1.ConditionStatus
		at              int64
		reason, message string
	}{
		{metav1.ConditionTrue, 920, "", ""},
		{
			metav1.ConditionTrue, 1000, "Removing",
			"2 objects are still in this member although they were taken away from it; 1 of them the fleet does not " +
				"have any more: shop/gone",
		},
		{metav1.ConditionUnknown, 1000, "NotReady",
			"3 objects are still in this member although they were taken away from it; " +
				"2 of them the fleet does not have any more: shop/gone, shop/just-now. They are removed when the " +
				"member " +
				"is ready again"},
		{metav1.ConditionTrue, 920, "", ""},
	} {
		now = time.Unix(test.at, 0)
		setReady(&cluster.Status, test.ready, "Test", "")
		if err := c.setPendingRemovals(context.Background(), cluster, &cluster.Status); err != nil {
			t.Fatal(err)
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionRemovalPending)
		if condition == nil {
			condition = &metav1.Condition{}
		}
		if condition.Reason != test.reason || condition.Message != test.message {
			t.Errorf("%s at %d: %s, %s", test.ready, test.at, condition.Reason, condition.Message)
		}
	}
}
