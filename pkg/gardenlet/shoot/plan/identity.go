package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Identity says where a shoot is.
type Identity struct {
	// Namespace is the technical ID: the name of the control plane's namespace in the seed.
	Namespace string
	// ShootName, ShootNamespace and ProjectName say where the Shoot is in the garden; UID which one it is.
	ShootName, ShootNamespace, ProjectName, UID string
}

// NewIdentity returns where a Shoot of a project is.
func NewIdentity(project string, shoot *gardencorev1beta1.Shoot) Identity {
	return Identity{
		Namespace: TechnicalID(project, shoot), ShootName: shoot.Name, ShootNamespace: shoot.Namespace,
		ProjectName: project, UID: string(shoot.UID),
	}
}

// Key returns the key of an object in the control plane's namespace.
func (i Identity) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: name}
}

// Meta returns the metadata of an object in the control plane's namespace.
func (i Identity) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: i.Namespace, Name: name}
}

// GardenMeta is the metadata of an object that belongs to the shoot in the garden.
func (i Identity) GardenMeta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: i.ShootNamespace, Name: i.ShootName + "." + suffix}
}

// BackupEntry is the name of the shoot's BackupEntry.
func (i Identity) BackupEntry() string { return gardencorev1beta1.BackupEntryName(i.Namespace, i.UID) }

// GardenLabels are the labels of such an object.
func (i Identity) GardenLabels(role string) map[string]string {
	return map[string]string{gardencorev1beta1.GardenRole: role, gardencorev1beta1.LabelShootName: i.ShootName}
}

// TechnicalID is the name of the control plane's namespace. Once in the status it stays.
func TechnicalID(project string, shoot *gardencorev1beta1.Shoot) string {
	if shoot.Status.TechnicalID != "" {
		return shoot.Status.TechnicalID
	}
	return gardencorev1beta1.TechnicalID(project, shoot.Name)
}
