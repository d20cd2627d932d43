package dependencies

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// dependencies keeps one referrer's entry in spec.requiredBy of all that it refers to.
type dependencies struct {
	client client.Client
	events events.EventRecorder
	source references.Source
	index  *index
	// watch has the objects of a kind watched.
	watch func(schema.GroupVersionKind) error
	// skipped objects are never propagated.
	skipped func(*unstructured.Unstructured) bool
}

// Reconcile handles one referrer.
func (d *dependencies) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	referrer, err := bindings.Get(ctx, d.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	refers, err := d.references(ctx, referrer)
	if err != nil {
		return reconcile.Result{}, err
	}
	d.index.set(request.NamespacedName, refers)
	objects, err := d.find(ctx, refers)
	if err != nil {
		return reconcile.Result{}, err
	}
	var snapshot *workv1alpha2.BindingSnapshot
	if len(objects) > 0 {
		snapshot = references.SnapshotOf(request.NamespacedName, referrer.BindingSpec())
	}
	wanted := map[types.NamespacedName]bool{}
	for _, object := range objects {
		attached := types.NamespacedName{
			Namespace: object.GetNamespace(), Name: bindings.Name(object.GetName(), object.GetKind()),
		}
		if attached == request.NamespacedName || wanted[attached] || snapshot == nil {
			continue
		}
		wanted[attached] = true
		if err := d.attach(ctx, attached, object, snapshot); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, d.detachOthers(ctx, request.NamespacedName, wanted)
}

// references of a binding that takes along what its object refers to; none of others.
func (d *dependencies) references(ctx context.Context, referrer bindings.Binding) ([]references.Reference, error) {
	if referrer == nil || referrer.GetDeletionTimestamp() != nil || !referrer.BindingSpec().PropagateDeps {
		return nil, nil
	}
	template, err := bindings.GetTemplate(ctx, d.client, bindings.TemplateOf(referrer))
	if err != nil || template == nil || template.GetDeletionTimestamp() != nil {
		return nil, err
	}
	found, err := references.Of(ctx, d.source, template)
	if err == nil {
		return found, nil
	}
	d.events.Eventf(template, referrer, corev1.EventTypeWarning, "DependenciesNotUnderstood", "Propagate", "%v", err)
	if errors.Is(err, references.ErrElsewhere) {
		return found, nil
	}
	if errors.Is(err, references.ErrWrong) {
		return nil, reconcile.TerminalError(err)
	}
	return nil, fmt.Errorf("dependencies of %s: %w", bindings.TemplateOf(referrer), err)
}

// find gives the objects that there are; their kinds are watched from then on.
func (d *dependencies) find(ctx context.Context, refers []references.Reference) ([]*unstructured.Unstructured, error) {
	var result []*unstructured.Unstructured
	for _, r := range refers {
		if err := d.watch(r.GroupVersionKind); err != nil {
			return nil, err
		}
		objects, err := references.Find(ctx, d.client, r)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if object.GetDeletionTimestamp() == nil && !d.skipped(object) {
				result = append(result, object)
			}
		}
	}
	return result, nil
}

// attach enters the referrer into the binding of an object, which is created if there is none.
func (d *dependencies) attach(ctx context.Context, key types.NamespacedName, object *unstructured.Unstructured,
	snapshot *workv1alpha2.BindingSnapshot) error {
	existing, err := bindings.Get(ctx, d.client, key)
	if err != nil {
		return err
	}
	if existing == nil {
		created := bindings.NewFor(object)
		created.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{*snapshot}
		if err := d.inherit(ctx, created); err != nil {
			return err
		}
		if err := d.client.Create(ctx, created); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating binding %s: %w", key, err)
		}
		return nil
	}
	if existing.GetDeletionTimestamp() != nil {
		return nil // Its end wakes the referrer.
	}
	if !bindings.IsFor(existing, bindings.TemplateKeyOf(object, object.GroupVersionKind())) {
		d.events.Eventf(object, existing, corev1.EventTypeWarning, "BindingNameTaken", "Propagate",
			"binding %s belongs to a %s of API %s with the same name", existing.GetName(), object.GetKind(),
			existing.BindingSpec().Resource.APIVersion)
		return nil
	}
	return d.write(ctx, existing, references.KeyOf(*snapshot), snapshot)
}

// detachOthers takes the referrer out of all bindings but the wanted ones.
func (d *dependencies) detachOthers(ctx context.Context, referrer types.NamespacedName,
	wanted map[types.NamespacedName]bool) error {
	attached, err := bindings.List(ctx, d.client, client.MatchingFields{requiredByIndex: referrer.String()})
	if err != nil {
		return err
	}
	for _, b := range attached {
		if wanted[client.ObjectKeyFromObject(b)] || b.GetDeletionTimestamp() != nil {
			continue
		}
		if err := d.write(ctx, b, referrer, nil); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) write(ctx context.Context, existing bindings.Binding, referrer types.NamespacedName,
	snapshot *workv1alpha2.BindingSnapshot) error {
	updated := existing.DeepCopyObject().(bindings.Binding)
	spec := updated.BindingSpec()
	spec.RequiredBy = references.WithSnapshot(spec.RequiredBy, referrer, snapshot)
	if !bindings.IsPlaced(spec) && len(spec.RequiredBy) > 0 {
		if err := d.inherit(ctx, updated); err != nil {
			return err
		}
	}
	if apiequality.Semantic.DeepEqual(existing.BindingSpec(), spec) {
		return nil
	}
	if err := d.client.Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating binding %s: %w", client.ObjectKeyFromObject(updated), err)
	}
	return nil
}

// inherit fills in what an object without a policy takes over from the bindings that require it. Who writes a binding
// by hand may name any there, also what they may not read: those of other namespaces require nothing of this one.
func (d *dependencies) inherit(ctx context.Context, b bindings.Binding) error {
	spec := b.BindingSpec()
	var referrers []*workv1alpha2.ResourceBindingSpec
	for _, s := range spec.RequiredBy {
		key := references.KeyOf(s)
		if key.Namespace != "" && key.Namespace != b.GetNamespace() {
			continue
		}
		referrer, err := bindings.Get(ctx, d.client, key)
		if err != nil {
			return err
		}
		if referrer != nil {
			referrers = append(referrers, referrer.BindingSpec())
		}
	}
	references.Inherit(spec, referrers)
	return nil
}
