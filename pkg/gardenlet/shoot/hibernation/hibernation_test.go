package hibernation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

func TestMarkAsleep(t *testing.T) {
	shoot := plan.Identity{Namespace: "ns"}
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(&corev1.Secret{ObjectMeta: shoot.Meta(kubeapiserver.InternalKubeconfigSecret)}).Build()
	for _, want := range []bool{false, true, true, false} {
		if err := MarkAsleep(t.Context(), seed, shoot, want); err != nil {
			t.Fatal(err)
		}
		if got, err := IsAsleep(t.Context(), seed, "ns"); err != nil || got != want {
			t.Errorf("asleep is %v, %v; want %v", got, err, want)
		}
	}
	if got, err := IsAsleep(t.Context(), seed, "other"); err != nil || got {
		t.Errorf("a shoot that is not there is asleep: %v, %v", got, err)
	}
}

func TestForgetNodes(t *testing.T) {
	bound := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"},
	}
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"csi/attacher"}},
	}
	slice := func(kind string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.3.0.4"}, TargetRef: &corev1.ObjectReference{Kind: kind}},
			},
		}
	}
	for _, test := range []struct {
		name    string
		step    func(context.Context, kubernetes.Interface) error
		objects *kubernetesfake.Clientset
		want    string
		goes    bool
	}{
		{"nothing", deleteNodes, kubernetesfake.NewClientset(), "", true},
		{
			"node", deleteNodes, kubernetesfake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}),
			"1 nodes are left", true,
		},
		{"pod", deleteBoundPods, kubernetesfake.NewClientset(bound), "1 pods on nodes are left", true},
		{
			"attachment", deleteAttachments, kubernetesfake.NewClientset(attachment), "1 volume attachments are left",
			true,
		},
		{
			"endpoint of a pod", checkEndpoints, kubernetesfake.NewClientset(slice("Pod")),
			"1 endpoints of pods are left", false,
		},
		{"other endpoint", checkEndpoints, kubernetesfake.NewClientset(slice("Node")), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.step(t.Context(), test.objects)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if err := test.step(t.Context(), test.objects); (err == nil) != test.goes {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

func TestStopControllers(t *testing.T) {
	deployment := func(name string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
		}
	}
	ours := component.WithControlPlaneRole(nil)
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(deployment("kube-scheduler", ours), deployment(kubeapiserver.Name, ours),
			deployment("dashboard", nil)).Build()
	h := &Hibernation{Plan: &plan.Plan{Identity: plan.Identity{Namespace: "ns"}}, Seed: seed}
	if err := h.stopControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int32{"kube-scheduler": 0, kubeapiserver.Name: 2, "dashboard": 2} {
		got := &appsv1.Deployment{}
		if err := seed.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if *got.Spec.Replicas != want {
			t.Errorf("%s has %d replicas, want %d", name, *got.Spec.Replicas, want)
		}
	}
}

// Whatever the list of components has of a stage is stopped, and waited for until its last pod is gone; what a shoot
// does not have is none of it.
func TestAStageStops(t *testing.T) {
	listed := components.ControlPlane
	t.Cleanup(func() { components.ControlPlane = listed })
	components.ControlPlane = append(slices.Clip(listed),
		components.Component{Name: "pretended", Stage: components.Stores})
	labels := map[string]string{"app": "pretended"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pretended"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	apiServer := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: kubeapiserver.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pretended-0", Labels: labels}}
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set, apiServer, pod).Build()
	h := &Hibernation{Plan: &plan.Plan{Identity: plan.Identity{Namespace: "ns"}}, Seed: seed}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.stop(components.Stores)(ctx); err == nil || !strings.Contains(err.Error(), "pretended-0") {
		t.Errorf("with a pod that is left: %v", err)
	}
	if err := seed.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := h.stop(components.Stores)(t.Context()); err != nil {
		t.Error(err)
	}
	for object, want := range map[client.Object]int32{set: 0, apiServer: 1} {
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if got := replicasOf(object); got != want {
			t.Errorf("%s has %d replicas, want %d", object.GetName(), got, want)
		}
	}
}

func replicasOf(object client.Object) int32 {
	if set, ok := object.(*appsv1.StatefulSet); ok {
		return *set.Spec.Replicas
	}
	return *object.(*appsv1.Deployment).Spec.Replicas
}
