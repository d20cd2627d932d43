// Package kubecontrollermanager deploys the kube-controller-manager of a control plane.
package kubecontrollermanager

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/managers"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the Deployment.
	Name             = "kube-controller-manager"
	port       int32 = 10257
	mostMemory       = "2Gi"

	// DefaultNodeMonitorGracePeriod is how long a node may be silent until it is Unknown, if the user says nothing.
	DefaultNodeMonitorGracePeriod = 40 * time.Second

	mount          = "/etc/kubernetes/controller-manager"
	kubeconfigFile = mount + "/kubeconfig"
)

// Values of a kube-controller-manager.
type Values struct {
	// Version is the Kubernetes version, e.g. "1.36.3".
	Version string
	// Image of kube-controller-manager.
	Image string
	// Replicas; 0 for a hibernated control plane. With more than one they elect a leader.
	Replicas int32
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane.
	Availability component.Availability `json:",omitzero"`
	// ClusterName appears in the names of what controllers make outside the cluster.
	ClusterName string
	// PodNetworks are the CIDRs that nodes get their part of; empty without workers.
	PodNetworks []string
	// ServiceNetworks are the CIDRs of services.
	ServiceNetworks []string
	// NodeCIDRMaskSize is the size of each node's part of the pod network; default 24. NodeCIDRMaskSizeIPv6 is that of
	// pod networks with IPv6 addresses; default 64.
	NodeCIDRMaskSize, NodeCIDRMaskSizeIPv6 int
	// Controllers replaces the default set; nil for the default, which is all of upstream's default controllers,
	// or without workers those that need no node and run no workload.
	Controllers []string
	// IsWorkerless leaves out what only clusters with nodes need.
	IsWorkerless bool
	// FeatureGates are passed on.
	FeatureGates map[string]bool
	// ExtraArgs are flags without dashes; they replace flags of the same name.
	ExtraArgs map[string]string
}

// WorkerlessControllers are the controllers of a control plane without nodes: those that keep the API itself in order.
// No workload controller is among them.
func WorkerlessControllers() []string {
	return []string{
		"certificatesigningrequest-approving-controller",
		"certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller",
		"clusterrole-aggregation-controller",
		"garbage-collector-controller",
		"legacy-serviceaccount-token-cleaner-controller",
		"namespace-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"service-cidr-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"validatingadmissionpolicy-status-controller",
	}
}

func (v Values) withDefaults() Values {
	v.NodeCIDRMaskSize = cmp.Or(v.NodeCIDRMaskSize, 24)
	v.NodeCIDRMaskSizeIPv6 = cmp.Or(v.NodeCIDRMaskSizeIPv6, 64)
	if v.Controllers == nil && v.IsWorkerless {
		v.Controllers = WorkerlessControllers()
	}
	if v.Controllers == nil {
		// Joining machines leave bootstrap tokens behind; cleaning them up is off by default.
		v.Controllers = []string{"*", "token-cleaner-controller"}
	}
	return v
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels("kubernetes", "controller-manager") }

// Decide makes the values of a cluster's kube-controller-manager.
func Decide(f component.Facts) Values {
	values := Values{
		Version: f.KubernetesVersion, Image: f.Images[Name], ClusterName: f.Namespace, PriorityClass: f.PriorityClass,
		Replicas: f.Availability.Replicas(component.Pair), Availability: f.Availability,
		PodNetworks: f.PodNetworks, ServiceNetworks: f.ServiceNetworks, IsWorkerless: f.IsWorkerless,
	}
	if user := f.Kubernetes.KubeControllerManager; user != nil {
		values.FeatureGates = user.FeatureGates
		values.NodeCIDRMaskSize, values.NodeCIDRMaskSizeIPv6 = int(ptr.Deref(user.NodeCIDRMaskSize, 0)),
			int(ptr.Deref(user.NodeCIDRMaskSizeIPv6, 0))
		values.ExtraArgs = argumentsOf(user)
	}
	return values.withDefaults()
}

// argumentsOf renders the user's settings that have no field of their own.
func argumentsOf(user *gardencorev1beta1.KubeControllerManagerConfig) map[string]string {
	arguments := map[string]string{}
	duration := func(name string, value *metav1.Duration) {
		if value != nil {
			arguments[name] = value.Duration.String()
		}
	}
	duration("node-monitor-grace-period", user.NodeMonitorGracePeriod)
	if hpa := user.HorizontalPodAutoscalerConfig; hpa != nil {
		duration("horizontal-pod-autoscaler-cpu-initialization-period", hpa.CPUInitializationPeriod)
		duration("horizontal-pod-autoscaler-downscale-stabilization", hpa.DownscaleStabilization)
		duration("horizontal-pod-autoscaler-initial-readiness-delay", hpa.InitialReadinessDelay)
		duration("horizontal-pod-autoscaler-sync-period", hpa.SyncPeriod)
		if hpa.Tolerance != nil {
			arguments["horizontal-pod-autoscaler-tolerance"] = fmt.Sprint(*hpa.Tolerance)
		}
	}
	return arguments
}

// New returns the component. The authorities and the service account key must have been generated before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{
		Part: component.Part{
			Client: c, Namespace: namespace, Name: Name, Labels: Labels(),
			Others: []client.Object{component.DisruptionBudget(namespace, Name, Labels())},
		},
		secrets: manager, values: values.withDefaults(),
	}
}

type deployer struct {
	component.Part
	secrets secrets.Manager
	values  Values
}

// Deploy implements component.Deployer.
func (d *deployer) Deploy(ctx context.Context) error {
	files, err := d.generateSecrets(ctx)
	if err != nil {
		return err
	}
	return d.DeployElecting(ctx, d.values.Availability, deployment(d.Namespace, d.values, files))
}

// generateSecrets returns the Secrets that the pod mounts.
func (d *deployer) generateSecrets(ctx context.Context) ([]component.SecretFiles, error) {
	kubeconfig, err := d.secrets.Generate(ctx, secrets.KubeconfigConfig{
		Name: Name, Server: kubeapiserver.LocalServer, User: "system:kube-controller-manager",
	})
	if err != nil {
		return nil, err
	}
	bundle, err := component.CABundle(d.secrets, component.CACluster)
	if err != nil {
		return nil, err
	}
	files := []component.SecretFiles{
		{Secret: kubeconfig.Name, Files: map[string]string{secrets.DataKeyKubeconfig: "kubeconfig"}},
		{Secret: bundle.Name, Files: map[string]string{secrets.DataKeyCertificateBundle: "ca/bundle.crt"}},
	}
	key, found := d.secrets.Get(kubeapiserver.ServiceAccountKeyName)
	if !found {
		return nil, fmt.Errorf("secret %q has not been generated; deploy kube-apiserver before %s",
			kubeapiserver.ServiceAccountKeyName, Name)
	}
	files = append(files, component.SecretFiles{
		Secret: key.Name, Files: map[string]string{secrets.DataKeyRSAPrivateKey: "service-account/id_rsa"},
	})
	for _, name := range signingAuthorities(d.values) {
		authority, found := d.secrets.Get(name)
		if !found {
			return nil, fmt.Errorf("the certificate authority %q has not been generated", name)
		}
		files = append(files, component.SecretFiles{Secret: authority.Name, Files: map[string]string{
			secrets.DataKeyCertificateCA: name + "/ca.crt", secrets.DataKeyPrivateKeyCA: name + "/ca.key",
		}})
	}
	return files, nil
}

func signingAuthorities(v Values) []string {
	if v.IsWorkerless {
		return []string{component.CAClient}
	}
	return []string{component.CAClient, component.CAKubelet}
}

// Arguments returns the flags of kube-controller-manager, sorted.
func Arguments(v Values) []string {
	v = v.withDefaults()
	flags := map[string]string{
		"kubeconfig":                       kubeconfigFile,
		"authentication-kubeconfig":        kubeconfigFile,
		"authorization-kubeconfig":         kubeconfigFile,
		"authorization-always-allow-paths": "/healthz,/livez,/readyz",
		"secure-port":                      strconv.Itoa(int(port)),
		"cert-dir":                         "",
		"profiling":                        "false",
		"leader-elect":                     "false",
		"use-service-account-credentials":  "true",
		"service-account-private-key-file": mount + "/service-account/id_rsa",
		"root-ca-file":                     mount + "/ca/bundle.crt",
		"cluster-name":                     v.ClusterName,
		"controllers":                      strings.Join(v.Controllers, ","),
		"cluster-signing-duration":         "720h",
		// Each controller makes a service account and a token for itself; at the default rate of 20 a second, a new
		// cluster would wait five seconds for its default service account.
		"kube-api-qps":   "100",
		"kube-api-burst": "200",
	}
	maps.Copy(flags, signingFlags(v))
	if v.Replicas > 1 {
		maps.Copy(flags, managers.ElectionFlags())
	}
	if !v.IsWorkerless {
		maps.Copy(flags, nodeFlags(v))
	}
	if len(v.ServiceNetworks) > 0 {
		flags["service-cluster-ip-range"] = strings.Join(v.ServiceNetworks, ",")
	}
	if len(v.FeatureGates) > 0 {
		flags["feature-gates"] = component.Switches(v.FeatureGates)
	}
	maps.Copy(flags, v.ExtraArgs)
	return component.SortedFlags(flags)
}

// signingFlags let kubelets' client certificates be trusted by kube-apiserver, and their serving certificates by it
// too.
func signingFlags(v Values) map[string]string {
	authorities := map[string]string{
		"kube-apiserver-client": component.CAClient,
		"legacy-unknown":        component.CAClient,
	}
	if !v.IsWorkerless {
		authorities["kubelet-client"] = component.CAClient
		authorities["kubelet-serving"] = component.CAKubelet
	}
	flags := map[string]string{}
	for signer, authority := range authorities {
		flags["cluster-signing-"+signer+"-cert-file"] = mount + "/" + authority + "/ca.crt"
		flags["cluster-signing-"+signer+"-key-file"] = mount + "/" + authority + "/ca.key"
	}
	return flags
}

func nodeFlags(v Values) map[string]string {
	flags := map[string]string{
		"allocate-node-cidrs":       strconv.FormatBool(len(v.PodNetworks) > 0),
		"configure-cloud-routes":    "false",
		"node-monitor-grace-period": DefaultNodeMonitorGracePeriod.String(),
	}
	if len(v.PodNetworks) > 0 {
		flags["cluster-cidr"] = strings.Join(v.PodNetworks, ",")
	}
	for _, network := range v.PodNetworks {
		if strings.Contains(network, ":") {
			flags["node-cidr-mask-size-ipv6"] = strconv.Itoa(v.NodeCIDRMaskSizeIPv6)
		} else {
			flags["node-cidr-mask-size-ipv4"] = strconv.Itoa(v.NodeCIDRMaskSize)
		}
	}
	return flags
}

func deployment(namespace string, v Values, files []component.SecretFiles) *appsv1.Deployment {
	// It knows every object of the cluster.
	resources := component.LimitMemory(component.Requests("5m", "80Mi"), mostMemory)
	return component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: namespace,
		Name:      Name,
		Labels:    Labels(),
		Replicas:  v.Replicas,
		Image:     v.Image,
		Command:   []string{"/usr/local/bin/kube-controller-manager"},
		Args:      Arguments(v),
		Env:       component.GarbageCollection(resources),
		Requests:  resources,
		Secrets:   files,
		MountPath: mount,
		Health:    component.SecureHealthz(port),
		ConnectsTo: []string{
			gardencorev1beta1.LabelNetworkPolicyToDNS, gardencorev1beta1.LabelNetworkPolicyToShootAPIServer,
		},
		PriorityClass: v.PriorityClass,
		Availability:  v.Availability,
	})
}
