package admission

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// usersOf names who uses an object, as <kind> <name>.
type usersOf func(ctx context.Context, object metav1.Object) ([]string, error)

// usersByResource finds users of the kinds that are kept as long as they are used. Secrets and ConfigMaps are objects
// of the garden's kube-apiserver; finalizers that garden-controller-manager sets keep those.
func (r *referenceManager) usersByResource() map[schema.GroupResource]usersOf {
	return map[schema.GroupResource]usersOf{
		gardencorev1beta1.Resource("backupbuckets"):           r.entriesWhere("spec.bucketName"),
		gardencorev1beta1.Resource("cloudprofiles"):           r.usersOfProfile(gardencorev1beta1.CloudProfileReferenceKindCloudProfile),
		gardencorev1beta1.Resource("namespacedcloudprofiles"): r.usersOfProfile(gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile),
		// the seed has the name of the managed seed
		seedmanagementv1alpha1.Resource("managedseeds"): r.shootsOfSeed,
		gardencorev1beta1.Resource("seeds"): all(r.shootsOfSeed, r.entriesWhere("spec.seedName"),
			r.entriesInBucketOfSeed, r.bucketsOfSeed),
		gardencorev1beta1.Resource("projects"): r.shootsOfProject,
		gardencorev1beta1.Resource("quotas"):   r.bindingsWith(bindsQuota),
		gardencorev1beta1.Resource("secretbindings"): r.shootsWhere(func(s *gardencorev1beta1.Shoot) *string {
			return s.Spec.SecretBindingName
		}),
		securityv1alpha1.Resource("credentialsbindings"): r.shootsWhere(func(s *gardencorev1beta1.Shoot) *string {
			return s.Spec.CredentialsBindingName
		}),
		securityv1alpha1.Resource("workloadidentities"): all(r.bindingsWith(bindsIdentity), r.shootsWithIdentity),
		gardencorev1beta1.Resource("exposureclasses"): r.shootsWhere(func(s *gardencorev1beta1.Shoot) *string {
			return s.Spec.ExposureClassName
		}),
		gardencorev1beta1.Resource("controllerdeployments"):   r.registrationsOf,
		gardencorev1beta1.Resource("controllerregistrations"): r.usersOfRegistration,
	}
}

// all joins what several find.
func all(finders ...usersOf) usersOf {
	return func(ctx context.Context, object metav1.Object) ([]string, error) {
		var users []string
		for _, find := range finders {
			found, err := find(ctx, object)
			if err != nil {
				return nil, err
			}
			users = append(users, found...)
		}
		return users, nil
	}
}

func (r *referenceManager) usersOfProfile(kind string) usersOf {
	return func(ctx context.Context, profile metav1.Object) ([]string, error) {
		users, err := r.shoots(ctx, profile.GetNamespace(), selectProfile(kind, profile.GetName()), anyShoot)
		if err != nil || kind != gardencorev1beta1.CloudProfileReferenceKindCloudProfile {
			return users, err
		}
		children, err := childrenOf(ctx, r.Reader, profile.GetName())
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			users = append(users, "namespacedcloudprofile "+nameOf(child))
		}
		return users, nil
	}
}

// selectProfile selects the shoots of a cloud profile.
func selectProfile(kind, name string) fields.Selector {
	return fields.AndSelectors(
		fields.OneTermEqualSelector("spec.cloudProfile.name", name),
		fields.OneTermEqualSelector("spec.cloudProfile.kind", kind),
	)
}

// childrenOf returns the namespaced cloud profiles that add to a cloud profile.
func childrenOf(ctx context.Context, reader Reader,
	parent string) ([]*gardencorev1beta1.NamespacedCloudProfile, error) {
	profiles, err := list[*gardencorev1beta1.NamespacedCloudProfile](ctx, reader,
		gardencorev1beta1.Resource("namespacedcloudprofiles"), "", fields.Everything())
	return slices.DeleteFunc(profiles, func(profile *gardencorev1beta1.NamespacedCloudProfile) bool {
		return profile.Spec.Parent.Name != parent
	}), err
}

func (r *referenceManager) shootsOfSeed(ctx context.Context, seed metav1.Object) ([]string, error) {
	return r.shoots(ctx, "", fields.Everything(), func(shoot *gardencorev1beta1.Shoot) bool {
		return ptr.Deref(shoot.Spec.SeedName, "") == seed.GetName() ||
			ptr.Deref(shoot.Status.SeedName, "") == seed.GetName()
	})
}

func (r *referenceManager) entriesWhere(fieldName string) usersOf {
	return func(ctx context.Context, object metav1.Object) ([]string, error) {
		selector := fields.OneTermEqualSelector(fieldName, object.GetName())
		entries, err := list[*gardencorev1beta1.BackupEntry](ctx, r.Reader, gardencorev1beta1.Resource("backupentries"),
			"", selector)
		return names("backupentry", entries), err
	}
}

// entriesInBucketOfSeed finds the backups in the seed's own bucket that another seed cares for: those of shoots that
// were restored there.
func (r *referenceManager) entriesInBucketOfSeed(ctx context.Context, seed metav1.Object) ([]string, error) {
	entries, err := list[*gardencorev1beta1.BackupEntry](ctx, r.Reader, gardencorev1beta1.Resource("backupentries"), "",
		fields.OneTermEqualSelector("spec.bucketName", string(seed.GetUID())))
	return names("backupentry", slices.DeleteFunc(entries, func(entry *gardencorev1beta1.BackupEntry) bool {
		return ptr.Deref(entry.Spec.SeedName, "") == seed.GetName()
	})), err
}

// bucketsOfSeed finds the buckets that a seed looks after for others. Its own, which has the name of its UID, goes with
// it.
func (r *referenceManager) bucketsOfSeed(ctx context.Context, seed metav1.Object) ([]string, error) {
	selector := fields.OneTermEqualSelector("spec.seedName", seed.GetName())
	buckets, err := list[*gardencorev1beta1.BackupBucket](ctx, r.Reader, gardencorev1beta1.Resource("backupbuckets"),
		"", selector)
	return names("backupbucket", slices.DeleteFunc(buckets,
		func(bucket *gardencorev1beta1.BackupBucket) bool { return bucket.Name == string(seed.GetUID()) })), err
}

func names[T metav1.Object](kind string, objects []T) []string {
	var result []string
	for _, object := range objects {
		result = append(result, kind+" "+nameOf(object))
	}
	return result
}

func (r *referenceManager) shootsOfProject(ctx context.Context, object metav1.Object) ([]string, error) {
	project, ok := object.(*gardencorev1beta1.Project)
	if !ok || project.Spec.Namespace == nil {
		return nil, nil
	}
	return r.shoots(ctx, *project.Spec.Namespace, fields.Everything(), anyShoot)
}

func anyShoot(*gardencorev1beta1.Shoot) bool { return true }

// shootsWhere finds the shoots that name the object in one of their fields.
func (r *referenceManager) shootsWhere(reference func(*gardencorev1beta1.Shoot) *string) usersOf {
	return func(ctx context.Context, object metav1.Object) ([]string, error) {
		return r.shoots(ctx, object.GetNamespace(), fields.Everything(), func(shoot *gardencorev1beta1.Shoot) bool {
			return ptr.Deref(reference(shoot), "") == object.GetName()
		})
	}
}

// shootsWithIdentity finds the shoots that name a workload identity themselves, not by a binding.
func (r *referenceManager) shootsWithIdentity(ctx context.Context, identity metav1.Object) ([]string, error) {
	kind := securityv1alpha1.Kind("WorkloadIdentity")
	return r.shoots(ctx, identity.GetNamespace(), fields.Everything(), func(shoot *gardencorev1beta1.Shoot) bool {
		return slices.ContainsFunc(referencesOfShoot(shoot), func(to reference) bool {
			return to.kind.GroupKind() == kind && to.name == identity.GetName()
		})
	})
}

func (r *referenceManager) shoots(ctx context.Context, namespace string, selector fields.Selector,
	uses func(*gardencorev1beta1.Shoot) bool) ([]string, error) {
	shoots, err := list[*gardencorev1beta1.Shoot](ctx, r.Reader, gardencorev1beta1.Resource("shoots"), namespace,
		selector)
	return names("shoot", slices.DeleteFunc(shoots, func(shoot *gardencorev1beta1.Shoot) bool { return !uses(shoot) })),
		err
}

// bindingsWith finds the bindings that refer to the object.
func (r *referenceManager) bindingsWith(refers func(binding, metav1.Object) bool) usersOf {
	return func(ctx context.Context, object metav1.Object) ([]string, error) {
		found, err := bindings(ctx, r.Reader, "")
		if err != nil {
			return nil, err
		}
		var users []string
		for _, b := range found {
			if refers(b, object) {
				users = append(users, b.kind+" "+nameOf(b.object))
			}
		}
		return users, nil
	}
}

func (r *referenceManager) registrations(ctx context.Context) ([]*gardencorev1beta1.ControllerRegistration, error) {
	return list[*gardencorev1beta1.ControllerRegistration](ctx, r.Reader,
		gardencorev1beta1.Resource("controllerregistrations"), "", fields.Everything())
}

func (r *referenceManager) registrationsOf(ctx context.Context, deployment metav1.Object) ([]string, error) {
	registrations, err := r.registrations(ctx)
	return names("controllerregistration",
		slices.DeleteFunc(registrations, func(registration *gardencorev1beta1.ControllerRegistration) bool {
			return !deploys(registration, deployment.GetName())
		})), err
}

func deploys(registration *gardencorev1beta1.ControllerRegistration, deployment string) bool {
	if registration.Spec.Deployment == nil || registration.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(registration.Spec.Deployment.DeploymentRefs,
		func(to gardencorev1beta1.DeploymentRef) bool { return to.Name == deployment })
}

// usersOfRegistration finds the shoots and seeds that need an extension which no other registration offers.
func (r *referenceManager) usersOfRegistration(ctx context.Context, object metav1.Object) ([]string, error) {
	registrations, err := r.registrations(ctx)
	if err != nil {
		return nil, err
	}
	return usersOfExtensions(ctx, r.Reader, offeredOnlyBy(object.GetName(), registrations))
}

// usersOfExtensions finds the shoots and seeds that ask for one of the extensions.
func usersOfExtensions(ctx context.Context, reader Reader,
	extensions offers) ([]string, error) {
	if len(extensions) == 0 {
		return nil, nil
	}
	shoots, err := list[*gardencorev1beta1.Shoot](ctx, reader, gardencorev1beta1.Resource("shoots"), "",
		fields.Everything())
	if err != nil {
		return nil, err
	}
	shoots = slices.DeleteFunc(shoots,
		func(shoot *gardencorev1beta1.Shoot) bool { return !usesAny(extensionuse.OfShoot(shoot), extensions) })
	seeds, err := list[*gardencorev1beta1.Seed](ctx, reader, gardencorev1beta1.Resource("seeds"), "",
		fields.Everything())
	seeds = slices.DeleteFunc(seeds,
		func(seed *gardencorev1beta1.Seed) bool { return !usesAny(extensionuse.OfSeed(seed), extensions) })
	return append(names("shoot", shoots), names("seed", seeds)...), err
}

// offeredOnlyBy returns what one registration offers and no other does.
func offeredOnlyBy(name string,
	registrations []*gardencorev1beta1.ControllerRegistration) offers {
	isNamed := func(registration *gardencorev1beta1.ControllerRegistration) bool { return registration.Name == name }
	only := registered(slices.DeleteFunc(slices.Clone(registrations),
		func(r *gardencorev1beta1.ControllerRegistration) bool { return !isNamed(r) }))
	for offered := range registered(slices.DeleteFunc(slices.Clone(registrations), isNamed)) {
		delete(only, offered)
	}
	return only
}

func usesAny(uses []extensionuse.Use, offered offers) bool {
	return slices.ContainsFunc(uses, func(use extensionuse.Use) bool {
		_, ok := offered[use.KindType]
		return ok
	})
}
