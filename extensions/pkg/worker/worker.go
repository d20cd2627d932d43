// Package worker is the Worker controller for any provider. An author says how machines of a pool look (a Delegate) and
// which program drives them; deploying machine-controller-manager, its objects, rolling updates and clean-up are done
// here.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Scope is what a Delegate may look at.
type Scope struct {
	Worker  *extensionsv1alpha1.Worker
	Cluster *cluster.Cluster
}

// Delegate is what providers differ in.
type Delegate interface {
	// ProviderSpec is the specification that the machine driver gets for machines of the pool in the zone. It is
	// encoded as JSON; a change of it replaces the machines.
	ProviderSpec(ctx context.Context, scope Scope, pool extensionsv1alpha1.WorkerPool, zone string) (any, error)
}

// PodExtender is implemented by delegates whose machine driver needs more in its pod than an image and arguments.
type PodExtender interface {
	// ExtendPod changes the pod of machine-controller-manager. The driver's container is named ControllerName.
	ExtendPod(scope Scope, pod *corev1.PodSpec) error
}

// Options describe a Worker controller.
type Options struct {
	// Type is the spec.type of Workers.
	Type string
	// Delegate describes machines.
	Delegate Delegate
	// MachineControllerManager is the image of machine-controller-manager.
	MachineControllerManager string
	// MachineController is the container of the provider's machine driver. Image and Command are required; arguments
	// for connections and time-outs are added.
	MachineController corev1.Container
	// ShootRules are permissions in the shoot that the machine driver needs beyond those for nodes.
	ShootRules []rbacv1.PolicyRule
	// Tuning are the driver's time-outs.
	Tuning Tuning
	// ReadyTimeout bounds the wait for machines. Default 9 min: gardenlet waits for 10, and is to hear what is missing.
	ReadyTimeout time.Duration
	// PollInterval is how often caches are looked at while waiting. Default 250 ms.
	PollInterval time.Duration
}

// Add registers the Worker controller with the manager. Its scheme must know machine.sapcloud.io/v1alpha1.
func Add(mgr manager.Manager, options Options) error {
	if options.ReadyTimeout == 0 {
		options.ReadyTimeout = 9 * time.Minute
	}
	if options.PollInterval == 0 {
		options.PollInterval = 250 * time.Millisecond
	}
	options.Tuning.setDefaults()
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Worker]{
		Kind:     extensionsv1alpha1.WorkerResource,
		Type:     options.Type,
		Actuator: &actuator{options: options, client: mgr.GetClient()},
		// Whoever sees that machines do not come up must be able to change what is wanted.
		Interruptible: true,
	})
}

type actuator struct {
	options Options
	client  client.Client
}

// Reconcile implements extension.Actuator.
func (a *actuator) Reconcile(ctx context.Context, log logr.Logger, worker *extensionsv1alpha1.Worker,
	shoot *cluster.Cluster) error {
	if shoot == nil {
		return fmt.Errorf("namespace %s has no Cluster; a Worker belongs to a shoot", worker.Namespace)
	}
	deployments, err := a.plan(ctx, worker, shoot)
	if err != nil {
		return err
	}
	if err := a.deployManager(ctx, Scope{Worker: worker, Cluster: shoot}); err != nil {
		return err
	}
	if err := a.applyAll(ctx, worker, deployments, shoot.IsHibernated()); err != nil {
		return err
	}
	if err := a.report(ctx, worker, deployments); err != nil {
		return err
	}
	if err := a.deleteUnwanted(ctx, worker.Namespace, deployments); err != nil {
		return err
	}
	log.Info("waiting for machines", "machineDeployments", len(deployments))
	if shoot.IsHibernated() {
		if err := a.hibernate(ctx, worker.Namespace, deployments); err != nil {
			return err
		}
	} else if err := a.waitReady(ctx, worker.Namespace, deployments); err != nil {
		return err
	}
	if err := a.reportInPlaceUpdates(ctx, worker, deployments); err != nil {
		return err
	}
	return a.deleteUnusedClasses(ctx, worker.Namespace, deployments)
}

func (a *actuator) plan(ctx context.Context, worker *extensionsv1alpha1.Worker,
	shoot *cluster.Cluster) ([]Deployment, error) {
	scope := Scope{Worker: worker, Cluster: shoot}
	return plan(worker.Namespace, worker.Spec.Pools,
		func(pool extensionsv1alpha1.WorkerPool, zone string) (any, error) {
			return a.options.Delegate.ProviderSpec(ctx, scope, pool, zone)
		})
}

func (a *actuator) applyAll(ctx context.Context, worker *extensionsv1alpha1.Worker, deployments []Deployment,
	hibernated bool) error {
	for _, deployment := range deployments {
		if err := a.applyClass(ctx, worker, deployment); err != nil {
			return err
		}
		if err := a.applyDeployment(ctx, worker, deployment, hibernated); err != nil {
			return err
		}
	}
	return nil
}

func (a *actuator) applyClass(ctx context.Context, worker *extensionsv1alpha1.Worker, deployment Deployment) error {
	userData, err := a.userData(ctx, worker.Namespace, deployment.Pool.UserDataSecretRef)
	if err != nil {
		return fmt.Errorf("pool %s: %w", deployment.Pool.Name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: deployment.ClassName}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, secret, func() error {
		setLabel(secret, labelPurpose, purposeMachineClass)
		secret.Data = map[string][]byte{keyUserData: userData}
		return nil
	}); err != nil {
		return fmt.Errorf("Secret %s/%s: %w", worker.Namespace, deployment.ClassName, err)
	}
	class := &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: deployment.ClassName},
	}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, class, func() error {
		deployment.applyClass(class, worker, a.options.Type)
		return nil
	}); err != nil {
		return fmt.Errorf("MachineClass %s/%s: %w", worker.Namespace, deployment.ClassName, err)
	}
	return nil
}

func (a *actuator) userData(ctx context.Context, namespace string, selector corev1.SecretKeySelector) ([]byte, error) {
	var secret corev1.Secret
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: selector.Name}, &secret); err != nil {
		return nil, fmt.Errorf("reading the user data: %w", err)
	}
	data := secret.Data[selector.Key]
	if len(data) == 0 {
		return nil, fmt.Errorf("user data: Secret %s/%s has no key %q", namespace, selector.Name, selector.Key)
	}
	return data, nil
}

func (a *actuator) applyDeployment(ctx context.Context, worker *extensionsv1alpha1.Worker, wanted Deployment,
	hibernated bool) error {
	deployment := &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: wanted.Name},
	}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, deployment, func() error {
		var current *int32
		if deployment.ResourceVersion != "" {
			replicas := deployment.Spec.Replicas
			current = &replicas
		}
		wanted.applyDeployment(deployment, worker.Spec.Region)
		deployment.Spec.Replicas = wanted.replicas(current, hibernated)
		return nil
	}); err != nil {
		return fmt.Errorf("MachineDeployment %s/%s: %w", worker.Namespace, wanted.Name, err)
	}
	return nil
}

// report writes status.machineDeployments before the machines are there: others act on it meanwhile.
func (a *actuator) report(ctx context.Context, worker *extensionsv1alpha1.Worker, deployments []Deployment) error {
	status := statusOf(deployments)
	if apiequality.Semantic.DeepEqual(worker.Status.MachineDeployments, status) &&
		worker.Status.MachineDeploymentsLastUpdateTime != nil {
		return nil
	}
	now := metav1.Now()
	early := worker.DeepCopy()
	early.Status.MachineDeployments, early.Status.MachineDeploymentsLastUpdateTime = status, &now
	if err := a.client.Status().Patch(ctx, early, client.MergeFrom(worker.DeepCopy())); err != nil {
		return fmt.Errorf("reporting the machine deployments: %w", err)
	}
	worker.Status.MachineDeployments, worker.Status.MachineDeploymentsLastUpdateTime = status, &now
	worker.SetResourceVersion(early.GetResourceVersion())
	return nil
}

// deleteUnwanted removes MachineDeployments of pools and zones that are gone; their machines go with them.
func (a *actuator) deleteUnwanted(ctx context.Context, namespace string, deployments []Deployment) error {
	wanted := map[string]bool{}
	for _, deployment := range deployments {
		wanted[deployment.Name] = true
	}
	var existing machinev1alpha1.MachineDeploymentList
	if err := a.client.List(ctx, &existing, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range existing.Items {
		if wanted[existing.Items[i].Name] {
			continue
		}
		if err := client.IgnoreNotFound(a.client.Delete(ctx, &existing.Items[i])); err != nil {
			return fmt.Errorf("deleting MachineDeployment %s/%s: %w", namespace, existing.Items[i].Name, err)
		}
	}
	return nil
}

// deleteUnusedClasses removes MachineClasses, with their Secrets, that no wanted machine has any more.
// machine-controller-manager keeps a class with a finalizer while machines use it. Machines that were updated in place
// have the class that they were made with as long as they live.
func (a *actuator) deleteUnusedClasses(ctx context.Context, namespace string, deployments []Deployment) error {
	wanted, err := a.classesInPlace(ctx, namespace, deployments)
	if err != nil {
		return err
	}
	for _, deployment := range deployments {
		wanted[deployment.ClassName] = true
	}
	var classes machinev1alpha1.MachineClassList
	if err := a.client.List(ctx, &classes, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing MachineClasses: %w", err)
	}
	for i := range classes.Items {
		if !wanted[classes.Items[i].Name] {
			if err := client.IgnoreNotFound(a.client.Delete(ctx, &classes.Items[i])); err != nil {
				return fmt.Errorf("deleting MachineClass %s/%s: %w", namespace, classes.Items[i].Name, err)
			}
		}
	}
	var secrets corev1.SecretList
	if err := a.client.List(ctx, &secrets, client.InNamespace(namespace),
		client.MatchingLabels{labelPurpose: purposeMachineClass}); err != nil {
		return fmt.Errorf("listing Secrets of MachineClasses: %w", err)
	}
	for i := range secrets.Items {
		if !wanted[secrets.Items[i].Name] {
			if err := client.IgnoreNotFound(a.client.Delete(ctx, &secrets.Items[i])); err != nil {
				return fmt.Errorf("deleting Secret %s/%s: %w", namespace, secrets.Items[i].Name, err)
			}
		}
	}
	return nil
}

// waitReady returns when every MachineDeployment has the wanted machines and no others, or when machines cannot be
// made, or not go.
func (a *actuator) waitReady(ctx context.Context, namespace string, deployments []Deployment) error {
	var unready error
	err := wait.PollUntilContextTimeout(ctx, a.options.PollInterval, a.options.ReadyTimeout, true,
		func(ctx context.Context) (bool, error) {
			unready = nil
			for _, wanted := range deployments {
				missing, err := a.missing(ctx, namespace, wanted)
				if err != nil {
					return false, err
				}
				unready = errors.Join(unready, missing)
			}
			return unready == nil, nil
		})
	if unready != nil && wait.Interrupted(err) {
		return fmt.Errorf("machines are not ready after %s: %w", a.options.ReadyTimeout, unready)
	}
	return err
}

// missing tells what a MachineDeployment lacks until it is as wanted; an error is what does not come by waiting.
func (a *actuator) missing(ctx context.Context, namespace string, wanted Deployment) (missing, err error) {
	var deployment machinev1alpha1.MachineDeployment
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: wanted.Name}, &deployment); err != nil {
		return err, nil
	}
	if err := hopeless(&deployment); err != nil {
		return nil, err
	}
	if isInPlace(wanted.Pool) {
		return a.missingInPlace(ctx, &deployment, wanted)
	}
	if missing = readiness(&deployment, wanted.ClassName); missing == nil {
		return nil, nil
	}
	drains, err := a.drains(ctx, namespace, wanted.Name)
	if err != nil {
		return nil, err
	}
	return withDrains(missing, drains)
}

// Delete implements extension.Actuator: all machines, without draining them, then machine-controller-manager. It is
// needed for the former, so it is deployed again if it is not there.
func (a *actuator) Delete(ctx context.Context, log logr.Logger, worker *extensionsv1alpha1.Worker,
	shoot *cluster.Cluster) error {
	left, err := a.remaining(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	if left > 0 {
		if err := a.deployManager(ctx, Scope{Worker: worker, Cluster: shoot}); err != nil {
			return err
		}
		log.Info("deleting machines")
		if err := a.deleteMachines(ctx, worker.Namespace); err != nil {
			return err
		}
	}
	if err := a.destroyManager(ctx, worker.Namespace); err != nil {
		return err
	}
	return a.releaseSecrets(ctx, worker.Namespace)
}

// ForceDelete implements extension.ForceDeleter: the objects go, whatever becomes of the machines.
func (a *actuator) ForceDelete(ctx context.Context, _ logr.Logger, worker *extensionsv1alpha1.Worker,
	_ *cluster.Cluster) error {
	if err := a.destroyManager(ctx, worker.Namespace); err != nil {
		return err
	}
	return a.abandonMachines(ctx, worker.Namespace)
}
