package terminal

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
)

const (
	// Label marks the Namespaces of terminals.
	Label = "dashboard.trellis.garden/terminal"
	// ExpiresAnnotation of a Namespace says when it is over unless somebody renews that, in seconds since 1970.
	ExpiresAnnotation = "dashboard.trellis.garden/expires"
	// UserAnnotation says whose terminal it is.
	UserAnnotation = "dashboard.trellis.garden/user"

	namePrefix = "terminal-"
	// name of what is in the Namespace, once each.
	name = "terminal"
	// tokenLifetime is the shortest that Kubernetes has. kubelet renews the token in the pod.
	tokenLifetime = 10 * time.Minute
	tokenDir      = "/var/run/secrets/kubernetes.io/serviceaccount"
	home          = "/home/terminal"
)

// administrator is the role of whoever may have an administrator's kubeconfig.
var administrator = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}

// newName is nobody's yet.
func newName() string { return namePrefix + strings.ToLower(rand.Text()[:12]) }

// expiresAt is the value of the annotation.
func expiresAt(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// isOver says whether nobody renews a Namespace any more. One that does not say until when is over when no terminal of
// its age is there any more.
func isOver(namespace *metav1.PartialObjectMetadata, now time.Time) bool {
	seconds, err := strconv.ParseInt(namespace.Annotations[ExpiresAnnotation], 10, 64)
	if err != nil {
		return now.Sub(namespace.CreationTimestamp.Time) > lifetime+lease
	}
	return now.Unix() >= seconds
}

// namespaceFor is where a terminal's objects are. All that there is of it goes with it.
func namespaceFor(terminal, user string, expires time.Time) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: terminal,
			Labels: map[string]string{
				Label: "true", component.LabelPodSecurity: component.PodSecurityRestricted,
			},
			Annotations: map[string]string{ExpiresAnnotation: expiresAt(expires), UserAnnotation: user},
		},
	}
}

// isTerminal says whether a Namespace was made for a terminal. A label alone can be put on others.
func isTerminal(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Labels[Label] == "true" && strings.HasPrefix(namespace.Name, namePrefix)
}

func serviceAccount(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   metav1.ObjectMeta{Namespace: namespace, Name: name},
		AutomountServiceAccountToken: new(false),
	}
}

// binding gives the account of a terminal an administrator's rights. The terminal's Namespace owns it. Kubernetes
// refuses it to whoever has less.
type binding struct {
	path   string
	object client.Object
}

// keepersBinding lets the pod remove its own Namespace.
func keepersBinding(of *corev1.Namespace) binding { return bindingIn(of.Name, of) }

// usersBinding is what the terminal is for: the whole cluster, or a namespace of it.
func usersBinding(of *corev1.Namespace, in string) binding {
	if in != "" {
		return bindingIn(in, of)
	}
	return binding{rbacPath + "/clusterrolebindings", &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: ownedBy(of), Subjects: account(of), RoleRef: administrator,
	}}
}

func bindingIn(namespace string, of *corev1.Namespace) binding {
	meta := ownedBy(of)
	meta.Namespace = namespace
	return binding{rbacPath + "/namespaces/" + namespace + "/rolebindings", &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta, Subjects: account(of), RoleRef: administrator,
	}}
}

func ownedBy(of *corev1.Namespace) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: of.Name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Namespace", Name: of.Name, UID: of.UID},
	}}
}

func account(of *corev1.Namespace) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: of.Name, Name: name}}
}

// keeper is what the pod runs: it removes the terminal when nobody renews it any more. That needs no server of the
// dashboard, and the Job makes another pod if this one is lost.
const keeper = `expires='jsonpath={.metadata.annotations.dashboard\.trellis\.garden/expires}'
while sleep 15; do
  until=$(kubectl get namespace "$TERMINAL" -o "$expires") || continue
  [ "$(date +%s)" -lt "${until:-0}" ] || kubectl delete namespace "$TERMINAL" --wait=false
done
`

// job keeps the pod of a terminal. The pod ends after the lifetime, whoever else is alive.
func job(namespace, image, workIn string, lifetime time.Duration) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(100)),
			Template:     corev1.PodTemplateSpec{Spec: podSpec(namespace, image, workIn, lifetime)},
		},
	}
}

func podSpec(namespace, image, workIn string, lifetime time.Duration) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: name, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
		ActiveDeadlineSeconds: new(int64(lifetime.Seconds())),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(component.NonRootID), RunAsGroup: new(component.NonRootID),
			FSGroup:        new(component.NonRootID),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: name, Image: image, Command: []string{"/bin/sh", "-c", keeper}, WorkingDir: home,
			Env: []corev1.EnvVar{
				{Name: "TERMINAL", Value: namespace}, {Name: "HOME", Value: home},
				{Name: "TERM", Value: "xterm-256color"}, {Name: "PS1", Value: `\w $ `},
				// Where kubectl works unless it is told.
				{Name: "POD_NAMESPACE", Value: workIn},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("48Mi"),
					// As much as the limit by default, and not every node tells of storage.
					corev1.ResourceEphemeralStorage: resource.MustParse("0"),
				},
				Limits: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
					corev1.ResourceEphemeralStorage: resource.MustParse("128Mi"),
				},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "home", MountPath: home}, {Name: "tmp", MountPath: "/tmp"},
				{Name: "token", MountPath: tokenDir, ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{scratch("home"), scratch("tmp"), token()},
	}
}

func scratch(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("64Mi"))},
	}}
}

// token is what kubectl finds in a pod, with a token that ends soon after the pod.
func token() corev1.Volume {
	return corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o440)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Path: "token", ExpirationSeconds: new(int64(tokenLifetime.Seconds())),
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

// maxText is how much of what a cluster says is told to others, in characters.
const maxText = 500

func cut(text string) string {
	if characters := []rune(text); len(characters) > maxText {
		return string(characters[:maxText]) + "…"
	}
	return text
}

// eventOf tells of a terminal, beside what Kubernetes keeps of objects without a namespace.
func eventOf(of *corev1.Namespace, reason, message string, now time.Time) *corev1.Event {
	const eventsNamespace = metav1.NamespaceDefault
	return &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: eventsNamespace, Name: of.Name + "." + strings.ToLower(rand.Text()),
		},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: of.Name, UID: of.UID},
		Reason:         reason, Message: cut(message), Type: corev1.EventTypeNormal, Count: 1,
		Source:         corev1.EventSource{Component: "trellis-dashboard"},
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
	}
}
