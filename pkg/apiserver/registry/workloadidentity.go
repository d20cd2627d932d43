package registry

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/names"

	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

func workloadIdentities() Served {
	type identity = *securityv1alpha1.WorkloadIdentity
	return &Kind[identity]{
		Version: securityv1alpha1.SchemeGroupVersion, Plural: "workloadidentities", Singular: "workloadidentity",
		Namespaced:       true,
		ShortNames:       []string{"wi"},
		New:              func() identity { return &securityv1alpha1.WorkloadIdentity{} },
		NewList:          func() runtime.Object { return &securityv1alpha1.WorkloadIdentityList{} },
		Spec:             func(w identity) any { return w.Spec },
		PrepareForCreate: func(_ context.Context, w identity) { setSubject(w) },
		PrepareForUpdate: func(_ context.Context, w, old identity) { w.Status = old.Status },
		Columns: []Column[identity]{
			{
				Name: "Sub", Description: "The subject of issued tokens.",
				Cell: func(w identity) any { return w.Status.Sub },
			},
			{
				Name: "Type", Description: "The system that accepts the tokens.",
				Cell: func(w identity) any { return w.Spec.TargetSystem.Type },
			},
			{
				Name: "Audiences", Description: "The audiences of issued tokens.",
				Cell: func(w identity) any { return strings.Join(w.Spec.Audiences, ", ") },
			},
		},
		Validate:       securityv1alpha1.ValidateWorkloadIdentity,
		ValidateUpdate: securityv1alpha1.ValidateWorkloadIdentityUpdate,
	}
}

// setSubject derives the subject of tokens, which nobody else may set. Name and UID, which the server would give later,
// are given here when they are missing, so that the subject is validated as it is stored.
func setSubject(identity *securityv1alpha1.WorkloadIdentity) {
	identity.UID = uuid.NewUUID()
	if identity.Name == "" {
		identity.Name = names.SimpleNameGenerator.GenerateName(identity.GenerateName)
	}
	identity.Status.Sub = securityv1alpha1.WorkloadIdentitySubjectPrefix + identity.Namespace + ":" + identity.Name +
		":" + string(identity.UID)
}
