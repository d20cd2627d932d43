package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/script"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/webhook"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// Settings are those of the fleet's controllers that a client cannot read from the fleet.
type Settings struct {
	// SkippedNamespaces is a regular expression; nothing is propagated from namespaces that match it entirely.
	SkippedNamespaces string
	// Budget for deletions.
	Budget budget.Settings
}

// DefaultSettings are those of a fleet that nobody changed.
func DefaultSettings() Settings {
	return Settings{SkippedNamespaces: policies.DefaultSkippedNamespaces, Budget: budget.Default()}
}

// Read fills the input of a prediction: the rules as they are and as they would be, and the objects that the proposals
// may concern.
func Read(ctx context.Context, reader client.Client, proposals []Proposal, settings Settings,
	now time.Time) (*Input, error) {
	skipped, err := policies.NewSkipped(settings.SkippedNamespaces)
	if err != nil {
		return nil, err
	}
	in := &Input{Skipped: skipped, Budget: settings.Budget, At: now, Serves: func(kind schema.GroupVersionKind) bool {
		_, err := reader.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		return !meta.IsNoMatchError(err)
	}}
	for i := range proposals {
		in.Documents = append(in.Documents, proposals[i].document())
	}
	if in.Now, err = readRules(ctx, reader); err != nil {
		return nil, err
	}
	if in.Then, err = in.Now.with(proposals); err != nil {
		return nil, err
	}
	if in.Interpreter, err = readInterpreter(ctx, reader); err != nil {
		return nil, err
	}
	if in.Bindings, err = bindings.List(ctx, reader); err != nil {
		return nil, err
	}
	objects := &concerned{
		reader: reader, in: in, proposals: proposals,
		lists: map[kindIn][]*unstructured.Unstructured{}, byKey: map[bindings.TemplateKey]*unstructured.Unstructured{},
	}
	if in.Objects, err = objects.find(ctx); err != nil {
		return nil, err
	}
	in.Find = objects.refersTo
	return in, nil
}

func readRules(ctx context.Context, reader client.Reader) (Rules, error) {
	var rules Rules
	var clusters clusterv1alpha1.ClusterList
	var quotas policyv1alpha1.FederatedResourceQuotaList
	var namespaced policyv1alpha1.OverridePolicyList
	var err error
	if rules.Policies, err = policies.List(ctx, reader); err != nil {
		return rules, err
	}
	if rules.Overrides, err = overrides.List(ctx, reader, ""); err != nil {
		return rules, err
	}
	if err := reader.List(ctx, &namespaced); err != nil {
		return rules, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range namespaced.Items {
		p := &namespaced.Items[i]
		rules.Overrides = append(rules.Overrides, overrides.Policy{Namespace: p.Namespace, Name: p.Name, Spec: &p.Spec})
	}
	if err := reader.List(ctx, &clusters); err != nil {
		return rules, fmt.Errorf("listing clusters: %w", err)
	}
	if err := reader.List(ctx, &quotas); err != nil {
		return rules, fmt.Errorf("listing FederatedResourceQuotas: %w", err)
	}
	rules.Clusters, rules.Quotas = clusters.Items, quotas.Items
	return rules, nil
}

// with gives the rules as they would be.
func (r Rules) with(proposals []Proposal) (Rules, error) {
	r.Policies, r.Overrides = slices.Clone(r.Policies), slices.Clone(r.Overrides)
	r.Clusters, r.Quotas = slices.Clone(r.Clusters), slices.Clone(r.Quotas)
	for i := range proposals {
		if err := r.change(&proposals[i]); err != nil {
			return r, fmt.Errorf("%s: %w", &proposals[i], err)
		}
	}
	return r, nil
}

// change takes one proposal into the rules. Objects of other kinds are no rules.
func (r *Rules) change(p *Proposal) error {
	object := p.object()
	namespace, name := object.GetNamespace(), object.GetName()
	switch {
	case isPolicy(object, "PropagationPolicy", "ClusterPropagationPolicy"):
		r.Policies = slices.DeleteFunc(r.Policies,
			func(o policies.Policy) bool { return o.GetNamespace() == namespace && o.GetName() == name })
		if p.Then == nil {
			return nil
		}
		policy, err := propagationPolicy(p.Then)
		r.Policies = append(r.Policies, policy)
		return err
	case isPolicy(object, "OverridePolicy", "ClusterOverridePolicy"):
		r.Overrides = slices.DeleteFunc(r.Overrides,
			func(o overrides.Policy) bool { return o.Namespace == namespace && o.Name == name })
		if p.Then == nil {
			return nil
		}
		policy, err := overridePolicy(p.Then)
		r.Overrides = append(r.Overrides, policy)
		return err
	case isPolicy(object, "FederatedResourceQuota"):
		r.Quotas = slices.DeleteFunc(r.Quotas,
			func(o policyv1alpha1.FederatedResourceQuota) bool { return o.Namespace == namespace && o.Name == name })
		return appendTo(&r.Quotas, p.Then)
	case isCluster(object):
		r.Clusters = slices.DeleteFunc(r.Clusters, func(o clusterv1alpha1.Cluster) bool { return o.Name == name })
		return appendTo(&r.Clusters, p.Then)
	}
	return nil
}

func isCluster(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind()
}

func isRebalancer(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == appsv1alpha1.GroupVersion.WithKind("WorkloadRebalancer").GroupKind()
}

// appendTo decodes an object, if there is one, into a list.
func appendTo[T any](list *[]T, object *unstructured.Unstructured) error {
	if object == nil {
		return nil
	}
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return err
	}
	*list = append(*list, typed)
	return nil
}

func propagationPolicy(object *unstructured.Unstructured) (policies.Policy, error) {
	var typed client.Object = &policyv1alpha1.ClusterPropagationPolicy{}
	if object.GetKind() == "PropagationPolicy" {
		typed = &policyv1alpha1.PropagationPolicy{}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
	policy, _ := policies.Of(typed)
	return policy, err
}

func overridePolicy(object *unstructured.Unstructured) (overrides.Policy, error) {
	var typed policyv1alpha1.OverridePolicy // Both kinds have the same form.
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed)
	return overrides.Policy{Namespace: typed.Namespace, Name: typed.Name, Spec: &typed.Spec}, err
}

// readInterpreter gives an interpreter that knows the fleet's customizations. Webhooks are not called.
func readInterpreter(ctx context.Context, reader client.Reader) (*interpreter.Interpreter, error) {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := reader.List(ctx, &customizations); err != nil {
		return nil, fmt.Errorf("listing ResourceInterpreterCustomizations: %w", err)
	}
	if err := reader.List(ctx, &configurations); err != nil {
		return nil, fmt.Errorf("listing ResourceInterpreterWebhookConfigurations: %w", err)
	}
	var compiler script.Compiler
	var builder webhook.Builder
	// What cannot be used is not used by the fleet either.
	scripts, _ := compiler.Compile(ctx, customizations.Items)
	hooks, _ := builder.Build(configurations.Items)
	result := interpreter.New()
	result.SetSources(scripts, unasked{hooks})
	return result, nil
}

// unasked refuses what a webhook would answer.
type unasked struct{ webhooks interpreter.Source }

// RulesFor implements interpreter.Source.
func (u unasked) RulesFor(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpreter.Rules {
	if u.webhooks.RulesFor(kind, operation) == nil {
		return nil
	}
	return refusal{}
}

var errWebhook = errors.New("a webhook of the fleet would answer, which is not called for a plan")

// refusal is what a plan asks for.
type refusal struct{ interpreter.Rules }

// Replicas implements interpreter.Rules.
func (refusal) Replicas(context.Context, *unstructured.Unstructured) (*interpreter.Workload, error) {
	return nil, errWebhook
}

// Components implements interpreter.Rules.
func (refusal) Components(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	return nil, errWebhook
}

// Dependencies implements interpreter.Rules.
func (refusal) Dependencies(context.Context,
	*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return nil, errWebhook
}

// kindIn is a kind in one namespace, or in all if that is empty.
type kindIn struct {
	schema.GroupVersionKind
	namespace string
}

// concerned finds the objects that proposals may concern.
type concerned struct {
	reader    client.Reader
	in        *Input
	proposals []Proposal
	lists     map[kindIn][]*unstructured.Unstructured
	byKey     map[bindings.TemplateKey]*unstructured.Unstructured
	found     map[bindings.TemplateKey]Object
}

func (c *concerned) find(ctx context.Context) ([]Object, error) {
	c.found = map[bindings.TemplateKey]Object{}
	for i := range c.proposals {
		p := &c.proposals[i]
		if p.Action == ActionUnchanged && !isRebalancer(p.object()) {
			continue
		}
		if err := c.by(ctx, p); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	for i := range c.proposals {
		c.overlay(&c.proposals[i])
	}
	for i := range c.proposals {
		if err := c.byUnchanged(ctx, &c.proposals[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", &c.proposals[i], err)
		}
	}
	return slices.Collect(maps.Values(c.found)), nil
}

// by adds the objects that one proposal may concern.
func (c *concerned) by(ctx context.Context, p *Proposal) error {
	object := p.object()
	switch {
	case isPolicy(object, "PropagationPolicy", "ClusterPropagationPolicy"):
		return c.byPolicy(ctx, p)
	case isPolicy(object, "OverridePolicy", "ClusterOverridePolicy"):
		return c.byOverride(ctx, p)
	case isPolicy(object, "FederatedResourceQuota"):
		return c.bound(ctx, func(b bindings.Binding) bool { return b.GetNamespace() == object.GetNamespace() }, nil)
	case isCluster(object):
		return c.bound(ctx, func(bindings.Binding) bool { return true }, nil)
	case isRebalancer(object):
		return c.byRebalancer(ctx, p)
	}
	key := bindings.TemplateKeyOf(object, object.GroupVersionKind())
	c.found[key] = Object{Now: p.Now, Then: p.Then, Rebalanced: c.found[key].Rebalanced}
	return nil
}

// byPolicy adds what the policy selects now or then, and what it has.
func (c *concerned) byPolicy(ctx context.Context, p *Proposal) error {
	for _, version := range []*unstructured.Unstructured{p.Now, p.Then} {
		if version == nil {
			continue
		}
		policy, err := propagationPolicy(version)
		if err != nil {
			return err
		}
		for kind := range policy.Kinds() {
			if err := c.selected(ctx, kindIn{kind, policy.GetNamespace()}, policy.Selects); err != nil {
				return err
			}
		}
		if err := c.bound(ctx, policy.Claims, nil); err != nil {
			return err
		}
	}
	return nil
}

// byUnchanged adds what a policy selects that is there already as it is written: its user may wonder why it has no
// effect.
func (c *concerned) byUnchanged(ctx context.Context, p *Proposal) error {
	if p.Action != ActionUnchanged || !isPolicy(p.Then, "PropagationPolicy", "ClusterPropagationPolicy") {
		return nil
	}
	policy, err := propagationPolicy(p.Then)
	if err != nil {
		return err
	}
	for kind := range policy.Kinds() {
		objects, err := c.list(ctx, kindIn{kind, policy.GetNamespace()})
		if err != nil {
			return err
		}
		for _, object := range objects {
			if policy.Selects(object) {
				c.addAs(Object{Now: object, Then: object, Unconcerned: true})
			}
		}
	}
	return nil
}

// byOverride adds what the policy selects now or then, of what is propagated; and what waits for it.
func (c *concerned) byOverride(ctx context.Context, p *Proposal) error {
	for _, version := range []*unstructured.Unstructured{p.Now, p.Then} {
		if version == nil {
			continue
		}
		policy, err := overridePolicy(version)
		if err != nil {
			return err
		}
		inScope := func(b bindings.Binding) bool {
			return policy.Namespace == "" || b.GetNamespace() == policy.Namespace
		}
		if err := c.bound(ctx, inScope, policy.Selects); err != nil {
			return err
		}
		for _, waiting := range c.in.Then.Policies {
			if waiting.GetNamespace() != policy.Namespace ||
				!slices.Contains(waiting.Spec.DependentOverrides, policy.Name) {
				continue
			}
			for kind := range waiting.Kinds() {
				if err := c.selected(ctx, kindIn{kind, waiting.GetNamespace()}, waiting.Selects); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// byRebalancer adds the objects that are placed anew.
func (c *concerned) byRebalancer(ctx context.Context, p *Proposal) error {
	if p.Action != ActionCreate {
		return nil // Its objects were handled; those that are added to it are few and soon seen.
	}
	if err := appendTo(&c.in.Rebalancers, p.Then); err != nil {
		return err
	}
	for _, w := range c.in.Rebalancers[len(c.in.Rebalancers)-1].Spec.Workloads {
		key := workloadKey(w)
		object, err := bindings.GetTemplate(ctx, c.reader, key)
		if err != nil {
			return err
		}
		if object != nil {
			c.found[key] = Object{Now: object, Then: object, Rebalanced: true}
		}
	}
	return nil
}

func workloadKey(w appsv1alpha1.ObjectReference) bindings.TemplateKey {
	return bindings.TemplateKey{
		GroupVersionKind: schema.FromAPIVersionAndKind(w.APIVersion, w.Kind),
		NamespacedName:   types.NamespacedName{Namespace: w.Namespace, Name: w.Name},
	}
}

// selected adds the objects of a kind that are selected.
func (c *concerned) selected(ctx context.Context, of kindIn, selects func(*unstructured.Unstructured) bool) error {
	objects, err := c.list(ctx, of)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if selects(object) {
			c.add(object)
		}
	}
	return nil
}

// manyNamespaces is from how many on a kind is listed in all of them at once.
const manyNamespaces = 10

// bound adds the objects of bindings; selects may be nil.
func (c *concerned) bound(ctx context.Context, which func(bindings.Binding) bool,
	selects func(*unstructured.Unstructured) bool) error {
	var keys []bindings.TemplateKey
	namespaces := map[schema.GroupVersionKind]map[string]bool{}
	for _, b := range c.in.Bindings {
		if !which(b) {
			continue
		}
		key := bindings.TemplateOf(b)
		keys = append(keys, key)
		if namespaces[key.GroupVersionKind] == nil {
			namespaces[key.GroupVersionKind] = map[string]bool{}
		}
		namespaces[key.GroupVersionKind][key.Namespace] = true
	}
	for kind, in := range namespaces {
		if len(in) > manyNamespaces {
			in = map[string]bool{"": true}
		}
		for namespace := range in {
			if _, err := c.list(ctx, kindIn{kind, namespace}); err != nil {
				return err
			}
		}
	}
	for _, key := range keys {
		if object := c.byKey[key]; object != nil && (selects == nil || selects(object)) {
			c.add(object)
		}
	}
	return nil
}

func (c *concerned) add(object *unstructured.Unstructured) {
	c.addAs(Object{Now: object, Then: object})
}

// addAs adds an object that isn't known yet.
func (c *concerned) addAs(o Object) {
	key := bindings.TemplateKeyOf(o.template(), o.template().GroupVersionKind())
	if _, known := c.found[key]; !known {
		c.found[key] = o
	}
}

// overlay has objects that are proposed themselves looked at as they would be.
func (c *concerned) overlay(p *Proposal) {
	object := p.object()
	key := bindings.TemplateKeyOf(object, object.GroupVersionKind())
	if found, known := c.found[key]; known {
		found.Now, found.Then = p.Now, p.Then
		c.found[key] = found
	}
}

// pageSize is how many objects are read at a time.
const pageSize = 500

// list gives the objects of a kind; none if there is no such kind.
func (c *concerned) list(ctx context.Context, of kindIn) ([]*unstructured.Unstructured, error) {
	for _, known := range []kindIn{of, {of.GroupVersionKind, ""}} {
		if objects, found := c.lists[known]; found {
			return objects, nil
		}
	}
	var result []*unstructured.Unstructured
	next := ""
	for {
		var page unstructured.UnstructuredList
		page.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		err := c.reader.List(ctx, &page, client.InNamespace(of.namespace), client.Limit(pageSize),
			client.Continue(next))
		if meta.IsNoMatchError(err) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing objects of kind %s: %w", of.Kind, err)
		}
		for i := range page.Items {
			result = append(result, &page.Items[i])
			c.byKey[bindings.TemplateKeyOf(&page.Items[i], of.GroupVersionKind)] = &page.Items[i]
		}
		if next = page.GetContinue(); next == "" {
			break
		}
	}
	c.lists[of] = result
	return result, nil
}

// refersTo finds what a reference means, as it would be.
func (c *concerned) refersTo(ctx context.Context, r references.Reference) ([]*unstructured.Unstructured, error) {
	objects, err := references.Find(ctx, c.reader, r)
	if err != nil {
		return nil, err
	}
	for i := range c.proposals {
		p := &c.proposals[i]
		same := func(object *unstructured.Unstructured) bool {
			return object.GroupVersionKind() == p.object().GroupVersionKind() &&
				object.GetNamespace() == p.object().GetNamespace() && object.GetName() == p.object().GetName()
		}
		if !slices.ContainsFunc(objects, same) && (p.Then == nil || !r.Matches(p.Then.GroupVersionKind(), p.Then)) {
			continue
		}
		objects = slices.DeleteFunc(objects, same)
		if p.Then != nil && r.Matches(p.Then.GroupVersionKind(), p.Then) {
			objects = append(objects, p.Then)
		}
	}
	return objects, nil
}
