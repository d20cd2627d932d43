package watchdog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/answers"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
)

const (
	// probePeriod is how often a shoot is looked at, give or take probeJitter of it; throttledPause is added after an
	// API server has said that it has too much to do.
	probePeriod    = 10 * time.Second
	probeJitter    = 0.2
	throttledPause = 10 * time.Second
	// retryPeriod is probePeriod while the API server does not answer.
	retryPeriod = 5 * time.Second
	// probeTimeout bounds one look at a shoot.
	probeTimeout = 30 * time.Second
	// settleTime is how long the first controller has been ready before the others are started.
	settleTime = 30 * time.Second
	// leastLimit is the age at which a Lease is old at the earliest, whatever grace period the shoot's owner has set:
	// kubelets renew them every ten seconds.
	leastLimit = 20 * time.Second
	// mostAnswer is what a page of Leases may be large, in bytes.
	mostAnswer = 8 << 20
)

// Prober stops the controllers of shoots whose nodes cannot reach their API server, or whose API server is away.
type Prober struct {
	// Garden reads Shoots and Seeds, Watched Machines and EndpointSlices of the seed; both may be caches.
	Garden, Watched client.Reader
	// Seed is a client of the seed, which has no cache.
	Seed client.Client
	// SeedName is the name of the seed.
	SeedName string
	// Events are those of Shoots: of each controller that is stopped or started.
	Events events.EventRecorder
	// Connect returns access to the API server of the shoot in a namespace of the seed; default: over its network.
	Connect func(ctx context.Context, namespace string) (kubernetes.Interface, error)
	// Now is time.Now if nil.
	Now func() time.Time

	mu     sync.Mutex
	shoots map[types.NamespacedName]*memory
}

// memory is what the Prober knows of one shoot. Only one worker at a time has it.
type memory struct {
	// client and sightings are gone when the API server has not answered.
	client    kubernetes.Interface
	sightings Sightings
	// answered is when the API server was last known to answer, unanswered counts the looks since then.
	answered   time.Time
	unanswered int
	// free says that no controller is held, which nobody but the Prober changes.
	free bool
	// ready is since when the first controller is; zero if it is not.
	ready time.Time
}

// Reconcile looks at one shoot.
func (p *Prober) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := p.Garden.Get(ctx, req.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			p.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next := ctrl.Result{RequeueAfter: wait.Jitter(probePeriod, probeJitter)}
	if status.SeedOf(shoot) != p.SeedName || shoot.Status.TechnicalID == "" {
		p.forget(req.NamespacedName)
		return next, nil
	}
	enabled, _, err := settingsOf(ctx, p.Garden, p.SeedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	known := p.memoryOf(req.NamespacedName)
	if !enabled || !isGuarded(shoot) {
		return next, p.releaseAll(ctx, shoot, known)
	}
	tally, err := p.observe(ctx, shoot, known)
	if err == nil {
		known.answered, known.unanswered = p.now(), 0
		return next, p.act(ctx, shoot, Decide(tally), tally, known)
	}
	// Without an answer nothing is known of the nodes.
	known.client, known.sightings = nil, nil
	ctrl.LoggerFrom(ctx).V(1).Info("The Leases of nodes could not be looked at", "reason", err.Error())
	if apierrors.IsTooManyRequests(err) {
		known.answered, known.unanswered = p.now(), 0
		next.RequeueAfter += throttledPause
		return next, nil
	}
	next.RequeueAfter = wait.Jitter(retryPeriod, probeJitter)
	if away, err := p.isAway(ctx, shoot, known); err != nil || !away {
		return next, err
	}
	return next, p.act(ctx, shoot, Away, Tally{}, known)
}

// isAway notes a look without an answer. It says whether there has been none for two thirds of the age at which Leases
// are old, so that the first controller is gone before it would mark a node, and why: one that is only slow, or that
// gardenlet alone does not reach, is in the endpoints of its service, and has an etcd that is in those of its own.
func (p *Prober) isAway(ctx context.Context, shoot *gardencorev1beta1.Shoot, known *memory) (bool, error) {
	if known.answered.IsZero() {
		known.answered = p.now()
	}
	known.unanswered++
	if known.unanswered == 1 || p.now().Sub(known.answered) < limitOf(shoot)*2/3 {
		return false, nil
	}
	for _, service := range []string{kubeapiserver.Name, etcdcomponent.ClientServiceName(etcdcomponent.Main)} {
		endpoints := &discoveryv1.EndpointSliceList{}
		if err := p.Watched.List(ctx, endpoints, client.InNamespace(shoot.Status.TechnicalID),
			client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
			return false, fmt.Errorf("listing the EndpointSlices of Service %s: %w", service, err)
		}
		isServed := func(s discoveryv1.EndpointSlice) bool { return isReady(&s) }
		if !slices.ContainsFunc(endpoints.Items, isServed) {
			return true, nil
		}
	}
	return false, nil
}

// isGuarded says whether a shoot has nodes that are to be heard: one that is being created, goes to sleep, wakes up or
// is deleted needs its controllers, whatever its nodes do.
func isGuarded(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if len(shoot.Spec.Provider.Workers) == 0 || shoot.DeletionTimestamp != nil || last == nil ||
		shoot.Status.IsHibernated || plan.HibernationWanted(shoot) {
		return false
	}
	switch last.Type {
	case gardencorev1beta1.LastOperationTypeReconcile:
		return true
	case gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore:
		return last.State == gardencorev1beta1.LastOperationStateSucceeded
	}
	return false
}

// limitOf is the age at which a Lease of a node is old: before kube-controller-manager marks the node.
func limitOf(shoot *gardencorev1beta1.Shoot) time.Duration {
	grace := kubecontrollermanager.DefaultNodeMonitorGracePeriod
	if user := shoot.Spec.Kubernetes.KubeControllerManager; user != nil && user.NodeMonitorGracePeriod != nil {
		grace = user.NodeMonitorGracePeriod.Duration
	}
	return max(grace*3/4, leastLimit)
}

// observe asks the API server whether it answers at all, and then for the Leases of nodes.
func (p *Prober) observe(ctx context.Context, shoot *gardencorev1beta1.Shoot, known *memory) (Tally, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	namespace := shoot.Status.TechnicalID
	if known.client == nil {
		connected, err := p.connect(ctx, namespace)
		if err != nil {
			return Tally{}, err
		}
		known.client = connected
	}
	if _, err := known.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return Tally{}, fmt.Errorf("asking for the version: %w", err)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := p.Watched.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return Tally{}, fmt.Errorf("listing Machines: %w", err)
	}
	leases, err := readLeases(ctx, known.client, candidates(machines.Items))
	if err != nil {
		return Tally{}, err
	}
	var tally Tally
	known.sightings, tally = Look(known.sightings, leases, p.now(), limitOf(shoot))
	return tally, nil
}

func (p *Prober) connect(ctx context.Context, namespace string) (kubernetes.Interface, error) {
	if p.Connect != nil {
		return p.Connect(ctx, namespace)
	}
	config, err := access.AdminConfig(ctx, p.Seed, namespace)
	if err != nil {
		return nil, err
	}
	config.Wrap(answers.NewGuard("the shoot", answers.Limits{Answer: mostAnswer, Event: mostAnswer}).Wrap)
	return kubernetes.NewForConfig(config)
}

// act does what follows from a decision.
func (p *Prober) act(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, decision Decision, tally Tally, known *memory,
) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if known.free && (decision == Undecided || decision == Heard) {
		return nil
	}
	known.free = false
	deployments, err := p.controllers(ctx, shoot.Status.TechnicalID)
	if err != nil {
		return err
	}
	for _, step := range Steps(decision, statesOf(deployments), p.hasSettled(deployments, known)) {
		i := slices.IndexFunc(deployments, func(d *appsv1.Deployment) bool { return d.Name == step.Name })
		if err := p.take(ctx, step, shoot, deployments[i], decision, tally); err != nil {
			return err
		}
	}
	known.free = noneHeld(deployments)
	return nil
}

func (p *Prober) take(
	ctx context.Context, step Step, shoot *gardencorev1beta1.Shoot, deployment *appsv1.Deployment, decision Decision,
	tally Tally,
) error {
	log := ctrl.LoggerFrom(ctx).WithValues("deployment", client.ObjectKeyFromObject(deployment), "decision", decision,
		"fresh", tally.Fresh, "expired", tally.Expired)
	if !step.Hold {
		log.Info("Starting what judges nodes")
		return p.release(ctx, shoot, deployment)
	}
	log.Info("Stopping what judges nodes")
	if err := component.Hold(ctx, p.Seed, deployment); err != nil {
		return err
	}
	why := "the API server is away"
	if decision == Unheard {
		why = fmt.Sprintf("%d of %d nodes are not heard", tally.Expired, tally.Fresh+tally.Expired+tally.Open)
	}
	p.Events.Eventf(shoot, nil, corev1.EventTypeWarning, "ControllerStopped", "Stop", "%s is stopped: %s",
		deployment.Name, why)
	return nil
}

// release gives a controller back that is held.
func (p *Prober) release(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, deployment *appsv1.Deployment,
) error {
	if err := component.Release(ctx, p.Seed, deployment); err != nil {
		return err
	}
	p.Events.Eventf(shoot, nil, corev1.EventTypeNormal, "ControllerStarted", "Start", "%s is started again",
		deployment.Name)
	return nil
}

// releaseAll gives all controllers back at once that are held.
func (p *Prober) releaseAll(ctx context.Context, shoot *gardencorev1beta1.Shoot, known *memory) error {
	known.client, known.sightings = nil, nil
	if known.free {
		return nil
	}
	deployments, err := p.controllers(ctx, shoot.Status.TechnicalID)
	if err != nil {
		return err
	}
	var all []error
	for _, deployment := range deployments {
		if component.IsHeld(deployment) && !isIgnored(deployment) {
			all = append(all, p.release(ctx, shoot, deployment))
		}
	}
	known.free = errors.Join(all...) == nil
	return errors.Join(all...)
}

// controllers are the Deployments of those that judge nodes, as far as they are there, in the order of their start.
func (p *Prober) controllers(ctx context.Context, namespace string) ([]*appsv1.Deployment, error) {
	var deployments []*appsv1.Deployment
	for _, c := range components.ControlPlane {
		if !c.JudgesNodes {
			continue
		}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name}}
		err := p.Seed.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Deployment %s/%s: %w", namespace, c.Name, err)
		}
		if err == nil {
			deployments = append(deployments, deployment)
		}
	}
	return deployments, nil
}

// hasSettled says whether the first controller has been ready for settleTime, as far as this process knows.
func (p *Prober) hasSettled(deployments []*appsv1.Deployment, known *memory) bool {
	if len(deployments) == 0 {
		return false
	}
	first := stateOf(deployments[0])
	if !first.Ignored && (first.Held || !first.Ready) {
		known.ready = time.Time{}
		return false
	}
	if known.ready.IsZero() {
		known.ready = p.now()
	}
	return p.now().Sub(known.ready) >= settleTime
}

func statesOf(deployments []*appsv1.Deployment) []State {
	var states []State
	for _, deployment := range deployments {
		states = append(states, stateOf(deployment))
	}
	return states
}

func stateOf(deployment *appsv1.Deployment) State {
	return State{
		Name: deployment.Name, Held: component.IsHeld(deployment),
		Runs:    ptr.Deref(deployment.Spec.Replicas, 1) > 0,
		Ready:   deployment.Status.ReadyReplicas > 0,
		Ignored: isIgnored(deployment),
	}
}

func isIgnored(deployment *appsv1.Deployment) bool {
	return deployment.Annotations[gardencorev1beta1.AnnotationWatchdogIgnoreScaling] == "true"
}

func noneHeld(deployments []*appsv1.Deployment) bool {
	return !slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool { return component.IsHeld(d) })
}

func (p *Prober) memoryOf(key types.NamespacedName) *memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shoots[key] == nil {
		if p.shoots == nil {
			p.shoots = map[types.NamespacedName]*memory{}
		}
		p.shoots[key] = &memory{}
	}
	return p.shoots[key]
}

func (p *Prober) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.shoots, key)
}

func (p *Prober) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}
