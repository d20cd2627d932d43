package gardenlet

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// heldControllersStayStopped holds what judges nodes, as the watchdog does, while the shoot is reconciled. Its API
// server does not answer, but is in the endpoints of its Service: the watchdog itself takes it for slow, and leaves
// everything as it is.
func heldControllersStayStopped(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	isServed(t, shoot.Status.TechnicalID, "kube-apiserver", "etcd-main-client")
	controllers := []*appsv1.Deployment{
		{ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler"}},
	}
	for _, controller := range controllers {
		controller.Namespace = shoot.Status.TechnicalID
		eventually(t, func() error {
			if err := get(controller); err != nil {
				return err
			}
			return component.Hold(context.Background(), c, controller)
		})
	}
	reconciled := func(what string, replicas int32) {
		t.Helper()
		operate(t, shoot, gardencorev1beta1.GardenerOperationReconcile)
		succeeded(t, shoot)
		for _, controller := range controllers {
			if err := get(controller); err != nil {
				t.Fatal(err)
			}
			if *controller.Spec.Replicas != replicas || component.IsHeld(controller) != (replicas == 0) {
				t.Errorf("%s: %s has %d replicas and annotations %v", what, controller.Name, *controller.Spec.Replicas,
					controller.Annotations)
			}
		}
	}
	reconciled("held", 0)
	reconciled("held, once more", 0)
	for _, controller := range controllers {
		eventually(t, func() error {
			if err := get(controller); err != nil {
				return err
			}
			return component.Release(context.Background(), c, controller)
		})
	}
	reconciled("released", 1)
}

// isServed gives Services of a namespace an endpoint that is ready, as the control plane of a seed with nodes does.
func isServed(t *testing.T, namespace string, services ...string) {
	t.Helper()
	for _, service := range services {
		create(t, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		})
	}
}
