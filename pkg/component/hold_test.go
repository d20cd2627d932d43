package component

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func deploymentOf(replicas int32) *appsv1.Deployment {
	return ControlPlaneDeployment(ControlPlaneDeploymentValues{
		Namespace: "ns", Name: "part", Labels: Labels("kubernetes", "part"), Replicas: replicas, Image: "part:1",
	})
}

func read(t *testing.T, c client.Client) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "part"}, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// A Deployment that is held stays stopped while it is deployed anew, and gets its replicas back afterwards; then they
// are what is deployed again.
func TestHeldDeploymentsStayStopped(t *testing.T) {
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	deploy := func(replicas int32, image string) {
		t.Helper()
		deployment := deploymentOf(replicas)
		deployment.Spec.Template.Spec.Containers[0].Image = image
		if err := ApplyUnlessHeld(t.Context(), c, deployment); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, replicas int32, held bool) {
		t.Helper()
		got := read(t, c)
		if *got.Spec.Replicas != replicas || IsHeld(got) != held {
			t.Errorf("%s: %d replicas, held %v; want %d, %v", when, *got.Spec.Replicas, IsHeld(got), replicas, held)
		}
	}
	deploy(2, "part:1")
	want("deployed", 2, false)
	if err := Hold(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	want("held", 0, true)
	for range 2 {
		deploy(2, "part:2")
		want("deployed while it is held", 0, true)
	}
	if got := read(t, c).Spec.Template.Spec.Containers[0].Image; got != "part:2" {
		t.Errorf("of what else was deployed nothing came: image %s", got)
	}
	if err := Hold(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	if err := Release(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	want("released", 2, false)
	if annotations := read(t, c).Annotations; len(annotations) > 0 {
		t.Errorf("annotations %v are left", annotations)
	}
	deploy(1, "part:2")
	want("deployed afterwards", 1, false)
}

// Who scales it for another reason ends the hold, and a watchdog that has not seen that does not undo it.
func TestScaleEndsAHold(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(deploymentOf(1)).Build()
	if err := Hold(t.Context(), c, read(t, c)); err != nil {
		t.Fatal(err)
	}
	stale := read(t, c)
	if err := Scale(t.Context(), c, deploymentOf(1), 0); err != nil {
		t.Fatal(err)
	}
	if err := Release(t.Context(), c, stale); !apierrors.IsConflict(err) {
		t.Errorf("releasing what has changed: %v", err)
	}
	if got := read(t, c); *got.Spec.Replicas != 0 || IsHeld(got) {
		t.Errorf("%d replicas, held %v", *got.Spec.Replicas, IsHeld(got))
	}
}

func TestReleaseGivesReplicasBack(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, want int32
		noted          string
	}{
		"as before":              {0, 2, "2"},
		"nothing noted":          {0, 1, ""},
		"no number":              {0, 1, "many"},
		"none":                   {0, 1, "0"},
		"fewer than none":        {0, 1, "-1"},
		"more than would be had": {0, 1, "1000000"},
		"runs already":           {3, 3, "2"},
	} {
		deployment := deploymentOf(test.replicas)
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, gardencorev1beta1.AnnotationMeltdownProtectionActive, "")
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, gardencorev1beta1.AnnotationWatchdogReplicas, test.noted)
		c := fake.NewClientBuilder().WithObjects(deployment).Build()
		if err := Release(t.Context(), c, read(t, c)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); *got.Spec.Replicas != test.want || IsHeld(got) {
			t.Errorf("%s: %d replicas, held %v; want %d", name, *got.Spec.Replicas, IsHeld(got), test.want)
		}
	}
}
