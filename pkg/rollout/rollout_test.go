package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStates(t *testing.T) {
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status: status,
		}
	}
	statefulSet := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		Status:   appsv1.StatefulSetStatus{UpdatedReplicas: 1},
	}
	daemonSet := &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		Status:   appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1, NumberAvailable: 3},
	}
	for name, test := range map[string]struct {
		object                          runtime.Object
		check, progressing, unavailable string
	}{
		"not seen": {
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 2}),
			"its controller has not seen the latest change yet", "its controller has not seen the latest change yet",
			"",
		},
		"not updated": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2,
			}),
			"1 of 2 replicas are updated", "1 of 2 replicas are updated", "",
		},
		"not available": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 1,
			}),
			"1 of 2 replicas are available", "1 old replicas are still there", "1 of 2 replicas are available",
		},
		"old ones": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3,
			}),
			"1 old replicas are still there", "1 old replicas are still there", "",
		},
		"done": {
			deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2,
			}), "", "", "",
		},
		"stateful set": {statefulSet, "0 of 1 replicas are available", "", "0 of 1 replicas are available"},
		"daemon set":   {daemonSet, "1 of 3 replicas are updated", "1 of 3 replicas are updated", ""},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.object)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []runtime.Object{test.object, &unstructured.Unstructured{Object: content}} {
			state, ok, err := Of(object)
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
			check := ""
			if err := state.Check(); err != nil {
				check = err.Error()
			}
			if check != test.check || state.Progressing() != test.progressing ||
				state.Unavailable() != test.unavailable {
				t.Errorf("%s as %T: %q, progressing %q, unavailable %q", name, object, check, state.Progressing(),
					state.Unavailable())
			}
		}
	}
}

func TestOtherKindsHaveNone(t *testing.T) {
	foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Deployment"}}
	broken := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": "x"},
	}
	for _, object := range []runtime.Object{&corev1.Pod{}, foreign} {
		if _, ok, err := Of(object); ok || err != nil {
			t.Errorf("%T: %v, %v", object, ok, err)
		}
	}
	if _, _, err := Of(broken); err == nil {
		t.Error("a Deployment whose spec is a text has a state")
	}
}
