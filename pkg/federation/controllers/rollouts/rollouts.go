package rollouts

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
)

// look is how often a rollout that waits for clusters is looked at, since not everything that it waits for is
// announced: that a cluster stops to answer, for example.
const look = 5 * time.Second

// Rollouts carries out the rollouts of a fleet's objects.
type Rollouts struct {
	Client client.Client
	// Live reads past the cache: a status that was written a moment ago decides what clusters get.
	Live        client.Reader
	Interpreter *interpreter.Interpreter
	Events      events.EventRecorder
	Now         func() time.Time
}

// Concerns tells whether a binding has a rollout, or had one.
func Concerns(b bindings.Binding) bool {
	return b.BindingSpec().Rollout != nil || b.BindingStatus().Rollout != nil
}

// Stage is what the clusters of one object get.
type Stage struct {
	status *workv1alpha2.RolloutStatus
	load   func(revision string) (*unstructured.Unstructured, error)
	loaded map[string]*unstructured.Unstructured
	after  time.Duration
}

// Wake tells when to look again; 0 if nothing but an event can change anything.
func (s *Stage) Wake() time.Duration {
	if s == nil {
		return 0
	}
	return s.after
}

// TemplateFor gives the object that a cluster gets, and the name of its revision. Without a rollout, nil or not, it is
// the template.
func (s *Stage) TemplateFor(cluster string,
	template *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	if s == nil {
		return template, "", nil
	}
	revision := rollout.RevisionFor(s.status, cluster)
	if revision == s.status.UpdateRevision {
		return template, revision, nil
	}
	if known := s.loaded[revision]; known != nil {
		return known, revision, nil
	}
	object, err := s.load(revision)
	if err != nil {
		return nil, "", err
	}
	s.loaded[revision] = object
	return object, revision, nil
}

// Report fills in how far the rollout is.
func (s *Stage) Report(status *workv1alpha2.ResourceBindingStatus) {
	if s != nil {
		status.Rollout = s.status
	}
}

// Stage decides what the clusters get. What that depends on is in the binding's status before it returns; the rest is
// left to the caller to report with what it writes anyway. The binding is replaced by what the API server has; nil if
// it is gone. Without a rollout, the stage is nil.
func (r *Rollouts) Stage(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	works map[string]*workv1alpha1.Work) (bindings.Binding, *Stage, error) {
	if !Concerns(b) {
		return b, nil, nil
	}
	b, err := bindings.Get(ctx, r.Live, client.ObjectKeyFromObject(b))
	if err != nil || b == nil {
		return nil, nil, err
	}
	if b.BindingSpec().Rollout == nil {
		return b, nil, r.End(ctx, b)
	}
	previous := b.BindingStatus().Rollout
	revision, err := revisionOf(ctx, r.Interpreter, b, template)
	if err != nil {
		return b, r.unclear(ctx, b, template, previous), nil
	}
	input, err := r.input(ctx, b, works)
	if err != nil {
		return nil, nil, err
	}
	input.Template, input.TemplateGeneration = revision, template.GetGeneration()
	decision := rollout.Decide(input)
	if err := r.write(ctx, b, template, decision.Status); err != nil {
		return nil, nil, err
	}
	r.tell(template, b, previous, decision.Status)
	return b, r.stage(ctx, b, template, decision.Status, after(decision)), nil
}

// unclear leaves everything as it is when nobody understands the object: the clusters' manifests cannot be made either,
// which the binding's status says.
func (r *Rollouts) unclear(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	previous *workv1alpha2.RolloutStatus) *Stage {
	if previous == nil {
		return nil
	}
	return r.stage(ctx, b, template, previous, look)
}

func (r *Rollouts) stage(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	status *workv1alpha2.RolloutStatus, after time.Duration) *Stage {
	stage := &Stage{status: status, loaded: map[string]*unstructured.Unstructured{}, after: after}
	stage.load = func(revision string) (*unstructured.Unstructured, error) {
		return r.old(ctx, b, template, status, revision)
	}
	return stage
}

func after(decision rollout.Decision) time.Duration {
	switch decision.Status.Phase {
	case workv1alpha2.RolloutProgressing, workv1alpha2.RolloutSoaking:
		if decision.After > 0 {
			return min(decision.After, look)
		}
		return look
	}
	return decision.After
}

// write stores what clusters get by a status: first the object's revision, then the status, and then what is not needed
// any more goes.
func (r *Rollouts) write(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	status *workv1alpha2.RolloutStatus) error {
	previous := b.BindingStatus().Rollout
	if rollout.SameRevisions(previous, status) {
		return nil
	}
	before := b.DeepCopyObject().(bindings.Binding)
	b.BindingStatus().Rollout = status
	if previous == nil || previous.UpdateRevision != status.UpdateRevision {
		if err := r.store(ctx, b, status.UpdateRevision, template); err != nil {
			return err
		}
	}
	if err := bindings.PatchStatus(ctx, r.Client, before, b); err != nil {
		return err
	}
	keep := sets.Set[string]{}
	for _, revision := range status.Revisions {
		keep.Insert(revision.Revision)
	}
	return r.prune(ctx, b, keep)
}

// tell people what happens with the object.
func (r *Rollouts) tell(template *unstructured.Unstructured, b bindings.Binding,
	previous, status *workv1alpha2.RolloutStatus) {
	if previous == nil || previous.Phase == status.Phase && previous.CurrentWave == status.CurrentWave &&
		previous.Number == status.Number {
		return
	}
	kind := corev1.EventTypeNormal
	if status.Phase == workv1alpha2.RolloutFailed || status.Phase == workv1alpha2.RolloutRolledBack {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(template, b, kind, "Rollout"+string(status.Phase), "Rollout", "rollout %d: %.900s", status.Number,
		status.Message)
}

// End forgets the rollout of a binding, and the object's revisions.
func (r *Rollouts) End(ctx context.Context, b bindings.Binding) error {
	if !Concerns(b) {
		return nil
	}
	if err := r.prune(ctx, b, nil); err != nil {
		return err
	}
	before := b.DeepCopyObject().(bindings.Binding)
	b.BindingStatus().Rollout = nil
	return bindings.PatchStatus(ctx, r.Client, before, b)
}

// old gives an object as it was. It tells the generation that members were told at that time, so that nothing changes
// there.
func (r *Rollouts) old(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	status *workv1alpha2.RolloutStatus, revision string) (*unstructured.Unstructured, error) {
	object, err := r.load(ctx, b, revision)
	if err != nil {
		return nil, err
	}
	object.SetUID(template.GetUID())
	for _, known := range status.Revisions {
		if known.Revision == revision {
			object.SetGeneration(known.TemplateGeneration)
		}
	}
	return object, nil
}

func (r *Rollouts) input(ctx context.Context, b bindings.Binding,
	works map[string]*workv1alpha1.Work) (rollout.Input, error) {
	in := rollout.Input{Control: b.BindingSpec().RolloutControl, Previous: b.BindingStatus().Rollout, Now: r.Now()}
	in.Plan, in.PlanError = rollout.NewPlan(b.BindingSpec().Rollout)
	for _, target := range bindings.Targets(b.BindingSpec()) {
		cluster, err := r.observe(ctx, b, target.Name, works[target.Name])
		if err != nil {
			return rollout.Input{}, err
		}
		in.Clusters = append(in.Clusters, cluster)
	}
	return in, nil
}

// observe gathers what is known of the object in a cluster.
func (r *Rollouts) observe(ctx context.Context, b bindings.Binding, name string,
	work *workv1alpha1.Work) (rollout.Cluster, error) {
	result := rollout.Cluster{}
	result.Name = name
	cluster := &clusterv1alpha1.Cluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return result, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	if err == nil {
		result.Cluster = karmada.Identity(cluster)
	}
	result.Away = awayBecause(b, name, cluster, err == nil)
	judge(&result, work)
	return result, nil
}

func awayBecause(b bindings.Binding, name string, cluster *clusterv1alpha1.Cluster, found bool) string {
	switch {
	case !found:
		return "the fleet has no such cluster"
	case cluster.DeletionTimestamp != nil:
		return "leaves the fleet"
	case !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady):
		return "not ready"
	case b.BindingSpec().Suspension.SuspendsDispatching(name):
		return "dispatching is suspended"
	}
	return ""
}

// judge says what became of the object in a cluster by its Work. The status of a Work counts only for the Work as it is
// now.
func judge(c *rollout.Cluster, work *workv1alpha1.Work) {
	if work == nil || work.DeletionTimestamp != nil {
		return
	}
	c.Revision = work.Annotations[workv1alpha2.RevisionAnnotation]
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	if applied == nil || applied.ObservedGeneration != work.Generation {
		return
	}
	if applied.Status != metav1.ConditionTrue {
		c.Problem = applied.Message
		return
	}
	c.Applied = true
	var health workv1alpha1.ResourceHealth
	if len(work.Status.ManifestStatuses) > 0 {
		health = work.Status.ManifestStatuses[0].Health
	}
	switch {
	case applied.Reason == workv1alpha1.ReasonNotInterpreted:
		c.Problem = applied.Message
	case health == workv1alpha1.ResourceHealth(workv1alpha2.ResourceUnhealthy):
		c.Problem = "not healthy"
	default:
		c.Healthy = true
	}
}
