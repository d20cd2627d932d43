package clusterautoscaler

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// evictions answers evictions: the first ones as a PodDisruptionBudget would that allows none, then by deleting the
// pod.
func evictions(client *kubernetesfake.Clientset, refused int) *[]int64 {
	graces := &[]int64{}
	client.PrependReactor("create", "pods/eviction", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if refused > 0 {
			refused--
			return true, nil, apierrors.NewTooManyRequests("the budget allows none", 1)
		}
		*graces = append(*graces, *eviction.DeleteOptions.GracePeriodSeconds)
		return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), eviction.Namespace,
			eviction.Name)
	})
	return graces
}

func taintsOf(t *testing.T, client *kubernetesfake.Clientset) []corev1.Taint {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Spec.Taints
}

func TestDrain(t *testing.T) {
	n, patient := node("n", withTaint("other")),
		pod("a", "1", "n", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) })
	client := kubernetesfake.NewClientset(n, patient)
	graces := evictions(client, 2)
	d := &drainer{client: client, longestGrace: 10 * time.Minute, interval: time.Millisecond}
	if err := d.drain(t.Context(), Removal{Node: n, Pods: []*corev1.Pod{patient}}); err != nil {
		t.Fatal(err)
	}
	if len(*graces) != 1 || (*graces)[0] != 600 {
		t.Errorf("got grace periods %v, want the longest allowed", *graces)
	}
	taints := taintsOf(t, client)
	if len(taints) != 2 || taints[1].Key != TaintToBeDeleted || taints[1].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("got %v, want new pods kept off", taints)
	}
}

// Between the decision and the taint pods may come that nobody has found room for elsewhere.
func TestDrainEndsWhenAPodHasCome(t *testing.T) {
	n, known, newcomer := node("n"), pod("a", "1", "n"), pod("b", "1", "n")
	client := kubernetesfake.NewClientset(n, known, newcomer)
	graces := evictions(client, 0)
	d := &drainer{client: client, longestGrace: time.Minute, interval: time.Millisecond}
	err := d.drain(t.Context(), Removal{Node: n, Pods: []*corev1.Pod{known}})
	if err == nil || !strings.Contains(err.Error(), "pod default/b has come to Node n meanwhile") {
		t.Errorf("got %v", err)
	}
	if taints := taintsOf(t, client); len(taints) != 0 || len(*graces) != 0 {
		t.Errorf("taints %v, %d evictions: want the node to go on", taints, len(*graces))
	}
}

func TestFailedDrainFreesTheNode(t *testing.T) {
	n, stuck := node("n", withTaint("other")), pod("a", "1", "n")
	client := kubernetesfake.NewClientset(n, stuck)
	evictions(client, 1<<30)
	d := &drainer{client: client, interval: time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("create", "pods/eviction", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return false, nil, nil
	})
	err := d.drain(ctx, Removal{Node: n, Pods: []*corev1.Pod{stuck}})
	if err == nil || !strings.Contains(err.Error(), "evicting pod default/a: the budget allows none") {
		t.Errorf("got %v", err)
	}
	if taints := taintsOf(t, client); len(taints) != 1 {
		t.Errorf("got %v, want the node to take pods again", taints)
	}
}
