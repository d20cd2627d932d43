package component

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestCheckDeployment(t *testing.T) {
	healthy := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	for _, test := range []struct {
		name   string
		change func(*appsv1.DeploymentStatus)
		want   string
	}{
		{"rolled out", func(*appsv1.DeploymentStatus) {}, ""},
		{"not seen", func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }, "has not seen"},
		{"not updated", func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 }, "1 of 2 replicas are updated"},
		{
			"not available", func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 },
			"0 of 2 replicas are available",
		},
		{"old ones left", func(s *appsv1.DeploymentStatus) { s.Replicas = 3 }, "1 old replicas"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := healthy
			test.change(&status)
			checkError(t, CheckHealth(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
				Status: status,
			}), test.want)
		})
	}
}

func TestCheckStatefulSetAndDaemonSet(t *testing.T) {
	checkError(t, CheckHealth(&appsv1.StatefulSet{
		Status: appsv1.StatefulSetStatus{UpdatedReplicas: 1, ReadyReplicas: 1},
	}), "")
	checkError(t, CheckHealth(&appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{UpdatedReplicas: 1}}),
		"0 of 1 replicas are available")
	checkError(t, CheckHealth(&appsv1.DaemonSet{}), "")
	checkError(t, CheckHealth(&appsv1.DaemonSet{
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2},
	}),
		"0 of 2 replicas are available")
}

func TestWaitUntilHealthyTellsTheReason(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api-1", Labels: map[string]string{"app": "api"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name:  "kube-apiserver",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", Message: "starting\nunknown flag: --nope\n",
			}},
		}}},
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "api-1"},
		Type:           corev1.EventTypeWarning, Reason: "BackOff", Message: "restarting",
	}
	c := fake.NewClientBuilder().WithObjects(testDeployment(), pod, event).Build()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()

	err := WaitUntilHealthy(ctx, c, testDeployment())
	for _, want := range []string{
		"Deployment ns/api is not healthy", "0 of 1 replicas are updated",
		"pod api-1 container kube-apiserver ended with code 1",
		"unknown flag: --nope", "CrashLoopBackOff", "event BackOff on Pod api-1: restarting",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v misses %q", err, want)
		}
	}
}

func TestDescribePod(t *testing.T) {
	for _, test := range []struct {
		name   string
		status corev1.PodStatus
		want   string
	}{
		{
			"ready", corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			}, "",
		},
		{
			"no room",
			corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available",
			}}},
			"pod a cannot be scheduled: 0/1 nodes are available",
		},
		{
			"image missing",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"},
				},
			}}},
			"pod a container c waits: ImagePullBackOff: not found",
		},
		{"starting", corev1.PodStatus{Phase: corev1.PodPending}, "pod a is in phase Pending"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := DescribePod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: test.status,
			}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWaitUntilGone(t *testing.T) {
	deployment := testDeployment()
	deployment.Finalizers = []string{"trellis.garden/test"}
	c := fake.NewClientBuilder().WithObjects(deployment).Build()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	checkError(t, WaitUntilGone(ctx, c, testDeployment()), "waits for the finalizers trellis.garden/test")

	c = fake.NewClientBuilder().WithObjects(testDeployment()).Build()
	if err := Delete(t.Context(), c, testDeployment(), testDeployment()); err != nil {
		t.Fatal(err)
	}
	checkError(t, WaitUntilGone(t.Context(), c, testDeployment()), "")
}

func testDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "api"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api", Labels: map[string]string{"app": "api"}},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want %q", want)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestRolloutIsAwaited(t *testing.T) {
	labels, now := map[string]string{"role": "apiserver"}, metav1.Now()
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "server"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "new", Labels: labels}}
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "old", Labels: labels, DeletionTimestamp: &now, Finalizers: []string{"test"},
	}}
	for want, objects := range map[string][]client.Object{
		"pod garden/old is still ending": {deployment, pod, leaving}, "": {deployment, pod},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		checkError(t, WaitUntilRolledOut(ctx, fake.NewClientBuilder().WithObjects(objects...).Build(),
			deployment.DeepCopy()), want)
	}
}
