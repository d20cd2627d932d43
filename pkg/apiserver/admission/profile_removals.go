package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// offered is one thing that a cloud profile offers: a Kubernetes version, a version of a machine image, a machine type,
// a volume type, a region or a zone.
type offered struct{ list, name string }

// Lists of a cloud profile, as the fields of its specification are called.
const (
	listVersions      = "kubernetes.versions"
	listMachineImages = "machineImages"
	listMachineTypes  = "machineTypes"
	listVolumeTypes   = "volumeTypes"
	listRegions       = "regions"
)

// offer is all that a cloud profile offers.
type offer = sets.Set[offered]

func offerOf(spec *gardencorev1beta1.CloudProfileSpec) offer {
	result := offer{}
	addOffer(result, &spec.Kubernetes, spec.MachineImages, spec.MachineTypes, spec.VolumeTypes)
	for _, region := range spec.Regions {
		result.Insert(offered{listRegions, region.Name})
		for _, zone := range region.Zones {
			result.Insert(offered{listRegions, zoneName(region.Name, zone.Name)})
		}
	}
	return result
}

// offerOfNamespaced is what a namespaced cloud profile adds to its parent.
func offerOfNamespaced(spec *gardencorev1beta1.NamespacedCloudProfileSpec) offer {
	result := offer{}
	addOffer(result, spec.Kubernetes, spec.MachineImages, spec.MachineTypes, spec.VolumeTypes)
	return result
}

func addOffer(to offer, kubernetes *gardencorev1beta1.KubernetesSettings, images []gardencorev1beta1.MachineImage,
	machines []gardencorev1beta1.MachineType, volumes []gardencorev1beta1.VolumeType) {
	if kubernetes != nil {
		for _, version := range kubernetes.Versions {
			to.Insert(offered{listVersions, version.Version})
		}
	}
	for _, image := range images {
		for _, version := range image.Versions {
			to.Insert(offered{listMachineImages, imageName(image.Name, version.Version)})
		}
	}
	for _, machine := range machines {
		to.Insert(offered{listMachineTypes, machine.Name})
	}
	for _, volume := range volumes {
		to.Insert(offered{listVolumeTypes, volume.Name})
	}
}

func zoneName(region, zone string) string    { return region + ", zone " + zone }
func imageName(image, version string) string { return image + " " + version }

// usedOffer is what a shoot uses of its cloud profile.
func usedOffer(shoot *gardencorev1beta1.Shoot) offer {
	used := offer{}
	used.Insert(offered{listVersions, shoot.Spec.Kubernetes.Version}, offered{listRegions, shoot.Spec.Region})
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		used.Insert(offered{listMachineTypes, worker.Machine.Type})
		if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			used.Insert(offered{listVersions, *worker.Kubernetes.Version})
		}
		if image := worker.Machine.Image; image != nil {
			used.Insert(offered{listMachineImages, imageName(image.Name, ptr.Deref(image.Version, ""))})
		}
		for _, zone := range worker.Zones {
			used.Insert(offered{listRegions, zoneName(shoot.Spec.Region, zone)})
		}
		for _, volume := range volumeTypes(worker) {
			used.Insert(offered{listVolumeTypes, volume})
		}
	}
	return used
}

func volumeTypes(worker *gardencorev1beta1.Worker) []string {
	var types []string
	if worker.Volume != nil && worker.Volume.Type != nil {
		types = append(types, *worker.Volume.Type)
	}
	for _, volume := range worker.DataVolumes {
		if volume.Type != nil {
			types = append(types, *volume.Type)
		}
	}
	return types
}

// profileUsers are shoots that use a cloud profile, and what is taken from them.
type profileUsers struct {
	removed offer
	shoots  []*gardencorev1beta1.Shoot
}

// validateRemovals refuses to take from a cloud profile what shoots use.
func (r *referenceManager) validateRemovals(ctx context.Context, a admission.Attributes) (field.ErrorList, error) {
	var groups []profileUsers
	var err error
	if profile, old, ok := written[*gardencorev1beta1.CloudProfile](a); ok && old != nil {
		groups, err = r.losersOfProfile(ctx, profile.Name, offerOf(&old.Spec).Difference(offerOf(&profile.Spec)))
	} else if profile, old, ok := written[*gardencorev1beta1.NamespacedCloudProfile](a); ok && old != nil {
		groups, err = r.losersOfNamespaced(ctx, profile,
			offerOfNamespaced(&old.Spec).Difference(offerOfNamespaced(&profile.Spec)))
	}
	return removalErrors(groups), err
}

// losersOfProfile returns the shoots of a cloud profile and of the namespaced cloud profiles below it.
func (r *referenceManager) losersOfProfile(ctx context.Context, name string, removed offer) ([]profileUsers, error) {
	if len(removed) == 0 {
		return nil, nil
	}
	shoots, err := r.shootsOfProfile(ctx, "", gardencorev1beta1.CloudProfileReferenceKindCloudProfile, name)
	if err != nil {
		return nil, err
	}
	groups := []profileUsers{{removed, shoots}}
	children, err := childrenOf(ctx, r.Reader, name)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		shoots, err := r.shootsOfProfile(ctx, child.Namespace,
			gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile, child.Name)
		if err != nil {
			return nil, err
		}
		groups = append(groups, profileUsers{removed.Difference(offerOfNamespaced(&child.Spec)), shoots})
	}
	return groups, nil
}

func (r *referenceManager) losersOfNamespaced(ctx context.Context, profile *gardencorev1beta1.NamespacedCloudProfile,
	removed offer) ([]profileUsers, error) {
	if len(removed) == 0 {
		return nil, nil
	}
	parent, err := get[*gardencorev1beta1.CloudProfile](ctx, r.Reader, gardencorev1beta1.Resource("cloudprofiles"), "",
		profile.Spec.Parent.Name)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if err == nil {
		removed = removed.Difference(offerOf(&parent.Spec))
	}
	shoots, err := r.shootsOfProfile(ctx, profile.Namespace,
		gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile, profile.Name)
	return []profileUsers{{removed, shoots}}, err
}

func (r *referenceManager) shootsOfProfile(ctx context.Context,
	namespace, kind, name string) ([]*gardencorev1beta1.Shoot, error) {
	return list[*gardencorev1beta1.Shoot](ctx, r.Reader, gardencorev1beta1.Resource("shoots"), namespace,
		selectProfile(kind, name))
}

// removalErrors reports each thing that is removed although shoots use it. Shoots that are being deleted do not count.
func removalErrors(groups []profileUsers) field.ErrorList {
	users := map[offered][]string{}
	for _, group := range groups {
		for _, shoot := range group.shoots {
			if shoot.DeletionTimestamp != nil {
				continue
			}
			for thing := range usedOffer(shoot).Intersection(group.removed) {
				users[thing] = append(users[thing], "shoot "+nameOf(shoot))
			}
		}
	}
	var errs field.ErrorList
	for thing, users := range users {
		errs = append(errs, field.Forbidden(field.NewPath("spec").Child(thing.list),
			fmt.Sprintf("%s cannot be removed: it is still used by %s%s", thing.name, summary(users), instead(thing))))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errs
}

// instead tells how to phase out what cannot be removed.
func instead(thing offered) string {
	switch thing.list {
	case listVersions, listMachineImages:
		return "; set its expirationDate instead, so that nobody takes it newly and maintenance moves these on"
	case listMachineTypes, listVolumeTypes:
		return "; set usable: false instead, so that nobody takes it newly"
	}
	return ""
}
