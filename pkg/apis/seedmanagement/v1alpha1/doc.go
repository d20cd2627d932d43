// Package v1alpha1 holds the kinds of seedmanagement.gardener.cloud/v1alpha1: shoots that are made seeds (ManagedSeed),
// sets of them (ManagedSeedSet), and gardenlets of seeds that are not shoots (Gardenlet). They all lie in the namespace
// garden. Beside the types of a kind lie its defaults and its validation.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.seedmanagement.v1alpha1
// +groupName=seedmanagement.gardener.cloud
package v1alpha1
