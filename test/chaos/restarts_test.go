package main

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAddPods(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "y"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", RestartCount: 3}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 2}}
	want := restarts{"a runtime x/y proxy": 3, "a runtime x/y c": 2}
	counted := restarts{}
	if counted.addPods("a runtime", []corev1.Pod{pod}); !maps.Equal(counted, want) {
		t.Errorf("got %v, want %v", counted, want)
	}
}

func TestSince(t *testing.T) {
	before := restarts{"a runtime x/y c": 2, "a runtime x/gone c": 1, "a member1 x/y c": 0}
	after := restarts{"a runtime x/y c": 2, "a member1 x/y c": 1, "a runtime x/new c": 3}
	want := []string{"a member1 x/y c: 1", "a runtime x/new c: 3"}
	if got := after.since(before); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := before.since(before); len(got) > 0 {
		t.Errorf("without a change, got %q", got)
	}
}
