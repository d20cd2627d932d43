package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// notOfferedToGardenlets refuses what a gardenlet that deploys itself cannot do.
func notOfferedToGardenlets(spec *GardenletSpec, path *field.Path) field.ErrorList {
	deployment, at := &spec.Deployment, path.Child("deployment")
	var errs field.ErrorList
	for _, value := range []struct {
		asked        bool
		path         *field.Path
		why, instead string
	}{
		{deployment.ReplicaCount != nil && *deployment.ReplicaCount == 0, at.Child("replicaCount"),
			"a gardenlet that does not run cannot deploy itself again",
			"scale Deployment garden/gardenlet of the seed to end it, and leave this out"},
		{deployment.ServiceAccountName != nil, at.Child("serviceAccountName"),
			"gardenlet would lose its rights in the seed half-way",
			"leave it out; it keeps the ServiceAccount that it has"},
		{deployment.ComponentImageVectorOverwrite != nil, at.Child("componentImageVectorOverwrite"),
			"nothing that gardenlet deploys has an image vector of its own", "name the images in imageVectorOverwrite"},
		{spec.KubeconfigSecretRef != nil, path.Child("kubeconfigSecretRef"),
			"nobody installs gardenlets into other clusters",
			"install gardenlet's chart in the seed for the first time yourself, and leave this out"},
	} {
		if value.asked {
			errs = append(errs, gardencorev1beta1.NotOffered(value.path, value.why, value.instead))
		}
	}
	return errs
}

// operationNotOffered refuses operations of Gardenlets that nobody carries out.
func operationNotOffered(operation string) field.ErrorList {
	switch operation {
	case OperationForceRedeploy:
		return field.ErrorList{gardencorev1beta1.NotOffered(operationPath(), "nobody installs gardenlets from outside",
			"install gardenlet's chart in the seed yourself if gardenlet does not run there, or ask for reconcile "+
				"if it does")}
	case gardencorev1beta1.GardenerOperationRenewKubeconfig:
		return field.ErrorList{gardencorev1beta1.NotOffered(operationPath(),
			"gardenlet renews its certificate by itself",
			"delete its kubeconfig and restart it with a new bootstrap kubeconfig if it has lost its access")}
	}
	return nil
}
