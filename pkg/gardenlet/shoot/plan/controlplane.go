package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
)

// planControlPlane decides what the control plane runs, when networks, images and rotations are known.
func (p *Plan) planControlPlane(*Inputs) error {
	p.ControlPlane = components.ControlPlaneValues{
		ETCDMain: p.etcdValues(etcdcomponent.Main), ETCDEvents: p.etcdValues(etcdcomponent.Events),
		KubeControllerManager: p.controllerManagerValues(),
		KubeScheduler: kubescheduler.Values{
			Version: p.KubernetesVersion, Image: p.Images["kube-scheduler"], Replicas: 1,
		},
		VPNSeedServer: vpnseedserver.Values{
			Image: p.Images["vpn"], Replicas: 1, ClusterDNS: p.Networks.DNS, PodNetworks: p.Networks.Pods,
			ServiceNetworks: p.Networks.Services,
		},
	}
	if user := p.Kubernetes.KubeScheduler; user != nil {
		p.ControlPlane.KubeScheduler.FeatureGates = user.FeatureGates
		p.ControlPlane.KubeScheduler.Profile = kubescheduler.Profile(ptr.Deref(user.Profile,
			gardencorev1beta1.SchedulingProfileBalanced))
	}
	p.completeAPIServer()
	return nil
}

func (p *Plan) etcdValues(role etcdcomponent.Role) etcdcomponent.Values {
	return etcdcomponent.Values{
		Role: role, Image: p.Images["etcd-steward"], Replicas: 1, MinAllowed: leastOfEtcd(p.Kubernetes.ETCD, role),
		MinimumCapacity: p.Seed.MinimumVolumeSize, TrafficDistribution: p.Seed.TrafficDistribution,
	}
}

// leastOfEtcd are the least requests that the user wants an etcd to have.
func leastOfEtcd(user *gardencorev1beta1.ETCD, role etcdcomponent.Role) corev1.ResourceList {
	if user == nil {
		return nil
	}
	config := user.Main
	if role == etcdcomponent.Events {
		config = user.Events
	}
	if config == nil || config.Autoscaling == nil {
		return nil
	}
	return config.Autoscaling.MinAllowed
}

// completeAPIServer adds to the settings of kube-apiserver what other parts of the plan have decided.
func (p *Plan) completeAPIServer() {
	values := &p.APIServer.Values
	values.Version, values.Image, values.Replicas = p.KubernetesVersion, p.Images["kube-apiserver"], 1
	values.ServiceNetworks, values.TrafficDistribution = p.Networks.Services, p.Seed.TrafficDistribution
	values.Encryption.From = p.Rotation.Encryption.From
	values.KeepOldServiceAccountKey, values.KeepInternalKubeconfig = p.Rotation.KeepOldServiceAccountKey,
		p.Rotation.ReplacesAuthorities
	values.EgressHost, values.EgressImage = egresscomponent.Host, p.Images["vpn"]
	if !p.Workerless {
		values.VPN = &kubeapiserver.VPNValues{}
	}
}

func (p *Plan) controllerManagerValues() kubecontrollermanager.Values {
	values := kubecontrollermanager.Values{
		Version: p.KubernetesVersion, Image: p.Images["kube-controller-manager"], Replicas: 1, ClusterName: p.Namespace,
		PodNetworks: p.Networks.Pods, ServiceNetworks: p.Networks.Services, IsWorkerless: p.Workerless,
	}
	if user := p.Kubernetes.KubeControllerManager; user != nil {
		values.FeatureGates = user.FeatureGates
		values.NodeCIDRMaskSize, values.NodeCIDRMaskSizeIPv6 = int(ptr.Deref(user.NodeCIDRMaskSize, 0)),
			int(ptr.Deref(user.NodeCIDRMaskSizeIPv6, 0))
		values.ExtraArgs = controllerManagerArguments(user)
	}
	return values
}

// controllerManagerArguments renders the user's settings that have no field of their own.
func controllerManagerArguments(user *gardencorev1beta1.KubeControllerManagerConfig) map[string]string {
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
