package interpreter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
)

// Health of an object in a member.
type Health string

// Values of Health.
const (
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
	Unknown   Health = "Unknown"
)

// ErrTemporary is wrapped by errors that may pass without a change of the object or of the rules: a webhook that does
// not answer, for example.
var ErrTemporary = errors.New("trying again may help")

// Workload is what the scheduler wants to know of an object with replicas.
type Workload struct {
	Replicas int32
	// Requirements are those of one replica; nil if nothing is known about them.
	Requirements *workv1alpha2.ReplicaRequirements
}

// Rules answer questions about objects of the kind that they were made for. Arguments are not changed.
type Rules interface {
	// Replicas gives the number of replicas and what one needs.
	Replicas(ctx context.Context, object *unstructured.Unstructured) (*Workload, error)
	// Components gives the parts of an object that have replicas of their own.
	Components(ctx context.Context, object *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	// Revise gives the object with another number of replicas.
	Revise(ctx context.Context, object *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error)
	// Prune gives the object without what only belongs to the fleet.
	Prune(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Retain gives the wanted object with what the member decides about.
	Retain(ctx context.Context, wanted, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Aggregate gives the object with a status that tells of all members.
	Aggregate(ctx context.Context, object *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
	// Reflect gives what is worth knowing of the status of an object in a member.
	Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error)
	// Healthy judges an object in a member.
	Healthy(ctx context.Context, observed *unstructured.Unstructured) (bool, error)
	// Dependencies gives what an object refers to.
	Dependencies(ctx context.Context,
		object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Source has rules for some operations on some kinds. It is not changed once it is in use.
type Source interface {
	// RulesFor gives nil if the source says nothing about the operation.
	RulesFor(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) Rules
}

// Interpreter answers questions about the objects of a fleet. Its methods may be called at the same time. Arguments are
// not changed, and results may share parts with them.
type Interpreter struct {
	sources atomic.Pointer[[]Source]
}

// New gives an Interpreter that knows what is built in.
func New() *Interpreter { return &Interpreter{} }

// SetSources replaces the sources that are asked, in this order, before what is built in.
func (i *Interpreter) SetSources(sources ...Source) { i.sources.Store(&sources) }

func (i *Interpreter) rulesFor(object *unstructured.Unstructured, operation configv1alpha1.InterpreterOperation) Rules {
	sources := i.sources.Load()
	if sources == nil {
		return nil
	}
	kind := object.GroupVersionKind()
	for _, source := range *sources {
		if rules := source.RulesFor(kind, operation); rules != nil {
			return rules
		}
	}
	return nil
}

// Workload gives nil for objects without replicas.
func (i *Interpreter) Workload(ctx context.Context, object *unstructured.Unstructured) (*Workload, error) {
	if rules := i.rulesFor(object, configv1alpha1.InterpreterOperationInterpretReplica); rules != nil {
		return rules.Replicas(ctx, object)
	}
	return workloadOf(object)
}

// Components gives nil for objects that don't have several parts with replicas.
func (i *Interpreter) Components(ctx context.Context,
	object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	if rules := i.rulesFor(object, configv1alpha1.InterpreterOperationInterpretComponent); rules != nil {
		return rules.Components(ctx, object)
	}
	return componentsOf(object)
}

// Revise gives a copy of the object with a cluster's share of the replicas. Objects without such a number stay as they
// are.
func (i *Interpreter) Revise(ctx context.Context, object *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	if rules := i.rulesFor(object, configv1alpha1.InterpreterOperationReviseReplica); rules != nil {
		revised, err := rules.Revise(ctx, object, replicas)
		return stays(configv1alpha1.InterpreterOperationReviseReplica, object, revised, err)
	}
	return revise(object, replicas)
}

// Prune gives a copy of a template without what belongs to the API server that it comes from: identity, ownership,
// status and values that the server filled in for itself.
func (i *Interpreter) Prune(ctx context.Context,
	template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	pruned := prune(template)
	if rules := i.rulesFor(template, configv1alpha1.InterpreterOperationPrune); rules != nil {
		result, err := rules.Prune(ctx, pruned)
		return stays(configv1alpha1.InterpreterOperationPrune, pruned, result, err)
	}
	return pruned, nil
}

// Retain gives the wanted object with what the member decides about once the object exists there: fields that are
// absent from the result stay as they are in the member.
func (i *Interpreter) Retain(ctx context.Context,
	wanted, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if rules := i.rulesFor(wanted, configv1alpha1.InterpreterOperationRetain); rules != nil {
		retained, err := rules.Retain(ctx, wanted, observed)
		// What is as the member has it is the member's.
		return stays(configv1alpha1.InterpreterOperationRetain, wanted, retained, err, identity.Of(observed))
	}
	return retain(wanted, observed), nil
}

// stays gives an answer about an object only if the object stays what it is.
func stays(operation configv1alpha1.InterpreterOperation, before, after *unstructured.Unstructured, err error,
	tolerated ...identity.Identity) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	if err := identity.Of(before).Check(identity.Of(after), tolerated...); err != nil {
		return nil, fmt.Errorf("%s of the interpreter for %s: %w", operation, before.GetKind(), err)
	}
	return after, nil
}

// Aggregate adds up the statuses of all members into that of the template. wanted is the number of members that have
// the object. It gives false if nothing is known about the kind's status.
func (i *Interpreter) Aggregate(ctx context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem, wanted int) (map[string]any, bool, error) {
	if rules := i.rulesFor(template, configv1alpha1.InterpreterOperationAggregateStatus); rules != nil {
		object, err := rules.Aggregate(ctx, template, items)
		if err != nil {
			return nil, false, err
		}
		status, found := object.Object["status"].(map[string]any)
		return status, found, nil
	}
	decoded, err := decodeItems(items)
	if err != nil {
		return nil, false, err
	}
	status, known := aggregate(template, decoded, wanted)
	return status, known, nil
}

// Reflect collects what is worth knowing of an object's status in a member. templateGeneration is the generation of the
// template that the member has. Nil if the object has no status.
func (i *Interpreter) Reflect(ctx context.Context, observed *unstructured.Unstructured,
	templateGeneration int64) (map[string]any, error) {
	if rules := i.rulesFor(observed, configv1alpha1.InterpreterOperationInterpretStatus); rules != nil {
		return rules.Reflect(ctx, observed)
	}
	return reflectStatus(observed, templateGeneration), nil
}

// Health tells the health of an object in a member. Kinds of which nothing is known are Unknown, and so are objects
// that cannot be judged.
func (i *Interpreter) Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error) {
	if rules := i.rulesFor(observed, configv1alpha1.InterpreterOperationInterpretHealth); rules != nil {
		healthy, err := rules.Healthy(ctx, observed)
		switch {
		case err != nil:
			return Unknown, err
		case healthy:
			return Healthy, nil
		}
		return Unhealthy, nil
	}
	return healthOf(observed), nil
}

// Dependencies gives what an object refers to and needs beside it, in the order of kind, namespace and name.
func (i *Interpreter) Dependencies(ctx context.Context,
	object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	if rules := i.rulesFor(object, configv1alpha1.InterpreterOperationInterpretDependency); rules != nil {
		return rules.Dependencies(ctx, object)
	}
	return dependenciesOf(object)
}
