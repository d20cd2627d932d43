package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What is not offered. The API has every field of the published one, so that objects of others can be read; a value
// that asks for something that Trellis does not do is refused, with the reason and what to do instead. Objects that had
// such a value before it was refused keep it and can be changed otherwise.

// NotOffered refuses a value: why, and what to do instead.
func NotOffered(path *field.Path, why, instead string) *field.Error {
	return field.Forbidden(path, "not offered: "+why+"; "+instead)
}

// refuseIf is NotOffered for a value that asks for something.
func refuseIf(asked bool, path *field.Path, why, instead string) field.ErrorList {
	if !asked {
		return nil
	}
	return field.ErrorList{NotOffered(path, why, instead)}
}

// selfHostedNotOffered refuses an object that a self-hosted shoot, instead of a seed, would care for.
func selfHostedNotOffered(shootRef *corev1.ObjectReference) field.ErrorList {
	return refuseIf(shootRef != nil, field.NewPath("spec", "shootRef"),
		"control planes run in seeds, there are no self-hosted shoots", "name a seed")
}

// NewlyRefused leaves out what was refused of the object before its change.
func NewlyRefused(refused, before field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, err := range before {
		known[err.Error()] = true
	}
	return slices.DeleteFunc(refused, func(err *field.Error) bool { return known[err.Error()] })
}
