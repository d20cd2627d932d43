package kubeapiserver

import (
	"context"
	"maps"
	"path"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Interface is the component with what others ask it for.
type Interface interface {
	component.Component
	// GenericTokenKubeconfigSecretName returns the name of the Secret with the kubeconfig that reads its token from
	// component.ShootTokenFile; empty before Deploy or GenerateKubeconfigs.
	GenericTokenKubeconfigSecretName() string
	// GenerateKubeconfigs makes the kubeconfigs only, which does not need the API server to run.
	GenerateKubeconfigs(ctx context.Context) error
	// DeployService applies the Service only, for what needs its address early.
	DeployService(ctx context.Context) error
}

// New returns the component. The authorities must have been generated before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) Interface {
	return &deployer{
		Part: component.Part{Client: c, Namespace: namespace, Name: Name, Labels: Labels(), Others: []client.Object{
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: InternalKubeconfigSecret}},
			component.DisruptionBudget(namespace, Name, Labels()),
		}},
		secrets: manager, values: values.withDefaults(),
	}
}

type deployer struct {
	component.Part
	secrets secrets.Manager
	values  Values
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels("kubernetes", "apiserver") }

// Deploy implements component.Deployer.
func (d *deployer) Deploy(ctx context.Context) error {
	if err := d.values.validate(); err != nil {
		return err
	}
	mounted, err := generateSecrets(ctx, d.secrets, d.Namespace, d.values)
	if err != nil {
		return err
	}
	if err := d.GenerateKubeconfigs(ctx); err != nil {
		return err
	}
	objects := []client.Object{service(d.Namespace, d.values)}
	if d.values.Availability.IsHigh() {
		objects = append(objects, d.DisruptionBudget())
	}
	return component.Apply(ctx, d.Client, append(objects, deployment(d.Namespace, d.values, mounted))...)
}

// DeployService implements Interface.
func (d *deployer) DeployService(ctx context.Context) error {
	return component.Apply(ctx, d.Client, service(d.Namespace, d.values))
}

// GenerateKubeconfigs implements Interface.
func (d *deployer) GenerateKubeconfigs(ctx context.Context) error {
	internal, err := d.secrets.Generate(ctx, secrets.KubeconfigConfig{
		Name:   InternalKubeconfigSecret,
		Server: "https://" + InternalHost(d.Namespace),
		User:   "gardener.cloud:system:gardenlet:internal",
		Groups: []string{"system:masters"},
	})
	if err != nil {
		return err
	}
	if _, err := d.secrets.Generate(ctx, secrets.KubeconfigConfig{
		Name: GenericTokenKubeconfigName, Server: LocalServer, TokenFile: component.ShootTokenFile,
	}); err != nil {
		return err
	}
	if d.values.KeepInternalKubeconfig {
		return nil
	}
	return component.Apply(ctx, d.Client, &corev1.Secret{
		ObjectMeta: objectMeta(d.Namespace, InternalKubeconfigSecret),
		Type:       corev1.SecretTypeOpaque,
		Data:       internal.Data,
	})
}

// GenericTokenKubeconfigSecretName implements Interface.
func (d *deployer) GenericTokenKubeconfigSecretName() string {
	secret, found := d.secrets.Get(GenericTokenKubeconfigName)
	if !found {
		return ""
	}
	return secret.Name
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: component.WithControlPlaneRole(Labels())}
}

func service(namespace string, v Values) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: objectMeta(namespace, Name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: Labels(),
			Ports: []corev1.ServicePort{{
				Name: "kube-apiserver", Protocol: corev1.ProtocolTCP, Port: ServicePort,
				TargetPort: intstr.FromInt32(Port),
			}},
			TrafficDistribution: component.TrafficDistribution(v.TrafficDistribution),
		},
	}
}

func deployment(namespace string, v Values, mounted mountedSecrets) *appsv1.Deployment {
	meta := objectMeta(namespace, Name)
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(v.Replicas),
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: Labels()},
			Strategy:             component.SurgeStrategy(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: v.podAnnotations()},
				Spec:       podSpec(v, mounted),
			},
		},
	}
}

// annotationETCDRestore has pods replaced after a restore of etcd.
const annotationETCDRestore = "trellis.garden/etcd-restore"

func (v Values) podAnnotations() map[string]string {
	if v.ETCDRestore == "" {
		return nil
	}
	return map[string]string{annotationETCDRestore: v.ETCDRestore}
}

// mostMemory is far above what a busy cluster takes: ten times a small one's, and that of one with some hundred nodes.
const mostMemory = "4Gi"

func podSpec(v Values, mounted mountedSecrets) corev1.PodSpec {
	resources := component.LimitMemory(component.AtLeast(component.Requests("25m", "200Mi"), v.MinAllowed), mostMemory)
	pod := component.HardenedPod(v.PriorityClass, corev1.PodSpec{
		HostAliases:                   v.HostAliases,
		TerminationGracePeriodSeconds: new(int64(30)),
		TopologySpreadConstraints:     v.Availability.Spread(Labels(), true),
		Volumes: []corev1.Volume{
			component.ProjectedSecrets("pki", inFolders(mounted.pki)...),
			component.ProjectedSecrets("config", inFolders(mounted.config)...),
		},
		Containers: []corev1.Container{{
			Name:            Name,
			Image:           v.Image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"/usr/local/bin/kube-apiserver"},
			Args:            Arguments(v),
			Env:             component.GarbageCollection(resources),
			Ports:           []corev1.ContainerPort{{Name: "https", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
			// The startup probe gives a server with a large database five minutes, and when it first succeeds kubelet
			// asks for readiness at once: clients wait for this.
			StartupProbe:   health("/livez").Startup(),
			ReadinessProbe: health("/livez").Readiness(5),
			// A restart does not mend etcd.
			LivenessProbe:            health("/livez?exclude=etcd").Liveness(),
			Resources:                resources,
			SecurityContext:          component.HardenedContainer(),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts: []corev1.VolumeMount{
				{Name: "pki", MountPath: pkiMount, ReadOnly: true},
				{Name: "config", MountPath: configMount, ReadOnly: true},
			},
		}},
	})
	addAuthentication(&pod, v)
	addSidecar(&pod, v, mounted)
	addPaths(&pod, v, mounted)
	return pod
}

// addAuthentication mounts the ConfigMap with issuers.
func addAuthentication(pod *corev1.PodSpec, v Values) {
	if v.AuthenticationConfigMap == "" {
		return
	}
	const volume = "authentication"
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.AuthenticationConfigMap},
		},
	}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: volume, MountPath: authenticationMount, ReadOnly: true})
}

func health(live string) component.HealthEndpoint {
	return component.HealthEndpoint{Scheme: corev1.URISchemeHTTPS, Port: Port, Ready: "/readyz", Live: live}
}

// inFolders puts the files of each Secret below a folder.
func inFolders(folders map[string]component.SecretFiles) []component.SecretFiles {
	list := make([]component.SecretFiles, 0, len(folders))
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		moved := component.SecretFiles{Secret: folders[folder].Secret, Files: map[string]string{}}
		for key, file := range folders[folder].Files {
			moved.Files[key] = path.Join(folder, file)
		}
		list = append(list, moved)
	}
	return list
}
