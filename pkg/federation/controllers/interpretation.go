package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/script"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/webhook"
)

// interpretation teaches the interpreter what the fleet's customizations and webhooks know, and has objects looked at
// again whose kind is understood in another way than before.
type interpretation struct {
	client      client.Reader
	events      events.EventRecorder
	interpreter *interpreter.Interpreter
	compiler    script.Compiler
	builder     webhook.Builder
	// known is what the interpreter knows, by customization or configuration.
	known map[types.UID]customization
	// templates knows the objects of a kind.
	templates *templateWatches

	// pending are customizations that came or went, and whose objects are still to be looked at again.
	pending []customization

	wakeTemplates  *inlet[bindings.TemplateKey]
	wakeBindings   *inlet[reconcile.Request]
	wakeDependents *inlet[reconcile.Request]
	wakeExecutions *inlet[reconcile.Request]
}

// customization is one object that says what others mean, or one configuration of webhooks, in one version.
type customization struct {
	generation int64
	// speaksOf tells which kinds it is about.
	speaksOf func(schema.GroupVersionKind) bool
}

func newInterpretation(mgr manager.Manager, options Options) *interpretation {
	return &interpretation{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("interpretation"), interpreter: options.Interpreter,
		known: map[types.UID]customization{}, builder: webhook.Builder{Services: mgr.GetClient(), Dial: options.Dial},
		wakeTemplates: &inlet[bindings.TemplateKey]{}, wakeBindings: &inlet[reconcile.Request]{},
		wakeDependents: &inlet[reconcile.Request]{}, wakeExecutions: &inlet[reconcile.Request]{},
	}
}

// register teaches the interpreter before any other controller asks it, and has a reconciler teach it from then on what
// changes.
func (i *interpretation) register(ctx context.Context, mgr manager.Manager, options Options,
	changes reconcile.Reconciler) error {
	if err := i.teach(ctx, mgr.GetAPIReader()); err != nil && ctx.Err() == nil {
		return err
	}
	settings := typedOptions[reconcile.Request](options, changes)
	settings.MaxConcurrentReconciles = 1
	return setup.Add(mgr, "interpretation", settings,
		setup.Concerned(mgr.GetCache(), &configv1alpha1.ResourceInterpreterCustomization{},
			toOne[*configv1alpha1.ResourceInterpreterCustomization],
			predicate.TypedGenerationChangedPredicate[*configv1alpha1.ResourceInterpreterCustomization]{}),
		setup.Concerned(mgr.GetCache(), &configv1alpha1.ResourceInterpreterWebhookConfiguration{},
			toOne[*configv1alpha1.ResourceInterpreterWebhookConfiguration],
			predicate.TypedGenerationChangedPredicate[*configv1alpha1.ResourceInterpreterWebhookConfiguration]{}),
	)
}

// toOne makes one request of all objects: what they say is read together.
func toOne[T client.Object](context.Context, T) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}
}

// Reconcile reads everything that teaches.
func (i *interpretation) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := i.teach(ctx, i.client); err != nil {
		return reconcile.Result{}, err
	}
	for _, kind := range i.templates.kinds() {
		if !slices.ContainsFunc(i.pending, func(l customization) bool { return l.speaksOf(kind) }) {
			continue
		}
		if err := i.wake(ctx, kind); err != nil {
			return reconcile.Result{}, err
		}
	}
	i.pending = nil
	return reconcile.Result{}, nil
}

// teach reads all customizations and configurations of webhooks, and notes which are new or gone.
func (i *interpretation) teach(ctx context.Context, reader client.Reader) error {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	if err := reader.List(ctx, &customizations); err != nil {
		return fmt.Errorf("listing ResourceInterpreterCustomizations: %w", err)
	}
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := reader.List(ctx, &configurations); err != nil {
		return fmt.Errorf("listing ResourceInterpreterWebhookConfigurations: %w", err)
	}
	scripts, badScripts := i.compiler.Compile(ctx, customizations.Items)
	webhooks, badWebhooks := i.builder.Build(configurations.Items)
	i.interpreter.SetSources(scripts, webhooks)
	known := map[types.UID]customization{}
	for n := range customizations.Items {
		c := &customizations.Items[n]
		kind := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		known[c.UID] = customization{c.Generation, func(other schema.GroupVersionKind) bool { return other == kind }}
		i.note(ctx, c, known[c.UID], "InvalidScript", badScripts[c.Name])
	}
	for n := range configurations.Items {
		c := &configurations.Items[n]
		known[c.UID] = customization{c.Generation, webhook.Kinds(c)}
		i.note(ctx, c, known[c.UID], "InvalidWebhook", badWebhooks[c.Name])
	}
	for uid, old := range i.known {
		if _, kept := known[uid]; !kept {
			i.pending = append(i.pending, old)
		}
	}
	i.known = known
	return nil
}

// note remembers a customization that is new or changed, and tells once what is wrong with it.
func (i *interpretation) note(ctx context.Context, object client.Object, now customization, reason string,
	failure error) {
	old, known := i.known[object.GetUID()]
	if known && old.generation == now.generation {
		return
	}
	if known {
		i.pending = append(i.pending, old)
	}
	i.pending = append(i.pending, now)
	if failure != nil {
		logr.FromContextOrDiscard(ctx).Info("Kinds cannot be interpreted as somebody wants", "object", object.GetName(),
			"reason", failure.Error())
		i.events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Teach", "%s", shorten(failure.Error()))
	}
}

// wake has all objects of a kind looked at again: what they want, what the members get, and what became of it there.
func (i *interpretation) wake(ctx context.Context, kind schema.GroupVersionKind) error {
	keys, err := i.templates.list(ctx, kind, "")
	if err != nil {
		return err
	}
	i.wakeTemplates.add(keys...)
	for _, key := range keys {
		binding := reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: bindings.Name(key.Name, key.Kind)},
		}
		i.wakeBindings.add(binding)
		i.wakeDependents.add(binding)
		var works workv1alpha1.WorkList
		if err := i.client.List(ctx, &works, client.MatchingFields{workBindingIndex: binding.String()},
			client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the Works of binding %s: %w", binding, err)
		}
		for n := range works.Items {
			i.wakeExecutions.add(requestFor(&works.Items[n]))
		}
	}
	return nil
}
