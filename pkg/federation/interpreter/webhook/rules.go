package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

var _ interpreter.Rules = (*webhook)(nil)

// wrong is an answer that lacks what was asked for.
func (h *webhook) wrong(operation configv1alpha1.InterpreterOperation, err error) error {
	return fmt.Errorf("webhook %s, %s: %w; %w", h.name, operation, err, interpreter.ErrTemporary)
}

// Replicas implements interpreter.Rules.
func (h *webhook) Replicas(ctx context.Context, object *unstructured.Unstructured) (*interpreter.Workload, error) {
	const operation = configv1alpha1.InterpreterOperationInterpretReplica
	response, err := h.ask(ctx, operation, object, nil)
	if err != nil {
		return nil, err
	}
	if response.Replicas == nil || *response.Replicas < 0 {
		return nil, h.wrong(operation, errors.New("response.replicas: must be given, and not negative"))
	}
	return &interpreter.Workload{Replicas: *response.Replicas, Requirements: response.ReplicaRequirements}, nil
}

// Components implements interpreter.Rules.
func (h *webhook) Components(ctx context.Context, object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	response, err := h.ask(ctx, configv1alpha1.InterpreterOperationInterpretComponent, object, nil)
	if err != nil {
		return nil, err
	}
	return response.Components, nil
}

// Revise implements interpreter.Rules.
func (h *webhook) Revise(ctx context.Context, object *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	return h.patched(ctx, configv1alpha1.InterpreterOperationReviseReplica, object,
		func(request *configv1alpha1.ResourceInterpreterRequest) error {
			request.DesiredReplicas = &replicas
			return nil
		})
}

// Prune implements interpreter.Rules.
func (h *webhook) Prune(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return h.patched(ctx, configv1alpha1.InterpreterOperationPrune, object, nil)
}

// Retain implements interpreter.Rules.
func (h *webhook) Retain(ctx context.Context,
	wanted, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return h.patched(ctx, configv1alpha1.InterpreterOperationRetain, wanted,
		func(request *configv1alpha1.ResourceInterpreterRequest) error {
			raw, err := json.Marshal(observed.Object)
			request.ObservedObject = &runtime.RawExtension{Raw: raw}
			return err
		})
}

// Aggregate implements interpreter.Rules.
func (h *webhook) Aggregate(ctx context.Context, object *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	return h.patched(ctx, configv1alpha1.InterpreterOperationAggregateStatus, object,
		func(request *configv1alpha1.ResourceInterpreterRequest) error {
			request.AggregatedStatus = items
			return nil
		})
}

// Reflect implements interpreter.Rules.
func (h *webhook) Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	const operation = configv1alpha1.InterpreterOperationInterpretStatus
	response, err := h.ask(ctx, operation, observed, nil)
	if err != nil || response.RawStatus == nil || len(response.RawStatus.Raw) == 0 {
		return nil, err
	}
	var status map[string]any
	if err := json.Unmarshal(response.RawStatus.Raw, &status); err != nil {
		return nil, h.wrong(operation, fmt.Errorf("response.rawStatus: %w", err))
	}
	return status, nil
}

// Healthy implements interpreter.Rules.
func (h *webhook) Healthy(ctx context.Context, observed *unstructured.Unstructured) (bool, error) {
	const operation = configv1alpha1.InterpreterOperationInterpretHealth
	response, err := h.ask(ctx, operation, observed, nil)
	if err != nil {
		return false, err
	}
	if response.Healthy == nil {
		return false, h.wrong(operation, errors.New("response.healthy: must be given"))
	}
	return *response.Healthy, nil
}

// Dependencies implements interpreter.Rules.
func (h *webhook) Dependencies(ctx context.Context,
	object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	const operation = configv1alpha1.InterpreterOperationInterpretDependency
	response, err := h.ask(ctx, operation, object, nil)
	if err != nil {
		return nil, err
	}
	if err := interpreter.CheckDependencies(response.Dependencies); err != nil {
		return nil, h.wrong(operation, err)
	}
	return response.Dependencies, nil
}

// patched asks for a patch, and applies it.
func (h *webhook) patched(ctx context.Context, operation configv1alpha1.InterpreterOperation,
	object *unstructured.Unstructured,
	more func(*configv1alpha1.ResourceInterpreterRequest) error) (*unstructured.Unstructured, error) {
	response, err := h.ask(ctx, operation, object, more)
	if err != nil || len(response.Patch) == 0 {
		return object, err
	}
	if response.PatchType == nil || *response.PatchType != configv1alpha1.PatchTypeJSONPatch {
		return nil, h.wrong(operation, fmt.Errorf("response.patchType: must be %s", configv1alpha1.PatchTypeJSONPatch))
	}
	result, err := apply(object, response.Patch)
	if err != nil {
		return nil, h.wrong(operation, fmt.Errorf("response.patch: %w", err))
	}
	return result, nil
}

// Limits of patches.
const (
	maxOperations = 1000
	maxCopied     = 1 << 20
)

// apply changes a copy of an object. The object must stay the one that it is.
func apply(object *unstructured.Unstructured, encoded []byte) (result *unstructured.Unstructured, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("cannot be applied: %v", recovered)
		}
	}()
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	if len(patch) > maxOperations {
		return nil, fmt.Errorf("has %d operations; at most %d are possible", len(patch), maxOperations)
	}
	before, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	options.SupportNegativeIndices = false
	after, err := patch.ApplyWithOptions(before, options)
	if err != nil {
		return nil, err
	}
	if len(after) > maxAnswer {
		return nil, fmt.Errorf("makes an object of more than %d bytes", maxAnswer)
	}
	result = &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(after); err != nil {
		return nil, err
	}
	if result.GroupVersionKind() != object.GroupVersionKind() || result.GetName() != object.GetName() ||
		result.GetNamespace() != object.GetNamespace() {
		return nil, errors.New("changes kind, namespace or name of the object")
	}
	return result, nil
}
