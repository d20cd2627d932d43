package registry

import (
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func cloudProfiles() Served {
	return &Kind[*corev1beta1.CloudProfile]{
		Version: corev1beta1.SchemeGroupVersion, Plural: "cloudprofiles", Singular: "cloudprofile",
		ShortNames: []string{"cprofile", "cpfl"},
		New:        func() *corev1beta1.CloudProfile { return &corev1beta1.CloudProfile{} },
		NewList:    func() runtime.Object { return &corev1beta1.CloudProfileList{} },
		Spec:       func(p *corev1beta1.CloudProfile) any { return p.Spec },
		CopySpec:   func(to, from *corev1beta1.CloudProfile) { to.Spec = from.Spec },
		CopyStatus: func(to, from *corev1beta1.CloudProfile) { to.Status = from.Status },
		Columns: []Column[*corev1beta1.CloudProfile]{
			{Name: "Provider", Description: "The provider that the profile is for.", Cell: func(p *corev1beta1.CloudProfile) any { return p.Spec.Type }},
		},
		Validate:       corev1beta1.ValidateCloudProfile,
		ValidateUpdate: corev1beta1.ValidateCloudProfileUpdate,
		Warnings:       corev1beta1.CloudProfileWarnings,
	}
}

func namespacedCloudProfiles() Served {
	return &Kind[*corev1beta1.NamespacedCloudProfile]{
		Version: corev1beta1.SchemeGroupVersion, Plural: "namespacedcloudprofiles", Singular: "namespacedcloudprofile", Namespaced: true,
		ShortNames: []string{"nsprofile", "nscpfl"},
		New:        func() *corev1beta1.NamespacedCloudProfile { return &corev1beta1.NamespacedCloudProfile{} },
		NewList:    func() runtime.Object { return &corev1beta1.NamespacedCloudProfileList{} },
		Spec:       func(p *corev1beta1.NamespacedCloudProfile) any { return p.Spec },
		CopySpec:   func(to, from *corev1beta1.NamespacedCloudProfile) { to.Spec = from.Spec },
		CopyStatus: func(to, from *corev1beta1.NamespacedCloudProfile) { to.Status = from.Status },
		Columns: []Column[*corev1beta1.NamespacedCloudProfile]{
			{Name: "Parent Name", Description: "The profile that this one extends.", Cell: func(p *corev1beta1.NamespacedCloudProfile) any { return p.Spec.Parent.Name }},
			{Name: "Parent Kind", Description: "The kind of the profile that this one extends.", Cell: func(p *corev1beta1.NamespacedCloudProfile) any { return p.Spec.Parent.Kind }},
		},
		Validate:       corev1beta1.ValidateNamespacedCloudProfile,
		ValidateUpdate: corev1beta1.ValidateNamespacedCloudProfileUpdate,
		Warnings:       corev1beta1.NamespacedCloudProfileWarnings,
	}
}
