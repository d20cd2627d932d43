package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// refuseGrowth returns why an extension of a seed may not write a shoot; empty when it may. For a fleet that the seed
// runs and whose Shoot allows it, it may change the limits of worker pools if it writes down what they were before, and
// create and delete shoots that carry the fleet's name.
func (s *seedRestriction) refuseGrowth(ctx context.Context, seed string, a admission.Attributes) (string, error) {
	if a.GetSubresource() != "" {
		return "extensions write no subresources of shoots", nil
	}
	object, _ := a.GetObject().(*gardencorev1beta1.Shoot)
	old, _ := a.GetOldObject().(*gardencorev1beta1.Shoot)
	switch {
	case a.GetOperation() == admission.Create && object != nil:
		if reason := beyondTemplate(object); reason != "" {
			return reason, nil
		}
		if reason, err := s.notGrown(ctx, seed, object); reason != "" || err != nil {
			return reason, err
		}
		return s.foreignCredentials(ctx, object)
	case a.GetOperation() == admission.Delete && old != nil:
		return s.notGrown(ctx, seed, old)
	case object != nil && old != nil:
		return s.refusePools(ctx, seed, object, old)
	}
	return "only single shoots are written by extensions", nil
}

// beyondTemplate returns what a shoot has that a fleet must not give it; empty when there is nothing.
func beyondTemplate(shoot *gardencorev1beta1.Shoot) string {
	switch {
	case shoot.Spec.SeedName != nil:
		return "spec.seedName: the garden chooses the seeds of shoots that fleets create"
	case len(shoot.Spec.Resources) > 0:
		return "spec.resources: shoots that fleets create get no access to other objects of the project"
	}
	for _, key := range []string{fleetv1alpha1.AllowGrowthAnnotation, fleetv1alpha1.GrowthCredentialsAnnotation} {
		if shoot.Annotations[key] != "" {
			return fmt.Sprintf("metadata.annotations[%s]: how a fleet may grow is for people of the project to say",
				key)
		}
	}
	return ""
}

// notGrown returns why a shoot is not one that a fleet of the seed may create and delete.
func (s *seedRestriction) notGrown(ctx context.Context, seed string, shoot *gardencorev1beta1.Shoot) (string, error) {
	name := shoot.Labels[fleetv1alpha1.GrownByLabel]
	if name == "" {
		return fmt.Sprintf("shoots without the label %s are not created or deleted by extensions",
			fleetv1alpha1.GrownByLabel), nil
	}
	return s.notGrowing(ctx, seed, shoot.Namespace, name, fleetv1alpha1.GrowShoots)
}

// foreignCredentials returns which credentials a shoot uses that its fleet was not given: templates of shoots are
// written by users of a fleet.
func (s *seedRestriction) foreignCredentials(ctx context.Context, shoot *gardencorev1beta1.Shoot) (string, error) {
	name := shoot.Labels[fleetv1alpha1.GrownByLabel]
	fleet, err := get[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), shoot.Namespace,
		name)
	if err != nil {
		return "", err
	}
	given := fleet.Annotations[fleetv1alpha1.GrowthCredentialsAnnotation]
	for _, used := range []struct {
		field string
		name  *string
	}{
		{"spec.credentialsBindingName", shoot.Spec.CredentialsBindingName},
		{"spec.secretBindingName", shoot.Spec.SecretBindingName},
	} {
		if used.name != nil && !fleetv1alpha1.AllowsGrowth(given, *used.name) {
			return fmt.Sprintf("%s: annotation %s of shoot %s/%s does not have %q", used.field,
				fleetv1alpha1.GrowthCredentialsAnnotation, fleet.Namespace, fleet.Name, *used.name), nil
		}
	}
	return "", nil
}

// notGrowing returns why a shoot is not a fleet on the seed that may grow in a way.
func (s *seedRestriction) notGrowing(ctx context.Context, seed, namespace, name, way string) (string, error) {
	fleet, err := get[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), namespace, name)
	if isMissing(err) {
		return fmt.Sprintf("there is no fleet %s/%s", namespace, name), nil
	}
	if err != nil {
		return "", err
	}
	allowed := fleet.Annotations[fleetv1alpha1.AllowGrowthAnnotation]
	if !seedauthorizer.IsFleet(fleet) || !fleetv1alpha1.AllowsGrowth(allowed, fleetv1alpha1.GrowPools) ||
		!fleetv1alpha1.AllowsGrowth(allowed, way) {
		return fmt.Sprintf("shoot %s/%s is no fleet whose annotation %s has %q", namespace, name,
			fleetv1alpha1.AllowGrowthAnnotation, way), nil
	}
	return unlessOneOf(fmt.Sprintf("spec.seedName of shoot %s/%s", namespace, name), seed,
		ptr.Deref(fleet.Spec.SeedName, ""), ptr.Deref(fleet.Status.SeedName, "")), nil
}

// refusePools returns what an update changes beside the limits of pools that fleets have records about.
func (s *seedRestriction) refusePools(ctx context.Context, seed string,
	object, old *gardencorev1beta1.Shoot) (string, error) {
	fleets, reason := changedPools(object, old)
	if reason != "" {
		return reason, nil
	}
	for fleet := range fleets {
		if reason, err := s.notGrowing(ctx, seed, old.Namespace, fleet, fleetv1alpha1.GrowPools); reason != "" ||
			err != nil {
			return reason, err
		}
	}
	annotations, before := maps.Clone(object.Annotations), maps.Clone(old.Annotations)
	own := []string{fleetv1alpha1.GrownPoolsAnnotation}
	if confirms(object, old) {
		if reason, err := s.notGrown(ctx, seed, old); reason != "" || err != nil {
			return reason, err
		}
		own = append(own, gardencorev1beta1.ConfirmationDeletion, gardencorev1beta1.DeletionConfirmedBy)
	}
	for _, key := range own {
		delete(annotations, key)
		delete(before, key)
	}
	return otherChanges(object, old, annotations, before), nil
}

func confirms(object, old *gardencorev1beta1.Shoot) bool {
	return object.Annotations[gardencorev1beta1.ConfirmationDeletion] !=
		old.Annotations[gardencorev1beta1.ConfirmationDeletion]
}

// otherChanges returns what differs besides limits of pools and the annotations that are a fleet's.
func otherChanges(object, old *gardencorev1beta1.Shoot, annotations, before map[string]string) string {
	same := apiequality.Semantic.DeepEqual
	switch {
	case !same(withoutPoolLimits(object), withoutPoolLimits(old)):
		return "spec of shoots is not changed by extensions, except minimum and maximum of worker pools for the " +
			"sake of a fleet"
	case !same(object.Labels, old.Labels):
		return "labels of shoots are not changed by extensions"
	case !same(annotations, before):
		return "annotations of shoots are not changed by extensions, except those of fleets that grow"
	case !same(object.Finalizers, old.Finalizers), !same(object.OwnerReferences, old.OwnerReferences):
		return "finalizers and ownerReferences of shoots are not changed by extensions"
	}
	return ""
}

func withoutPoolLimits(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.ShootSpec {
	spec := *shoot.Spec.DeepCopy()
	for i := range spec.Provider.Workers {
		spec.Provider.Workers[i].Minimum, spec.Provider.Workers[i].Maximum = 0, 0
	}
	return spec
}

// changedPools returns the fleets whose pools an update changes, by the records about them. A pool that changes must
// have one.
func changedPools(object, old *gardencorev1beta1.Shoot) (fleets map[string]bool, reason string) {
	now, err := records(object)
	if err != nil {
		return nil, err.Error()
	}
	before, err := records(old)
	if err != nil {
		return nil, err.Error()
	}
	fleets = map[string]bool{}
	for name := range mergedKeys(now, before) {
		if !apiequality.Semantic.DeepEqual(now[name], before[name]) {
			addFleet(fleets, now[name], before[name])
		}
	}
	if len(object.Spec.Provider.Workers) != len(old.Spec.Provider.Workers) {
		return fleets, "" // What else changed is refused anyway.
	}
	for i, w := range object.Spec.Provider.Workers {
		if b := old.Spec.Provider.Workers[i]; w.Minimum != b.Minimum || w.Maximum != b.Maximum {
			if now[w.Name] == nil && before[w.Name] == nil {
				return nil, fmt.Sprintf("spec.provider.workers[%d]: minimum and maximum are changed without a "+
					"record in the annotation %s", i, fleetv1alpha1.GrownPoolsAnnotation)
			}
			addFleet(fleets, now[w.Name], before[w.Name])
		}
	}
	return fleets, ""
}

func addFleet(fleets map[string]bool, records ...*fleetv1alpha1.PoolRecord) {
	for _, r := range records {
		if r != nil {
			fleets[r.Fleet] = true
		}
	}
}

func mergedKeys[V any](a, b map[string]V) map[string]bool {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	return keys
}

func records(shoot *gardencorev1beta1.Shoot) (map[string]*fleetv1alpha1.PoolRecord, error) {
	result := map[string]*fleetv1alpha1.PoolRecord{}
	text := shoot.Annotations[fleetv1alpha1.GrownPoolsAnnotation]
	if text == "" {
		return result, nil
	}
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		return nil, fmt.Errorf("metadata.annotations[%s]: %w", fleetv1alpha1.GrownPoolsAnnotation, err)
	}
	return result, nil
}
