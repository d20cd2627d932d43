package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
)

// Predict what the change would move. Objects are decided one after the other, those of a higher priority first; what
// one takes of the members' room is not promised to the next.
func Predict(ctx context.Context, in *Input) *Plan {
	p := newPredictor(in)
	objects := slices.Clone(in.Objects)
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(p.priority(b.key()), p.priority(a.key())),
			strings.Compare(a.key().String(), b.key().String()))
	})
	for _, object := range objects {
		p.object(ctx, object)
	}
	p.dependents(ctx)
	return p.compare()
}

// outlook is what is found out about one object.
type outlook struct {
	Object
	change ObjectChange
}

// predictor holds what the decisions so far leave to the next ones.
type predictor struct {
	*Input
	clusters map[string]*clusterv1alpha1.Cluster
	before   map[string]*clusterv1alpha1.Cluster
	snapshot core.Snapshot
	promises core.Promises
	quotas   quota.Reservations
	// existing bindings by key, and those that are predicted to be in their place; nil for those that go.
	existing, predicted map[types.NamespacedName]bindings.Binding
	outlooks            map[types.NamespacedName]*outlook
	// proposed are the policies of the documents, and passed what they don't get.
	proposed []policies.Policy
	passed   passed
}

func newPredictor(in *Input) *predictor {
	p := &predictor{
		Input: in, clusters: byName(in.Then.Clusters), before: byName(in.Now.Clusters), promises: core.Promises{},
		existing: map[types.NamespacedName]bindings.Binding{}, predicted: map[types.NamespacedName]bindings.Binding{},
		outlooks: map[types.NamespacedName]*outlook{}, proposed: in.proposedPolicies(), passed: passed{},
	}
	var snapshots karmada.Snapshots
	p.snapshot = snapshots.Of(func(yield func(*clusterv1alpha1.Cluster) bool) {
		for i := range in.Then.Clusters {
			if !yield(&in.Then.Clusters[i]) {
				return
			}
		}
	})
	for _, b := range in.Bindings {
		p.existing[types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}] = b
	}
	return p
}

func byName(clusters []clusterv1alpha1.Cluster) map[string]*clusterv1alpha1.Cluster {
	result := make(map[string]*clusterv1alpha1.Cluster, len(clusters))
	for i := range clusters {
		result[clusters[i].Name] = &clusters[i]
	}
	return result
}

func (p *predictor) priority(key types.NamespacedName) int32 {
	if b := p.existing[key]; b != nil && b.BindingSpec().SchedulePriority != nil {
		return b.BindingSpec().SchedulePriority.Priority
	}
	return 0
}

// outlookOf an object; known tells whether it has one already.
func (p *predictor) outlookOf(o Object) (found *outlook, known bool) {
	if found, known = p.outlooks[o.key()]; known {
		return found, true
	}
	template := o.template()
	found = &outlook{Object: o, change: ObjectChange{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(),
		Name: template.GetName(),
	}}
	p.outlooks[o.key()] = found
	return found, false
}

// object predicts the binding of one object.
func (p *predictor) object(ctx context.Context, o Object) {
	found, known := p.outlookOf(o)
	if known {
		return
	}
	now := p.existing[o.key()]
	if now != nil && !bindings.IsFor(now, bindings.TemplateKeyOf(o.template(), o.template().GroupVersionKind())) {
		other := now.BindingSpec().Resource
		found.change.note("it is not propagated: the binding %s belongs to a %s of API %s that has the same name",
			now.GetName(), other.Kind, other.APIVersion)
		return
	}
	policy := p.policyFor(o, now)
	if policy != nil {
		p.passed.of(p.proposed, p.Then.Policies, policy, o.Then, now)
	}
	if !o.Unconcerned {
		p.predicted[o.key()] = p.binding(ctx, o, policy, now, &found.change)
	}
}

// policyFor gives the policy that an object would have; nil if it would have none.
func (p *predictor) policyFor(o Object, now bindings.Binding) *policies.Policy {
	if !isThere(o.Then) || p.Skipped.Skips(o.Then) {
		return nil
	}
	return policies.Choose(p.Then.Policies, o.Then, now)
}

func isThere(object *unstructured.Unstructured) bool {
	return object != nil && object.GetDeletionTimestamp() == nil
}

// compare what is predicted with what there is.
func (p *predictor) compare() *Plan {
	result := &Plan{Documents: p.Documents, Objects: []ObjectChange{}}
	var removed []removal
	for key, o := range p.outlooks {
		now := p.existing[key]
		then, decided := p.predicted[key]
		if !decided { // The binding is another object's, or nothing concerns it.
			now, then = nil, nil
		}
		o.change.PolicyNow, o.change.PolicyThen = policyOf(now), policyOf(then)
		compareClusters(&o.change, now, then)
		p.compareFields(o.Object, &o.change)
		if o.change.changes() || len(o.change.Notes) > 0 {
			result.Objects = append(result.Objects, o.change)
		}
		removed = append(removed, removalsOf(&o.change, now, then)...)
	}
	result.finish(len(p.outlooks))
	result.Warnings = p.warnings()
	result.PassedOver = p.passed.list()
	result.Held = p.held(removed)
	return result
}

func (c *ObjectChange) note(format string, arguments ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, arguments...))
}

// policyOf names the policy that claims a binding; nothing if there is none.
func policyOf(b bindings.Binding) string {
	if b == nil {
		return ""
	}
	return policies.ClaimedBy(b)
}

// binding predicts the binding of an object under a policy; nil if it has none. It follows the propagation controller
// step by step.
func (p *predictor) binding(ctx context.Context, o Object, policy *policies.Policy, now bindings.Binding,
	change *ObjectChange) bindings.Binding {
	if !isThere(o.Then) || p.Skipped.Skips(o.Then) {
		return nil
	}
	if policy == nil {
		return p.withoutPolicy(now)
	}
	if missing := p.missingOverride(policy); missing != "" {
		change.note("%s waits for the override policy %s of its spec.dependentOverrides: nothing changes until it "+
			"exists", policy, missing)
		return now
	}
	content, err := policies.ContentOf(o.Then)
	if err == nil {
		err = policy.Refusal()
	}
	if err != nil {
		change.note("%v", err)
		return now
	}
	if policies.ActivationOf(*policy, o.Then, now, content) == policies.ActivateClaim {
		change.note("%s is lazy: it takes effect when the object changes next", policy)
		return claimOnly(o, policy, now, content)
	}
	wants, err := p.wants(ctx, o, now, change)
	if err != nil {
		change.note("cannot be propagated: %v", err)
		return now
	}
	then := policies.Bind(o.Then, *policy, wants, now)
	policies.MarkActivation(then, *policy, content)
	if o.Rebalanced {
		then.BindingSpec().RescheduleTriggeredAt = new(metav1.NewTime(p.At))
	}
	p.decide(then, change)
	return then
}

// withoutPolicy: what others need follows them, and nothing else stays.
func (p *predictor) withoutPolicy(now bindings.Binding) bindings.Binding {
	if now == nil || len(now.BindingSpec().RequiredBy) == 0 || now.GetDeletionTimestamp() != nil {
		return nil
	}
	then := now.DeepCopyObject().(bindings.Binding)
	policies.RemoveClaims(then)
	then.BindingSpec().Placement, then.BindingSpec().Clusters = nil, nil
	return then
}

func claimOnly(o Object, policy *policies.Policy, now bindings.Binding, content string) bindings.Binding {
	then := bindings.NewFor(o.Then)
	if now != nil {
		then = now.DeepCopyObject().(bindings.Binding)
	}
	policy.Claim(then)
	policies.MarkActivation(then, *policy, content)
	return then
}

// missingOverride names the first override policy that must exist before the policy takes effect.
func (p *predictor) missingOverride(policy *policies.Policy) string {
	for _, name := range policy.Spec.DependentOverrides {
		if !slices.ContainsFunc(p.Then.Overrides,
			func(o overrides.Policy) bool { return o.Name == name && o.Namespace == policy.GetNamespace() }) {
			return name
		}
	}
	return ""
}

// wants asks the interpreter. What only the fleet itself can ask, a webhook for example, is taken from the binding.
func (p *predictor) wants(ctx context.Context, o Object, now bindings.Binding,
	change *ObjectChange) (*policies.Wants, error) {
	wants, err := policies.Ask(ctx, p.Interpreter, o.Then)
	if err != nil {
		if now == nil || !bindings.IsPlaced(now.BindingSpec()) {
			return nil, err
		}
		change.note("what it asks of clusters is taken from the last decision, since it could not be found out from "+
			"here: %v", err)
		wants = policies.WantsOf(now.BindingSpec())
	}
	if now != nil {
		wants.Priority = now.BindingSpec().SchedulePriority
	}
	return wants, nil
}

// decide does what the scheduler would do with a binding that was written.
func (p *predictor) decide(b bindings.Binding, change *ObjectChange) {
	if karmada.Suspended(b) {
		change.note("scheduling is suspended by the binding's spec.suspension.scheduling: it stays where it is")
		return
	}
	if !karmada.NeedsDecision(b, p.snapshot) {
		return
	}
	translated, err := karmada.Translate(b)
	if err != nil {
		change.note("it stays where it is: %v", err)
		return
	}
	translated.Near, translated.Apart = p.neighbours(b)
	decision := core.Decide(p.snapshot.WithPromises(p.promises), translated)
	clusters := karmada.Targets(b.BindingSpec(), decision.Targets)
	if decision.Failure != nil {
		change.note("%s", decision.Explain())
	}
	if err := p.admit(b, clusters); err != nil {
		change.note("it stays as it is: %v", err)
		return
	}
	p.promise(translated, decision.Targets)
	b.BindingSpec().Clusters = clusters
}

// promise the room that a decision takes in addition.
func (p *predictor) promise(b core.Binding, targets []core.Target) {
	if !b.Workload {
		return
	}
	previous := map[string]int32{}
	for _, t := range b.Previous {
		previous[t.Cluster] = t.Replicas
	}
	request := b.Request
	request.Pods = max(1, request.Pods)
	for _, t := range targets {
		if more := t.Replicas - previous[t.Cluster]; more > 0 {
			p.promises[t.Cluster] = p.promises[t.Cluster].Plus(request.Times(int64(more)))
		}
	}
}

// current is the binding of that key as far as is known by now; nil if there is none.
func (p *predictor) current(key types.NamespacedName) bindings.Binding {
	if b, found := p.predicted[key]; found {
		return b
	}
	return p.existing[key]
}

// neighbours gives the clusters of the other members of a binding's groups, sorted.
func (p *predictor) neighbours(b bindings.Binding) (near, apart []string) {
	groups := b.BindingSpec().WorkloadAffinityGroups
	if groups == nil {
		return nil, nil
	}
	for key := range p.keys() {
		other := p.current(key)
		if other == nil || key.Namespace != b.GetNamespace() || key.Name == b.GetName() ||
			other.BindingSpec().WorkloadAffinityGroups == nil {
			continue
		}
		theirs := other.BindingSpec().WorkloadAffinityGroups
		for _, c := range other.BindingSpec().Clusters {
			if groups.AffinityGroup != "" && theirs.AffinityGroup == groups.AffinityGroup {
				near = append(near, c.Name)
			}
			if groups.AntiAffinityGroup != "" && theirs.AntiAffinityGroup == groups.AntiAffinityGroup {
				apart = append(apart, c.Name)
			}
		}
	}
	slices.Sort(near)
	slices.Sort(apart)
	return slices.Compact(near), slices.Compact(apart)
}

// keys of all bindings, existing and predicted.
func (p *predictor) keys() map[types.NamespacedName]bool {
	keys := make(map[types.NamespacedName]bool, len(p.existing))
	for key := range p.existing {
		keys[key] = true
	}
	for key := range p.predicted {
		keys[key] = true
	}
	return keys
}

// compareClusters tells what each cluster sees of the difference between two bindings.
func compareClusters(change *ObjectChange, now, then bindings.Binding) {
	before, after := targetsOf(now), targetsOf(then)
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for name := range names {
		change.Clusters = append(change.Clusters, clusterChange(name, before, after, keepsCopies(now, then)))
	}
	slices.SortFunc(change.Clusters, func(a, b ClusterChange) int { return strings.Compare(a.Name, b.Name) })
}

// keepsCopies: an object that the fleet gives up stays in the members if its binding says so.
func keepsCopies(now, then bindings.Binding) bool {
	return now != nil && then == nil && now.BindingSpec().PreserveResourcesOnDeletion != nil &&
		*now.BindingSpec().PreserveResourcesOnDeletion
}

func clusterChange(name string, before, after map[string]*int32, kept bool) ClusterChange {
	now, was := before[name]
	then, is := after[name]
	result := ClusterChange{Name: name, Effect: EffectUnchanged, ReplicasNow: now, ReplicasThen: then}
	switch {
	case !was:
		result.Effect = EffectAdded
	case !is && kept:
		result.Effect = EffectKept
	case !is:
		result.Effect = EffectRemoved
	case deref(now) != deref(then):
		result.Effect = EffectScaled
	}
	return result
}

// targetsOf gives the replicas that a binding wants in each cluster; nil for objects without any.
func targetsOf(b bindings.Binding) map[string]*int32 {
	result := map[string]*int32{}
	if b == nil {
		return result
	}
	counted := karmada.IsWorkload(b.BindingSpec()) && len(b.BindingSpec().Components) == 0
	for _, target := range bindings.Targets(b.BindingSpec()) {
		result[target.Name] = replicasOf(target, counted)
	}
	return result
}

func replicasOf(target workv1alpha2.TargetCluster, counted bool) *int32 {
	if !counted {
		return nil
	}
	return new(target.Replicas)
}

// compareFields tells what override policies would set in another way in the clusters that have the object now and
// then.
func (p *predictor) compareFields(o Object, change *ObjectChange) {
	if o.Now == nil || o.Then == nil || o.partial {
		return
	}
	for _, c := range change.Clusters {
		now, then := p.before[c.Name], p.clusters[c.Name]
		if now == nil || then == nil || c.ReplicasNow == nil != (c.ReplicasThen == nil) || c.Effect == EffectAdded ||
			c.Effect == EffectRemoved || c.Effect == EffectKept {
			continue
		}
		differences, err := overrides.Compare(o.Then,
			overrides.View{
				Cluster: karmada.Identity(now), Policies: ofNamespace(p.Now.Overrides, o.Then.GetNamespace()),
			},
			overrides.View{
				Cluster: karmada.Identity(then), Policies: ofNamespace(p.Then.Overrides, o.Then.GetNamespace()),
			})
		if err != nil {
			change.note("cluster %s keeps what it has, since an override policy cannot be applied: %v", c.Name, err)
			continue
		}
		for _, d := range differences {
			change.Fields = append(change.Fields, fieldChange(c.Name, d))
		}
	}
}

func fieldChange(cluster string, d overrides.Difference) FieldChange {
	result := FieldChange{Cluster: cluster, Path: d.Path, Now: d.Before, Then: d.After}
	if d.SetBy != nil {
		result.SetBy = d.SetBy.Policy + " " + d.SetBy.Rule
	}
	return result
}

// ofNamespace keeps the policies that may concern objects of a namespace; cluster-wide ones always.
func ofNamespace(all []overrides.Policy, namespace string) []overrides.Policy {
	var result []overrides.Policy
	for _, p := range all {
		if p.Namespace == "" || p.Namespace == namespace {
			result = append(result, p)
		}
	}
	return result
}
