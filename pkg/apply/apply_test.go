package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: data}
}

func TestFieldsOfOthersStayAndOwnOnesGo(t *testing.T) {
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	for _, step := range []struct {
		manager client.FieldOwner
		data    map[string]string
	}{
		{Gardenlet, map[string]string{"ours": "1", "old": "1"}},
		{Trellisctl, map[string]string{"theirs": "1"}},
		{Gardenlet, map[string]string{"ours": "2"}},
	} {
		if err := Objects(t.Context(), c, step.manager, configMap(step.data)); err != nil {
			t.Fatal(err)
		}
	}
	got := configMap(nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Data["ours"] != "2" || got.Data["theirs"] != "1" {
		t.Errorf("data %v", got.Data)
	}
}

func TestUnstructuredHoldsWhatTheServerStored(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	object, err := ToUnstructured(c.Scheme(), configMap(map[string]string{"a": "b"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := Unstructured(t.Context(), c, Landscape, object); err != nil || object.GetResourceVersion() == "" {
		t.Errorf("resource version %q, error %v", object.GetResourceVersion(), err)
	}
}

func TestErrorsNameTheObjectAndKeepTheirCause(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("no"))
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration,
			_ ...client.ApplyOption) error {
			return refused
		},
	})
	err := Objects(t.Context(), c, Gardenlet, configMap(nil))
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "applying ConfigMap ns/a: ") {
		t.Errorf("error %v", err)
	}
}

func TestToUnstructuredDropsWhatTheServerOwns(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "b", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "c"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	got, err := ToUnstructured(clientgoscheme.Scheme, pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := got.Object["status"]; found || got.GetKind() != "Pod" ||
		len(got.Object["metadata"].(map[string]any)) != 1 {
		t.Errorf("sent %v", got.Object)
	}
	given := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "status": map[string]any{}},
	}
	if _, err := ToUnstructured(clientgoscheme.Scheme, given); err != nil || given.Object["status"] == nil {
		t.Errorf("what was given has become %v, error %v", given.Object, err)
	}
}

func TestDescribe(t *testing.T) {
	unknown := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing"}}
	unknown.SetName("x")
	for want, object := range map[string]client.Object{
		"ConfigMap ns/a": configMap(nil),
		"Namespace b":    &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		"Thing x":        unknown,
	} {
		if got := Describe(clientgoscheme.Scheme, object); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
