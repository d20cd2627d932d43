package inuse

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// kind is a kind of objects that others refer to.
type kind struct {
	name  string
	new   func() client.Object
	users []user
}

// user is a kind of objects that refer to others.
type user struct {
	singular, plural string
	new              func() client.Object
	newList          func() client.ObjectList
	// references returns the keys of the objects that one refers to.
	references func(client.Object) []client.ObjectKey
}

// list reads all users of the kind. What it returns must not be changed.
func (u user) list(ctx context.Context, reader client.Reader) ([]client.Object, error) {
	list := u.newList()
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
		return nil
	})
	return objects, err
}

// Quotas returns the reconciler of quotas, which bindings refer to.
func Quotas() *Reconciler {
	return &Reconciler{kind: kind{
		name: "quota", new: func() client.Object { return &gardencorev1beta1.Quota{} },
		users: []user{
			{
				singular: "secretbinding", plural: "secret bindings",
				new:     func() client.Object { return &gardencorev1beta1.SecretBinding{} },
				newList: func() client.ObjectList { return &gardencorev1beta1.SecretBindingList{} },
				references: func(object client.Object) []client.ObjectKey {
					return quotasOf(object.(*gardencorev1beta1.SecretBinding).Quotas)
				},
			},
			{
				singular: "credentialsbinding", plural: "credentials bindings",
				new:     func() client.Object { return &securityv1alpha1.CredentialsBinding{} },
				newList: func() client.ObjectList { return &securityv1alpha1.CredentialsBindingList{} },
				references: func(object client.Object) []client.ObjectKey {
					return quotasOf(object.(*securityv1alpha1.CredentialsBinding).Quotas)
				},
			},
		},
	}}
}

func quotasOf(references []corev1.ObjectReference) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, reference := range references {
		keys = append(keys, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name})
	}
	return keys
}

// CloudProfiles returns the reconciler of cloud profiles, which shoots and namespaced profiles refer to.
func CloudProfiles() *Reconciler {
	return &Reconciler{kind: kind{
		name: "cloudprofile", new: func() client.Object { return &gardencorev1beta1.CloudProfile{} },
		users: []user{
			shoots(func(shoot *gardencorev1beta1.Shoot) []client.ObjectKey {
				return profileOf(shoot, gardencorev1beta1.CloudProfileReferenceKindCloudProfile, "")
			}),
			{
				singular: "namespacedcloudprofile", plural: "namespaced cloud profiles",
				new:     func() client.Object { return &gardencorev1beta1.NamespacedCloudProfile{} },
				newList: func() client.ObjectList { return &gardencorev1beta1.NamespacedCloudProfileList{} },
				references: func(object client.Object) []client.ObjectKey {
					return []client.ObjectKey{
						{Name: object.(*gardencorev1beta1.NamespacedCloudProfile).Spec.Parent.Name},
					}
				},
			},
		},
	}}
}

// NamespacedCloudProfiles returns the reconciler of namespaced cloud profiles, which shoots beside them refer to.
func NamespacedCloudProfiles() *Reconciler {
	return &Reconciler{kind: kind{
		name: "namespacedcloudprofile",
		new:  func() client.Object { return &gardencorev1beta1.NamespacedCloudProfile{} },
		users: []user{shoots(func(shoot *gardencorev1beta1.Shoot) []client.ObjectKey {
			return profileOf(shoot, gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile, shoot.Namespace)
		})},
	}}
}

// ExposureClasses returns the reconciler of exposure classes, which shoots refer to.
func ExposureClasses() *Reconciler {
	return &Reconciler{kind: kind{
		name: "exposureclass", new: func() client.Object { return &gardencorev1beta1.ExposureClass{} },
		users: []user{shoots(func(shoot *gardencorev1beta1.Shoot) []client.ObjectKey {
			if shoot.Spec.ExposureClassName == nil {
				return nil
			}
			return []client.ObjectKey{{Name: *shoot.Spec.ExposureClassName}}
		})},
	}}
}

func shoots(references func(*gardencorev1beta1.Shoot) []client.ObjectKey) user {
	return user{
		singular: "shoot", plural: "shoots",
		new:     func() client.Object { return &gardencorev1beta1.Shoot{} },
		newList: func() client.ObjectList { return &gardencorev1beta1.ShootList{} },
		references: func(object client.Object) []client.ObjectKey {
			return references(object.(*gardencorev1beta1.Shoot))
		},
	}
}

// profileOf returns the cloud profile of a shoot if it is of the kind.
func profileOf(shoot *gardencorev1beta1.Shoot, kind, namespace string) []client.ObjectKey {
	if reference := shoot.Spec.CloudProfile; reference != nil {
		if reference.Kind != kind {
			return nil
		}
		return []client.ObjectKey{{Namespace: namespace, Name: reference.Name}}
	}
	if name := shoot.Spec.CloudProfileName; name != nil &&
		kind == gardencorev1beta1.CloudProfileReferenceKindCloudProfile {
		return []client.ObjectKey{{Name: *name}}
	}
	return nil
}
