package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rollouts"
	"github.com/trellis-garden/trellis/pkg/federation/identity"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
)

// manifests encodes one object for the clusters of a binding: once for all of them that get the same.
type manifests struct {
	interpreter *interpreter.Interpreter
	// pruned is the object without what belongs to the fleet's API server. It is not changed.
	pruned *unstructured.Unstructured
	// identity is that of the object. No manifest has another.
	identity identity.Identity
	// divided objects get a number of replicas of their own in every cluster.
	divided     bool
	completions map[string]int64
	// policies are those that select the object.
	policies []overrides.Policy
	// marks are annotations that every cluster's object gets.
	marks   map[string]string
	encoded map[share][]byte
}

// renderings make manifests of every revision that clusters get.
type renderings struct {
	stage    *rollouts.Stage
	template *unstructured.Unstructured
	render   func(template *unstructured.Unstructured) (*manifests, error)
	rendered map[*unstructured.Unstructured]*manifests
}

func (w *works) newRenderings(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	stage *rollouts.Stage, policies []overrides.Policy) *renderings {
	return &renderings{
		stage: stage, template: template, rendered: map[*unstructured.Unstructured]*manifests{},
		render: func(template *unstructured.Unstructured) (*manifests, error) {
			return newManifests(ctx, w.interpreter, b, template, policies)
		},
	}
}

// of gives the manifests that a cluster's is one of, and the name of the revision; that is empty without a staged
// rollout.
func (r *renderings) of(cluster string) (*manifests, string, error) {
	template, revision, err := r.stage.TemplateFor(cluster, r.template)
	if err != nil {
		return nil, "", err
	}
	if known := r.rendered[template]; known != nil {
		return known, revision, nil
	}
	r.rendered[template], err = r.render(template)
	return r.rendered[template], revision, err
}

// share is what may differ between clusters without overrides.
type share struct {
	replicas, completions int64
}

func newManifests(ctx context.Context, in *interpreter.Interpreter, b bindings.Binding,
	template *unstructured.Unstructured, policies []overrides.Policy) (*manifests, error) {
	pruned, err := in.Prune(ctx, template)
	if err != nil {
		return nil, err
	}
	spec := b.BindingSpec()
	return &manifests{
		interpreter: in, pruned: pruned, identity: identity.Of(pruned), encoded: map[share][]byte{},
		divided:     karmada.IsWorkload(spec) && len(spec.Components) == 0,
		completions: interpreter.SplitCompletions(template, coreTargets(b), spec.Replicas),
		policies: slices.DeleteFunc(slices.Clone(policies),
			func(p overrides.Policy) bool { return !p.Selects(pruned) }),
		marks: map[string]string{
			workv1alpha1.TemplateGenerationAnnotation: strconv.FormatInt(template.GetGeneration(), 10),
			workv1alpha1.TemplateUIDAnnotation:        string(template.GetUID()),
		},
	}, nil
}

// encode gives the object of one cluster: with its share of replicas, changed by overrides.
func (m *manifests) encode(ctx context.Context, target workv1alpha2.TargetCluster,
	cluster *clusterv1alpha1.Cluster) ([]byte, overrides.Record, error) {
	of := m.share(target)
	if known, found := m.encoded[of]; found && len(m.policies) == 0 {
		return known, overrides.Record{}, nil
	}
	object, err := m.revise(ctx, target)
	if err != nil {
		return nil, overrides.Record{}, err
	}
	object, record, err := overrides.Apply(object, karmada.Identity(cluster), m.policies)
	if err != nil {
		return nil, overrides.Record{}, err
	}
	if err := m.identity.Check(identity.Of(object)); err != nil {
		return nil, overrides.Record{}, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	for key, value := range m.marks {
		bindings.SetAnnotation(object, key, value)
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, overrides.Record{}, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	m.encoded[of] = raw
	return raw, record, nil
}

func (m *manifests) share(target workv1alpha2.TargetCluster) share {
	of := share{completions: -1}
	if m.divided {
		of.replicas = int64(target.Replicas)
	}
	if completions, found := m.completions[target.Name]; found {
		of.completions = completions
	}
	return of
}

func (m *manifests) revise(ctx context.Context, target workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	object := m.pruned
	if m.divided {
		var err error
		if object, err = m.interpreter.Revise(ctx, object, target.Replicas); err != nil {
			return nil, err
		}
	}
	if completions, found := m.completions[target.Name]; found {
		object = object.DeepCopy()
		if err := unstructured.SetNestedField(object.Object, completions, "spec", "completions"); err != nil {
			return nil, err
		}
	}
	return object, nil
}
