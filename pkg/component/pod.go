package component

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NonRootID is the user and group that the containers of a control plane run as.
const NonRootID int64 = 65532

// LabelPodSecurity, on a namespace, is the level that the API server holds its pods to.
const LabelPodSecurity = "pod-security.kubernetes.io/enforce"

// Values of LabelPodSecurity.
const (
	PodSecurityRestricted = "restricted"
	PodSecurityPrivileged = "privileged"
)

// Labels returns the labels of a part of a control plane.
func Labels(app, role string) map[string]string {
	return map[string]string{LabelApp: app, LabelRole: role}
}

// WithControlPlaneRole adds the label that every object of a control plane carries.
func WithControlPlaneRole(labels map[string]string) map[string]string {
	return Merge(labels, map[string]string{LabelGardenRole: GardenRoleControlPlane})
}

// Merge returns the union of maps; later ones win.
func Merge(parts ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, part := range parts {
		maps.Copy(result, part)
	}
	return result
}

// HardenedPod sets what every pod of a control plane has: a priority class, which its registry decides, no token for
// the seed's API, no environment variables of services, no root, the runtime's system call filter. Files of volumes
// belong to the group NonRootID.
func HardenedPod(priorityClass string, spec corev1.PodSpec) corev1.PodSpec {
	spec.PriorityClassName = priorityClass
	spec.AutomountServiceAccountToken = new(false)
	spec.EnableServiceLinks = new(false)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	spec.SecurityContext.RunAsNonRoot = new(true)
	spec.SecurityContext.RunAsUser = new(NonRootID)
	spec.SecurityContext.RunAsGroup = new(NonRootID)
	spec.SecurityContext.FSGroup = new(NonRootID)
	spec.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	return spec
}

// HardenedContainer returns a security context without privileges, capabilities and a writable root.
func HardenedContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// Requests returns resource requests; the control plane sets no CPU limits, and memory limits where a part is known to
// stay below, or where users of the cluster could fill it (LimitMemory).
func Requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// AtLeast returns the requests, raised to the least ones that are given. What is given only is requested too.
func AtLeast(requirements corev1.ResourceRequirements, least corev1.ResourceList) corev1.ResourceRequirements {
	requests := maps.Clone(requirements.Requests)
	for name, quantity := range least {
		if own, found := requests[name]; !found || own.Cmp(quantity) < 0 {
			requests[name] = quantity
		}
	}
	requirements.Requests = requests
	return requirements
}

// LimitMemory adds a limit of memory for what users of a cluster can fill, such that they end their own control plane
// and no neighbour. It is twice what is requested where that is more.
func LimitMemory(requirements corev1.ResourceRequirements, most string) corev1.ResourceRequirements {
	limit, twice := resource.MustParse(most), requirements.Requests.Memory().DeepCopy()
	if twice.Mul(2); twice.Cmp(limit) > 0 {
		limit = twice
	}
	requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
	return requirements
}

// GarbageCollection returns the environment of a Go program that is to need little memory, and still less near its
// limit, rather than be ended. Memory is what a control plane costs most of; the garbage collector's CPU is cheap
// beside it.
func GarbageCollection(requirements corev1.ResourceRequirements) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "GOGC", Value: "50"},
		{Name: "GOMEMLIMIT", Value: strconv.FormatInt(requirements.Limits.Memory().Value()/10*9, 10)},
	}
}

// SecretFiles are keys of one Secret and the paths below a projected volume's mount that they appear at.
type SecretFiles struct {
	// Secret is its name.
	Secret string
	// Files are paths by key.
	Files map[string]string
}

// ProjectedSecrets returns one volume with files of many Secrets, readable by the pod's group only.
func ProjectedSecrets(name string, secrets ...SecretFiles) corev1.Volume {
	sources := make([]corev1.VolumeProjection, 0, len(secrets))
	for _, secret := range secrets {
		projection := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret.Secret}}
		for _, key := range slices.Sorted(maps.Keys(secret.Files)) {
			projection.Items = append(projection.Items, corev1.KeyToPath{Key: key, Path: secret.Files[key]})
		}
		sources = append(sources, corev1.VolumeProjection{Secret: projection})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: sources, DefaultMode: new(int32(0o440)),
	}}}
}

// SurgeStrategy brings up a new pod before the old one goes, so that one replica is enough for a rollout without a gap.
func SurgeStrategy() appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
		},
	}
}
