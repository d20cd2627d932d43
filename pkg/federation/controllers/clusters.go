package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/capacity"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// clusters keeps the connections to the members, asks them how they are, and clears up after those that leave.
type clusters struct {
	client  client.Client
	members *members.Pool
	now     func() time.Time
	options ClusterOptions
	// lifetime bounds the connections.
	lifetime context.Context

	mu sync.Mutex
	// since is when the answers of a member began to differ from its Ready condition.
	since map[string]time.Time
	// surveyed is when versions, APIs and resources of a member were last looked at.
	surveyed map[string]time.Time
	// heard is what was last heard of agents.
	heard map[string]heartbeat
	// awaited is since when agents are waited for that have to hear that their member leaves.
	awaited map[string]time.Time
	surveys *surveys
}

// ClusterOptions say how often members are asked and how soon they are believed.
type ClusterOptions struct {
	// ProbeInterval is between two questions whether a member's API answers.
	ProbeInterval time.Duration
	// SurveyInterval is between two looks at a member's version, APIs, nodes and pods.
	SurveyInterval time.Duration
	// FailureThreshold is how long a ready member must fail to answer before it counts as not ready.
	FailureThreshold time.Duration
	// SuccessThreshold is how long a failed member must answer before it counts as ready.
	SuccessThreshold time.Duration
	// FirstAnswer is how long placements wait for a member that has just come, until it is known how it is.
	FirstAnswer time.Duration
}

// DefaultClusterOptions are what production uses.
func DefaultClusterOptions() ClusterOptions {
	return ClusterOptions{
		ProbeInterval: 10 * time.Second, SurveyInterval: 60 * time.Second,
		FailureThreshold: 30 * time.Second, SuccessThreshold: 30 * time.Second, FirstAnswer: 30 * time.Second,
	}
}

// Reconcile handles one member.
func (c *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		c.forget(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil {
		return c.leave(ctx, cluster)
	}
	if err := c.prepare(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.checkUp(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: c.options.ProbeInterval}, nil
}

// prepare makes the place for the cluster's Works.
func (c *clusters) prepare(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if err := finalizer.Ensure(ctx, c.client, cluster, clusterv1alpha1.Finalizer); err != nil {
		return fmt.Errorf("cluster %s: %w", cluster.Name, err)
	}
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionNamespace(cluster.Name)},
	}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		return err
	}
	if err := c.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// refuse says in the status why a cluster cannot be a member.
func (c *clusters) refuse(ctx context.Context, cluster *clusterv1alpha1.Cluster, reason, message string) error {
	return c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
		setReady(status, metav1.ConditionFalse, reason, message)
	})
}

// watchLag is how far what is known of a member's pods may be behind what is known of its other objects.
const watchLag = 5 * time.Second

// checkUp connects, probes and, now and then, surveys a member, and records what it found.
func (c *clusters) checkUp(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if cluster.Annotations[clusterv1alpha1.HibernatedAnnotation] == "true" {
		return c.refuse(ctx, cluster, clusterv1alpha1.ReasonHibernated,
			"The cluster is hibernated; it is asked again when it has woken up")
	}
	if !isPushed(cluster) {
		return c.checkAgent(ctx, cluster)
	}
	member, err := c.connect(ctx, cluster)
	if err != nil {
		return c.refuse(ctx, cluster, clusterv1alpha1.ReasonNotConnected, err.Error())
	}
	ready, reason, message := probe(ctx, member)
	if ready = c.damped(cluster, ready); ready == "" {
		return nil
	}
	if ready != metav1.ConditionTrue {
		return c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
			setReady(status, ready, reason, message)
		})
	}
	due := c.surveyDue(cluster)
	if due || isRefusedAsDuplicate(cluster) {
		var duplicate duplicateError
		if err := c.identify(ctx, member, cluster); errors.As(err, &duplicate) {
			return c.refuse(ctx, cluster, reasonDuplicate, err.Error())
		} else if err != nil {
			return err
		}
	}
	renewal := c.renew(ctx, member, cluster)
	if due && renewal == nil && cluster.DeletionTimestamp == nil {
		renewal = c.employImpersonator(ctx, member, cluster)
	}
	return c.record(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
		setReady(status, ready, reason, message)
		if due {
			survey(ctx, member, status)
		}
		seen := c.now().Add(-watchLag)
		describeCapacity(member, cluster.Spec.ResourceModels, status)
		c.surveys.noted(cluster.Name, seen, status.ResourceSummary)
		setRenewed(status, renewal)
	})
}

func (c *clusters) connect(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*members.Member, error) {
	if cluster.Spec.SecretRef == nil {
		return nil, fmt.Errorf("spec.secretRef is empty; name the Secret that holds the credentials of the cluster")
	}
	secret, err := c.secretOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return c.members.Refresh(c.lifetime, cluster, secret)
}

func probe(ctx context.Context, member *members.Member) (metav1.ConditionStatus, string, string) {
	err := member.Probe(ctx)
	if err == nil {
		return metav1.ConditionTrue, "ClusterReady", "The cluster's API is ready"
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return metav1.ConditionFalse, "ClusterNotReady",
			shorten("The cluster's API answers but is not ready: " + err.Error())
	}
	return metav1.ConditionUnknown, "ClusterNotReachable", shorten("The cluster's API does not answer: " + err.Error())
}

// damped holds a change of the Ready condition back until the answers have been different for long enough; "" means to
// leave the condition as it is. Until a member has been ready for the first time, and after it has slept, every answer
// counts at once.
func (c *clusters) damped(cluster *clusterv1alpha1.Cluster, answer metav1.ConditionStatus) metav1.ConditionStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	if known == nil || known.Status == answer || neverReady(cluster, known.Reason) ||
		known.Reason == clusterv1alpha1.ReasonHibernated {
		delete(c.since, cluster.Name)
		return answer
	}
	threshold := c.options.SuccessThreshold
	if known.Status == metav1.ConditionTrue {
		threshold = c.options.FailureThreshold
	}
	began, differing := c.since[cluster.Name]
	if !differing {
		began = c.now()
		c.since[cluster.Name] = began
	}
	if c.now().Sub(began) < threshold {
		return ""
	}
	delete(c.since, cluster.Name)
	return answer
}

// neverReady tells whether the cluster has not been Ready yet: its version is not known, or the fleet waits for its
// agent. The version alone does not tell, as an agent writes it before the fleet has taken notice of its first report.
func neverReady(cluster *clusterv1alpha1.Cluster, reason string) bool {
	return cluster.Status.KubernetesVersion == "" || reason == clusterv1alpha1.ReasonNotAccepted ||
		reason == clusterv1alpha1.ReasonNotReported
}

// surveyDue also counts clusters of which nothing is known yet.
func (c *clusters) surveyDue(cluster *clusterv1alpha1.Cluster) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, done := c.surveyed[cluster.Name]; done && c.now().Sub(last) < c.options.SurveyInterval &&
		cluster.Status.APIEnablements != nil {
		return false
	}
	c.surveyed[cluster.Name] = c.now()
	return true
}

// survey fills in what can be found out; what cannot stays as it was.
func survey(ctx context.Context, member *members.Member, status *clusterv1alpha1.ClusterStatus) {
	log := logr.FromContextOrDiscard(ctx)
	if version, err := member.Version(); err != nil {
		log.Error(err, "Cannot find out the member's version")
	} else {
		status.KubernetesVersion = version
	}
	if apis, complete, err := member.APIs(); err != nil {
		log.Error(err, "Cannot find out the member's APIs")
		setCompleteAPIs(status, false, err.Error())
	} else {
		status.APIEnablements = apis
		setCompleteAPIs(status, complete, "")
	}
}

// describeCapacity writes what the nodes have free. While that cannot be read, what was known before stays.
func describeCapacity(member *members.Member, models []clusterv1alpha1.ResourceModel,
	status *clusterv1alpha1.ClusterStatus) {
	report, err := member.Capacity()
	var reason, message string
	switch {
	case errors.Is(err, capacity.ErrNotSynced):
		return
	case err != nil:
		reason, message = clusterv1alpha1.ReasonUnreadable, err.Error()
	default:
		reason, message = report.Describe(models, status)
	}
	known := reason == clusterv1alpha1.ReasonObserved || reason == clusterv1alpha1.ReasonSummed
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionResourcesObserved, Status: conditionStatus(known), Reason: reason,
		Message: shorten(message),
	})
	if violation := member.Violation(); violation != "" {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ConditionAnswersWithinLimits, Status: metav1.ConditionFalse, Reason: "AnswerTooLarge",
			Message: shorten(violation),
		})
		return
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionAnswersWithinLimits)
}

func setCompleteAPIs(status *clusterv1alpha1.ClusterStatus, complete bool, message string) {
	reason := "Complete"
	if !complete {
		reason = "Partial"
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: conditionStatus(complete), Reason: reason,
		Message: message,
	})
}

func setReady(status *clusterv1alpha1.ClusterStatus, ready metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, Status: ready, Reason: reason, Message: message,
	})
}

// record writes status and taints, if they changed.
func (c *clusters) record(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	change func(*clusterv1alpha1.ClusterStatus)) error {
	before := cluster.DeepCopy()
	change(&cluster.Status)
	if err := c.setPendingRemovals(ctx, cluster, &cluster.Status); err != nil {
		return err
	}
	status := cluster.Status.DeepCopy()
	if !apiequality.Semantic.DeepEqual(before.Status, cluster.Status) {
		if err := c.client.Status().Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("writing the status of cluster %s: %w", cluster.Name, err)
		}
	}
	return c.taint(ctx, cluster, status)
}

// taint keeps new objects away from clusters that aren't ready.
func (c *clusters) taint(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	status *clusterv1alpha1.ClusterStatus) error {
	before := cluster.DeepCopy()
	ready := meta.FindStatusCondition(status.Conditions, clusterv1alpha1.ConditionReady)
	cluster.Spec.Taints = taintsFor(cluster.Spec.Taints, ready.Status)
	if apiequality.Semantic.DeepEqual(before.Spec.Taints, cluster.Spec.Taints) {
		return nil
	}
	if err := c.client.Patch(ctx, cluster,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("tainting cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// taintsFor sets the one of our two taints that fits the condition, and leaves all others alone.
func taintsFor(taints []corev1.Taint, ready metav1.ConditionStatus) []corev1.Taint {
	wanted := map[metav1.ConditionStatus]string{
		metav1.ConditionFalse: clusterv1alpha1.TaintNotReady, metav1.ConditionUnknown: clusterv1alpha1.TaintUnreachable,
	}[ready]
	var result []corev1.Taint
	present := false
	for _, t := range taints {
		ours := (t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable) &&
			t.Effect == corev1.TaintEffectNoSchedule
		if ours && t.Key != wanted {
			continue
		}
		present = present || ours
		result = append(result, t)
	}
	if wanted != "" && !present {
		result = append(result, corev1.Taint{Key: wanted, Effect: corev1.TaintEffectNoSchedule})
	}
	return result
}

// leave waits until the Works of a cluster are gone, as the bindings stop naming it, and then lets it go.
func (c *clusters) leave(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	if err := c.checkUp(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	var left workv1alpha1.WorkList
	namespace := clusterv1alpha1.ExecutionNamespace(cluster.Name)
	if err := c.client.List(ctx, &left, client.InNamespace(namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Works of cluster %s: %w", cluster.Name, err)
	}
	for i := range left.Items {
		if left.Items[i].DeletionTimestamp == nil {
			if err := c.client.Delete(ctx, &left.Items[i]); client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, err
			}
		}
	}
	if len(left.Items) > 0 {
		return reconcile.Result{RequeueAfter: retryRemoval}, nil
	}
	if awaited, err := c.awaitsAgent(ctx, cluster); err != nil || awaited {
		return reconcile.Result{RequeueAfter: retryRemoval}, err
	}
	if err := c.releaseMember(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	c.forget(cluster.Name)
	return reconcile.Result{}, c.letGo(ctx, cluster, namespace)
}

func (c *clusters) letGo(ctx context.Context, cluster *clusterv1alpha1.Cluster, namespace string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing namespace %s: %w", namespace, err)
	}
	return finalizer.Remove(ctx, c.client, cluster, clusterv1alpha1.Finalizer)
}

func (c *clusters) forget(name string) {
	c.members.Remove(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
	delete(c.surveyed, name)
	delete(c.heard, name)
	delete(c.awaited, name)
	c.surveys.forget(name)
}
