// Package workers makes the machines of a shoot: their operating system, what makes them nodes, and how many there are.
package workers

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/credentials"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// resourceNodeAgent is the ManagedResource with what node-agent reads.
const resourceNodeAgent = "shoot-gardener-node-agent"

// oscKey is the key of node-agent's Secret that holds the operating system configuration.
const oscKey = extensionsv1alpha1.NodeAgentSecretDataKey

// Infrastructure tells what came of it.
type Infrastructure interface {
	// ProviderStatus is what the provider's machines are told; nil if there is nothing to tell.
	ProviderStatus() *runtime.RawExtension
	// IsolateMachines keeps machines that are pods of the seed to themselves.
	IsolateMachines(ctx context.Context) error
}

// StatusWriter writes the status of the Shoot.
type StatusWriter interface {
	// Current returns the Shoot as it was last written.
	Current() *gardencorev1beta1.Shoot
	// Update changes the status.
	Update(ctx context.Context, change func(*gardencorev1beta1.ShootStatus)) error
}

// Workers makes those of one shoot.
type Workers struct {
	Plan           *plan.Plan
	Seed           client.WithWatch
	Components     *components.Builder
	Extensions     *extensions.Objects
	Infrastructure Infrastructure
	Log            logr.Logger
	// Since is when the first try began to bring about what the Shoot says now; nil if that is not known.
	Since *metav1.Time
	// Status is that of the Shoot.
	Status StatusWriter
	// AuthorizedKeys are the public keys that machines let in, as lines of authorized_keys.
	AuthorizedKeys func() ([]string, error)
}

// Add adds machines and their operating system, and the checks that they are part of the cluster. It returns the task
// after which the machines are there.
func (w *Workers) Add(g *flow.Graph, f foundation.Tasks, infrastructure flow.TaskID, c controlplane.Tasks,
	system []flow.TaskID) flow.TaskID {
	osc := g.Add(flow.Task{
		Name: "Deploying operating system configurations", Fn: tasks.Retried(w.deployOperatingSystemConfigs),
		SkipIf:       w.Plan.Workerless,
		Dependencies: []flow.TaskID{f.Secrets, f.References},
	})
	oscReady := g.Add(flow.Task{
		Name: "Waiting until operating system configurations are ready", Fn: w.waitForOperatingSystemConfigs,
		SkipIf:       w.Plan.Workerless,
		Dependencies: []flow.TaskID{osc},
	})
	nodeAgent := g.Add(flow.Task{
		Name: "Deploying configuration of node-agent", Fn: tasks.Retried(w.deployNodeAgentConfiguration),
		SkipIf:       w.Plan.Workerless,
		Dependencies: append([]flow.TaskID{oscReady}, c.AuthoritiesReplaced...),
	})
	readable := w.addInPlaceWait(g, c, nodeAgent)
	worker := g.Add(flow.Task{
		Name: "Deploying worker pools", Fn: tasks.Retried(w.deployWorker), SkipIf: w.Plan.Workerless,
		Dependencies: []flow.TaskID{
			infrastructure, oscReady, nodeAgent, readable, c.APIServer, f.Credentials, w.addAutoscalerStop(g, c),
			w.addFleetsWait(g, c),
		},
	})
	workerReady := g.Add(flow.Task{
		Name: "Waiting until worker pools are ready", SkipIf: w.Plan.Workerless, Dependencies: []flow.TaskID{worker},
		Fn: w.waitForWorker,
	})
	w.Extensions.Add(g, gardencorev1beta1.AfterWorker, workerReady)
	w.addContainerRuntimes(g, workerReady)
	skipChecks := w.Plan.Workerless || w.Plan.SkipReadiness || w.Plan.Hibernation != plan.Awake
	tunnel := slices.Concat([]flow.TaskID{workerReady}, c.Tunnels, system)
	g.Add(flow.Task{
		Name: "Waiting until the tunnel to the nodes is up", SkipIf: skipChecks, Dependencies: tunnel,
		Fn: flow.TaskFn(w.checkTunnel).RetryUntilTimeout(tasks.RetryInterval, tasks.RolloutTimeout),
	})
	g.Add(flow.Task{
		Name: "Waiting until nodes run their operating system configuration", SkipIf: skipChecks,
		Dependencies: []flow.TaskID{workerReady, nodeAgent},
		Fn: flow.TaskFn(w.checkNodeConfigurations).RetryUntilTimeout(tasks.RetryInterval,
			tasks.RolloutTimeout),
	})
	return workerReady
}

// oscValues are what the operating system configuration of a pool is made from.
func (w *Workers) oscValues(pool plan.Pool) (operatingsystemconfig.Values, error) {
	bundle, err := component.CABundleData(w.Components.Secrets, component.CACluster)
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	kubeletBundle, err := component.CABundleData(w.Components.Secrets, component.CAKubelet)
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	keys, err := w.AuthorizedKeys()
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	return operatingsystemconfig.Values{
		PoolName: pool.Worker.Name, KubernetesVersion: pool.KubernetesVersion, KubeletImage: pool.KubeletImage,
		APIServerURL: "https://" + w.Plan.Hostname(), CABundle: bundle, KubeletCABundle: kubeletBundle,
		SecretName: pool.SecretName,
		ClusterDNS: []string{w.Plan.Networks.DNS}, ClusterDomain: plan.ClusterDomain, Kubelet: pool.Kubelet,
		Labels: pool.Worker.Labels, Taints: pool.Worker.Taints, Sysctls: pool.Worker.Sysctls,
		SystemComponents: plan.AllowsSystemComponents(pool.Worker), TrustedCertificates: pool.TrustedCertificates,
		AuthorizedKeys: keys, InPlace: pool.InPlace != nil,
	}, nil
}

// oscNames returns the names of a pool's two configurations: for the first boot, and for later.
func oscNames(pool plan.Pool) (provision, reconcile string) {
	return pool.SecretName + "-init", pool.SecretName + "-original"
}

// deployOperatingSystemConfigs writes both configurations of every pool.
func (w *Workers) deployOperatingSystemConfigs(ctx context.Context) error {
	for _, pool := range w.Plan.Pools {
		if err := w.deployPoolConfigs(ctx, pool); err != nil {
			return fmt.Errorf("pool %s: %w", pool.Worker.Name, err)
		}
	}
	return nil
}

// deployPoolConfigs writes both configurations of one pool.
func (w *Workers) deployPoolConfigs(ctx context.Context, pool plan.Pool) error {
	values, err := w.oscValues(pool)
	if err != nil {
		return err
	}
	var providerConfig *runtime.RawExtension
	if pool.Worker.Machine.Image != nil {
		providerConfig = extensions.Compact(pool.Worker.Machine.Image.ProviderConfig)
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
		object := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: w.Plan.Meta(wanted.name)}
		err = extension.Deploy(ctx, w.Seed, object, false, func() {
			object.Labels = component.Merge(object.Labels,
				map[string]string{gardencorev1beta1.LabelWorkerPool: pool.Worker.Name})
			object.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{
				Type: pool.ImageName, ProviderConfig: providerConfig,
			}
			object.Spec.Purpose = wanted.purpose
			object.Spec.Units, object.Spec.Files = units, files
			if wanted.purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
				object.Spec.CRIConfig = operatingsystemconfig.CRI(w.Plan.Images["pause"])
				object.Spec.InPlaceUpdates = inPlaceUpdates(pool)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForOperatingSystemConfigs waits for the extension.
func (w *Workers) waitForOperatingSystemConfigs(ctx context.Context) error {
	var waits []flow.TaskFn
	for _, pool := range w.Plan.Pools {
		provision, reconcile := oscNames(pool)
		for _, name := range []string{provision, reconcile} {
			waits = append(waits, func(ctx context.Context) error {
				return extension.Wait(ctx, w.Seed,
					&extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: w.Plan.Meta(name)}, extension.DefaultTiming)
			})
		}
	}
	return flow.Parallel(waits...)(ctx)
}

// deployNodeAgentConfiguration gives node-agent its configuration: a Secret per pool in the shoot.
func (w *Workers) deployNodeAgentConfiguration(ctx context.Context) error {
	var objects []client.Object
	for _, pool := range w.Plan.Pools {
		_, name := oscNames(pool)
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		if err := w.Seed.Get(ctx, w.Plan.Key(name), osc); err != nil {
			return fmt.Errorf("reading OperatingSystemConfig %s: %w", w.Plan.Key(name), err)
		}
		secret, err := nodeAgentSecret(pool, osc)
		if err != nil {
			return err
		}
		objects = append(objects, secret)
	}
	return managedresources.Deploy(ctx, w.Seed, w.Plan.Namespace, resourceNodeAgent, objects...)
}

// nodeAgentSecret renders what node-agent reads: the core's units and files and those that the extension added.
// Webhooks have changed what was deployed, the cgroup driver among it, so kubelet is told only here.
func nodeAgentSecret(pool plan.Pool, osc *extensionsv1alpha1.OperatingSystemConfig) (*corev1.Secret, error) {
	document := &extensionsv1alpha1.OperatingSystemConfig{Spec: *osc.Spec.DeepCopy()}
	document.SetGroupVersionKind(
		extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.OperatingSystemConfigResource))
	document.Name = osc.Name
	if pool.InPlace != nil {
		document.Annotations = map[string]string{gardencorev1beta1.AnnotationWorkerInPlaceUpdate: pool.InPlace.Hash}
	}
	added := osc.Status.DeepCopy()
	document.Status.ExtensionUnits, document.Status.ExtensionFiles = added.ExtensionUnits, added.ExtensionFiles
	if err := operatingsystemconfig.TellKubelet(document); err != nil {
		return nil, err
	}
	data, err := yaml.Marshal(document)
	if err != nil {
		return nil, err
	}
	meta := component.SystemMeta(pool.SecretName, "node-agent")
	meta.Labels = component.Merge(meta.Labels, map[string]string{gardencorev1beta1.LabelWorkerPool: pool.Worker.Name})
	return &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{oscKey: data}}, nil
}

// deployWorker writes the Worker, with which the namespace of machines comes where the Infrastructure needs none.
func (w *Workers) deployWorker(ctx context.Context) error {
	var pools []extensionsv1alpha1.WorkerPool
	for _, pool := range w.Plan.Pools {
		rendered, err := w.workerPool(ctx, pool)
		if err != nil {
			return fmt.Errorf("pool %s: %w", pool.Worker.Name, err)
		}
		pools = append(pools, rendered)
	}
	object := &extensionsv1alpha1.Worker{ObjectMeta: w.Plan.Meta(w.Plan.ShootName)}
	if err := w.notePendingUpdates(ctx, pools); err != nil {
		return err
	}
	err := extension.Deploy(ctx, w.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.WorkerSpec{
			DefaultSpec:                  extensionsv1alpha1.DefaultSpec{Type: w.Plan.ProviderType},
			InfrastructureProviderStatus: w.Infrastructure.ProviderStatus(), Region: w.Plan.Region,
			SecretRef: credentials.CloudProvider(w.Plan.Identity), Pools: pools,
		}
	})
	if err != nil {
		return err
	}
	return w.Infrastructure.IsolateMachines(ctx)
}

// workerPool renders a pool of the Worker.
func (w *Workers) workerPool(ctx context.Context, pool plan.Pool) (extensionsv1alpha1.WorkerPool, error) {
	provision, _ := oscNames(pool)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := w.Seed.Get(ctx, w.Plan.Key(provision), osc); err != nil {
		return extensionsv1alpha1.WorkerPool{},
			fmt.Errorf("reading OperatingSystemConfig %s: %w", w.Plan.Key(provision), err)
	}
	if osc.Status.CloudConfig == nil {
		return extensionsv1alpha1.WorkerPool{},
			fmt.Errorf("OperatingSystemConfig %s has no status.cloudConfig", w.Plan.Key(provision))
	}
	return renderPool(pool, osc.Status.CloudConfig.SecretRef.Name), nil
}

// atOnce is how many machines may be there in addition, and how many missing, while a pool is updated.
func atOnce(w gardencorev1beta1.Worker) (surge, unavailable intstr.IntOrString) {
	surge, unavailable = intstr.FromInt32(1), intstr.FromInt32(0)
	if gardencorev1beta1.IsUpdatedInPlace(&w) {
		surge, unavailable = unavailable, surge
	}
	return ptr.Deref(w.MaxSurge, surge), ptr.Deref(w.MaxUnavailable, unavailable)
}

// renderPool translates a pool of the Shoot.
func renderPool(pool plan.Pool, userDataSecret string) extensionsv1alpha1.WorkerPool {
	w := pool.Worker
	surge, unavailable := atOnce(w)
	rendered := extensionsv1alpha1.WorkerPool{
		Name: w.Name, MachineType: w.Machine.Type, Minimum: w.Minimum, Maximum: w.Maximum,
		MaxSurge: surge, MaxUnavailable: unavailable, Annotations: w.Annotations,
		Labels: component.Merge(w.Labels, containerRuntimeLabels(w), map[string]string{
			gardencorev1beta1.LabelWorkerPool:              w.Name,
			gardencorev1beta1.LabelWorkerKubernetesVersion: pool.KubernetesVersion,
		}),
		Taints:              w.Taints,
		MachineImage:        extensionsv1alpha1.MachineImage{Name: pool.ImageName, Version: pool.ImageVersion},
		NodeAgentSecretName: new(pool.SecretName),
		ProviderConfig:      extensions.Compact(w.ProviderConfig),
		UserDataSecretRef: corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: userDataSecret},
			Key:                  extensionsv1alpha1.OperatingSystemConfigSecretDataKey,
		},
		KubeletDataVolumeName: w.KubeletDataVolumeName, Zones: w.Zones,
		MachineControllerManager: pool.MachineControllerManager,
		KubernetesVersion:        new(pool.KubernetesVersion), KubeletConfig: pool.Kubelet,
		Architecture: w.Machine.Architecture,
		Priority:     w.Priority, UpdateStrategy: w.UpdateStrategy,
		ClusterAutoscaler: autoscalerOptions(w.ClusterAutoscaler),
	}
	if pool.InPlace != nil {
		rendered.Annotations = component.Merge(w.Annotations,
			map[string]string{gardencorev1beta1.AnnotationWorkerInPlaceUpdate: pool.InPlace.Hash})
	}
	if plan.AllowsSystemComponents(w) {
		rendered.Labels[gardencorev1beta1.LabelWorkerPoolSystemComponents] = "true"
	}
	if volume := w.Volume; volume != nil {
		rendered.Volume = &extensionsv1alpha1.Volume{
			Name: volume.Name, Type: volume.Type, VolumeSize: volume.VolumeSize, Encrypted: volume.Encrypted,
		}
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
