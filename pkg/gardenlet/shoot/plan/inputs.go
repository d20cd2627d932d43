package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

// Inputs is everything that decides about a shoot. A Plan is made from nothing else. All of it comes from the garden,
// except whether the shoot is asleep, what its etcd is asked to restore, the nodes of the seed, and gardenlet's own
// settings.
type Inputs struct {
	Shoot        *gardencorev1beta1.Shoot
	Seed         *gardencorev1beta1.Seed
	CloudProfile *gardencorev1beta1.CloudProfile
	// ProjectName is the name of the shoot's project.
	ProjectName string
	// Credentials is the object of the garden that the binding refers to; nil without workers.
	Credentials *corev1.ObjectReference
	// Registrations are the ControllerRegistrations of the garden.
	Registrations []gardencorev1beta1.ControllerRegistration
	// Files are what the settings of kube-apiserver refer to.
	Files apiserverconfig.Files
	// InsecureKubeconfigs says that kubeconfigs among the files may name a proxy and turn off verification.
	InsecureKubeconfigs bool
	// GardenIdentity is the identity of the garden.
	GardenIdentity string
	// EgressExceptions are what addresses of users may lead to although it is private or the seed's.
	EgressExceptions []egress.Allowance
	// Asleep says that the shoot has no machines any more, and that its API server is stopped or about to be.
	Asleep bool
	// IsSeedSingle says that the seed has one node at most that takes pods of control planes. It is known for highly
	// available ones only.
	IsSeedSingle bool
	// ETCDBackup says how etcd is backed up, where the seed has an object store.
	ETCDBackup component.ETCDBackup
	// Restore is the point in time that etcd-main was last asked to restore.
	Restore Restore
}

// Restore is a point in time that etcd-main is asked to restore; the zero value if it never was.
type Restore struct {
	request.Restore
	// Settled says that it is known what came of it.
	Settled bool
}

// APIServerPath is where a Shoot has the settings of kube-apiserver.
var APIServerPath = field.NewPath("spec", "kubernetes", "kubeAPIServer")
