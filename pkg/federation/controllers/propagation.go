package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// propagation keeps one binding for every object that a policy selects.
type propagation struct {
	client      client.Client
	events      events.EventRecorder
	interpreter *interpreter.Interpreter
	// skipped namespaces are never propagated from.
	skipped *regexp.Regexp
	// create creates a binding with the clusters that it is placed on.
	create func(context.Context, bindings.Binding) error
}

// Reconcile handles one object of the fleet.
func (p *propagation) Reconcile(ctx context.Context, key bindings.TemplateKey) (reconcile.Result, error) {
	template, err := bindings.GetTemplate(ctx, p.client, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := bindings.Get(ctx, p.client, types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)})
	if err != nil {
		return reconcile.Result{}, err
	}
	if existing != nil && !bindings.IsFor(existing, key) {
		if template != nil {
			p.events.Eventf(template, existing, corev1.EventTypeWarning, "BindingNameTaken", "Propagate",
				"binding %s belongs to a %s of API %s with the same name", existing.GetName(), key.Kind, existing.BindingSpec().Resource.APIVersion)
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

func (p *propagation) policyFor(ctx context.Context, template *unstructured.Unstructured, existing bindings.Binding) (*propagationPolicy, error) {
	if !isThere(template) || p.isSkipped(template) {
		return nil, nil
	}
	policies, err := listPropagationPolicies(ctx, p.client)
	if err != nil {
		return nil, err
	}
	return choosePolicy(policies, template, existing), nil
}

// isSkipped protects what belongs to the fleet itself.
func (p *propagation) isSkipped(template *unstructured.Unstructured) bool {
	namespace := template.GetNamespace()
	if template.GetKind() == "Namespace" && template.GetAPIVersion() == "v1" {
		namespace = template.GetName()
	}
	return namespace == clusterv1alpha1.CredentialsNamespace || namespace == "karmada-system" ||
		strings.HasPrefix(namespace, clusterv1alpha1.ExecutionNamespacePrefix) ||
		namespace != "" && p.skipped.MatchString(namespace)
}

// withdraw removes a binding; its finalizer keeps it until the members are clean.
func (p *propagation) withdraw(ctx context.Context, existing bindings.Binding) error {
	if existing == nil || existing.GetDeletionTimestamp() != nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Removing binding: no policy selects the object any more")
	return client.IgnoreNotFound(p.client.Delete(ctx, existing, client.Preconditions{UID: new(existing.GetUID())}))
}

// missingOverrides names the first override policy that must exist before anything is propagated. Those of a cluster-wide policy are
// cluster-wide as well.
func (p *propagation) missingOverrides(ctx context.Context, policy *propagationPolicy) (string, error) {
	for _, name := range policy.spec.DependentOverrides {
		var object client.Object = &policyv1alpha1.OverridePolicy{}
		if !policy.namespaced() {
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
func (p *propagation) waitForOverride(policy *propagationPolicy, template *unstructured.Unstructured, missing string) {
	if missing == "" {
		return
	}
	p.events.Eventf(policy.Object, template, corev1.EventTypeWarning, "WaitingForOverride", "Propagate",
		"spec.dependentOverrides: there is no override policy %q yet", missing)
}

func (p *propagation) ensure(ctx context.Context, template *unstructured.Unstructured, policy *propagationPolicy, existing bindings.Binding) error {
	content, err := contentOf(template)
	if err != nil {
		return p.refuse(template, err)
	}
	if existing != nil && existing.GetDeletionTimestamp() != nil {
		return nil
	}
	if activationOf(policy, template, existing, content) == activateClaim {
		return p.claimOnly(ctx, template, policy, existing, content)
	}
	wants, err := p.wants(ctx, template)
	if err != nil {
		return p.refuse(template, err)
	}
	if wants.priority, err = p.schedulePriority(ctx, policy); err != nil {
		return err
	}
	wanted := buildBinding(template, policy, wants, existing)
	markActivation(wanted, policy, content)
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

// refuse reports an object that cannot be understood. Trying again doesn't help until it changes, or what explains its kind.
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
	return equality.Semantic.DeepEqual(a, b) && maps.Equal(before.GetLabels(), after.GetLabels()) &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// buildBinding gives the binding of an object under a policy. What others decide about (clusters, evictions, who
// else needs it) is taken over from the existing one.
func buildBinding(template *unstructured.Unstructured, policy *propagationPolicy, wants *wants, existing bindings.Binding) bindings.Binding {
	var b bindings.Binding
	if existing != nil {
		b = existing.DeepCopyObject().(bindings.Binding)
	} else {
		b = bindings.NewFor(template)
	}
	policy.claim(b)
	fillSpec(b.BindingSpec(), template, policy.spec)
	wants.fill(b.BindingSpec())
	return b
}

func fillSpec(spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured, policy *policyv1alpha1.PropagationSpec) {
	spec.Resource = bindings.ReferenceTo(template)
	spec.PropagateDeps = policy.PropagateDeps || policy.Association
	spec.SchedulerName = policy.SchedulerName
	spec.Placement = policy.Placement.DeepCopy()
	spec.Failover = policy.Failover.DeepCopy()
	spec.ConflictResolution = policy.ConflictResolution
	spec.PreserveResourcesOnDeletion = policy.PreserveResourcesOnDeletion
	spec.WorkloadAffinityGroups = affinityGroups(policy.Placement.WorkloadAffinity, template.GetLabels())
	fillSuspension(spec, policy.Suspension)
}

func fillSuspension(spec *workv1alpha2.ResourceBindingSpec, wanted *policyv1alpha1.Suspension) {
	if spec.Suspension == nil && wanted == nil {
		return
	}
	if spec.Suspension == nil {
		spec.Suspension = &workv1alpha2.Suspension{}
	}
	spec.Suspension.Suspension = policyv1alpha1.Suspension{}
	if wanted != nil {
		spec.Suspension.Suspension = *wanted.DeepCopy()
	}
}

// wants is what an object asks of clusters, replicas of one kind or components, and how urgently.
type wants struct {
	workload   *interpreter.Workload
	components []workv1alpha2.Component
	priority   *workv1alpha2.SchedulePriority
}

// wants asks the interpreter. An object with components is not asked for its replicas.
func (p *propagation) wants(ctx context.Context, template *unstructured.Unstructured) (*wants, error) {
	components, err := p.interpreter.Components(ctx, template)
	if err != nil || len(components) > 0 {
		return &wants{components: components}, err
	}
	workload, err := p.interpreter.Workload(ctx, template)
	return &wants{workload: workload}, err
}

func (w *wants) fill(spec *workv1alpha2.ResourceBindingSpec) {
	spec.Replicas, spec.ReplicaRequirements, spec.Components = 0, nil, w.components
	spec.SchedulePriority = w.priority
	if w.workload != nil {
		spec.Replicas, spec.ReplicaRequirements = w.workload.Replicas, w.workload.Requirements
	}
}

// onBinding makes sure that a binding whose object or policy went away unseen is removed, and that one that somebody
// deleted comes back.
func onBinding[B bindings.Binding]() handler.TypedEventHandler[B, bindings.TemplateKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, b B) []bindings.TemplateKey {
		return []bindings.TemplateKey{bindings.TemplateOf(b)}
	})
}

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }
