package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// propagation keeps one binding for every object that a policy selects.
type propagation struct {
	client      client.Client
	events      events.EventRecorder
	interpreter *interpreter.Interpreter
	// skipped namespaces are never propagated from.
	skipped policies.Skipped
	// create creates a binding with the clusters that it is placed on.
	create func(context.Context, bindings.Binding) error
}

// Reconcile handles one object of the fleet.
func (p *propagation) Reconcile(ctx context.Context, key bindings.TemplateKey) (reconcile.Result, error) {
	template, err := bindings.GetTemplate(ctx, p.client, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := bindings.Get(ctx, p.client,
		types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)})
	if err != nil {
		return reconcile.Result{}, err
	}
	if existing != nil && !bindings.IsFor(existing, key) {
		if template != nil {
			p.events.Eventf(template, existing, corev1.EventTypeWarning, "BindingNameTaken", "Propagate",
				"binding %s belongs to a %s of API %s with the same name", existing.GetName(), key.Kind,
				existing.BindingSpec().Resource.APIVersion)
		}
		return reconcile.Result{}, nil
	}
	policy, err := p.policyFor(ctx, template, existing)
	if err != nil {
		return reconcile.Result{}, err
	}
	if policy == nil && isThere(template) && isRequired(existing) {
		return reconcile.Result{}, p.keepRequired(ctx, template, existing)
	}
	if policy == nil {
		return reconcile.Result{}, p.withdraw(ctx, existing)
	}
	if missing, err := p.missingOverrides(ctx, policy); err != nil || missing != "" {
		p.waitForOverride(policy, template, missing)
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, p.ensure(ctx, template, policy, existing)
}

func (p *propagation) policyFor(ctx context.Context, template *unstructured.Unstructured,
	existing bindings.Binding) (*policies.Policy, error) {
	if !isThere(template) || p.skipped.Skips(template) {
		return nil, nil
	}
	all, err := policies.ListFor(ctx, p.client, template)
	if err != nil {
		return nil, err
	}
	return policies.Choose(all, template, existing), nil
}

// withdraw removes a binding; its finalizer keeps it until the members are clean.
func (p *propagation) withdraw(ctx context.Context, existing bindings.Binding) error {
	if existing == nil || existing.GetDeletionTimestamp() != nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Removing binding: no policy selects the object any more")
	return client.IgnoreNotFound(p.client.Delete(ctx, existing, client.Preconditions{UID: new(existing.GetUID())}))
}

// missingOverrides names the first override policy that must exist before anything is propagated. Those of a
// cluster-wide policy are cluster-wide as well.
func (p *propagation) missingOverrides(ctx context.Context, policy *policies.Policy) (string, error) {
	for _, name := range policy.Spec.DependentOverrides {
		var object client.Object = &policyv1alpha1.OverridePolicy{}
		if !policy.Namespaced() {
			object = &policyv1alpha1.ClusterOverridePolicy{}
		}
		err := p.client.Get(ctx, types.NamespacedName{Namespace: policy.GetNamespace(), Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if err != nil {
			return name, nil
		}
	}
	return "", nil
}

// waitForOverride tells what is missing; its creation wakes the policy.
func (p *propagation) waitForOverride(policy *policies.Policy, template *unstructured.Unstructured, missing string) {
	if missing == "" {
		return
	}
	p.events.Eventf(policy.Object, template, corev1.EventTypeWarning, "WaitingForOverride", "Propagate",
		"spec.dependentOverrides: there is no override policy %q yet", missing)
}

func (p *propagation) ensure(ctx context.Context, template *unstructured.Unstructured, policy *policies.Policy,
	existing bindings.Binding) error {
	content, err := policies.ContentOf(template)
	if err == nil {
		err = policy.Refusal()
	}
	if err != nil {
		return p.refuse(template, err)
	}
	if existing != nil && existing.GetDeletionTimestamp() != nil {
		return nil
	}
	if policies.ActivationOf(*policy, template, existing, content) == policies.ActivateClaim {
		return p.claimOnly(ctx, template, policy, existing, content)
	}
	wants, err := policies.Ask(ctx, p.interpreter, template)
	if err != nil {
		return p.refuse(template, err)
	}
	if wants.Priority, err = p.schedulePriority(ctx, policy); err != nil {
		return err
	}
	wanted := policies.Bind(template, *policy, wants, existing)
	policies.MarkActivation(wanted, *policy, content)
	return p.write(ctx, wanted, existing)
}

func (p *propagation) write(ctx context.Context, wanted, existing bindings.Binding) error {
	if existing == nil {
		if err := p.create(ctx, wanted); err != nil {
			return fmt.Errorf("creating binding %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		return nil
	}
	return p.update(ctx, existing, wanted)
}

func (p *propagation) update(ctx context.Context, existing, updated bindings.Binding) error {
	if unchanged(existing, updated) {
		return nil
	}
	if err := p.client.Update(ctx, updated); err != nil {
		return fmt.Errorf("updating binding %s: %w", client.ObjectKeyFromObject(updated), err)
	}
	return nil
}

// refuse reports an object that cannot be understood. Trying again doesn't help until it changes, or what explains its
// kind.
func (p *propagation) refuse(template *unstructured.Unstructured, err error) error {
	p.events.Eventf(template, nil, corev1.EventTypeWarning, "NotPropagated", "Propagate", "%v", err)
	if errors.Is(err, interpreter.ErrTemporary) {
		return err
	}
	return reconcile.TerminalError(err)
}

func unchanged(before, after bindings.Binding) bool {
	a, b := before.BindingSpec().DeepCopy(), after.BindingSpec().DeepCopy()
	a.Resource.ResourceVersion, b.Resource.ResourceVersion = "", ""
	return apiequality.Semantic.DeepEqual(a, b) && maps.Equal(before.GetLabels(), after.GetLabels()) &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// onBinding makes sure that a binding whose object or policy went away unseen is removed, and that one that somebody
// deleted comes back.
func onBinding[B bindings.Binding]() handler.TypedEventHandler[B, bindings.TemplateKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, b B) []bindings.TemplateKey {
		return []bindings.TemplateKey{bindings.TemplateOf(b)}
	})
}

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }
