package simulated

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The clients are Kubernetes' own: what they understand is what counts.
func client(t *testing.T) (*Server, kubernetes.Interface) {
	t.Helper()
	server := New()
	t.Cleanup(server.Close)
	clients, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return server, clients
}

func TestObjectsAreAppliedReadWatchedAndRemoved(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server, clients := client(t)
	maps := clients.CoreV1().ConfigMaps("a")
	wanted := corev1apply.ConfigMap("b", "a").WithData(map[string]string{"x": "1"}).WithLabels(map[string]string{
		"managed": "true",
	})
	if _, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "test"}); !apierrors.IsNotFound(err) {
		t.Fatalf("applied into a namespace that does not exist: %v", err)
	}
	server.Put("namespaces", "", "a", map[string]any{})
	events, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "managed=true"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	applied, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if applied.UID == "" || applied.ResourceVersion == "" || applied.Data["x"] != "1" {
		t.Errorf("applied %+v", applied)
	}
	if _, err := maps.Apply(ctx, corev1apply.ConfigMap("b", "a").WithData(map[string]string{"y": "2"}),
		metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(ctx, "b", metav1.GetOptions{})
	if err != nil || got.Data["x"] != "1" || got.Data["y"] != "2" || got.UID != applied.UID {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := errors.Join(clients.CoreV1().ConfigMaps("a").Delete(ctx, "b", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		event := <-events.ResultChan()
		if object, ok := event.Object.(*corev1.ConfigMap); string(event.Type) != want || !ok || object.Name != "b" {
			t.Errorf("event %s of %T, want %s", event.Type, event.Object, want)
		}
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 || server.Len("configmaps") != 0 {
		t.Errorf("%d objects are left, %v", len(list.Items), err)
	}
}

func TestServersHaveObjectsOfTheirOwn(t *testing.T) {
	ctx := context.Background()
	uids := map[string]bool{}
	for range 2 {
		server, clients := client(t)
		server.Put("namespaces", "", metav1.NamespaceSystem, map[string]any{})
		namespace, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uids[string(namespace.UID)] = true
	}
	if len(uids) != 2 {
		t.Errorf("two members have the same identity: %v", uids)
	}
}

func TestDiscoveryTellsTheResources(t *testing.T) {
	_, clients := client(t)
	_, lists, err := clients.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, list := range lists {
		count += len(list.APIResources)
	}
	if count != len(Resources) {
		t.Errorf("%d resources are told of, want %d", count, len(Resources))
	}
}
