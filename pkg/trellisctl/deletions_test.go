package trellisctl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// heldWork is a Work whose deletion waits for a confirmation; held false is one that is only being deleted.
func heldWork(cluster, namespace, name string, held bool) *workv1alpha1.Work {
	deleted := metav1.NewTime(today.Add(-time.Hour))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: name, DeletionTimestamp: &deleted,
		Finalizers: []string{"work.karmada.io/execution"},
	}}
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q}}`, namespace,
		name)
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	if held {
		work.Status.Conditions = []metav1.Condition{
			{Type: workv1alpha1.ConditionDeletionHeld, Status: metav1.ConditionTrue},
		}
	}
	return work
}

func fleetWithDeletions(t *testing.T) *Fleet {
	t.Helper()
	scheme := fleetscheme.Scheme()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "three"}},
		heldWork("one", "shop", "a", true), heldWork("one", "blog", "b", true), heldWork("two", "shop", "c", true),
		heldWork("two", "shop", "d", false),
	).Build()
	return &Fleet{Client: c}
}

// What was asked for and no more: the answer deletes objects in members, or gives them up.
func TestDeletionsAreAnsweredBySelection(t *testing.T) {
	for name, test := range map[string]struct {
		selection heldSelection
		want      []string
		says      string
	}{
		"of a member":    {heldSelection{cluster: "one"}, []string{"a", "b"}, "2 deletions confirmed"},
		"of a namespace": {heldSelection{namespace: "shop"}, []string{"a", "c"}, "2 deletions confirmed"},
		"of a namespace in a member": {
			heldSelection{cluster: "one", namespace: "shop"}, []string{"a"}, "1 deletion confirmed",
		},
		"all":                         {heldSelection{all: true}, []string{"a", "b", "c"}, "3 deletions confirmed"},
		"of a member that holds none": {heldSelection{cluster: "three"}, nil, "No deletion waits for a confirmation"},
	} {
		fleet := fleetWithDeletions(t)
		var out bytes.Buffer
		if err := fleet.AnswerHeld(t.Context(), &out, test.selection, workv1alpha1.ConfirmDeletionYes); err != nil {
			t.Fatal(err)
		}
		works := &workv1alpha1.WorkList{}
		if err := fleet.Client.List(t.Context(), works); err != nil {
			t.Fatal(err)
		}
		var answered []string
		for _, work := range works.Items {
			if work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] == workv1alpha1.ConfirmDeletionYes {
				answered = append(answered, work.Name)
			}
		}
		if strings.Join(answered, ",") != strings.Join(test.want, ",") || strings.TrimSpace(out.String()) != test.says {
			t.Errorf("%s: answered %v, said %q", name, answered, out.String())
		}
	}
}

// A mistyped member is no member without deletions.
func TestDeletionsOfNoMember(t *testing.T) {
	var out bytes.Buffer
	err := fleetWithDeletions(t).AnswerHeld(t.Context(), &out, heldSelection{cluster: "oen"},
		workv1alpha1.ConfirmDeletionKeep)
	if err == nil || !strings.Contains(err.Error(), "oen") || out.Len() > 0 {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestKeepingIsSaid(t *testing.T) {
	var out bytes.Buffer
	err := fleetWithDeletions(t).AnswerHeld(t.Context(), &out, heldSelection{namespace: "blog"},
		workv1alpha1.ConfirmDeletionKeep)
	if err != nil || !strings.Contains(out.String(), "1 deletion taken back; the objects stay in the members") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestListingDeletions(t *testing.T) {
	var out bytes.Buffer
	err := fleetWithDeletions(t).ListHeld(t.Context(), &out, heldSelection{namespace: "shop"}, today)
	check(t, "deletions", lines(t, &out, err),
		[]string{
			"CLUSTER KIND NAMESPACE NAME ASKED FOR", "one ConfigMap shop a 60m ago", "two ConfigMap shop c 60m ago",
		})
}

// A Work whose manifest nobody can read is listed all the same: it holds something back.
func TestUnreadableWorks(t *testing.T) {
	scheme := fleetscheme.Scheme()
	broken := heldWork("one", "shop", "a", true)
	broken.Spec.Workload.Manifests = nil
	fleet := &Fleet{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(client.Object(broken)).Build()}
	var out bytes.Buffer
	err := fleet.ListHeld(t.Context(), &out, heldSelection{all: true}, today)
	check(t, "deletions", lines(t, &out, err), []string{"CLUSTER KIND NAMESPACE NAME ASKED FOR", "one - - - 60m ago"})
}
