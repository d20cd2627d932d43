package policies

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// Bind gives the binding of an object under a policy. What others decide about (clusters, evictions, who
// else needs it) is taken over from the existing one.
func Bind(template *unstructured.Unstructured, policy Policy, wants *Wants,
	existing bindings.Binding) bindings.Binding {
	var b bindings.Binding
	if existing != nil {
		b = existing.DeepCopyObject().(bindings.Binding)
	} else {
		b = bindings.NewFor(template)
	}
	policy.Claim(b)
	fillSpec(b.BindingSpec(), template, policy.Spec)
	wants.Fill(b.BindingSpec())
	return b
}

func fillSpec(spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured,
	policy *policyv1alpha1.PropagationSpec) {
	spec.Resource = bindings.ReferenceTo(template)
	spec.PropagateDeps = policy.PropagateDeps || policy.Association
	spec.SchedulerName = policy.SchedulerName
	spec.Placement = policy.Placement.DeepCopy()
	spec.Failover = policy.Failover.DeepCopy()
	spec.Rollout = policy.Rollout.DeepCopy()
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

// Wants is what an object asks of clusters, replicas of one kind or components, and how urgently.
type Wants struct {
	Workload   *interpreter.Workload
	Components []workv1alpha2.Component
	Priority   *workv1alpha2.SchedulePriority
}

// Ask the interpreter. An object with components is not asked for its replicas.
func Ask(ctx context.Context, in *interpreter.Interpreter, template *unstructured.Unstructured) (*Wants, error) {
	components, err := in.Components(ctx, template)
	if err != nil || len(components) > 0 {
		return &Wants{Components: components}, err
	}
	workload, err := in.Workload(ctx, template)
	return &Wants{Workload: workload}, err
}

// Fill in what the binding says of it.
func (w *Wants) Fill(spec *workv1alpha2.ResourceBindingSpec) {
	spec.Replicas, spec.ReplicaRequirements, spec.Components = 0, nil, w.Components
	spec.SchedulePriority = w.Priority
	if w.Workload != nil {
		spec.Replicas, spec.ReplicaRequirements = w.Workload.Replicas, w.Workload.Requirements
	}
}

// WantsOf gives what a binding says that its object asks of clusters.
func WantsOf(spec *workv1alpha2.ResourceBindingSpec) *Wants {
	wants := &Wants{Components: spec.Components, Priority: spec.SchedulePriority}
	if len(spec.Components) == 0 && (spec.Replicas > 0 || spec.ReplicaRequirements != nil) {
		wants.Workload = &interpreter.Workload{Replicas: spec.Replicas, Requirements: spec.ReplicaRequirements}
	}
	return wants
}
