package component

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
