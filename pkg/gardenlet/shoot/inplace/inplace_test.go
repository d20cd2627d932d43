package inplace

import (
	"slices"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const annotation = gardencorev1beta1.AnnotationWorkerInPlaceUpdate

func pool(name, hash string, strategy gardencorev1beta1.MachineUpdateStrategy) extensionsv1alpha1.WorkerPool {
	p := extensionsv1alpha1.WorkerPool{Name: name, UpdateStrategy: &strategy}
	if hash != "" {
		p.Annotations = map[string]string{annotation: hash}
	}
	return p
}

// Pools wait from when the Worker asks for something else of machines that are there, until these have had it; also
// when what they waited for is written again after a crash.
func TestPoolsWait(t *testing.T) {
	const auto, manual = gardencorev1beta1.AutoInPlaceUpdate, gardencorev1beta1.ManualInPlaceUpdate
	before := []extensionsv1alpha1.WorkerPool{
		pool("auto", "1", auto), pool("manual", "1", manual), pool("same", "1", auto),
		pool("replaced", "", gardencorev1beta1.AutoRollingUpdate),
	}
	after := []extensionsv1alpha1.WorkerPool{
		pool("auto", "2", auto), pool("manual", "2", manual), pool("same", "1", auto), pool("new", "2", auto),
		pool("replaced", "", gardencorev1beta1.AutoRollingUpdate),
	}
	status := &gardencorev1beta1.ShootStatus{}
	for range 2 {
		Begin(status, Begun(before, after))
	}
	want := &gardencorev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &gardencorev1beta1.PendingWorkerUpdates{
		AutoInPlaceUpdate: []string{"auto"}, ManualInPlaceUpdate: []string{"manual"},
	}}
	if diff := cmp.Diff(want, status.InPlaceUpdates); diff != "" {
		t.Error(diff)
	}
	workers := []gardencorev1beta1.Worker{
		{Name: "auto", UpdateStrategy: new(auto)}, {Name: "manual", UpdateStrategy: new(manual)},
	}
	Settle(status, workers, []string{"auto", "other"})
	if got := AwaitingOwner(status); !slices.Equal(got, []string{"manual"}) || !Pending(status) {
		t.Errorf("got %v", got)
	}
	Begin(status, Begun(after, after))
	Settle(status, workers[:1], nil)
	if Pending(status) || status.InPlaceUpdates != nil {
		t.Errorf("a pool that is gone waits: %v", status.InPlaceUpdates)
	}
}

// A pool waits on when its owner says that its machines are updated by themselves, or by hand, from now on.
func TestPoolsWaitWithAnotherStrategy(t *testing.T) {
	const auto, manual = gardencorev1beta1.AutoInPlaceUpdate, gardencorev1beta1.ManualInPlaceUpdate
	status := &gardencorev1beta1.ShootStatus{}
	Begin(status, []extensionsv1alpha1.WorkerPool{pool("a", "1", auto), pool("b", "1", manual)})
	workers := []gardencorev1beta1.Worker{
		{Name: "a", UpdateStrategy: new(manual)}, {Name: "b", UpdateStrategy: new(auto)},
	}
	for range 2 {
		Settle(status, workers, nil)
	}
	want := &gardencorev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &gardencorev1beta1.PendingWorkerUpdates{
		AutoInPlaceUpdate: []string{"b"}, ManualInPlaceUpdate: []string{"a"},
	}}
	if diff := cmp.Diff(want, status.InPlaceUpdates); diff != "" {
		t.Error(diff)
	}
}

func TestUpdated(t *testing.T) {
	deployment := func(name, pool, hash string, replicas, updated int32) *machinev1alpha1.MachineDeployment {
		d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot", Name: name, Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: pool},
		}}
		d.Spec.Replicas = replicas
		d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{annotation: hash}
		d.Status.Replicas, d.Status.UpdatedReplicas = replicas, updated
		return d
	}
	scheme := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	unseen := deployment("unseen", "unseen", "2", 1, 1)
	unseen.Generation = 2
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		deployment("a1", "done", "2", 2, 2), deployment("a2", "done", "2", 0, 0),
		deployment("b1", "half", "2", 1, 1), deployment("b2", "half", "2", 2, 1),
		deployment("c1", "not-yet-asked", "1", 1, 1), unseen,
	).Build()
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot"}}
	for _, name := range []string{"done", "half", "not-yet-asked", "unseen"} {
		worker.Spec.Pools = append(worker.Spec.Pools, pool(name, "2", gardencorev1beta1.ManualInPlaceUpdate))
	}
	worker.Spec.Pools = append(worker.Spec.Pools, pool("replaced", "", gardencorev1beta1.AutoRollingUpdate))
	got, err := Updated(t.Context(), seed, worker)
	if err != nil || !slices.Equal(got, []string{"done"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A node takes pods again when it and its critical pods are ready; nodes of other pools, and other taints, are not
// touched.
func TestAdmitNodes(t *testing.T) {
	node := func(name, pool string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: pool},
			},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{
				{Key: "own", Effect: corev1.TaintEffectNoSchedule},
				{
					Key:    gardencorev1beta1.TaintNodeCriticalComponentsNotReady,
					Effect: corev1.TaintEffectNoSchedule,
				},
			}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	objects := []runtime.Object{
		node("ready", "pool", corev1.ConditionTrue), node("not-ready", "pool", corev1.ConditionFalse),
		node("of-others", "other", corev1.ConditionTrue),
	}
	clientset := kubernetesfake.NewClientset(objects...)
	admit := func() map[string]int {
		t.Helper()
		list, err := clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := AdmitNodes(t.Context(), clientset, list.Items, []string{"pool"}); err != nil {
			t.Fatal(err)
		}
		if list, err = clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		taints := map[string]int{}
		for _, node := range list.Items {
			taints[node.Name] = len(node.Spec.Taints)
		}
		return taints
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "critical",
			Labels: map[string]string{gardencorev1beta1.LabelNodeCriticalComponent: "true"},
		},
		Spec: corev1.PodSpec{NodeName: "ready"},
	}
	if _, err := clientset.CoreV1().Pods("kube-system").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"ready": 2, "not-ready": 2, "of-others": 2}, admit()); diff != "" {
		t.Errorf("a critical pod is not ready: %s", diff)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := clientset.CoreV1().Pods("kube-system").UpdateStatus(t.Context(), pod,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"ready": 1, "not-ready": 2, "of-others": 2}, admit()); diff != "" {
		t.Error(diff)
	}
}
