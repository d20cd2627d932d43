package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenletconfig"
)

// What a Seed says decides which Secrets its gardenlet may read, which shoots come to it, and which extensions. A
// gardenlet registers its Seed as its operator configured it, where it runs if nowhere else. From then on the
// operator's word is in the garden: in the Seed itself, or in the Gardenlet or ManagedSeed of its name, and gardenlet
// changes its Seed to that only.

// ownBusiness are the parts of a Seed's specification that concern the seed alone: gardenlet may change them.
func ownBusiness(spec map[string]any) {
	delete(spec, "volume")
	if settings, ok := spec["settings"].(map[string]any); ok {
		spec["settings"] = map[string]any{"scheduling": settings["scheduling"]}
	}
}

// changesOwnSeed returns what an update of a Seed changes that its operator has not written down; empty when there is
// nothing.
func (s *seedRestriction) changesOwnSeed(ctx context.Context, object, old *gardencorev1beta1.Seed,
	subresource string) (string, error) {
	changed, err := changesOfSeed(object, old, subresource)
	if err != nil || len(changed) == 0 {
		return "", err
	}
	where, templates, err := s.templatesOf(ctx, object.Name)
	if err != nil {
		return "", err
	}
	for _, template := range templates {
		left, err := changesOfSeed(object, asWritten(template, old), subresource)
		if err != nil {
			return "", err
		}
		changed = slices.DeleteFunc(changed, func(path string) bool { return !slices.Contains(left, path) })
	}
	if len(changed) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s: operators decide about that: change it with kubectl edit seed %s, or in %s",
		strings.Join(changed, ", "), object.Name, where), nil
}

// registersOtherwise returns how a new Seed differs from what the Gardenlet or ManagedSeed of its name says about it;
// empty when it does not, or when neither says anything.
func (s *seedRestriction) registersOtherwise(ctx context.Context, object *gardencorev1beta1.Seed) (string, error) {
	where, templates, err := s.templatesOf(ctx, object.Name)
	if err != nil || len(templates) == 0 {
		return "", err
	}
	var changed []string
	for i, template := range templates {
		differs, err := changesOfSeed(object,
			asWritten(template, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: object.Name}}), "")
		if err != nil {
			return "", err
		}
		if i == 0 {
			changed = differs
		}
		changed = slices.DeleteFunc(changed, func(path string) bool { return !slices.Contains(differs, path) })
	}
	if len(changed) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s: the Seed is registered as its operator says: change that in %s",
		strings.Join(changed, ", "), where), nil
}

// asWritten returns a Seed as a template wants it; labels and annotations of others stay.
func asWritten(template *seedmanagementv1alpha1.SeedTemplate, seed *gardencorev1beta1.Seed) *gardencorev1beta1.Seed {
	wanted := seed.DeepCopy()
	wanted.Spec = *template.Spec.DeepCopy()
	gardencorev1beta1.SetDefaultsSeed(wanted)
	wanted.Labels, wanted.Annotations = overlaid(seed.Labels, template.Labels),
		overlaid(seed.Annotations, template.Annotations)
	return wanted
}

func overlaid(base, over map[string]string) map[string]string {
	result := maps.Clone(base)
	if result == nil {
		result = map[string]string{}
	}
	maps.Copy(result, over)
	return result
}

// changesOfSeed returns the paths of what differs between two Seeds, besides what concerns the seed alone.
func changesOfSeed(object, old *gardencorev1beta1.Seed, subresource string) ([]string, error) {
	now, err := decisive(&object.Spec)
	if err != nil {
		return nil, err
	}
	before, err := decisive(&old.Spec)
	if err != nil {
		return nil, err
	}
	var changed []string
	for name := range mergedKeys(now, before) {
		if !reflect.DeepEqual(now[name], before[name]) {
			changed = append(changed, "spec."+name)
		}
	}
	slices.Sort(changed)
	return append(changed, changedMarks(object, old, subresource)...), nil
}

// decisive returns a specification's fields as JSON has them, so that fields that are added to it decide until somebody
// says otherwise.
func decisive(spec *gardencorev1beta1.SeedSpec) (map[string]any, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	ownBusiness(fields)
	return fields, nil
}

// templatesOf returns what the Gardenlet and the ManagedSeed of a seed say about it, and in which of them to change it.
func (s *seedRestriction) templatesOf(ctx context.Context,
	name string) (where string, templates []*seedmanagementv1alpha1.SeedTemplate, err error) {
	where = fmt.Sprintf("spec.config.seedConfig of Gardenlet %s/%s", gardencorev1beta1.GardenNamespace, name)
	managed, err := get[*seedmanagementv1alpha1.ManagedSeed](ctx, s.Reader,
		seedmanagementv1alpha1.Resource("managedseeds"), gardencorev1beta1.GardenNamespace, name)
	switch {
	case err == nil:
		where = fmt.Sprintf("spec.gardenlet.config.seedConfig of ManagedSeed %s", nameOf(managed))
		template, err := s.templateOfManagedSeed(ctx, managed)
		if err != nil {
			return "", nil, err
		}
		templates = append(templates, template...)
	case !isMissing(err):
		return "", nil, err
	}
	gardenlet, err := get[*seedmanagementv1alpha1.Gardenlet](ctx, s.Reader,
		seedmanagementv1alpha1.Resource("gardenlets"), gardencorev1beta1.GardenNamespace, name)
	if isMissing(err) {
		return where, templates, nil
	}
	if err != nil {
		return "", nil, err
	}
	template, err := seedmanagementv1alpha1.SeedTemplateOf(gardenlet.Spec.Config)
	if err == nil && template != nil {
		templates = append(templates, template)
	}
	return where, templates, err
}

// templateOfManagedSeed returns what a managed seed is to be like by its ManagedSeed, its shoot and the Seed that hosts
// the shoot; none while one of them is missing.
func (s *seedRestriction) templateOfManagedSeed(ctx context.Context,
	managed *seedmanagementv1alpha1.ManagedSeed) ([]*seedmanagementv1alpha1.SeedTemplate, error) {
	shoot, err := get[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), managed.Namespace,
		ptr.Deref(managed.Spec.Shoot, seedmanagementv1alpha1.Shoot{}).Name)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	parent, err := get[*gardencorev1beta1.Seed](ctx, s.Reader, gardencorev1beta1.Resource("seeds"), "",
		ptr.Deref(shoot.Spec.SeedName, ""))
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	template, err := gardenletconfig.SeedOfManagedSeed(managed, shoot, parent)
	if err != nil {
		return nil, fmt.Errorf("managedseed %s: %w", nameOf(managed), err)
	}
	return []*seedmanagementv1alpha1.SeedTemplate{template}, nil
}
