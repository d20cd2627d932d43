package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// RegisterDefaults makes a scheme set defaults in the kinds of this package whenever it decodes them.
func RegisterDefaults(scheme *runtime.Scheme) error {
	registerDefaults(scheme, SetDefaultsShoot, func(list *ShootList) []Shoot { return list.Items })
	registerDefaults(scheme, SetDefaultsSeed, func(list *SeedList) []Seed { return list.Items })
	registerDefaults(scheme, SetDefaultsProject, func(list *ProjectList) []Project { return list.Items })
	registerDefaults(scheme, SetDefaultsCloudProfile, func(list *CloudProfileList) []CloudProfile { return list.Items })
	registerDefaults(scheme, SetDefaultsNamespacedCloudProfile,
		func(list *NamespacedCloudProfileList) []NamespacedCloudProfile { return list.Items })
	registerDefaults(scheme, SetDefaultsControllerRegistration,
		func(list *ControllerRegistrationList) []ControllerRegistration { return list.Items })
	registerDefaults(scheme, SetDefaultsSecretBinding,
		func(list *SecretBindingList) []SecretBinding { return list.Items })
	return nil
}

// registerDefaults registers the defaults of a kind for its objects and its lists.
func registerDefaults[T, L any](scheme *runtime.Scheme, set func(*T), items func(*L) []T) {
	scheme.AddTypeDefaultingFunc(asObject(new(T)), func(obj any) { set(obj.(*T)) })
	scheme.AddTypeDefaultingFunc(asObject(new(L)), func(obj any) {
		list := items(obj.(*L))
		for i := range list {
			set(&list[i])
		}
	})
}

func asObject(obj any) runtime.Object { return obj.(runtime.Object) }

// setDefault sets what a pointer points to when nothing was given.
func setDefault[T any](pointer **T, value T) {
	if *pointer == nil {
		*pointer = &value
	}
}

// setBlock makes an empty struct of one that was not given, so that its fields can get defaults.
func setBlock[T any](pointer **T) *T {
	if *pointer == nil {
		*pointer = new(T)
	}
	return *pointer
}
