package registry

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func quotas() Served {
	return &Kind[*gardencorev1beta1.Quota]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "quotas", Singular: "quota", Namespaced: true,
		ShortNames: []string{"squota"},
		New:        func() *gardencorev1beta1.Quota { return &gardencorev1beta1.Quota{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.QuotaList{} },
		Columns: []Column[*gardencorev1beta1.Quota]{
			{
				Name: "Scope", Description: "What the quota limits.",
				Cell: func(q *gardencorev1beta1.Quota) any { return q.Spec.Scope.Kind },
			},
			{Name: "Cluster Lifetime", Description: "The days that a cluster may live.",
				Cell: func(q *gardencorev1beta1.Quota) any {
					if q.Spec.ClusterLifetimeDays == nil {
						return none
					}
					return strconv.Itoa(int(*q.Spec.ClusterLifetimeDays))
				}},
		},
		Validate:       gardencorev1beta1.ValidateQuota,
		ValidateUpdate: gardencorev1beta1.ValidateQuotaUpdate,
	}
}

func exposureClasses() Served {
	return &Kind[*gardencorev1beta1.ExposureClass]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "exposureclasses", Singular: "exposureclass",
		ShortNames: []string{"expclass", "expcls"},
		New:        func() *gardencorev1beta1.ExposureClass { return &gardencorev1beta1.ExposureClass{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.ExposureClassList{} },
		Columns: []Column[*gardencorev1beta1.ExposureClass]{
			{
				Name: "Handler", Description: "What exposes the control planes.",
				Cell: func(e *gardencorev1beta1.ExposureClass) any { return e.Handler },
			},
		},
		Validate:       gardencorev1beta1.ValidateExposureClass,
		ValidateUpdate: gardencorev1beta1.ValidateExposureClassUpdate,
	}
}

func internalSecrets() Served {
	return &Kind[*gardencorev1beta1.InternalSecret]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "internalsecrets", Singular: "internalsecret",
		Namespaced:       true,
		ShortNames:       []string{"ins"},
		New:              func() *gardencorev1beta1.InternalSecret { return &gardencorev1beta1.InternalSecret{} },
		NewList:          func() runtime.Object { return &gardencorev1beta1.InternalSecretList{} },
		PrepareForCreate: func(_ context.Context, s *gardencorev1beta1.InternalSecret) { mergeStringData(s) },
		PrepareForUpdate: func(_ context.Context, s, old *gardencorev1beta1.InternalSecret) {
			if s.Type == "" {
				s.Type = old.Type
			}
			mergeStringData(s)
		},
		Columns: []Column[*gardencorev1beta1.InternalSecret]{
			{
				Name: "Type", Description: "The type of the secret.",
				Cell: func(s *gardencorev1beta1.InternalSecret) any { return string(s.Type) },
			},
			{
				Name: "Data", Type: "integer", Description: "The number of keys.",
				Cell: func(s *gardencorev1beta1.InternalSecret) any { return int64(len(s.Data)) },
			},
		},
		Fields: map[string]func(*gardencorev1beta1.InternalSecret) string{
			"type": func(s *gardencorev1beta1.InternalSecret) string { return string(s.Type) },
		},
		Validate:       gardencorev1beta1.ValidateInternalSecret,
		ValidateUpdate: gardencorev1beta1.ValidateInternalSecretUpdate,
	}
}

// mergeStringData moves plain text into the data, as for v1 Secrets, and completes the type.
func mergeStringData(secret *gardencorev1beta1.InternalSecret) {
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func shootStates() Served {
	return &Kind[*gardencorev1beta1.ShootState]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "shootstates", Singular: "shootstate", Namespaced: true,
		New:     func() *gardencorev1beta1.ShootState { return &gardencorev1beta1.ShootState{} },
		NewList: func() runtime.Object { return &gardencorev1beta1.ShootStateList{} },
		Spec:    func(s *gardencorev1beta1.ShootState) any { return s.Spec },
		Columns: []Column[*gardencorev1beta1.ShootState]{
			{
				Name: "Gardener Data", Type: "integer", Description: "The number of entries of gardenlet.",
				Cell: func(s *gardencorev1beta1.ShootState) any { return int64(len(s.Spec.Gardener)) },
			},
			{
				Name: "Extension States", Type: "integer", Description: "The number of states of extensions.",
				Cell: func(s *gardencorev1beta1.ShootState) any { return int64(len(s.Spec.Extensions)) },
			},
		},
		Validate:       gardencorev1beta1.ValidateShootState,
		ValidateUpdate: gardencorev1beta1.ValidateShootStateUpdate,
	}
}
