package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/deletions"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// AgentOptions of the part of the controllers that runs beside a member, and for it alone.
type AgentOptions struct {
	// Name of the member in the fleet.
	Name string
	// Member leads to the member's API.
	Member *rest.Config
	// Identity tells which cluster the member's API is of; see Cluster.spec.id.
	Identity func(context.Context) (string, error)
	// Allows says why an object may not be managed in the member, with an error that wraps registration.ErrNotAllowed;
	// nil allows everything.
	Allows func(*unstructured.Unstructured) error
	// Leaving is called, any number of times, when the member is to leave the fleet.
	Leaving func(context.Context) error
	// Workers is the number of objects that are handled at once.
	Workers int
	// Clusters says how often the member is looked at.
	Clusters ClusterOptions
}

// AddAgent registers with a manager of the fleet what an agent does: it applies the Works of one member, by the same
// code that the fleet applies those of others with, and reports on the member. ctx bounds the connection to the member.
func AddAgent(ctx context.Context, mgr manager.Manager, agent AgentOptions) error {
	options := Options{Workers: agent.Workers, Interpreter: interpreter.New(), Dial: outside.Direct}
	changes := &memberChanges{client: mgr.GetClient()}
	pool := members.NewPool(changes.report, options.Dial)
	taught := newInterpretation(mgr, options)
	// The fleet's Services are none of an agent's business.
	taught.builder.Services = nil
	return errors.Join(
		addAgentInterpretation(ctx, mgr, options, taught, agent.Name),
		addAgentExecution(mgr, options, agent, pool, changes, taught),
		addAgentReport(ctx, mgr, options, agent, pool),
		addLeaving(mgr, options, agent),
	)
}

func addAgentExecution(mgr manager.Manager, options Options, agent AgentOptions, pool *members.Pool,
	changes *memberChanges, taught *interpretation) error {
	e := &execution{
		client: mgr.GetClient(), members: pool, interpreter: options.Interpreter, gate: released{},
		allows: agent.Allows,
		serves: func(cluster *clusterv1alpha1.Cluster) bool { return cluster.Name == agent.Name },
	}
	return execute(mgr, options, e, changes, taught.wakeExecutions)
}

// released is the gate of agents: the fleet marks what may go.
type released struct{}

// Ask implements gate. A mark wakes the Work.
func (released) Ask(_ context.Context, work *workv1alpha1.Work, _ *clusterv1alpha1.Cluster) (deletions.Answer, error) {
	return deletions.Answer{
		Go: releases(work), Keep: work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] ==
			workv1alpha1.ConfirmDeletionKeep,
	}, nil
}

// addAgentInterpretation has all Works looked at again when kinds are understood in another way.
func addAgentInterpretation(ctx context.Context, mgr manager.Manager, options Options, i *interpretation,
	member string) error {
	return i.register(ctx, mgr, options,
		reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			if err := i.teach(ctx, i.client); err != nil {
				return reconcile.Result{}, err
			}
			if len(i.pending) > 0 {
				i.wakeExecutions.add(worksOfCluster(ctx, i.client, member)...)
			}
			i.pending = nil
			return reconcile.Result{}, nil
		}))
}

// report tells the fleet how the member is.
type report struct {
	client   client.Client
	members  *members.Pool
	agent    AgentOptions
	now      func() time.Time
	lifetime context.Context

	mu sync.Mutex
	// id is that of the member, once it was read.
	id       string
	surveyed time.Time
}

func addAgentReport(ctx context.Context, mgr manager.Manager, options Options, agent AgentOptions,
	pool *members.Pool) error {
	r := &report{client: mgr.GetClient(), members: pool, agent: agent, now: time.Now, lifetime: ctx}
	settings := typedOptions[reconcile.Request](options, r)
	settings.MaxConcurrentReconciles = 1
	changed := predicate.TypedGenerationChangedPredicate[*clusterv1alpha1.Cluster]{}
	return setup.Add(mgr, "report", settings, setup.Objects(mgr.GetCache(), &clusterv1alpha1.Cluster{}, changed))
}

// Reconcile looks at the member and writes what it saw.
func (r *report) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name != r.agent.Name {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: request.Name}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := cluster.DeepCopy()
	r.look(ctx, cluster)
	if !apiequality.Semantic.DeepEqual(before.Status, cluster.Status) {
		if err := r.client.Status().Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("reporting on member %s: %w", cluster.Name, err)
		}
	}
	return reconcile.Result{RequeueAfter: r.agent.Clusters.ProbeInterval}, nil
}

// look fills in the status.
func (r *report) look(ctx context.Context, cluster *clusterv1alpha1.Cluster) {
	member, status, reason, message := r.connect(ctx, cluster)
	if member != nil {
		status, reason, message = probe(ctx, member)
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionAgentReported, Status: status, Reason: reason, Message: shorten(message),
	})
	if status != metav1.ConditionTrue {
		return
	}
	if r.surveyDue(cluster) {
		survey(ctx, member, &cluster.Status)
	}
	describeCapacity(member, cluster.Spec.ResourceModels, &cluster.Status)
}

// connect gives no member unless it is the cluster that the fleet accepted: credentials that were copied into another
// must not have the fleet's objects applied there.
func (r *report) connect(ctx context.Context,
	cluster *clusterv1alpha1.Cluster) (*members.Member, metav1.ConditionStatus, string, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id == "" {
		ctx, cancel := members.RequestContext(ctx)
		defer cancel()
		id, err := r.agent.Identity(ctx)
		if err != nil {
			return nil, metav1.ConditionUnknown, "ClusterNotReachable",
				"The cluster's API does not answer its agent: " + err.Error()
		}
		r.id = id
	}
	if r.id != cluster.Spec.ID {
		r.members.Remove(cluster.Name)
		return nil, metav1.ConditionFalse, "AnotherCluster",
			fmt.Sprintf("The agent runs for cluster %q, and %q was accepted (spec.id); register it again, or remove "+
				"the agent where it does not belong", r.id, cluster.Spec.ID)
	}
	member, err := r.members.Use(r.lifetime, cluster.Name, r.agent.Member)
	if err != nil {
		return nil, metav1.ConditionFalse, clusterv1alpha1.ReasonNotConnected, err.Error()
	}
	return member, "", "", ""
}

func (r *report) surveyDue(cluster *clusterv1alpha1.Cluster) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(cluster.Status.Conditions,
		func(c metav1.Condition) bool { return c.Type == clusterv1alpha1.ConditionCompleteAPIEnablements })
	if known && cluster.Status.APIEnablements != nil && r.now().Sub(r.surveyed) < r.agent.Clusters.SurveyInterval {
		return false
	}
	r.surveyed = r.now()
	return true
}
