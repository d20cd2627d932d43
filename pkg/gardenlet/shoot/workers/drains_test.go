package workers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/few"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// drainedNode is a node that is drained, or was not yet.
func drainedNode(name string, status corev1.ConditionStatus) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: conditionTerminating, Status: status},
	}
	return node
}

// webPod is a pod of label app=web, which change changes.
func webPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
	}}
	if change != nil {
		change(pod)
	}
	return pod
}

// webBudget guards pods of label app=web.
func webBudget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 2, ExpectedPods: 3,
		},
	}
}

// Of a node that does not go it is told which budgets keep it: those that allow no eviction of a pod that a drain would
// evict.
func TestDrainsAreExplained(t *testing.T) {
	const kept = "node n cannot be drained, as evictions are forbidden by PodDisruptionBudget default/web (1 of 3 " +
		"pods are healthy, and 2 have to be)"
	going, staying := drainedNode("n", corev1.ConditionTrue), drainedNode("n", corev1.ConditionFalse)
	unguarded := func(p *corev1.Pod) { p.Labels = nil }
	elsewhere := webBudget("web", 0)
	elsewhere.Namespace = "other"
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"kept":        {[]runtime.Object{going, webPod("a", nil), webBudget("web", 0), webBudget("lenient", 1)}, kept},
		"stays":       {[]runtime.Object{staying, webPod("a", nil), webBudget("web", 0)}, ""},
		"may go":      {[]runtime.Object{going, webPod("a", nil), webBudget("web", 1)}, ""},
		"other pods":  {[]runtime.Object{going, webPod("a", unguarded), webBudget("web", 0)}, ""},
		"other space": {[]runtime.Object{going, webPod("a", nil), elsewhere}, ""},
		"goes already": {[]runtime.Object{going, webPod("a", func(p *corev1.Pod) {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}), webBudget("web", 0)}, ""},
		"of a DaemonSet": {[]runtime.Object{going, webPod("a", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		}), webBudget("web", 0)}, ""},
		"static": {[]runtime.Object{going, webPod("a", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), webBudget("web", 0)}, ""},
		"has ended": {[]runtime.Object{going, webPod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			webBudget("web", 0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := explainDrains(t.Context(), kubernetesfake.NewClientset(test.objects...))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(told, "\n"); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// An operation that fails because machines do not go tells both what the extension says and what keeps the nodes; when
// the shoot does not answer, at least the former.
func TestTheErrorOfPoolsTellsOfBudgets(t *testing.T) {
	lists := map[string]any{
		"/api/v1/nodes": corev1.NodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			Items:    []corev1.Node{*drainedNode("n", corev1.ConditionTrue)},
		},
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn": corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{*webPod("a", nil)},
		},
		"/apis/policy/v1/poddisruptionbudgets": policyv1.PodDisruptionBudgetList{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"},
			Items:    []policyv1.PodDisruptionBudget{*webBudget("web", 0)},
		},
	}
	kubeconfig := shootAnswering(t, func(r *http.Request) any { return lists[r.URL.String()] })
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: "b"}}
	// Of this code it is not waited whether it lasts.
	const certain = gardencorev1beta1.ErrorConfigurationProblem
	worker.Status.LastError = &gardencorev1beta1.LastError{
		Description: "machines do not go", Codes: []gardencorev1beta1.ErrorCode{certain},
	}
	for answer, want := range map[string]string{
		string(kubeconfig): "machines do not go; node n cannot be drained, as evictions are forbidden by " +
			"PodDisruptionBudget default/web",
		"": "machines do not go",
	} {
		access := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: kubeapiserver.InternalKubeconfigSecret},
			Data:       map[string][]byte{secrets.DataKeyKubeconfig: []byte(answer)},
		}
		seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(worker, access).Build()
		w := &Workers{Plan: &plan.Plan{}, Log: logr.Discard(), Seed: seed}
		w.Plan.Namespace, w.Plan.ShootName = "shoot--a--b", "b"
		err := w.waitForWorker(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !flow.IsPermanent(err) ||
			strings.Contains(err.Error(), "node n") != (answer != "") {
			t.Errorf("got %v, want it to contain %q", err, want)
		}
		if codes := errorcodes.Of(err); !slices.Contains(codes, certain) {
			t.Errorf("codes are %v", codes)
		}
	}
}

// TestAttackEndlessBudgets plays the owner of a shoot with so many budgets and nodes that no status of the Shoot could
// hold what is told of them.
func TestAttackEndlessBudgets(t *testing.T) {
	objects := []runtime.Object{webPod("a", nil)}
	for i := range 100 {
		objects = append(objects, drainedNode(fmt.Sprintf("n%d", i), corev1.ConditionTrue),
			webBudget(fmt.Sprintf("%d-%s", i, strings.Repeat("b", 200)), 0))
	}
	told, err := explainDrains(t.Context(), kubernetesfake.NewClientset(objects...))
	if err != nil {
		t.Fatal(err)
	}
	text := few.Joined(told, mostTold, "; ")
	if len(told) != mostTold || len(text) > 10000 || !strings.Contains(text, "and 95 more") {
		t.Errorf("%d bytes are told: %.500s", len(text), text)
	}
}
