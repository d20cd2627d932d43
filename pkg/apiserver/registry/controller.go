package registry

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func controllerRegistrations() Served {
	return &Kind[*gardencorev1beta1.ControllerRegistration]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "controllerregistrations",
		Singular:   "controllerregistration",
		ShortNames: []string{"ctrlreg"},
		New: func() *gardencorev1beta1.ControllerRegistration {
			return &gardencorev1beta1.ControllerRegistration{}
		},
		NewList: func() runtime.Object { return &gardencorev1beta1.ControllerRegistrationList{} },
		Spec:    func(r *gardencorev1beta1.ControllerRegistration) any { return r.Spec },
		Columns: []Column[*gardencorev1beta1.ControllerRegistration]{
			{Name: "Resources", Description: "What the extension takes care of.",
				Cell: func(r *gardencorev1beta1.ControllerRegistration) any {
					var resources []string
					for _, resource := range r.Spec.Resources {
						resources = append(resources, resource.Kind+"/"+resource.Type)
					}
					return strings.Join(resources, ", ")
				}},
		},
		Validate:       gardencorev1beta1.ValidateControllerRegistration,
		ValidateUpdate: gardencorev1beta1.ValidateControllerRegistrationUpdate,
	}
}

// controllerDeployments is served in two versions, see ControllerDeploymentsV1.
func controllerDeployments() *Kind[*gardencorev1beta1.ControllerDeployment] {
	return &Kind[*gardencorev1beta1.ControllerDeployment]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "controllerdeployments",
		Singular:   "controllerdeployment",
		ShortNames: []string{"ctrldeploy"},
		New:        func() *gardencorev1beta1.ControllerDeployment { return &gardencorev1beta1.ControllerDeployment{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.ControllerDeploymentList{} },
		Spec: func(d *gardencorev1beta1.ControllerDeployment) any {
			return []any{d.Type, d.ProviderConfig, d.InjectGardenKubeconfig}
		},
		Columns: []Column[*gardencorev1beta1.ControllerDeployment]{
			{
				Name: "Type", Description: "How the extension is deployed.",
				Cell: func(d *gardencorev1beta1.ControllerDeployment) any { return d.Type },
			},
		},
		Validate:       validateControllerDeployment,
		ValidateUpdate: validateControllerDeploymentUpdate,
	}
}

func controllerInstallations() Served {
	type installation = *gardencorev1beta1.ControllerInstallation
	condition := func(name gardencorev1beta1.ConditionType) func(installation) any {
		return func(i installation) any { return conditionCell(i.Status.Conditions, name) }
	}
	return &Kind[installation]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "controllerinstallations",
		Singular:   "controllerinstallation",
		ShortNames: []string{"ctrlinst"},
		New:        func() installation { return &gardencorev1beta1.ControllerInstallation{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.ControllerInstallationList{} },
		Spec:       func(i installation) any { return i.Spec },
		CopySpec:   func(to, from installation) { to.Spec = from.Spec },
		CopyStatus: func(to, from installation) { to.Status = from.Status },
		Columns: []Column[installation]{
			{
				Name: "Registration", Description: "The extension.",
				Cell: func(i installation) any { return i.Spec.RegistrationRef.Name },
			},
			{Name: "Cluster", Description: "The seed or shoot in which it is installed.",
				Cell: func(i installation) any {
					return refName(i.Spec.SeedRef) + refName(i.Spec.ShootRef)
				}},
			{Name: "Valid", Description: "Whether the deployment can be rendered.", Cell: condition("Valid")},
			{Name: "Installed", Description: "Whether the deployment is applied.", Cell: condition("Installed")},
			{Name: "Healthy", Description: "Whether what was deployed is healthy.", Cell: condition("Healthy")},
			{
				Name: "Progressing", Description: "Whether what was deployed is being rolled out.",
				Cell: condition("Progressing"),
			},
		},
		Fields: map[string]func(installation) string{
			"spec.registrationRef.name": func(i installation) string { return i.Spec.RegistrationRef.Name },
			"spec.seedRef.name":         func(i installation) string { return refName(i.Spec.SeedRef) },
			"spec.shootRef.name":        func(i installation) string { return refName(i.Spec.ShootRef) },
			"spec.shootRef.namespace":   func(i installation) string { return refNamespace(i.Spec.ShootRef) },
		},
		Index:                "spec.seedRef.name",
		Validate:             gardencorev1beta1.ValidateNewControllerInstallation,
		ValidateUpdate:       gardencorev1beta1.ValidateControllerInstallationUpdate,
		ValidateStatusUpdate: gardencorev1beta1.ValidateControllerInstallationStatusUpdate,
	}
}

func refName(reference *corev1.ObjectReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

func refNamespace(reference *corev1.ObjectReference) string {
	if reference == nil {
		return ""
	}
	return reference.Namespace
}
