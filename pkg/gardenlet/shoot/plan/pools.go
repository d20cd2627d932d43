package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// Pool is a worker pool.
type Pool struct {
	Worker gardencorev1beta1.Worker
	// KubernetesVersion of its kubelets.
	KubernetesVersion string
	// KubeletImage holds the kubelet.
	KubeletImage string
	// Kubelet are the user's settings, those of the pool before those of the shoot.
	Kubelet *gardencorev1beta1.KubeletConfig
	// ImageName and ImageVersion of the machines' image.
	ImageName, ImageVersion string
	// TrustedCertificates (PEM) are those of the profile and of the pool.
	TrustedCertificates string
	// MachineControllerManager are the settings of the pool, then those of the profile for its machine type; may be
	// nil.
	MachineControllerManager *gardencorev1beta1.MachineControllerManagerSettings
	// MachineType of the profile; nil if the profile has none of that name.
	MachineType *gardencorev1beta1.MachineType
	// SecretName is the Secret of node-agent, and the key of the pool: when it changes the machines are replaced.
	SecretName string
	// InPlace is what machines take over only once they are drained; nil for pools whose machines are replaced.
	InPlace *InPlace
}

// InPlace is what an update in place brings to a machine, beside what any running machine takes over.
type InPlace struct {
	// Hash names all of it. Where it is another one, machines are drained and updated.
	Hash string
	// AuthoritiesInitiated and KeyInitiated are when the rotations began that the machines are to know of: that of the
	// certificate authorities, and that of the key for tokens of service accounts; nil if there is none.
	AuthoritiesInitiated, KeyInitiated *metav1.Time
}

// UpdatesInPlace says whether machines of some pool are updated, and not replaced.
func (p *Plan) UpdatesInPlace() bool {
	return slices.ContainsFunc(p.Pools, func(pool Pool) bool { return pool.InPlace != nil })
}

// planPools decides about the worker pools.
func (p *Plan) planPools(in *Inputs, images imagevector.Vector) error {
	for i, worker := range in.Shoot.Spec.Provider.Workers {
		pool, err := planPool(in, worker, images)
		if err != nil {
			return fmt.Errorf("spec.provider.workers[%d]: %w", i, err)
		}
		p.Pools = append(p.Pools, pool)
		if !AllowsSystemComponents(worker) {
			continue
		}
		for _, taint := range worker.Taints {
			p.SystemPoolTolerations = append(p.SystemPoolTolerations, corev1.Toleration{
				Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect,
			})
		}
	}
	return nil
}

// planPool decides about one worker pool.
func planPool(in *Inputs, worker gardencorev1beta1.Worker, images imagevector.Vector) (Pool, error) {
	pool := Pool{
		Worker: worker, KubernetesVersion: in.Shoot.Spec.Kubernetes.Version, Kubelet: in.Shoot.Spec.Kubernetes.Kubelet,
	}
	if own := worker.Kubernetes; own != nil {
		pool.KubernetesVersion = ptr.Deref(own.Version, pool.KubernetesVersion)
		if own.Kubelet != nil {
			pool.Kubelet = own.Kubelet
		}
	}
	if worker.Machine.Image == nil || ptr.Deref(worker.Machine.Image.Version, "") == "" {
		return pool, fmt.Errorf("machine.image has no name or version")
	}
	pool.ImageName, pool.ImageVersion = worker.Machine.Image.Name, *worker.Machine.Image.Version
	for i, machineType := range in.CloudProfile.Spec.MachineTypes {
		if machineType.Name == worker.Machine.Type {
			pool.MachineType = &in.CloudProfile.Spec.MachineTypes[i]
		}
	}
	pool.MachineControllerManager = machineControllerManager(worker.MachineControllerManager, pool.MachineType)
	pool.TrustedCertificates = certificates(in.CloudProfile.Spec.CABundle, worker.CABundle)
	image, err := images.Find("kubelet", imagevector.Version(pool.KubernetesVersion))
	if err != nil {
		return pool, err
	}
	pool.KubeletImage = image.String()
	if pool.InPlace, err = planInPlace(in.Shoot, pool); err != nil {
		return pool, err
	}
	pool.SecretName, err = poolKey(in.Shoot, pool)
	return pool, err
}

// planInPlace decides what machines of a pool that is updated in place are to take over once they are drained: what
// other pools get new machines for, but for what such a pool cannot change.
func planInPlace(shoot *gardencorev1beta1.Shoot, pool Pool) (*InPlace, error) {
	if !gardencorev1beta1.IsUpdatedInPlace(&pool.Worker) {
		return nil, nil
	}
	minor, err := minorVersion(pool.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	kubelet, err := rollingKubeletSettings(pool.Kubelet)
	if err != nil {
		return nil, err
	}
	parts := append([]string{pool.Worker.Name, minor}, rotations(shoot, pool.Worker.Name)...)
	planned := &InPlace{Hash: shortHash(append(parts, kubelet))}
	if credentials := shoot.Status.Credentials; credentials != nil {
		planned.AuthoritiesInitiated = rotation.InitiatedFor(credentials.Rotation, rotation.CertificateAuthorities,
			pool.Worker.Name)
		planned.KeyInitiated = rotation.InitiatedFor(credentials.Rotation, rotation.ServiceAccountKey,
			pool.Worker.Name)
	}
	return planned, nil
}

// AllowsSystemComponents says whether system components may run on a pool.
func AllowsSystemComponents(worker gardencorev1beta1.Worker) bool {
	return worker.SystemComponents == nil || worker.SystemComponents.Allow
}

// machineControllerManager completes the settings of a pool by those of its machine type, which may take longer than
// others to become a node.
func machineControllerManager(pool *gardencorev1beta1.MachineControllerManagerSettings,
	machineType *gardencorev1beta1.MachineType) *gardencorev1beta1.MachineControllerManagerSettings {
	if machineType == nil || machineType.MachineControllerManager == nil ||
		machineType.MachineControllerManager.MachineCreationTimeout == nil {
		return pool
	}
	settings := &gardencorev1beta1.MachineControllerManagerSettings{}
	if pool != nil {
		settings = pool.DeepCopy()
	}
	settings.MachineCreationTimeout = cmp.Or(settings.MachineCreationTimeout,
		machineType.MachineControllerManager.MachineCreationTimeout)
	return settings
}

// certificates joins bundles in PEM.
func certificates(bundles ...*string) string {
	var all strings.Builder
	for _, bundle := range bundles {
		if trimmed := strings.TrimSpace(ptr.Deref(bundle, "")); trimmed != "" {
			all.WriteString(trimmed + "\n")
		}
	}
	return all.String()
}

// poolKey names a pool together with everything whose change calls for new machines.
func poolKey(shoot *gardencorev1beta1.Shoot, pool Pool) (string, error) {
	name := "gardener-node-agent-" + pool.Worker.Name
	if pool.InPlace != nil {
		return name, nil
	}
	minor, err := minorVersion(pool.KubernetesVersion)
	if err != nil {
		return "", err
	}
	parts := []string{minor, pool.Worker.Machine.Type, pool.ImageName, pool.ImageVersion}
	if volume := pool.Worker.Volume; volume != nil {
		parts = append(parts, volume.VolumeSize, ptr.Deref(volume.Type, ""))
	}
	if cri := pool.Worker.CRI; cri != nil {
		parts = append(parts, string(cri.Name))
	}
	parts = append(parts, rotations(shoot, pool.Worker.Name)...)
	kubelet, err := rollingKubeletSettings(pool.Kubelet)
	if err != nil {
		return "", err
	}
	return name + "-" + shortHash(append(parts, kubelet)), nil
}

// minorVersion returns a version without its patch.
func minorVersion(kubernetes string) (string, error) {
	version, err := semver.NewVersion(kubernetes)
	if err != nil {
		return "", fmt.Errorf("kubernetes version %q: %w", kubernetes, err)
	}
	return fmt.Sprintf("%d.%d", version.Major(), version.Minor()), nil
}

// shortHash is a hash of texts for names.
func shortHash(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// rollingKubeletSettings renders the settings that a running node cannot take over.
func rollingKubeletSettings(kubelet *gardencorev1beta1.KubeletConfig) (string, error) {
	if kubelet == nil {
		return "", nil
	}
	rendered, err := json.Marshal([]any{kubelet.KubeReserved, kubelet.EvictionHard, kubelet.CPUManagerPolicy})
	return string(rendered), err
}
