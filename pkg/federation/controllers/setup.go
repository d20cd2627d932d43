package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/autoscaling"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/cronscaling"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/deletions"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/demand"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/dependencies"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/drain"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/failover"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/quotas"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rebalancing"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rollouts"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/scaling"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/fairqueue"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/moves"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
	"github.com/trellis-garden/trellis/pkg/federation/ownwrites"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/priorityqueue"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Times after which something is tried again that no event announces.
const (
	retryUnschedulable = 10 * time.Second
	retryConflict      = 30 * time.Second
	retryRemoval       = time.Second
	// giveUpUnreachable is how long a cluster that leaves the fleet may fail to answer before its objects are given up.
	giveUpUnreachable = 30 * time.Second
	// agentHears is how long an agent that reports may take to store that its member leaves the fleet. Those of older
	// versions of the fleet never say that they have.
	agentHears = time.Minute
)

// Options of a fleet's controllers.
type Options struct {
	// SkippedNamespaces is a regular expression; objects in namespaces that match it entirely are never propagated.
	SkippedNamespaces string
	// Workers is the number of objects each controller handles at once.
	Workers int
	// MetricsAddress and HealthAddress are listened on; "0" turns one off.
	MetricsAddress string
	HealthAddress  string
	// LeaderElection lets one of several replicas work while the others stand by. All serve the API of members.
	LeaderElection bool
	// Clusters says how members are watched over.
	Clusters ClusterOptions
	// PromiseLapse is how long nothing may change in a member until replicas that it was told to run, and doesn't, hold
	// no room any more.
	PromiseLapse time.Duration
	// Failover says when objects leave what failed, and when they return.
	Failover failover.Options
	// Deletions is how many deletions at once need no confirmation.
	Deletions budget.Settings
	// Autoscaling says how often members are asked what pods use.
	Autoscaling autoscaling.Options
	// MemberAPI is how the API of members is served; not at all by default.
	MemberAPI memberapi.Options
	// Dial connects to members and webhooks.
	Dial outside.Dial
	// Interpreter knows the kinds of objects; by default one that the fleet's customizations and webhooks teach.
	Interpreter *interpreter.Interpreter
}

// DefaultOptions are what production uses.
func DefaultOptions() Options {
	return Options{
		SkippedNamespaces: policies.DefaultSkippedNamespaces, Workers: 16, MetricsAddress: ":8080",
		HealthAddress: ":8081", Clusters: DefaultClusterOptions(),
		PromiseLapse: reservations.DefaultLapse, Failover: failover.DefaultOptions(), Deletions: budget.Default(),
		Autoscaling: autoscaling.DefaultOptions(),
		Dial:        outside.Direct,
	}
}

// Run runs the controllers against a fleet's API until ctx ends. The fleet's custom resource definitions must exist.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	config = rest.CopyConfig(config)
	// The fleet's API server says itself how much it can take (priority and fairness).
	config.QPS = -1
	if err := managers.Begin(ctx, options.HealthAddress, managers.Groups(config)); err != nil {
		return err
	}
	var own *ownwrites.Client
	mgr, err := manager.New(config, managers.Patient(manager.Options{
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			inner, err := client.New(config, options)
			own = ownwrites.New(inner, time.Now)
			return own, err
		},
		Scheme:                 fleetscheme.Scheme(),
		Metrics:                metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress: options.HealthAddress,
		LeaderElection:         options.LeaderElection, LeaderElectionID: fleetv1alpha1.LeaderLease,
		LeaderElectionNamespace: clusterv1alpha1.CredentialsNamespace,
		Client: client.Options{
			Cache: &client.CacheOptions{
				DisableFor: []client.Object{&corev1.Secret{}, &corev1.Namespace{}}, Unstructured: true,
			},
		},
		Cache: cache.Options{DefaultTransform: compact},
	}))
	if err != nil {
		return fmt.Errorf("connecting to the fleet: %w", err)
	}
	if err := errors.Join(rememberWrites(ctx, mgr.GetCache(), own), Add(ctx, mgr, own, options)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// rememberWrites of what the controllers read again soon after they wrote it.
func rememberWrites(ctx context.Context, informers cache.Cache, own *ownwrites.Client) error {
	for _, kind := range []client.Object{
		&workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
	} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		if err := own.Remember(kind, informer); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// Add registers the controllers with a manager, whose client is own. ctx bounds the connections to members.
func Add(ctx context.Context, mgr manager.Manager, own *ownwrites.Client, options Options) error {
	skipped, err := policies.NewSkipped(options.SkippedNamespaces)
	if err != nil {
		return err
	}
	if options.Interpreter == nil {
		options.Interpreter = interpreter.New()
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(
		indexer.IndexField(ctx, &workv1alpha1.Work{}, workBindingIndex, indexWork),
		indexer.IndexField(ctx, &policyv1alpha1.PropagationPolicy{}, policies.KindIndex, policies.IndexKinds),
		indexer.IndexField(ctx, &policyv1alpha1.ClusterPropagationPolicy{}, policies.KindIndex, policies.IndexKinds),
	); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	if mgr, err = moves.Add(ctx, mgr); err != nil {
		return err
	}
	changes := &memberChanges{client: mgr.GetClient()}
	pool := members.NewPool(changes.report, options.Dial)
	s := &scheduling{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("scheduling"), now: time.Now,
		clusters: &clusterView{
			reader: mgr.GetClient(), surveys: newSurveys(), firstAnswer: options.Clusters.FirstAnswer,
		},
		firstAnswer: options.Clusters.FirstAnswer, index: wake.NewIndex(),
		reservations: reservations.New(time.Now, options.PromiseLapse),
		priorities:   priorityqueue.New(),
	}
	if s.observed, err = observeBindings(ctx, mgr.GetCache(), s.reservations); err != nil {
		return err
	}
	worksController, err := addWorks(mgr, options, s, own)
	if err != nil {
		return err
	}
	taught := newInterpretation(mgr, options)
	return errors.Join(
		worksController.Watch(taught.wakeBindings),
		addPropagation(ctx, mgr, options, skipped, worksController, taught, s),
		taught.register(ctx, mgr, options, taught),
		addScheduling(mgr, options, s),
		addGroups(ctx, mgr),
		rebalancing.Add(mgr, settings(options)),
		addScaling(mgr, options, pool),
		quotas.Add(mgr, settings(options)),
		demand.Add(mgr, s.clusters.alone, settings(options)),
		addExecution(mgr, options, pool, changes, taught.wakeExecutions),
		addClusters(ctx, mgr, options, pool, s.clusters.surveys),
		drain.Add(mgr, pool, settings(options)),
		failover.Add(mgr, options.Failover, workBindingIndex, settings(options)),
		memberapi.Add(mgr, options.MemberAPI, options.Dial),
	)
}

// rateLimiter retries soon at first and never waits long: what fails is mostly a conflict or a member that is away.
func rateLimiter[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](100*time.Millisecond, 15*time.Second)
}

// quiet turns conflicts between two writers, and with the cache, into another try: they are normal and say nothing to
// people.
func quiet[R comparable](reconciler reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	return reconcile.TypedFunc[R](func(ctx context.Context, request R) (reconcile.Result, error) {
		result, err := reconciler.Reconcile(ctx, request)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}
		return result, err
	})
}

func typedOptions[R comparable](options Options, reconciler reconcile.TypedReconciler[R]) controller.TypedOptions[R] {
	return controller.TypedOptions[R]{
		Reconciler: quiet(reconciler), MaxConcurrentReconciles: options.Workers, RateLimiter: rateLimiter[R](),
		SkipNameValidation: new(true),
	}
}

// Workers of the execution controller: many, since most of them wait for members.
const (
	executionWorkers = 256
	workersPerMember = 16
	// slowMember is how long a Work may take until its member is left a single worker.
	slowMember = 2 * time.Second
)

// fairOptions let no member hold up the others.
func fairOptions(options Options, reconciler reconcile.Reconciler) controller.Options {
	result := typedOptions[reconcile.Request](options, reconciler)
	result.MaxConcurrentReconciles = executionWorkers
	result.NewQueue = func(name string,
		limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return fairqueue.New(name, limiter, fairqueue.Options[reconcile.Request]{
			Lane:  func(r reconcile.Request) string { return r.Namespace },
			Limit: workersPerMember, Slow: slowMember, Now: time.Now,
		})
	}
	return result
}

// settings are those of the controllers that live in packages of their own.
func settings(options Options) setup.Settings {
	return func(r reconcile.Reconciler) controller.Options { return typedOptions[reconcile.Request](options, r) }
}

func addPropagation(ctx context.Context, mgr manager.Manager, options Options, skipped policies.Skipped,
	worksController controller.Controller, taught *interpretation, s *scheduling) error {
	p := &propagation{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("propagation"), interpreter: options.Interpreter,
		skipped: skipped, create: s.create,
	}
	c, err := controller.NewTyped("propagation", mgr, typedOptions[bindings.TemplateKey](options, p))
	if err != nil {
		return err
	}
	wake := &inlet[bindings.TemplateKey]{}
	dependents, err := dependencies.Add(ctx, mgr, dependencies.Options{
		Source: options.Interpreter, Skipped: skipped.Skips, Settings: settings(options),
	})
	if err != nil {
		return err
	}
	templates := newTemplateWatches(mgr.GetCache(), c, worksController, dependents.WatchKind)
	dependents.Using(templates.ensure)
	taught.templates = templates
	w := &policyWatch{
		client: mgr.GetClient(), mapper: mgr.GetRESTMapper(), events: mgr.GetEventRecorder("propagation"),
		templates: templates, wake: wake,
	}
	policies, err := controller.New("policies", mgr, typedOptions[reconcile.Request](options, w))
	if err != nil {
		return err
	}
	return errors.Join(
		policies.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.PropagationPolicy{},
			enqueue[*policyv1alpha1.PropagationPolicy]())),
		policies.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.ClusterPropagationPolicy{},
			enqueue[*policyv1alpha1.ClusterPropagationPolicy]())),
		policies.Watch(source.Kind(mgr.GetCache(), &schedulingv1.PriorityClass{},
			toPolicies(mgr.GetClient(), namesPriorityClass))),
		policies.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.OverridePolicy{},
			toPolicies(mgr.GetClient(), waitsFor[*policyv1alpha1.OverridePolicy]),
			created[*policyv1alpha1.OverridePolicy]())),
		policies.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.ClusterOverridePolicy{},
			toPolicies(mgr.GetClient(), waitsFor[*policyv1alpha1.ClusterOverridePolicy]),
			created[*policyv1alpha1.ClusterOverridePolicy]())),
		c.Watch(wake),
		c.Watch(taught.wakeTemplates),
		dependents.Watch(taught.wakeDependents),
		c.Watch(source.TypedKind(mgr.GetCache(), &workv1alpha2.ResourceBinding{},
			onBinding[*workv1alpha2.ResourceBinding](), bindingRelevant[*workv1alpha2.ResourceBinding]())),
		c.Watch(source.TypedKind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{},
			onBinding[*workv1alpha2.ClusterResourceBinding](),
			bindingRelevant[*workv1alpha2.ClusterResourceBinding]())),
	)
}

func addScheduling(mgr manager.Manager, options Options, s *scheduling) error {
	inOrder := typedOptions[reconcile.Request](options, s)
	inOrder.NewQueue = s.priorities.Queue
	c, err := controller.New("scheduling", mgr, inOrder)
	if err != nil {
		return err
	}
	concerned := func(before, after *core.Cluster) []types.NamespacedName {
		return s.priorities.Sort(s.index.ConcernedBy(before, after))
	}
	return errors.Join(
		c.Watch(&s.retry),
		mgr.Add(retryWaiting(s.priorities, &s.retry)),
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ResourceBinding{},
			byPriority[*workv1alpha2.ResourceBinding](s.priorities),
			predicate.TypedGenerationChangedPredicate[*workv1alpha2.ResourceBinding]{})),
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{},
			byPriority[*workv1alpha2.ClusterResourceBinding](s.priorities),
			predicate.TypedGenerationChangedPredicate[*workv1alpha2.ClusterResourceBinding]{})),
		c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, clusterChanged(s.clusters, concerned))),
		c.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.FederatedResourceQuota{},
			toNamespace[*policyv1alpha1.FederatedResourceQuota](s.index, s.priorities),
			predicate.TypedGenerationChangedPredicate[*policyv1alpha1.FederatedResourceQuota]{})),
	)
}

func addWorks(mgr manager.Manager, options Options, s *scheduling,
	own *ownwrites.Client) (controller.Controller, error) {
	w := &works{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("works"), interpreter: options.Interpreter, now: time.Now,
		index: s.index, written: own, delay: newReportDelay(time.Now), reservations: s.reservations,
		rollouts: &rollouts.Rollouts{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Interpreter: options.Interpreter,
			Events: mgr.GetEventRecorder("rollout"), Now: time.Now,
		},
	}
	c, err := controller.New("works", mgr, typedOptions[reconcile.Request](options, w))
	if err != nil {
		return nil, err
	}
	return c, errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ResourceBinding{}, enqueue[*workv1alpha2.ResourceBinding](),
			bindingRelevant[*workv1alpha2.ResourceBinding]())),
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha2.ClusterResourceBinding{},
			enqueue[*workv1alpha2.ClusterResourceBinding](), bindingRelevant[*workv1alpha2.ClusterResourceBinding]())),
		c.Watch(source.Kind(mgr.GetCache(), &workv1alpha1.Work{}, toBindingOfWork())),
		c.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.OverridePolicy{},
			overrideChanged(mgr.GetClient(), s.index, specOfOverridePolicy))),
		c.Watch(source.Kind(mgr.GetCache(), &policyv1alpha1.ClusterOverridePolicy{},
			overrideChanged(mgr.GetClient(), s.index, specOfClusterOverridePolicy))),
		c.Watch(source.Kind(mgr.GetCache(), &clusterv1alpha1.Cluster{},
			clusterChanged(s.clusters, s.index.ChangedWith))),
	)
}

// collectStatus is how long the status of a binding's Works is collected before it is written.
const collectStatus = 50 * time.Millisecond

// toBindingOfWork wakes the binding of a Work that changed or is gone: a little later, since the Works of all members
// change at about the same time.
func toBindingOfWork() handler.TypedEventHandler[*workv1alpha1.Work, reconcile.Request] {
	wake := func(work *workv1alpha1.Work, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if key, ok := bindings.OfWork(work); ok {
			queue.AddAfter(reconcile.Request{NamespacedName: key}, collectStatus)
		}
	}
	return handler.TypedFuncs[*workv1alpha1.Work, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*workv1alpha1.Work],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*workv1alpha1.Work],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, queue)
		},
	}
}

// bindingRelevant ignores the status: the works controller writes it, and neither it nor the object's policy follows
// from it.
func bindingRelevant[B client.Object]() predicate.TypedPredicate[B] {
	return predicate.Or[B](
		predicate.TypedGenerationChangedPredicate[B]{}, predicate.TypedAnnotationChangedPredicate[B]{},
		predicate.TypedLabelChangedPredicate[B]{},
	)
}

// addGroups indexes what decisions on groups of workloads need.
func addGroups(ctx context.Context, mgr manager.Manager) error {
	indexer := mgr.GetFieldIndexer()
	return errors.Join(
		indexer.IndexField(ctx, &workv1alpha2.ResourceBinding{}, groupIndex, indexGroups),
		indexer.IndexField(ctx, &workv1alpha2.ClusterResourceBinding{}, groupIndex, indexGroups),
	)
}

func addScaling(mgr manager.Manager, options Options, pool *members.Pool) error {
	scales, err := scaling.New(mgr.GetConfig(), mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	return errors.Join(
		cronscaling.Add(mgr, scales, settings(options)),
		autoscaling.Add(mgr, scales, pool, options.Autoscaling, settings(options)),
	)
}

func addExecution(mgr manager.Manager, options Options, pool *members.Pool, changes *memberChanges,
	more source.Source) error {
	gate, err := deletions.New(mgr, options.Deletions)
	if err != nil {
		return err
	}
	e := &execution{
		client: mgr.GetClient(), members: pool, interpreter: options.Interpreter, gate: gate, serves: isPushed,
	}
	return execute(mgr, options, e, changes, more)
}

// execute has Works carried out when they change, and when members do; changes and more wake others.
func execute(mgr manager.Manager, options Options, e *execution, changes *memberChanges, more source.Source) error {
	toWorks := func(ctx context.Context, cluster *clusterv1alpha1.Cluster) []reconcile.Request {
		return worksOfCluster(ctx, mgr.GetClient(), cluster.Name)
	}
	return setup.Add(mgr, "execution", fairOptions(options, e),
		setup.Objects(mgr.GetCache(), &workv1alpha1.Work{}, workRelevant()),
		setup.Concerned(mgr.GetCache(), &clusterv1alpha1.Cluster{}, toWorks, readinessChanged()),
		changes,
		more,
	)
}

func addClusters(ctx context.Context, mgr manager.Manager, options Options, pool *members.Pool,
	surveys *surveys) error {
	c := &clusters{
		client: mgr.GetClient(), members: pool, now: time.Now, options: options.Clusters, lifetime: ctx,
		since: map[string]time.Time{}, surveyed: map[string]time.Time{}, heard: map[string]heartbeat{},
		awaited: map[string]time.Time{},
		surveys: surveys,
	}
	changed :=
		predicate.Or[*clusterv1alpha1.Cluster](predicate.TypedGenerationChangedPredicate[*clusterv1alpha1.Cluster]{},
			deletionStarted(), agentSpoke())
	return setup.Add(mgr, "clusters", typedOptions[reconcile.Request](options, c),
		setup.Objects(mgr.GetCache(), &clusterv1alpha1.Cluster{}, changed))
}

// waitsFor tells whether a policy lists an override policy that must exist first. Those of a namespace are only for its
// own policies.
func waitsFor[T client.Object](policy policies.Policy, override T) bool {
	return policy.GetNamespace() == override.GetNamespace() &&
		slices.Contains(policy.Spec.DependentOverrides, override.GetName())
}

func created[T client.Object]() predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false },
		DeleteFunc: func(event.TypedDeleteEvent[T]) bool { return false },
	}
}

func enqueue[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object T) []reconcile.Request {
		return []reconcile.Request{requestFor(object)}
	})
}

// toNamespace wakes the bindings of a namespace, the most urgent first.
func toNamespace[T client.Object](index *wake.Index,
	priorities *priorityqueue.Priorities) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object T) []reconcile.Request {
		var requests []reconcile.Request
		for _, key := range priorities.Sort(index.All()) {
			if key.Namespace == object.GetNamespace() {
				requests = append(requests, reconcile.Request{NamespacedName: key})
			}
		}
		return requests
	})
}

func worksOfCluster(ctx context.Context, reader client.Reader, cluster string) []reconcile.Request {
	var list workv1alpha1.WorkList
	if err := reader.List(ctx, &list, client.InNamespace(clusterv1alpha1.ExecutionNamespace(cluster)),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i] = requestFor(&list.Items[i])
	}
	return requests
}

// workRelevant ignores the status, which execution writes itself.
func workRelevant() predicate.TypedPredicate[*workv1alpha1.Work] {
	return predicate.Or[*workv1alpha1.Work](
		predicate.TypedGenerationChangedPredicate[*workv1alpha1.Work]{},
		predicate.TypedAnnotationChangedPredicate[*workv1alpha1.Work]{},
	)
}

func readinessChanged() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		CreateFunc: func(event.TypedCreateEvent[*clusterv1alpha1.Cluster]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			const confirm = clusterv1alpha1.ConfirmDeletionAnnotation
			return isReady(e.ObjectOld) != isReady(e.ObjectNew) ||
				e.ObjectOld.Annotations[confirm] != e.ObjectNew.Annotations[confirm] ||
				e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
		},
	}
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
}

func deletionStarted() predicate.TypedFuncs[*clusterv1alpha1.Cluster] {
	return predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
		UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
			return e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
		},
	}
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
