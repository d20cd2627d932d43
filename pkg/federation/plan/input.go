package plan

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// Rules are what decides about objects.
type Rules struct {
	Policies  []policies.Policy
	Overrides []overrides.Policy
	Clusters  []clusterv1alpha1.Cluster
	Quotas    []policyv1alpha1.FederatedResourceQuota
}

// Object of the fleet that the change may concern.
type Object struct {
	// Now and Then are the object before and after the change; nil if there is none.
	Now, Then *unstructured.Unstructured
	// Rebalanced objects have their placement decided from scratch.
	Rebalanced bool
	// Unconcerned objects are looked at for the policies alone that would not be theirs: nothing that changes concerns
	// them.
	Unconcerned bool
	// partial objects are known by what their binding says of them alone.
	partial bool
}

// template is the object as far as there is one.
func (o Object) template() *unstructured.Unstructured {
	if o.Then != nil {
		return o.Then
	}
	return o.Now
}

// key of the object's binding.
func (o Object) key() types.NamespacedName {
	template := o.template()
	return types.NamespacedName{
		Namespace: template.GetNamespace(), Name: bindings.Name(template.GetName(), template.GetKind()),
	}
}

// Input of a prediction. Nothing of it is changed.
type Input struct {
	Documents []Document
	Now, Then Rules
	// Objects that are looked at.
	Objects []Object
	// Bindings are all that the fleet has.
	Bindings []bindings.Binding
	// Interpreter tells what objects ask of clusters.
	Interpreter *interpreter.Interpreter
	// Rebalancers of the documents that are created.
	Rebalancers []appsv1alpha1.WorkloadRebalancer
	// Serves tells whether the fleet has a kind.
	Serves func(schema.GroupVersionKind) bool
	// Find gives the objects that a reference means.
	Find func(context.Context, references.Reference) ([]*unstructured.Unstructured, error)
	// Skipped namespaces are never propagated from.
	Skipped policies.Skipped
	// Budget is the fleet's for deletions.
	Budget budget.Settings
	// At is when the change would be made.
	At time.Time
}

// objectOf gives as much of a binding's object as the binding knows.
func objectOf(b bindings.Binding) Object {
	key := bindings.TemplateOf(b)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.GroupVersionKind)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return Object{Now: object, Then: object, partial: true}
}
