package registry

import (
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func cloudProfiles() Served {
	return &Kind[*gardencorev1beta1.CloudProfile]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "cloudprofiles", Singular: "cloudprofile",
		ShortNames: []string{"cprofile", "cpfl"},
		New:        func() *gardencorev1beta1.CloudProfile { return &gardencorev1beta1.CloudProfile{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.CloudProfileList{} },
		Spec:       func(p *gardencorev1beta1.CloudProfile) any { return p.Spec },
		CopySpec:   func(to, from *gardencorev1beta1.CloudProfile) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencorev1beta1.CloudProfile) { to.Status = from.Status },
		Columns: []Column[*gardencorev1beta1.CloudProfile]{
			{
				Name: "Provider", Description: "The provider that the profile is for.",
				Cell: func(p *gardencorev1beta1.CloudProfile) any { return p.Spec.Type },
			},
		},
		Validate:       gardencorev1beta1.ValidateCloudProfile,
		ValidateUpdate: gardencorev1beta1.ValidateCloudProfileUpdate,
		Warnings:       gardencorev1beta1.CloudProfileWarnings,
	}
}

func namespacedCloudProfiles() Served {
	return &Kind[*gardencorev1beta1.NamespacedCloudProfile]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "namespacedcloudprofiles",
		Singular: "namespacedcloudprofile", Namespaced: true,
		ShortNames: []string{"nsprofile", "nscpfl"},
		New: func() *gardencorev1beta1.NamespacedCloudProfile {
			return &gardencorev1beta1.NamespacedCloudProfile{}
		},
		NewList:    func() runtime.Object { return &gardencorev1beta1.NamespacedCloudProfileList{} },
		Spec:       func(p *gardencorev1beta1.NamespacedCloudProfile) any { return p.Spec },
		CopySpec:   func(to, from *gardencorev1beta1.NamespacedCloudProfile) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencorev1beta1.NamespacedCloudProfile) { to.Status = from.Status },
		Columns: []Column[*gardencorev1beta1.NamespacedCloudProfile]{
			{
				Name: "Parent Name", Description: "The profile that this one extends.",
				Cell: func(p *gardencorev1beta1.NamespacedCloudProfile) any { return p.Spec.Parent.Name },
			},
			{
				Name: "Parent Kind", Description: "The kind of the profile that this one extends.",
				Cell: func(p *gardencorev1beta1.NamespacedCloudProfile) any { return p.Spec.Parent.Kind },
			},
		},
		Validate:       gardencorev1beta1.ValidateNamespacedCloudProfile,
		ValidateUpdate: gardencorev1beta1.ValidateNamespacedCloudProfileUpdate,
		Warnings:       gardencorev1beta1.NamespacedCloudProfileWarnings,
	}
}
