package script

import (
	"context"
	"fmt"
	"io"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// rules answer one operation by a script. Only the method of that operation is called.
type rules struct {
	*Script
	output io.Writer
}

var _ interpreter.Rules = rules{}

// Functions by the operation that they answer.
var functions = map[configv1alpha1.InterpreterOperation]string{
	configv1alpha1.InterpreterOperationInterpretReplica:    "GetReplicas",
	configv1alpha1.InterpreterOperationInterpretComponent:  "GetComponents",
	configv1alpha1.InterpreterOperationReviseReplica:       "ReviseReplica",
	configv1alpha1.InterpreterOperationRetain:              "Retain",
	configv1alpha1.InterpreterOperationAggregateStatus:     "AggregateStatus",
	configv1alpha1.InterpreterOperationInterpretStatus:     "ReflectStatus",
	configv1alpha1.InterpreterOperationInterpretHealth:     "InterpretHealth",
	configv1alpha1.InterpreterOperationInterpretDependency: "GetDependencies",
}

// Replicas implements interpreter.Rules.
func (s rules) Replicas(ctx context.Context, object *unstructured.Unstructured) (*interpreter.Workload, error) {
	w := &interpreter.Workload{}
	err := s.Call(ctx, s.output, []any{object.Object}, 2, func(r Results) error {
		count, err := r.Value(0, nil)
		if err != nil {
			return err
		}
		n, ok := count.(int64)
		if !ok || n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("GetReplicas returns %v (a %s) as first result; it must be a whole number of replicas",
				count, r.Type(0))
		}
		w.Replicas = int32(n)
		if r.Type(1) == "nil" {
			return nil
		}
		w.Requirements = &workv1alpha2.ReplicaRequirements{}
		return r.table(1, "GetReplicas", w.Requirements)
	})
	return w, err
}

// table reads a result that must be a table.
func (r Results) table(i int, function string, target any) error {
	if r.Type(i) != "table" {
		return fmt.Errorf("%s returns a %s; it must be a table", function, r.Type(i))
	}
	return r.Into(i, target)
}

// Components implements interpreter.Rules.
func (s rules) Components(ctx context.Context, object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	var components []workv1alpha2.Component
	err := s.Call(ctx, s.output, []any{object.Object}, 1, func(r Results) error {
		if r.Type(0) == "nil" {
			return nil
		}
		return r.table(0, "GetComponents", &components)
	})
	return components, err
}

// Revise implements interpreter.Rules.
func (s rules) Revise(ctx context.Context, object *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	return s.object(ctx, object, object.Object, int64(replicas))
}

// Prune implements interpreter.Rules; there are no scripts for it.
func (s rules) Prune(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return object, nil
}

// Retain implements interpreter.Rules.
func (s rules) Retain(ctx context.Context,
	wanted, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.object(ctx, wanted, wanted.Object, observed.Object)
}

// Aggregate implements interpreter.Rules.
func (s rules) Aggregate(ctx context.Context, object *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	arguments := []any{object.Object, nil}
	if len(items) > 0 {
		decoded, err := decodeItems(items)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		arguments[1] = decoded
	}
	return s.object(ctx, object, arguments...)
}

func decodeItems(items []workv1alpha2.AggregatedStatusItem) ([]any, error) {
	result := make([]any, len(items))
	for i := range items {
		item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&items[i])
		if err != nil {
			return nil, fmt.Errorf("status from cluster %s: %w", items[i].ClusterName, err)
		}
		result[i] = item
	}
	return result, nil
}

// object calls a function that returns the object, changed.
func (s rules) object(ctx context.Context, like *unstructured.Unstructured,
	arguments ...any) (*unstructured.Unstructured, error) {
	var result *unstructured.Unstructured
	err := s.Call(ctx, s.output, arguments, 1, func(r Results) error {
		value, err := r.Value(0, like.Object)
		if err != nil {
			return err
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s returns a %s; it must be the object", s.function, r.Type(0))
		}
		result = &unstructured.Unstructured{Object: fields}
		if result.GroupVersionKind() != like.GroupVersionKind() || result.GetName() != like.GetName() ||
			result.GetNamespace() != like.GetNamespace() {
			return fmt.Errorf("%s returns %s %s/%s; kind, namespace and name of the object must stay", s.function,
				result.GroupVersionKind(), result.GetNamespace(), result.GetName())
		}
		return nil
	})
	return result, err
}

// Reflect implements interpreter.Rules.
func (s rules) Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	var status map[string]any
	err := s.Call(ctx, s.output, []any{observed.Object}, 1, func(r Results) error {
		value, err := r.Value(0, observed.Object["status"])
		if err != nil || value == nil {
			return err
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("ReflectStatus returns a %s that is no object; a status has named fields", r.Type(0))
		}
		status = fields
		return nil
	})
	return status, err
}

// Healthy implements interpreter.Rules.
func (s rules) Healthy(ctx context.Context, observed *unstructured.Unstructured) (bool, error) {
	var healthy bool
	err := s.Call(ctx, s.output, []any{observed.Object}, 1, func(r Results) error {
		value, err := r.Value(0, nil)
		if err != nil {
			return err
		}
		is, ok := value.(bool)
		if !ok {
			return fmt.Errorf("InterpretHealth returns a %s; it must be true or false", r.Type(0))
		}
		healthy = is
		return nil
	})
	return healthy, err
}

// Dependencies implements interpreter.Rules.
func (s rules) Dependencies(ctx context.Context,
	object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	var references []configv1alpha1.DependentObjectReference
	err := s.Call(ctx, s.output, []any{object.Object}, 1, func(r Results) error {
		if err := r.table(0, "GetDependencies", &references); err != nil {
			return err
		}
		return interpreter.CheckDependencies(references)
	})
	if err != nil {
		return nil, err
	}
	return references, nil
}
