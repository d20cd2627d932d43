package kills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/status"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// observer is told what a gardenlet does. The zero value does not listen.
type observer struct {
	// wrap is given every task.
	wrap func(flow.TaskID, flow.TaskFn) flow.TaskFn
	// wrote is called after every write.
	wrote func(context.Context)
}

// newGardenlet is a process that has just begun: it knows nothing but what the API servers of the world hold.
func newGardenlet(w *world, o observer) *shoot.Reconciler {
	return &shoot.Reconciler{
		Garden: interceptor.NewClient(w.gardenClient, reportWrites(o)),
		Seed:   interceptor.NewClient(w.seedClient, w.asGardenletSees(reportWrites(o))),
		Config: configuration(), Images: plantest.Images(), GardenIdentity: "garden",
		Identity: gardencorev1beta1.Gardener{Name: "gardenlet", Version: "v1"},
		WrapTask: o.wrap, RSAKey: w.rsaKey, AskEtcd: w.askEtcd,
	}
}

func configuration() *config.Configuration {
	c := &config.Configuration{
		SeedConfig: &config.SeedConfig{ObjectMeta: metav1.ObjectMeta{Name: seedName}}, Gateway: plantest.Gateway(),
	}
	c.Controllers.Shoot.SyncPeriod = &metav1.Duration{Duration: time.Hour}
	c.Controllers.Shoot.RetryDuration = &metav1.Duration{Duration: 12 * time.Hour}
	return c
}

// tries is how often a gardenlet may begin anew until the operation is through: conflicts with those who answer are no
// failures.
const tries = 5

// operate has a gardenlet bring about what the Shoot says, as its queue would have it. An operation that fails has not
// gone on as if nothing had happened, even if the next try succeeds.
func operate(ctx context.Context, w *world, o observer) error {
	r := newGardenlet(w, o)
	ctx = ctrl.LoggerInto(ctx, logr.Discard())
	for range tries {
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: shootKey})
		if err != nil {
			return fmt.Errorf("the operation failed: %w", err)
		}
		current := &gardencorev1beta1.Shoot{}
		if err := w.gardenClient.Get(ctx, shootKey, current); err != nil {
			return client.IgnoreNotFound(err)
		}
		if status.IsFailed(current) {
			return fmt.Errorf("the operation failed for good: %s", current.Status.LastOperation.Description)
		}
		if status.Settled(current) && current.DeletionTimestamp == nil {
			return nil
		}
		time.Sleep(result.RequeueAfter)
	}
	return errors.New("the operation does not come to its end")
}

// reportWrites tells of every write that has succeeded.
func reportWrites(o observer) interceptor.Funcs {
	report := func(ctx context.Context, err error) error {
		if err == nil && o.wrote != nil {
			o.wrote(ctx)
		}
		return err
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return report(ctx, c.Create(ctx, object, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			return report(ctx, c.Delete(ctx, object, opts...))
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object,
			opts ...client.DeleteAllOfOption) error {
			return report(ctx, c.DeleteAllOf(ctx, object, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			return report(ctx, c.Update(ctx, object, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			return report(ctx, c.Patch(ctx, object, patch, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
			return report(ctx, c.Apply(ctx, object, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subResource string, object client.Object,
			patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return report(ctx, c.SubResource(subResource).Patch(ctx, object, patch, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, subResource string, object client.Object,
			opts ...client.SubResourceUpdateOption) error {
			return report(ctx, c.SubResource(subResource).Update(ctx, object, opts...))
		},
	}
}

// asGardenletSees adds what the fake client leaves out: watches of single objects, and a network in which the API
// server of the shoot is found.
func (w *world) asGardenletSees(funcs interceptor.Funcs) interceptor.Funcs {
	funcs.Watch = watchNamed
	funcs.Get = func(ctx context.Context, c client.WithWatch, at client.ObjectKey, object client.Object,
		opts ...client.GetOption) error {
		if err := c.Get(ctx, at, object, opts...); err != nil {
			return err
		}
		if secret, ok := object.(*corev1.Secret); ok && at.Name == kubeapiserver.InternalKubeconfigSecret {
			secret.Data[secrets.DataKeyKubeconfig] = fmt.Appendf(nil, kubeconfig, w.address)
		}
		return nil
	}
	return funcs
}

// kubeconfig leads to the API server that plays that of the shoot.
const kubeconfig = `
apiVersion: v1
kind: Config
current-context: shoot
clusters: [{name: shoot, cluster: {server: %q}}]
users: [{name: shoot, user: {token: t}}]
contexts: [{name: shoot, context: {cluster: shoot, user: shoot}}]
`

// watchNamed passes on the events of the object that is asked for by its name.
func watchNamed(ctx context.Context, c client.WithWatch, list client.ObjectList,
	opts ...client.ListOption) (watch.Interface, error) {
	stream, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return nil, err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	name, named := options.FieldSelector.RequiresExactMatch("metadata.name")
	if !named {
		stream.Stop()
		return nil, errors.New("only single objects are watched here")
	}
	selected := &namedStream{Interface: stream, events: make(chan watch.Event)}
	context.AfterFunc(ctx, stream.Stop)
	go selected.pass(ctx, name)
	return selected, nil
}

// namedStream has the events of one object.
type namedStream struct {
	watch.Interface
	events chan watch.Event
}

// ResultChan implements watch.Interface.
func (s *namedStream) ResultChan() <-chan watch.Event { return s.events }

func (s *namedStream) pass(ctx context.Context, name string) {
	defer close(s.events)
	for event := range s.Interface.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok || object.GetName() != name {
			continue
		}
		select {
		case s.events <- event:
		case <-ctx.Done():
			return
		}
	}
}
