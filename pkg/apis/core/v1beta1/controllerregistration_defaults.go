package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaultsControllerRegistration sets what a ControllerRegistration has when nothing is said.
func SetDefaultsControllerRegistration(registration *ControllerRegistration) {
	for i := range registration.Spec.Resources {
		setDefaultsControllerResource(&registration.Spec.Resources[i])
	}
	if deployment := registration.Spec.Deployment; deployment != nil {
		setDefault(&deployment.Policy, ControllerDeploymentPolicyOnDemand)
	}
}

func setDefaultsControllerResource(resource *ControllerResource) {
	setDefault(&resource.Primary, true)
	if resource.Kind != extensionKind {
		return
	}
	setDefault(&resource.ReconcileTimeout, metav1.Duration{Duration: 3 * time.Minute})
	setDefault(&resource.WorkerlessSupported, false)
	if len(resource.ClusterCompatibility) == 0 {
		resource.ClusterCompatibility = []ClusterType{ClusterTypeShoot}
	}
	lifecycle := setBlock(&resource.Lifecycle)
	setDefault(&lifecycle.Reconcile, AfterKubeAPIServer)
	setDefault(&lifecycle.Delete, BeforeKubeAPIServer)
	setDefault(&lifecycle.Migrate, BeforeKubeAPIServer)
}
