package worker

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/extensions/pkg/disruptionbudget"
	"github.com/trellis-garden/trellis/extensions/pkg/managedresource"
	"github.com/trellis-garden/trellis/extensions/pkg/shootaccess"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// ControllerName is the name of the container of the provider's machine driver.
const ControllerName = "machine-controller"

// ManagerName is the name of machine-controller-manager's Deployment, of its service account in the seed, and of all
// that belongs to it.
const ManagerName = "machine-controller-manager"

// CompanionsLease is the Lease of what runs beside the loops of a machine driver in its process.
const CompanionsLease = "machine-controller-companions"

const (
	// driverLease is the Lease of those loops, by the name that machine-controller-manager's library gives it.
	driverLease = "machine-controller"

	managedResourceName = "shoot-core-machine-controller-manager"

	managerPort    = 10258
	controllerPort = 10259
)

// Tuning are time-outs and intervals of machine drivers. Pools may override the time-outs.
type Tuning struct {
	// CreationTimeout is how long a machine may take to become a node. Default 20 min.
	CreationTimeout time.Duration
	// HealthTimeout is how long a node may be unhealthy until its machine is replaced. Default 10 min.
	HealthTimeout time.Duration
	// DrainTimeout is how long a node is drained before its machine is deleted anyway. Default 2 h.
	DrainTimeout time.Duration
	// InPlaceUpdateTimeout is how long an update in place may take, without the drain before it. Default 20 min.
	InPlaceUpdateTimeout time.Duration
	// OrphanPeriod is how often machines without an object are looked for. Default 15 min.
	OrphanPeriod time.Duration
}

func (t *Tuning) setDefaults() {
	for _, d := range []struct {
		value *time.Duration
		byDef time.Duration
	}{
		{&t.CreationTimeout, 20 * time.Minute}, {&t.HealthTimeout, 10 * time.Minute}, {&t.DrainTimeout, 2 * time.Hour},
		{&t.InPlaceUpdateTimeout, 20 * time.Minute}, {&t.OrphanPeriod, 15 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.byDef
		}
	}
}

// deployManager applies machine-controller-manager with the provider's driver.
func (a *actuator) deployManager(ctx context.Context, scope Scope) error {
	namespace, availability := scope.Worker.Namespace, scope.Cluster.Availability()
	kubeconfig, err := scope.Cluster.GenericTokenKubeconfig()
	if err != nil {
		return err
	}
	if err := managedresource.Apply(ctx, a.client, namespace, managedResourceName, managedresource.ClassShoot,
		shootRBAC(a.options.ShootRules)...); err != nil {
		return err
	}
	if err := a.applyAccess(ctx, namespace, availability); err != nil {
		return err
	}
	if err := disruptionbudget.Apply(ctx, a.client, availability, namespace, ManagerName, labels()); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ManagerName}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, deployment, func() error {
		a.fillDeployment(deployment, kubeconfig, availability)
		if extender, ok := a.options.Delegate.(PodExtender); ok {
			return extender.ExtendPod(scope, &deployment.Spec.Template.Spec)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("Deployment %s/%s: %w", namespace, ManagerName, err)
	}
	return nil
}

// applyAccess makes the service account in the seed, and asks for a token in the shoot.
func (a *actuator) applyAccess(ctx context.Context, namespace string, availability component.Availability) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: ManagerName}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, account, func() error { return nil }); err != nil {
		return fmt.Errorf("ServiceAccount %s/%s: %w", namespace, ManagerName, err)
	}
	role := &rbacv1.Role{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, role,
		func() error { role.Rules = seedRules(availability); return nil }); err != nil {
		return fmt.Errorf("Role %s/%s: %w", namespace, ManagerName, err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ManagerName}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: ManagerName, Namespace: namespace}}
		return nil
	}); err != nil {
		return fmt.Errorf("RoleBinding %s/%s: %w", namespace, ManagerName, err)
	}
	return shootaccess.Request(ctx, a.client, namespace, ManagerName)
}

// destroyManager removes machine-controller-manager.
func (a *actuator) destroyManager(ctx context.Context, namespace string) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: ManagerName}
	objects := []client.Object{
		&appsv1.Deployment{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta},
		&corev1.ServiceAccount{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta},
	}
	for _, lease := range electionLeases() {
		objects = append(objects,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}})
	}
	for _, object := range objects {
		if err := client.IgnoreNotFound(a.client.Delete(ctx, object,
			client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
			return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	if err := shootaccess.Revoke(ctx, a.client, namespace, ManagerName); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, a.options.PollInterval, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return managedresource.Delete(ctx, a.client, namespace, managedResourceName)
		})
	if err != nil {
		return fmt.Errorf("deleting ManagedResource %s/%s: %w", namespace, managedResourceName, err)
	}
	return nil
}

// labels select the pods.
func labels() map[string]string { return component.Labels("kubernetes", ManagerName) }

// fillDeployment sets what this controller cares about; labels and defaults that others add stay.
func (a *actuator) fillDeployment(deployment *appsv1.Deployment, kubeconfig string,
	availability component.Availability) {
	podLabels := map[string]string{
		"app": "kubernetes", "role": ManagerName,
		gardencorev1beta1.GardenRole:                           gardencorev1beta1.GardenRoleControlPlane,
		gardencorev1beta1.LabelNetworkPolicyToDNS:              "allowed",
		gardencorev1beta1.LabelNetworkPolicyToRuntimeAPIServer: "allowed",
		gardencorev1beta1.LabelNetworkPolicyToShootAPIServer:   "allowed",
		gardencorev1beta1.LabelNetworkPolicyToPublicNetworks:   "allowed",
		gardencorev1beta1.LabelNetworkPolicyToPrivateNetworks:  "allowed",
	}
	setLabel(deployment, gardencorev1beta1.GardenRole, "controlplane")
	setLabel(deployment, "app", "kubernetes")
	setLabel(deployment, "role", ManagerName)
	spec := &deployment.Spec
	if !component.IsHeld(deployment) {
		spec.Replicas = new(availability.Replicas(component.Pair))
	}
	spec.RevisionHistoryLimit = new(int32(1))
	// Two of them must never act on the same machines. A single one elects no leader, so none may begin beside it that
	// does.
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels()}
	}
	spec.Template.Labels = podLabels
	pod := &spec.Template.Spec
	pod.ServiceAccountName = ManagerName
	pod.TerminationGracePeriodSeconds = new(int64(5))
	pod.TopologySpreadConstraints = availability.Spread(labels(), true)
	pod.Containers = []corev1.Container{
		a.managerContainer(deployment.Namespace, availability),
		a.controllerContainer(deployment.Namespace, availability),
	}
	pod.Volumes = nil
	*pod = shootaccess.Pod(*pod, kubeconfig, ManagerName)
	// Machines are objects of the seed.
	pod.AutomountServiceAccountToken = new(true)
}

func (a *actuator) managerContainer(namespace string, availability component.Availability) corev1.Container {
	return finishContainer(corev1.Container{
		Name:  ManagerName,
		Image: a.options.MachineControllerManager,
		Args: append(connectionArgs(namespace, managerPort, availability),
			"--concurrent-syncs=5",
			"--safety-up=2",
			"--safety-down=1",
			"--machine-safety-overshooting-period=1m",
		),
	}, managerPort)
}

func (a *actuator) controllerContainer(namespace string, availability component.Availability) corev1.Container {
	container := *a.options.MachineController.DeepCopy()
	container.Name = ControllerName
	tuning := a.options.Tuning
	container.Args = append(container.Args, append(connectionArgs(namespace, controllerPort, availability),
		"--concurrent-syncs=20",
		"--machine-creation-timeout="+tuning.CreationTimeout.String(),
		"--machine-health-timeout="+tuning.HealthTimeout.String(),
		"--machine-drain-timeout="+tuning.DrainTimeout.String(),
		"--machine-inplace-update-timeout="+tuning.InPlaceUpdateTimeout.String(),
		"--machine-safety-orphan-vms-period="+tuning.OrphanPeriod.String(),
		"--machine-safety-apiserver-statuscheck-timeout=30s",
		"--machine-safety-apiserver-statuscheck-period=1m",
		"--node-conditions=ReadonlyFilesystem,KernelDeadlock,DiskPressure",
	)...)
	return finishContainer(container, controllerPort)
}

// connectionArgs are those that both programs share. The objects of machines are in the seed, nodes in the shoot.
func connectionArgs(namespace string, port int, availability component.Availability) []string {
	args := []string{
		"--control-kubeconfig=inClusterConfig",
		"--target-kubeconfig=" + shootaccess.KubeconfigFile,
		"--namespace=" + namespace,
		fmt.Sprintf("--port=%d", port),
	}
	return append(append(args, electionArgs(availability)...),
		"--kube-api-qps=100",
		"--kube-api-burst=200",
		"--v=2",
	)
}

// electionArgs have one of several replicas work, by Leases in the seed. One that is alone elects no leader: that would
// only cost writes, and time at each start.
func electionArgs(availability component.Availability) []string {
	if !availability.IsHigh() {
		return []string{"--leader-elect=false"}
	}
	return component.SortedFlags(managers.ElectionFlags())
}

// electionLeases are the names of the Leases that the programs hold while they work.
func electionLeases() []string { return []string{ManagerName, driverLease, CompanionsLease} }

// mostMemory has room for the nodes of a large shoot, whose owner may make them larger than they need to be.
const mostMemory = "2Gi"

func finishContainer(container corev1.Container, port int32) corev1.Container {
	container.ImagePullPolicy = corev1.PullIfNotPresent
	container.Env = append(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "96MiB"})
	container.Resources = component.LimitMemory(component.Requests("5m", "24Mi"), mostMemory)
	container.StartupProbe = component.Healthz(port).Startup()
	container.LivenessProbe = component.Healthz(port).Liveness()
	return container
}

// seedRules are what both programs do in their namespace of the seed.
func seedRules(availability component.Availability) []rbacv1.PolicyRule {
	all := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{"machine.sapcloud.io"},
			Resources: []string{
				"machineclasses", "machineclasses/status", "machinedeployments", "machinedeployments/status",
				"machines", "machines/status", "machinesets", "machinesets/status",
			},
			Verbs: all,
		},
		{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get", "list", "update", "patch", "watch"},
		},
		{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch", "update"},
		},
	}
	if !availability.IsHigh() {
		return rules
	}
	group, resources := []string{coordinationv1.GroupName}, []string{"leases"}
	return append(rules,
		// What is to be created has no name yet that a rule could give.
		rbacv1.PolicyRule{APIGroups: group, Resources: resources, Verbs: []string{"create"}},
		rbacv1.PolicyRule{
			APIGroups: group, Resources: resources, ResourceNames: electionLeases(), Verbs: []string{"get", "update"},
		})
}

// shootRBAC is what both programs do in the shoot: read and drain nodes, hand out bootstrap tokens.
func shootRBAC(more []rbacv1.PolicyRule) []client.Object {
	const name = "system:" + ManagerName
	meta := metav1.ObjectMeta{Name: name}
	systemMeta := metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem}
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Name: ManagerName, Namespace: metav1.NamespaceSystem},
	}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: append([]rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"},
				Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			},
			{
				APIGroups: []string{""}, Resources: []string{"pods"},
				Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			},
			{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
			{
				APIGroups: []string{""}, Resources: []string{
					"persistentvolumeclaims", "persistentvolumes", "replicationcontrollers", "endpoints",
				}, Verbs: []string{
					"get", "list", "watch",
				},
			},
			{
				APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
				Verbs: []string{"create", "patch", "update"},
			},
			{
				APIGroups: []string{"apps"}, Resources: []string{
					"daemonsets", "deployments", "replicasets", "statefulsets",
				}, Verbs: []string{
					"get", "list", "watch",
				},
			},
			{
				APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"},
				Verbs: []string{"get", "list", "watch"},
			},
			{
				APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"},
				Verbs: []string{"delete", "get", "list", "watch"},
			},
		}, more...)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: subjects,
		},
		&rbacv1.Role{ObjectMeta: systemMeta, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"secrets"},
				Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: systemMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: subjects,
		},
	}
}
