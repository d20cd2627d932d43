package controllers

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/script"
)

// interpretation teaches the interpreter what the fleet's customizations say, and has objects looked at again whose kind is
// understood in another way than before.
type interpretation struct {
	client      client.Reader
	events      events.EventRecorder
	interpreter *interpreter.Interpreter
	compiler    script.Compiler
	// taught is what the interpreter knows, by customization.
	taught map[types.UID]lesson
	// templates knows the objects of a kind.
	templates *templateWatches

	// pending are kinds whose objects are still to be looked at again.
	pending map[schema.GroupVersionKind]bool

	wakeTemplates  *inlet[bindings.TemplateKey]
	wakeBindings   *inlet[reconcile.Request]
	wakeDependents *inlet[reconcile.Request]
	wakeExecutions *inlet[reconcile.Request]
}

// lesson is one customization in one version.
type lesson struct {
	resourceVersion string
	kind            schema.GroupVersionKind
}

func newInterpretation(mgr manager.Manager, options Options) *interpretation {
	return &interpretation{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("interpretation"), interpreter: options.Interpreter,
		taught: map[types.UID]lesson{}, pending: map[schema.GroupVersionKind]bool{},
		wakeTemplates: &inlet[bindings.TemplateKey]{}, wakeBindings: &inlet[reconcile.Request]{},
		wakeDependents: &inlet[reconcile.Request]{}, wakeExecutions: &inlet[reconcile.Request]{},
	}
}

// addInterpretation teaches the interpreter before any other controller asks it, and from then on what changes.
func addInterpretation(ctx context.Context, mgr manager.Manager, options Options, i *interpretation) error {
	if err := i.teach(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	settings := typedOptions[reconcile.Request](options, i)
	settings.MaxConcurrentReconciles = 1
	c, err := controller.New("interpretation", mgr, settings)
	if err != nil {
		return err
	}
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &configv1alpha1.ResourceInterpreterCustomization{}, toOne[*configv1alpha1.ResourceInterpreterCustomization](),
			predicate.TypedGenerationChangedPredicate[*configv1alpha1.ResourceInterpreterCustomization]{})),
	)
}

// toOne makes one request of all objects: what they say is read together.
func toOne[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}
	})
}

// Reconcile reads all customizations.
func (i *interpretation) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := i.teach(ctx, i.client); err != nil {
		return reconcile.Result{}, err
	}
	for kind := range i.pending {
		if err := i.wake(ctx, kind); err != nil {
			return reconcile.Result{}, err
		}
		delete(i.pending, kind)
	}
	return reconcile.Result{}, nil
}

// teach reads all customizations, and notes the kinds that are understood in another way from now on.
func (i *interpretation) teach(ctx context.Context, reader client.Reader) error {
	var list configv1alpha1.ResourceInterpreterCustomizationList
	if err := reader.List(ctx, &list); err != nil {
		return fmt.Errorf("listing ResourceInterpreterCustomizations: %w", err)
	}
	customizations, failures := i.compiler.Compile(ctx, list.Items)
	i.interpreter.SetSources(customizations)
	taught := map[types.UID]lesson{}
	for n := range list.Items {
		c := &list.Items[n]
		now := lesson{c.ResourceVersion, schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)}
		taught[c.UID] = now
		old, known := i.taught[c.UID]
		if known && old == now {
			continue
		}
		i.pending[now.kind] = true
		if known {
			i.pending[old.kind] = true
		}
		if err := failures[c.Name]; err != nil {
			logr.FromContextOrDiscard(ctx).Info("Customization has a script that cannot run", "customization", c.Name, "reason", err.Error())
			i.events.Eventf(c, nil, corev1.EventTypeWarning, "InvalidScript", "Compile", "%s", shorten(err.Error()))
		}
	}
	for uid, old := range i.taught {
		if _, kept := taught[uid]; !kept {
			i.pending[old.kind] = true
		}
	}
	i.taught = taught
	return nil
}

// wake has all objects of a kind looked at again: what they want, what the members get, and what became of it there.
func (i *interpretation) wake(ctx context.Context, kind schema.GroupVersionKind) error {
	if !i.templates.watches(kind) {
		return nil
	}
	keys, err := i.templates.list(ctx, kind, "")
	if err != nil {
		return err
	}
	i.wakeTemplates.add(keys...)
	for _, key := range keys {
		binding := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)}}
		i.wakeBindings.add(binding)
		i.wakeDependents.add(binding)
		var works workv1alpha1.WorkList
		if err := i.client.List(ctx, &works, client.MatchingFields{workBindingIndex: binding.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the Works of binding %s: %w", binding, err)
		}
		for n := range works.Items {
			i.wakeExecutions.add(requestFor(&works.Items[n]))
		}
	}
	return nil
}
