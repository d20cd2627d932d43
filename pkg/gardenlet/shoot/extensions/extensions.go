// Package extensions has the tasks about Extension objects, and what flows have in common about objects that
// extensions act on.
package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

const (
	// deleteLifecycleAnnotation and timeoutAnnotation on an Extension say when it is to be deleted, and how long that
	// may last. The deletion of a shoot works with what is in the seed, without the registrations.
	deleteLifecycleAnnotation = "trellis.garden/delete-lifecycle"
	timeoutAnnotation         = "trellis.garden/reconcile-timeout"
)

// Objects are the objects of a shoot that extensions act on.
type Objects struct {
	Shoot plan.Identity
	Seed  client.WithWatch
	// Wanted are the objects of kind Extension that the shoot is to have.
	Wanted []plan.Extension
}

// Add adds the Extension objects of one lifecycle.
func (e *Objects) Add(g *flow.Graph, lifecycle plan.Lifecycle, after ...flow.TaskID) []flow.TaskID {
	var ready []flow.TaskID
	for _, wanted := range e.Wanted {
		if wanted.Lifecycle != lifecycle {
			continue
		}
		deployed := g.Add(flow.Task{
			Name: fmt.Sprintf("Deploying extension %s", wanted.Type), Dependencies: after,
			Fn: tasks.Retried(func(ctx context.Context) error { return e.deploy(ctx, wanted) }),
		})
		ready = append(ready, g.Add(flow.Task{
			Name:         fmt.Sprintf("Waiting until extension %s is ready", wanted.Type),
			Dependencies: []flow.TaskID{deployed},
			Fn: func(ctx context.Context) error {
				return extension.Wait(ctx, e.Seed, &extensionsv1alpha1.Extension{ObjectMeta: e.Shoot.Meta(wanted.Type)},
					wanted.Timing())
			},
		}))
	}
	return ready
}

// deploy writes an Extension.
func (e *Objects) deploy(ctx context.Context, wanted plan.Extension) error {
	object := &extensionsv1alpha1.Extension{ObjectMeta: e.Shoot.Meta(wanted.Type)}
	return extension.Deploy(ctx, e.Seed, object, true, func() {
		object.Annotations = component.Merge(object.Annotations, map[string]string{
			deleteLifecycleAnnotation: string(wanted.DeleteLifecycle), timeoutAnnotation: wanted.Timeout.String(),
		})
		object.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{
			Type: wanted.Type, ProviderConfig: Compact(wanted.ProviderConfig),
		}
	})
}

// AddUnwanted adds the removal of Extensions that the shoot does not have any more.
func (e *Objects) AddUnwanted(g *flow.Graph, after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{Name: "Removing extensions that are not wanted any more", Dependencies: after,
		Fn: func(ctx context.Context) error {
			return e.remove(ctx, e.unwanted)
		}})
}

// unwanted says whether the shoot does not have an Extension any more.
func (e *Objects) unwanted(object *extensionsv1alpha1.Extension) bool {
	return !slices.ContainsFunc(e.Wanted, func(wanted plan.Extension) bool { return wanted.Type == object.Name })
}

// AddDeletion adds the deletion of the Extensions of one lifecycle.
func (e *Objects) AddDeletion(g *flow.Graph, lifecycle plan.Lifecycle, after ...flow.TaskID) flow.TaskID {
	return g.Add(flow.Task{Name: fmt.Sprintf("Deleting extensions (%s)", lifecycle), Dependencies: after,
		Fn: func(ctx context.Context) error {
			return e.remove(ctx, func(object *extensionsv1alpha1.Extension) bool {
				return deleteLifecycle(object) == lifecycle
			})
		}})
}

// deleteLifecycle says when an Extension is deleted: before the kube-apiserver, unless its annotation says otherwise.
func deleteLifecycle(object *extensionsv1alpha1.Extension) plan.Lifecycle {
	switch lifecycle := plan.Lifecycle(object.Annotations[deleteLifecycleAnnotation]); lifecycle {
	case gardencorev1beta1.AfterKubeAPIServer, gardencorev1beta1.AfterWorker:
		return lifecycle
	}
	return gardencorev1beta1.BeforeKubeAPIServer
}

// remove deletes the Extensions of the namespace that are chosen, and waits until they are gone.
func (e *Objects) remove(ctx context.Context, chosen func(*extensionsv1alpha1.Extension) bool) error {
	list := &extensionsv1alpha1.ExtensionList{}
	if err := e.Seed.List(ctx, list, client.InNamespace(e.Shoot.Namespace)); err != nil {
		return fmt.Errorf("listing extensions: %w", err)
	}
	var waits []flow.TaskFn
	for i := range list.Items {
		object := &list.Items[i]
		if !chosen(object) {
			continue
		}
		if err := extension.Destroy(ctx, e.Seed, object); err != nil {
			return err
		}
		waits = append(waits, func(ctx context.Context) error {
			return extension.WaitGone(ctx, e.Seed, object, timingOf(object))
		})
	}
	if len(waits) == 0 {
		return nil
	}
	return flow.Parallel(waits...)(ctx)
}

// timingOf returns how long the deletion of an Extension may last.
func timingOf(object *extensionsv1alpha1.Extension) extension.Timing {
	timing := extension.DefaultTiming
	if timeout, err := time.ParseDuration(object.Annotations[timeoutAnnotation]); err == nil {
		timing.Timeout = timeout
	}
	return timing
}

// Compact returns raw JSON without insignificant space and with sorted keys, as the API server stores it;
// specifications are compared by bytes.
func Compact(raw *runtime.RawExtension) *runtime.RawExtension {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return raw
	}
	data, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return &runtime.RawExtension{Raw: data}
}
