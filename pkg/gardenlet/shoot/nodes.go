package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
)

// resourceNodeAgent is the ManagedResource with what node-agent reads.
const resourceNodeAgent = "shoot-gardener-node-agent"

// oscKey is the key of node-agent's Secret that holds the operating system configuration.
const oscKey = "osc.yaml"

// addNodes adds machines and their operating system, and the checks that they are part of the cluster.
func (o *Operation) addNodes(g *flow.Graph, f foundation, infrastructure flow.TaskID, c controlPlane, system []flow.TaskID) {
	osc := g.Add(flow.Task{
		Name: "Deploying operating system configurations", Fn: retried(o.deployOperatingSystemConfigs), SkipIf: o.Plan.Workerless,
		Dependencies: []flow.TaskID{f.secrets, f.references},
	})
	oscReady := g.Add(flow.Task{
		Name: "Waiting until operating system configurations are ready", Fn: o.waitForOperatingSystemConfigs, SkipIf: o.Plan.Workerless,
		Dependencies: []flow.TaskID{osc},
	})
	nodeAgent := g.Add(flow.Task{
		Name: "Deploying configuration of node-agent", Fn: retried(o.deployNodeAgentConfiguration), SkipIf: o.Plan.Workerless,
		Dependencies: append([]flow.TaskID{oscReady}, o.onceAuthoritiesReplaced(c)...),
	})
	worker := g.Add(flow.Task{
		Name: "Deploying worker pools", Fn: retried(o.deployWorker), SkipIf: o.Plan.Workerless,
		Dependencies: []flow.TaskID{infrastructure, oscReady, nodeAgent, c.apiServer, f.credentials, o.addAutoscalerStop(g, c)},
	})
	workerReady := g.Add(flow.Task{
		Name: "Waiting until worker pools are ready", SkipIf: o.Plan.Workerless, Dependencies: []flow.TaskID{worker},
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.Worker{ObjectMeta: o.meta(o.Plan.ShootName)}, extension.WorkerTiming)
		},
	})
	o.addAutoscaler(g, workerReady)
	o.addExtensions(g, gardencorev1beta1.AfterWorker, workerReady)
	o.addContainerRuntimes(g, workerReady)
	skipChecks := o.Plan.Workerless || o.Plan.SkipReadiness || o.Plan.Hibernation != Awake
	tunnel := append([]flow.TaskID{workerReady, c.vpn}, system...)
	g.Add(flow.Task{
		Name: "Waiting until the tunnel to the nodes is up", SkipIf: skipChecks, Dependencies: tunnel,
		Fn: flow.TaskFn(o.checkTunnel).RetryUntilTimeout(applyInterval, rolloutTimeout),
	})
	g.Add(flow.Task{
		Name: "Waiting until nodes run their operating system configuration", SkipIf: skipChecks, Dependencies: []flow.TaskID{workerReady, nodeAgent},
		Fn: flow.TaskFn(o.checkNodeConfigurations).RetryUntilTimeout(applyInterval, rolloutTimeout),
	})
}

// oscValues are what the operating system configuration of a pool is made from.
func (o *Operation) oscValues(pool PoolPlan) (operatingsystemconfig.Values, error) {
	bundle, err := o.bundle(component.CACluster)
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	kubeletBundle, err := o.bundle(component.CAKubelet)
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	keys, err := o.authorizedKeys()
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	return operatingsystemconfig.Values{
		PoolName: pool.Worker.Name, KubernetesVersion: pool.KubernetesVersion, KubeletImage: pool.KubeletImage,
		APIServerURL: "https://" + o.Plan.Hostname(), CABundle: bundle, KubeletCABundle: kubeletBundle, SecretName: pool.SecretName,
		ClusterDNS: []string{o.Plan.Networks.DNS}, ClusterDomain: clusterDomain, Kubelet: pool.Kubelet,
		Labels: pool.Worker.Labels, Taints: pool.Worker.Taints, Sysctls: pool.Worker.Sysctls,
		SystemComponents: allowsSystemComponents(pool.Worker), TrustedCertificates: pool.TrustedCertificates,
		AuthorizedKeys: keys,
	}, nil
}

// oscNames returns the names of a pool's two configurations: for the first boot, and for later.
func oscNames(pool PoolPlan) (provision, reconcile string) {
	return pool.SecretName + "-init", pool.SecretName + "-original"
}

// deployOperatingSystemConfigs writes both configurations of every pool.
func (o *Operation) deployOperatingSystemConfigs(ctx context.Context) error {
	for _, pool := range o.Plan.Pools {
		if err := o.deployPoolConfigs(ctx, pool); err != nil {
			return fmt.Errorf("pool %s: %w", pool.Worker.Name, err)
		}
	}
	return nil
}

// deployPoolConfigs writes both configurations of one pool.
func (o *Operation) deployPoolConfigs(ctx context.Context, pool PoolPlan) error {
	values, err := o.oscValues(pool)
	if err != nil {
		return err
	}
	var providerConfig *runtime.RawExtension
	if pool.Worker.Machine.Image != nil {
		providerConfig = compact(pool.Worker.Machine.Image.ProviderConfig)
	}
	provision, reconcile := oscNames(pool)
	for _, wanted := range []struct {
		name    string
		purpose extensionsv1alpha1.OperatingSystemConfigPurpose
		render  func(operatingsystemconfig.Values) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error)
	}{
		{provision, extensionsv1alpha1.OperatingSystemConfigPurposeProvision, operatingsystemconfig.Provision},
		{reconcile, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile, operatingsystemconfig.Reconcile},
	} {
		units, files, err := wanted.render(values)
		if err != nil {
			return err
		}
		object := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: o.meta(wanted.name)}
		err = extension.Deploy(ctx, o.Seed, object, false, func() {
			object.Labels = component.Merge(object.Labels, map[string]string{gardencorev1beta1.LabelWorkerPool: pool.Worker.Name})
			object.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{Type: pool.ImageName, ProviderConfig: providerConfig}
			object.Spec.Purpose = wanted.purpose
			object.Spec.Units, object.Spec.Files = units, files
			if wanted.purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
				object.Spec.CRIConfig = operatingsystemconfig.CRI(o.Plan.Images["pause"])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForOperatingSystemConfigs waits for the extension.
func (o *Operation) waitForOperatingSystemConfigs(ctx context.Context) error {
	var waits []flow.TaskFn
	for _, pool := range o.Plan.Pools {
		provision, reconcile := oscNames(pool)
		for _, name := range []string{provision, reconcile} {
			waits = append(waits, func(ctx context.Context) error {
				return extension.Wait(ctx, o.Seed, &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: o.meta(name)}, extension.DefaultTiming)
			})
		}
	}
	return flow.Parallel(waits...)(ctx)
}

// deployNodeAgentConfiguration gives node-agent its configuration: a Secret per pool in the shoot.
func (o *Operation) deployNodeAgentConfiguration(ctx context.Context) error {
	var objects []client.Object
	for _, pool := range o.Plan.Pools {
		_, name := oscNames(pool)
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		if err := o.Seed.Get(ctx, o.key(name), osc); err != nil {
			return fmt.Errorf("reading OperatingSystemConfig %s: %w", o.key(name), err)
		}
		secret, err := nodeAgentSecret(pool, osc)
		if err != nil {
			return err
		}
		objects = append(objects, secret)
	}
	return o.deployManagedResource(ctx, resourceNodeAgent, objects...)
}

// nodeAgentSecret renders what node-agent reads: the core's units and files and those that the extension added.
func nodeAgentSecret(pool PoolPlan, osc *extensionsv1alpha1.OperatingSystemConfig) (*corev1.Secret, error) {
	document := &extensionsv1alpha1.OperatingSystemConfig{Spec: *osc.Spec.DeepCopy()}
	document.SetGroupVersionKind(extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.OperatingSystemConfigResource))
	document.Name = osc.Name
	document.Status.ExtensionUnits, document.Status.ExtensionFiles = osc.Status.ExtensionUnits, osc.Status.ExtensionFiles
	data, err := yaml.Marshal(document)
	if err != nil {
		return nil, err
	}
	meta := component.SystemMeta(pool.SecretName, "node-agent")
	meta.Labels = component.Merge(meta.Labels, map[string]string{gardencorev1beta1.LabelWorkerPool: pool.Worker.Name})
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{oscKey: data}}, nil
}

// deployWorker writes the Worker.
func (o *Operation) deployWorker(ctx context.Context) error {
	var pools []extensionsv1alpha1.WorkerPool
	for _, pool := range o.Plan.Pools {
		rendered, err := o.workerPool(ctx, pool)
		if err != nil {
			return fmt.Errorf("pool %s: %w", pool.Worker.Name, err)
		}
		pools = append(pools, rendered)
	}
	object := &extensionsv1alpha1.Worker{ObjectMeta: o.meta(o.Plan.ShootName)}
	return extension.Deploy(ctx, o.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.WorkerSpec{
			DefaultSpec:                  extensionsv1alpha1.DefaultSpec{Type: o.Plan.ProviderType},
			InfrastructureProviderStatus: o.infrastructureStatus(), Region: o.Plan.Region, SecretRef: o.credentialsRef(), Pools: pools,
		}
	})
}

// workerPool renders a pool of the Worker.
func (o *Operation) workerPool(ctx context.Context, pool PoolPlan) (extensionsv1alpha1.WorkerPool, error) {
	provision, _ := oscNames(pool)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := o.Seed.Get(ctx, o.key(provision), osc); err != nil {
		return extensionsv1alpha1.WorkerPool{}, fmt.Errorf("reading OperatingSystemConfig %s: %w", o.key(provision), err)
	}
	if osc.Status.CloudConfig == nil {
		return extensionsv1alpha1.WorkerPool{}, fmt.Errorf("OperatingSystemConfig %s has no status.cloudConfig", o.key(provision))
	}
	return renderPool(pool, osc.Status.CloudConfig.SecretRef.Name), nil
}

// renderPool translates a pool of the Shoot.
func renderPool(pool PoolPlan, userDataSecret string) extensionsv1alpha1.WorkerPool {
	w := pool.Worker
	rendered := extensionsv1alpha1.WorkerPool{
		Name: w.Name, MachineType: w.Machine.Type, Minimum: w.Minimum, Maximum: w.Maximum,
		MaxSurge: ptr.Deref(w.MaxSurge, intstr.FromInt32(1)), MaxUnavailable: ptr.Deref(w.MaxUnavailable, intstr.FromInt32(0)),
		Annotations: w.Annotations,
		Labels: component.Merge(w.Labels, containerRuntimeLabels(w), map[string]string{
			gardencorev1beta1.LabelWorkerPool: w.Name, gardencorev1beta1.LabelWorkerKubernetesVersion: pool.KubernetesVersion,
		}),
		Taints:              w.Taints,
		MachineImage:        extensionsv1alpha1.MachineImage{Name: pool.ImageName, Version: pool.ImageVersion},
		NodeAgentSecretName: ptr.To(pool.SecretName),
		ProviderConfig:      compact(w.ProviderConfig),
		UserDataSecretRef: corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: userDataSecret}, Key: extensionsv1alpha1.OperatingSystemConfigSecretDataKey,
		},
		KubeletDataVolumeName: w.KubeletDataVolumeName, Zones: w.Zones, MachineControllerManager: pool.MachineControllerManager,
		KubernetesVersion: ptr.To(pool.KubernetesVersion), KubeletConfig: pool.Kubelet, Architecture: w.Machine.Architecture,
		Priority: w.Priority, UpdateStrategy: w.UpdateStrategy, ClusterAutoscaler: autoscalerOptions(w.ClusterAutoscaler),
	}
	if allowsSystemComponents(w) {
		rendered.Labels[gardencorev1beta1.LabelWorkerPoolSystemComponents] = "true"
	}
	if volume := w.Volume; volume != nil {
		rendered.Volume = &extensionsv1alpha1.Volume{Name: volume.Name, Type: volume.Type, VolumeSize: volume.VolumeSize, Encrypted: volume.Encrypted}
	}
	for _, volume := range w.DataVolumes {
		rendered.DataVolumes = append(rendered.DataVolumes, extensionsv1alpha1.DataVolume(volume))
	}
	if t := pool.MachineType; t != nil {
		rendered.NodeTemplate = &extensionsv1alpha1.NodeTemplate{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: t.CPU, corev1.ResourceMemory: t.Memory, "gpu": t.GPU,
		}}
	}
	return rendered
}
