package seed

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

const (
	// reserveName is the priority class of the reservation, its label, and the beginning of the names of its
	// Deployments.
	reserveName = "reserve-excess-capacity"
	// reservePriority is below that of all other pods: these take the place of the reservation.
	reservePriority int32 = -5
)

// reservation returns pods that do nothing but take up the capacity that is to be kept free. When a control plane needs
// the place they go, and the seed's autoscaler makes room for them anew.
func reservation(setting *gardencorev1beta1.SeedSettingExcessCapacityReservation, image string) []client.Object {
	if setting == nil || !ptr.Deref(setting.Enabled, true) || len(setting.Configs) == 0 {
		return nil
	}
	objects := []client.Object{&schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: reserveName}, Value: reservePriority,
		PreemptionPolicy: new(corev1.PreemptNever),
		Description:      "Capacity that is kept free for control planes",
	}}
	for i, config := range setting.Configs {
		objects = append(objects, reservationOf(fmt.Sprintf("%s-%d", reserveName, i), config, image))
	}
	return objects
}

func reservationOf(name string, config gardencorev1beta1.SeedSettingExcessCapacityReservationConfig,
	image string) *appsv1.Deployment {
	labels := map[string]string{component.LabelApp: reserveName, "name": name}
	spec := component.HardenedPod(reserveName, corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)), NodeSelector: config.NodeSelector,
		Tolerations: config.Tolerations,
		Containers: []corev1.Container{{
			Name: "pause", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: component.HardenedContainer(),
			Resources:       corev1.ResourceRequirements{Requests: config.Resources, Limits: config.Resources},
		}},
	})
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// reserveCapacity brings the reservation up to date.
func (s *System) reserveCapacity(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	image, err := s.Images.Find("pause")
	if err != nil {
		return err
	}
	var setting *gardencorev1beta1.SeedSettingExcessCapacityReservation
	if settings := seed.Spec.Settings; settings != nil {
		setting = settings.ExcessCapacityReservation
	}
	objects := reservation(setting, image.String())
	if err := component.Apply(ctx, s.Seed, objects...); err != nil {
		return err
	}
	return s.releaseCapacity(ctx, objects)
}

// releaseCapacity removes what is reserved beside the wanted objects.
func (s *System) releaseCapacity(ctx context.Context, wanted []client.Object) error {
	keep := map[string]bool{}
	for _, object := range wanted {
		keep[object.GetName()] = true
	}
	list := &appsv1.DeploymentList{}
	if err := s.Seed.List(ctx, list, client.InNamespace(gardencorev1beta1.GardenNamespace),
		client.MatchingLabels{component.LabelApp: reserveName}); err != nil {
		return fmt.Errorf("listing the reserved capacity: %w", err)
	}
	for i := range list.Items {
		if keep[list.Items[i].Name] {
			continue
		}
		if err := component.Delete(ctx, s.Seed, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
