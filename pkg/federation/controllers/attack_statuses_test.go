package controllers

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// saying is the Work of a member that writes a status and a message.
func saying(status, message string) *workv1alpha1.Work {
	return &workv1alpha1.Work{Status: workv1alpha1.WorkStatus{
		Conditions: []metav1.Condition{
			{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Message: message},
		},
		ManifestStatuses: []workv1alpha1.ManifestStatus{
			{Status: &runtime.RawExtension{Raw: []byte(status)}, Health: workv1alpha1.ResourceHealthy},
		},
	}}
}

// statusesOf puts together what members say, and gives the size of it as it is stored.
func statusesOf(t *testing.T, works map[string]*workv1alpha1.Work) (map[string]workv1alpha2.AggregatedStatusItem, int) {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	for name := range works {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	items := aggregatedStatus(b, works, nil)
	text, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]workv1alpha2.AggregatedStatusItem{}
	for _, item := range items {
		byName[item.ClusterName] = item
	}
	return byName, len(text)
}

// One member, or many that are in league, write as much as fits into a Work: the binding can be stored even so, and
// what others say is all in it.
func TestAttackLargeStatuses(t *testing.T) {
	honest := `{"conditions":[{"type":"Available","status":"True"}],"readyReplicas":2,"replicas":2}`
	large := fmt.Sprintf(`{"generation":3,"replicas":2,"conditions":[%q],"huge":%q}`, strings.Repeat("<", 10_000),
		strings.Repeat("x", 1_400_000))
	many := `{"replicas":2`
	for i := range 5_000 {
		many += fmt.Sprintf(`,"field-%d":"value"`, i)
	}
	many += "}"
	for name, tc := range map[string]struct {
		status  string
		hostile int
	}{
		"one member": {large, 1}, "a field": {large, 12}, "many fields": {many, 20},
		"no object": {`"` + strings.Repeat("x", 1_000_000) + `"`, 3},
	} {
		works := map[string]*workv1alpha1.Work{}
		for i := range tc.hostile {
			works[fmt.Sprintf("hostile-%d", i)] = saying(tc.status, strings.Repeat("no. ", 8000))
		}
		for i := range 100 {
			works[fmt.Sprintf("honest-%d", i)] = saying(honest, "not allowed")
		}
		items, size := statusesOf(t, works)
		if size > maxStatuses+maxTold+100*(tc.hostile+100) {
			t.Errorf("%s: %d bytes", name, size)
		}
		for i := range 100 {
			if item := items[fmt.Sprintf("honest-%d", i)]; string(item.Status.Raw) != honest ||
				item.AppliedMessage != "not allowed" {
				t.Fatalf("%s: got %+v of an honest member", name, item)
			}
		}
		if item := items["hostile-0"]; !strings.Contains(item.AppliedMessage, "bytes, of which") {
			t.Errorf("%s: got the message %q", name, item.AppliedMessage)
		}
		if name == "one member" && !strings.Contains(string(items["hostile-0"].Status.Raw),
			`"generation":3,"replicas":2`) {
			t.Errorf("small fields stay: got %.100s", items["hostile-0"].Status.Raw)
		}
	}
}

func TestFairShare(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted []int
		total  int
		want   int
	}{
		"enough":             {[]int{1, 2, 3}, 6, math.MaxInt},
		"one wants too much": {[]int{1, 100, 1}, 12, 10},
		"two want too much":  {[]int{2, 100, 200}, 12, 5},
		"all want too much":  {[]int{100, 100, 100}, 10, 3},
		"nobody":             {nil, 10, math.MaxInt},
	} {
		if got := fairShare(tc.wanted, tc.total); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// A hostile agent makes the status of its member so large that nothing can be added to it, stops, and would be Ready
// for ever.
func TestAttackLargeReports(t *testing.T) {
	scheme := fleetscheme.Scheme()
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
	}
	setReady(&cluster.Status, metav1.ConditionTrue, "ClusterReady", "")
	for i := range 100 {
		cluster.Status.APIEnablements = append(cluster.Status.APIEnablements,
			clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprint(i, strings.Repeat("x", 15_000))})
	}
	fleet := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).WithStatusSubresource(cluster).Build()
	c := &clusters{
		client: fleet, members: members.NewPool(func(string, client.Object) {}, outside.Direct), now: time.Now,
		since: map[string]time.Time{}, options: DefaultClusterOptions(),
	}
	if err := fleet.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if err := c.checkUp(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	stored := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(t.Context(), client.ObjectKeyFromObject(cluster), stored); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(stored.Status.Conditions, clusterv1alpha1.ConditionReady)
	if size := sizeOf(&stored.Status); size > 1024 || ready == nil || ready.Status != metav1.ConditionFalse ||
		ready.Reason != reasonTooLarge || len(stored.Spec.Taints) == 0 {
		t.Errorf("%d bytes, %+v, taints %v", size, ready, stored.Spec.Taints)
	}
}
