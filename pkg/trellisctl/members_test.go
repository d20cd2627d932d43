package trellisctl

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

func TestUnschedulable(t *testing.T) {
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoExecute}
	cordoned := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	drained := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		before []corev1.Taint
		effect corev1.TaintEffect
		set    bool
		want   []corev1.Taint
	}{
		"cordon":       {[]corev1.Taint{own}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{own, cordoned}},
		"cordon twice": {[]corev1.Taint{cordoned}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{cordoned}},
		"cordon drained": {
			[]corev1.Taint{drained}, corev1.TaintEffectNoSchedule, true, []corev1.Taint{drained, cordoned},
		},
		"drain": {
			[]corev1.Taint{own, cordoned}, corev1.TaintEffectNoExecute, true, []corev1.Taint{own, cordoned, drained},
		},
		"uncordon": {[]corev1.Taint{own, cordoned, drained}, "", false, []corev1.Taint{own}},
	} {
		got := unschedulable(tc.before, tc.effect, tc.set)
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %v", name, got)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: got %v", name, got)
			}
		}
	}
}

func TestListMembers(t *testing.T) {
	scheme := fleetscheme.Scheme()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	now := time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
	edge := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}},
		},
		Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.3", NodeSummary: &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "ClusterReady"}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{
				Allocatable: list("8", "16Gi"), Available: list("5", "8Gi"), Contiguous: list("3", "4Gi"),
			},
		},
	}
	cordoned := edge.DeepCopy()
	cordoned.Name, cordoned.Spec.SyncMode = "factory-hall-12", clusterv1alpha1.Pull
	cordoned.Spec.Taints = unschedulable(nil, corev1.TaintEffectNoExecute, true)
	cordoned.Status.KubernetesVersion = "v1.36.3+k3s1"
	cordoned.Status.NodeSummary = &clusterv1alpha1.NodeSummary{TotalNum: 12, ReadyNum: 12}
	cordoned.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: list("479930m", "1930048Mi"), Available: list("99990m", "8191Mi"),
	}
	unknown := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(now)},
	}
	fleet := &Fleet{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(edge, cordoned, unknown).Build()}
	for wide, want := range map[bool]string{
		false: `MEMBER VERSION READY NODES CPU MEMORY
edge v1.36.3 yes 2/3 5/8 8/16Gi
factory-hall-12 v1.36.3+k3s1 yes,cordoned 12/12 99.9/479 7.99/1884Gi
new - - - - -
`,
		true: `MEMBER VERSION READY NODES CPU MEMORY MODE TAINTS AGE
edge v1.36.3 yes 2/3 8 / 5 / 3 16.0Gi / 8.0Gi / 4.0Gi Push k:NoSchedule 60m
factory-hall-12 v1.36.3+k3s1 yes,cordoned 12/12 479930m / 99990m / ? 1884.8Gi / 8.0Gi / ? Pull ` +
			`cluster.karmada.io/unschedulable:NoSchedule,cluster.karmada.io/unschedulable:NoExecute 60m
new - - - - - - - 0s
`,
	} {
		var out bytes.Buffer
		if err := fleet.ListMembers(context.Background(), &out, now, wide); err != nil {
			t.Fatal(err)
		}
		if got := squeezed(out.String()); got != want {
			t.Errorf("wide %v: got\n%s\nwant\n%s", wide, got, want)
		}
		if !wide {
			fits(t, out.String())
		}
	}
}

// squeezed has one space between columns.
func squeezed(table string) string {
	var b strings.Builder
	for line := range strings.Lines(table) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

// fits a terminal of 80 columns.
func fits(t *testing.T, table string) {
	t.Helper()
	for line := range strings.Lines(table) {
		if width := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 80 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

// TestListCandidates: what waits to be accepted fits a terminal, and has all with -o wide.
func TestListCandidates(t *testing.T) {
	const id, rest = "8c5c0a38-1111-2222-3333-444455556666", "fedcba9876543210fedcba9876543210"
	candidates := []registration.Candidate{{
		Member: "factory-hall-12", ID: id, Version: "v1.36.3+k3s1",
		Fingerprint: "0123456789abcdef0123456789abcdef" + rest, Since: time.Now().Add(-100 * time.Minute),
	}}
	for wide, want := range map[bool]string{
		false: "MEMBER VERSION KEY WAITS\nfactory-hall-12 v1.36.3+k3s1 0123456789abcdef0123456789abcdef 100m\n",
		true: "MEMBER VERSION KEY WAITS CLUSTER\nfactory-hall-12 v1.36.3+k3s1 0123456789abcdef0123456789abcdef" +
			rest + " 100m " + id + "\n",
	} {
		command := &cobra.Command{}
		var out bytes.Buffer
		command.SetOut(&out)
		if err := listCandidates(command, candidates, wide); err != nil {
			t.Fatal(err)
		}
		if got := squeezed(out.String()); got != want {
			t.Errorf("wide %v: got\n%s\nwant\n%s", wide, got, want)
		}
		if !wide {
			fits(t, out.String())
		}
	}
}
