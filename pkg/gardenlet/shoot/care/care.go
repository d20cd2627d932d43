// Package care looks at the health of shoots.
package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	etcdstatus "github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
)

const (
	// careTimeout bounds one look at a shoot.
	careTimeout = 20 * time.Second
	// soon is when a shoot is looked at again of which a condition turned within the last unsettled.
	soon      = 3 * time.Second
	unsettled = 3 * time.Minute
)

// Reconciler looks at the health of shoots and writes their conditions. garden-controller-manager sums them up.
type Reconciler struct {
	// Garden and Seed are clients.
	Garden, Seed client.Client
	// Seeds reads the Seed, at any look at a shoot.
	Seeds client.Reader
	// Config is gardenlet's configuration.
	Config *config.Configuration
	// Ask asks the etcd-steward at an address for its status; status.Ask if nil.
	Ask func(ctx context.Context, address string) (*etcdstatus.Status, error)
	// TokenProblem says why tokens of workload identities in a namespace could not be renewed; empty if they could.
	TokenProblem func(namespace string) string
	// Now is time.Now if nil.
	Now func() time.Time
}

// Reconcile looks at one shoot.
func (c *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := c.Garden.Get(ctx, req.NamespacedName, shoot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	period := c.Config.Controllers.ShootCare.SyncPeriod.Duration
	if status.SeedOf(shoot) != c.Config.SeedConfig.Name || shoot.Status.TechnicalID == "" ||
		shoot.Status.LastOperation == nil || shoot.DeletionTimestamp != nil {
		return ctrl.Result{RequeueAfter: period}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, careTimeout)
	defer cancel()
	backedUp, err := c.isBackedUp(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var etcds []etcdView
	if !isAsleep(shoot) {
		etcds = c.lookAtEtcds(ctx, shoot.Status.TechnicalID)
	}
	conditions, constraints := c.look(ctx, shoot, etcds, backedUp)
	updated, err := c.updatedInPlace(ctx, shoot)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, shoot, conditions, constraints, updated); err != nil {
		return ctrl.Result{}, err
	}
	if err := errors.Join(c.tellRecoveries(ctx, shoot, etcds), c.tellDifferences(ctx, shoot, etcds)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: nextLook(shoot, period, c.now())}, nil
}

// nextLook says when to look again: soon while something that has just changed is on its way to be well.
func nextLook(shoot *gardencorev1beta1.Shoot, period time.Duration, now time.Time) time.Duration {
	for _, condition := range shoot.Status.Conditions {
		if condition.Status != gardencorev1beta1.ConditionTrue &&
			now.Sub(condition.LastTransitionTime.Time) < unsettled {
			return min(period, soon)
		}
	}
	return period
}

func (c *Reconciler) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// isAsleep tells of shoots that are hibernated, or fall asleep.
func isAsleep(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.IsHibernated || plan.HibernationWanted(shoot)
}

// look returns all conditions and constraints as they are right now. Those that cannot be known are left as they are.
func (c *Reconciler) look(ctx context.Context, shoot *gardencorev1beta1.Shoot, etcds []etcdView,
	backedUp bool) (found, constraints []gardencorev1beta1.Condition) {
	if isAsleep(shoot) {
		return asleepConditions(len(shoot.Spec.Provider.Workers) == 0, backedUp), asleepConstraints()
	}
	found = []gardencorev1beta1.Condition{
		c.controlPlane(ctx, shoot.Status.TechnicalID, &shoot.Spec, etcds),
	}
	if backedUp {
		found = append(found, backupConditions(etcds)...)
	}
	inCluster, constraints := c.lookInside(ctx, shoot)
	return append(found, inCluster...), append(constraints, spaceConstraint(etcds)...)
}

// lookInside asks the API server of a shoot. Its constraints are nil when that does not answer.
func (c *Reconciler) lookInside(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (found, constraints []gardencorev1beta1.Condition) {
	namespace := shoot.Status.TechnicalID
	workerless := len(shoot.Spec.Provider.Workers) == 0
	clientset, err := access.Clientset(ctx, c.Seed, namespace)
	if err == nil {
		_, err = clientset.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
	}
	if err != nil {
		return c.unavailable(err, workerless), nil
	}
	found = []gardencorev1beta1.Condition{
		conditions.New(gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ConditionTrue,
			"HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code."),
	}
	constraints = webhookConstraints(ctx, clientset)
	if workerless {
		return append(found, c.systemComponents(ctx, shoot, nil, nil)), constraints
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return append(found, unknown(gardencorev1beta1.ShootEveryNodeReady, err),
			unknown(gardencorev1beta1.ShootSystemComponentsHealthy, err)), constraints
	}
	c.admitUpdatedNodes(ctx, shoot, clientset, nodes.Items)
	return append(found, everyNodeReady(shoot.Spec.Provider.Workers, nodes.Items),
		c.systemComponents(ctx, shoot, clientset, nodes.Items)), constraints
}

// unavailable are the conditions of a shoot whose API server does not answer: nothing else can be known.
func (c *Reconciler) unavailable(err error, workerless bool) []gardencorev1beta1.Condition {
	list := []gardencorev1beta1.Condition{
		conditions.New(gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ConditionFalse, "APIServerDown",
			"The API server does not answer: "+err.Error()),
		unknown(gardencorev1beta1.ShootSystemComponentsHealthy, err),
	}
	if !workerless {
		list = append(list, unknown(gardencorev1beta1.ShootEveryNodeReady, err))
	}
	return list
}

// unknown is a condition that could not be checked.
func unknown(t gardencorev1beta1.ConditionType, err error) gardencorev1beta1.Condition {
	return conditions.New(t, gardencorev1beta1.ConditionUnknown, "ConditionNotChecked", err.Error())
}

// reasonRecovered says that the data of an etcd was recovered.
const reasonRecovered = "EtcdRecovered"

// controlPlane looks at the workloads in the control plane's namespace, and says what its etcds tell.
func (c *Reconciler) controlPlane(ctx context.Context, namespace string, shoot *gardencorev1beta1.ShootSpec,
	etcds []etcdView) gardencorev1beta1.Condition {
	const t = gardencorev1beta1.ShootControlPlaneHealthy
	if c.TokenProblem != nil {
		if message := c.TokenProblem(namespace); message != "" {
			return conditions.New(t, gardencorev1beta1.ConditionFalse, "WorkloadIdentityTokenNotRenewed", message)
		}
	}
	deployments, statefulSets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, statefulSets} {
		if err := c.Seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return unknown(t, err)
		}
	}
	if problem := etcdProblem(etcds); problem.message != "" {
		return conditions.New(t, gardencorev1beta1.ConditionFalse, problem.reason, problem.message)
	}
	if problem := workloadProblem(deployments.Items, statefulSets.Items, shoot); problem.message != "" {
		return conditions.New(t, gardencorev1beta1.ConditionFalse, problem.reason, problem.message)
	}
	resources, err := c.managedResources(ctx, namespace, true)
	if err != nil {
		return unknown(t, err)
	}
	if message := resourceProblem(resources); message != "" {
		return conditions.New(t, gardencorev1beta1.ConditionFalse, "ManagedResourceUnhealthy", message)
	}
	const healthy = "All control plane components are healthy."
	if recoveries := recovered(etcds, c.now()); recoveries != "" {
		return conditions.New(t, gardencorev1beta1.ConditionTrue, reasonRecovered, healthy+" "+recoveries)
	}
	return conditions.New(t, gardencorev1beta1.ConditionTrue, "ControlPlaneRunning", healthy)
}

// problem is why a condition is not True.
type problem struct{ reason, message string }

// workloadProblem returns the first problem of the workloads of a shoot's control plane. Those of extensions count as
// well.
func workloadProblem(deployments []appsv1.Deployment, statefulSets []appsv1.StatefulSet,
	shoot *gardencorev1beta1.ShootSpec) problem {
	for _, c := range components.ControlPlane {
		switch {
		case !c.IsPartOf(shoot):
		case c.Stage == components.Stores:
			i := slices.IndexFunc(statefulSets, func(s appsv1.StatefulSet) bool { return s.Name == c.Name })
			if i < 0 {
				return problem{"EtcdMissing", fmt.Sprintf("StatefulSet %s is missing.", c.Name)}
			}
			if err := component.CheckStatefulSet(&statefulSets[i]); err != nil {
				return problem{"EtcdUnhealthy", fmt.Sprintf("StatefulSet %s is unhealthy: %v.", c.Name, err)}
			}
		case !slices.ContainsFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == c.Name }):
			return problem{"DeploymentMissing", fmt.Sprintf("Deployment %s is missing.", c.Name)}
		}
	}
	for i := range deployments {
		if err := component.CheckDeployment(&deployments[i]); err != nil {
			return problem{
				"DeploymentUnhealthy", fmt.Sprintf("Deployment %s is unhealthy: %v.", deployments[i].Name, err),
			}
		}
	}
	return heldProblem(deployments)
}

// heldProblem tells which Deployments the watchdog has stopped.
func heldProblem(deployments []appsv1.Deployment) problem {
	var held []string
	for i := range deployments {
		if component.IsHeld(&deployments[i]) {
			held = append(held, deployments[i].Name)
		}
	}
	if len(held) == 0 {
		return problem{}
	}
	slices.Sort(held)
	return problem{
		"ControllersScaledDown", fmt.Sprintf("The API server does not answer, or most nodes cannot reach it; "+
			"until that is over, these are stopped by the seed's dependency watchdog: %s.", strings.Join(held, ", ")),
	}
}

// managedResources lists the ManagedResources of class seed, or those of the shoot.
func (c *Reconciler) managedResources(ctx context.Context, namespace string,
	ofSeed bool) ([]resourcesv1alpha1.ManagedResource, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := c.Seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ManagedResources: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(m resourcesv1alpha1.ManagedResource) bool {
		return (ptr.Deref(m.Spec.Class, "") == resourcesv1alpha1.ClassSeed) != ofSeed
	}), nil
}

// resourceProblem says which ManagedResource is not applied, healthy and settled, and why.
func resourceProblem(resources []resourcesv1alpha1.ManagedResource) string {
	for _, resource := range resources {
		for _, wanted := range []struct {
			t      gardencorev1beta1.ConditionType
			status gardencorev1beta1.ConditionStatus
		}{
			{resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue},
			{resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionTrue},
		} {
			condition := conditions.Get(resource.Status.Conditions, wanted.t)
			if condition == nil {
				return fmt.Sprintf("ManagedResource %s: %s has not been reported yet.", resource.Name, wanted.t)
			}
			if condition.Status != wanted.status {
				return fmt.Sprintf("ManagedResource %s: %s", resource.Name, condition.Message)
			}
		}
	}
	return ""
}

// systemComponents looks at what runs inside the shoot, and at the tunnel into it.
func (c *Reconciler) systemComponents(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	clientset kubernetes.Interface, nodes []corev1.Node) gardencorev1beta1.Condition {
	const t = gardencorev1beta1.ShootSystemComponentsHealthy
	resources, err := c.managedResources(ctx, shoot.Status.TechnicalID, false)
	if err != nil {
		return unknown(t, err)
	}
	if message := resourceProblem(resources); message != "" {
		return conditions.New(t, gardencorev1beta1.ConditionFalse, "ManagedResourceUnhealthy", message)
	}
	for _, name := range components.Names(components.System, &shoot.Spec) {
		if !slices.ContainsFunc(resources, func(m resourcesv1alpha1.ManagedResource) bool { return m.Name == name }) {
			return conditions.New(t, gardencorev1beta1.ConditionFalse, "ManagedResourceMissing",
				fmt.Sprintf("ManagedResource %s is missing.", name))
		}
	}
	if clientset == nil {
		return conditions.New(t, gardencorev1beta1.ConditionTrue, "SystemComponentsRunning",
			"All system components are healthy.")
	}
	if err := access.TunnelError(ctx, clientset, nodes); err != nil {
		return conditions.New(t, gardencorev1beta1.ConditionFalse, "TunnelConnectionBroken", err.Error())
	}
	return conditions.New(t, gardencorev1beta1.ConditionTrue, "SystemComponentsRunning",
		"All system components are healthy.")
}

// everyNodeReady compares the nodes of a shoot with its worker pools.
func everyNodeReady(workers []gardencorev1beta1.Worker, nodes []corev1.Node) gardencorev1beta1.Condition {
	const t = gardencorev1beta1.ShootEveryNodeReady
	for _, worker := range workers {
		registered := 0
		for _, node := range nodes {
			if node.Labels[gardencorev1beta1.LabelWorkerPool] == worker.Name {
				registered++
			}
		}
		if registered < int(worker.Minimum) {
			return conditions.New(t, gardencorev1beta1.ConditionFalse, "MissingNodes",
				fmt.Sprintf("Not enough worker nodes registered in worker pool %q to meet minimum desired machine "+
					"count. (%d/%d).", worker.Name, registered, worker.Minimum))
		}
	}
	for _, node := range nodes {
		if !access.NodeReady(&node) {
			return conditions.New(t, gardencorev1beta1.ConditionFalse, "KubeletNotReady",
				fmt.Sprintf("Node %q is not ready: %s", node.Name, readyMessage(&node)))
		}
	}
	return conditions.New(t, gardencorev1beta1.ConditionTrue, "EveryNodeReady", "All nodes are ready.")
}

// readyMessage is what the node says about its readiness.
func readyMessage(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Message
		}
	}
	return "its kubelet has not reported yet"
}

// report writes the conditions and constraints.
func (c *Reconciler) report(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	found, constraints []gardencorev1beta1.Condition, updated func(*gardencorev1beta1.Shoot, time.Time)) error {
	now := c.now()
	before := shoot.DeepCopy()
	updated(shoot, now)
	for _, condition := range found {
		previous := conditions.Get(shoot.Status.Conditions, condition.Type)
		condition = soften(condition, previous, shoot.Status.LastOperation, c.threshold(condition.Type), now)
		shoot.Status.Conditions = conditions.Set(shoot.Status.Conditions, condition, now)
	}
	for _, constraint := range constraints {
		shoot.Status.Constraints = conditions.Set(shoot.Status.Constraints, constraint, now)
	}
	if apiequality.Semantic.DeepEqual(before.Status, shoot.Status) {
		return nil
	}
	patch := client.MergeFrom(before)
	if !apiequality.Semantic.DeepEqual(before.Status.InPlaceUpdates, shoot.Status.InPlaceUpdates) {
		// An operation that has begun meanwhile may have pools wait again.
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := c.Garden.Status().Patch(ctx, shoot, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the conditions of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return nil
}

// threshold is how long a condition may be Progressing.
func (c *Reconciler) threshold(t gardencorev1beta1.ConditionType) time.Duration {
	if c.Config.Controllers.ShootCare.ConditionThresholds == nil {
		return 0
	}
	for _, threshold := range *c.Config.Controllers.ShootCare.ConditionThresholds {
		if threshold.Type == string(t) {
			return threshold.Duration.Duration
		}
	}
	return 0
}

// soften makes a condition that is not True Progressing while that is to be expected: during the creation, and for
// the time of the threshold after it was True or an operation ended.
func soften(found gardencorev1beta1.Condition, previous *gardencorev1beta1.Condition,
	last *gardencorev1beta1.LastOperation, threshold time.Duration, now time.Time) gardencorev1beta1.Condition {
	if found.Status != gardencorev1beta1.ConditionFalse {
		return found
	}
	creating := last != nil && last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State == gardencorev1beta1.LastOperationStateProcessing
	ended := last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
		now.Sub(last.LastUpdateTime.Time) < threshold
	lapsed := threshold > 0 && previous != nil &&
		(previous.Status == gardencorev1beta1.ConditionTrue ||
			previous.Status == gardencorev1beta1.ConditionProgressing &&
				now.Sub(previous.LastTransitionTime.Time) < threshold)
	if creating || ended || lapsed {
		found.Status = gardencorev1beta1.ConditionProgressing
	}
	return found
}
