package component

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// A pod beside the control plane of a shoot reaches the shoot's API server by the kubeconfig that all of them share
// and a token of its own, for a service account of the shoot. resource-manager writes the token into a Secret that
// asks for it. Kubeconfig and token lie in one folder.
const (
	// ShootAccessDir is the folder.
	ShootAccessDir = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	// ShootKubeconfigFile is where the pod finds the kubeconfig.
	ShootKubeconfigFile = ShootAccessDir + "/kubeconfig"
	// ShootTokenFile is where the kubeconfig looks for the token.
	ShootTokenFile = ShootAccessDir + "/token"

	shootAccessVolume = "kubeconfig"
	shootAccessPrefix = "shoot-access-"
	// kubeconfigKey is the key of kubeconfigs in Secrets, as package secrets, which is above this one, writes them.
	kubeconfigKey = "kubeconfig"
)

// ShootAccessSecret is the name of the Secret with the token of a part of the control plane.
func ShootAccessSecret(name string) string { return shootAccessPrefix + name }

// RequestShootToken makes a Secret ask for a token of the service account of that name in the namespace kube-system
// of the shoot. Labels and annotations of others stay.
func RequestShootToken(secret *corev1.Secret, account string) {
	secret.Labels = Merge(secret.Labels, map[string]string{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		resourcesv1alpha1.ResourceManagerClass:   "shoot",
	})
	secret.Annotations = Merge(secret.Annotations, map[string]string{
		resourcesv1alpha1.ServiceAccountName:      account,
		resourcesv1alpha1.ServiceAccountNamespace: metav1.NamespaceSystem,
	})
}

// ShootAccessFiles are the files of the folder: the kubeconfig, which is in the Secret of that name, and the token of
// a part of the control plane.
func ShootAccessFiles(kubeconfigSecret, name string) []SecretFiles {
	return []SecretFiles{
		{Secret: kubeconfigSecret, Files: map[string]string{kubeconfigKey: path.Base(ShootKubeconfigFile)}},
		{
			Secret: ShootAccessSecret(name),
			Files:  map[string]string{resourcesv1alpha1.DataKeyToken: path.Base(ShootTokenFile)},
		},
	}
}

// MountShootAccess gives all containers of a pod the folder. They may read it and not change it.
func MountShootAccess(pod *corev1.PodSpec, kubeconfigSecret, name string) {
	volume := ProjectedSecrets(shootAccessVolume, ShootAccessFiles(kubeconfigSecret, name)...)
	pod.Volumes = append([]corev1.Volume{volume}, pod.Volumes...)
	mount := corev1.VolumeMount{Name: shootAccessVolume, MountPath: ShootAccessDir, ReadOnly: true}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.VolumeMounts = append([]corev1.VolumeMount{mount}, container.VolumeMounts...)
	}
}
