package component

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestPartGoesWithWhatBelongsToIt(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api-1", Labels: map[string]string{"app": "api"}},
	}
	c := fake.NewClientBuilder().WithObjects(testDeployment(), service, pod).Build()
	p := &Part{Client: c, Namespace: "ns", Name: "api", Labels: pod.Labels, Others: []client.Object{service}}
	if err := p.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "api"},
			object); !apierrors.IsNotFound(err) {
			t.Errorf("%T: %v", object, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.WaitCleanup(ctx); err == nil || !strings.Contains(err.Error(), "1 pods with labels") {
		t.Errorf("with a pod that is left: %v", err)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitCleanup(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPartWaitsForItsDeployment(t *testing.T) {
	p := &Part{Client: fake.NewClientBuilder().WithObjects(testDeployment()).Build(), Namespace: "ns", Name: "api"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.Wait(ctx); err == nil || !strings.Contains(err.Error(), "Deployment ns/api is not healthy") {
		t.Errorf("error %v", err)
	}
}

// partOf is the part that deploymentOf and pairOf deploy.
func partOf(c client.Client) *Part {
	labels := Labels("kubernetes", "part")
	return &Part{
		Client: c, Namespace: "ns", Name: "part", Labels: labels,
		Others: []client.Object{DisruptionBudget("ns", "part", labels)},
	}
}

func budgetIn(t *testing.T, c client.Client) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "part"}, &policyv1.PodDisruptionBudget{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// The pod of before knows of no lease, so the first that elects a leader begins when it is gone.
func TestLeadersAreElectedAmongThoseThatElect(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "part-1", Labels: Labels("kubernetes", "part")},
	}
	c := fake.NewClientBuilder().WithObjects(pod).Build()
	p, high := partOf(c), Availability{Tolerance: toleratesNode}
	if err := p.DeployElecting(t.Context(), Availability{}, deploymentOf(1)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c); *got.Spec.Replicas != 1 || budgetIn(t, c) {
		t.Fatalf("without availability: %d replicas, a budget: %v", *got.Spec.Replicas, budgetIn(t, c))
	}
	for range 2 { // it is the same for who was killed meanwhile
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		err := p.DeployElecting(ctx, high, pairOf())
		cancel()
		if err == nil || !strings.Contains(err.Error(), "1 pods with labels") {
			t.Fatalf("with a pod that elects no leader: %v", err)
		}
		if got := read(t, c); *got.Spec.Replicas != 0 {
			t.Fatalf("%d replicas beside one that elects no leader", *got.Spec.Replicas)
		}
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.DeployElecting(t.Context(), high, pairOf()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); *got.Spec.Replicas != Pair || got.Spec.Strategy.RollingUpdate == nil || !budgetIn(t, c) {
			t.Errorf("got %+v, a budget: %v", got.Spec, budgetIn(t, c))
		}
	}
	if err := p.Destroy(t.Context()); err != nil || budgetIn(t, c) {
		t.Errorf("destroyed: %v, a budget is left: %v", err, budgetIn(t, c))
	}
}

// Once its pods elect a leader, a part is updated without being stopped.
func TestPairsAreNotStopped(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "part-1", Labels: Labels("kubernetes", "part")},
	}
	c := fake.NewClientBuilder().WithObjects(pod, pairOf()).Build()
	deployment := pairOf()
	deployment.Spec.Template.Spec.Containers[0].Image = "part:2"
	if err := partOf(c).DeployElecting(t.Context(), Availability{Tolerance: toleratesNode}, deployment); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c); *got.Spec.Replicas != Pair || got.Spec.Template.Spec.Containers[0].Image != "part:2" {
		t.Errorf("got %+v", got.Spec)
	}
}

// The watchdog's hold goes on, and its end does not bring back what elects no leader.
func TestHeldPartsGrow(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(deploymentOf(1)).Build()
	if err := Hold(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	p, high := partOf(c), Availability{Tolerance: toleratesNode}
	if err := p.DeployElecting(t.Context(), high, pairOf()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c); !IsHeld(got) || *got.Spec.Replicas != 0 || got.Spec.Strategy.RollingUpdate == nil {
		t.Fatalf("held: %v, %+v", IsHeld(got), got.Spec)
	}
	if err := Release(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	if err := p.DeployElecting(t.Context(), high, pairOf()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c); IsHeld(got) || *got.Spec.Replicas != Pair {
		t.Errorf("held: %v, %d replicas", IsHeld(got), *got.Spec.Replicas)
	}
}
