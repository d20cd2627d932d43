package components

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Recipe is how a component is made: first its values are decided, for the Plan, and then it is made of them.
type Recipe struct {
	// Decide makes the values; nil if an extension does.
	Decide func(component.Facts) any
	// Build makes a component of the control plane. It gets no values where it is only waited for or deleted.
	Build func(b *Builder, values any) component.Component
	// Objects makes those of a component that runs in the shoot.
	Objects func(ctx context.Context, b *Builder, values any) ([]client.Object, error)
}

// Values are those of all components of a shoot, by the components' names.
type Values map[string]any

// ValuesOf a component; its zero values if there are none.
func ValuesOf[V any](all Values, name string) V {
	values, _ := all[name].(V)
	return values
}

// Builder makes the components of one shoot. To wait for a component or to delete it no values are needed.
type Builder struct {
	Seed client.Client
	// Namespace of the control plane.
	Namespace string
	// Secrets of the control plane; what deploys needs them, and what they are signed with.
	Secrets secrets.Manager
	// Values are those that were decided.
	Values Values
	// NodeNetworks are known when the infrastructure is, Machines, with their limits, when the workers are; nil if
	// nothing is deployed.
	NodeNetworks func() []string
	Machines     func(context.Context) ([]extensionsv1alpha1.MachineDeployment, error)
	// AskEtcd asks an etcd-steward for its status; if nil, at the address of its pod.
	AskEtcd etcdcomponent.Ask
}

// KubeAPIServer is the component.
func (b *Builder) KubeAPIServer() kubeapiserver.Interface {
	return kubeapiserver.New(b.Seed, b.Namespace, b.Secrets,
		ValuesOf[kubeapiserver.Values](b.Values, kubeapiserver.Name))
}

// Build makes the component for the control plane.
func (c Component) Build(b *Builder) component.Component { return c.Recipe.Build(b, b.Values[c.Name]) }

// Objects makes what runs in the shoot.
func (c Component) Objects(ctx context.Context, b *Builder) ([]client.Object, error) {
	return c.Recipe.Objects(ctx, b, b.Values[c.Name])
}

// Workload is the Deployment or StatefulSet of a component of the control plane; only its name.
func (c Component) Workload(namespace string) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: c.Name}
	if c.Stage == Stores {
		return &appsv1.StatefulSet{ObjectMeta: meta}
	}
	return &appsv1.Deployment{ObjectMeta: meta}
}

// Stop stops what a control plane has of a stage, and waits until its last pods are gone: those of kube-apiserver still
// write to etcd. Volumes stay.
func Stop(ctx context.Context, seed client.Client, namespace string, stage Stage) error {
	for _, c := range Of(stage) {
		if err := component.Stop(ctx, seed, c.Workload(namespace)); err != nil {
			return err
		}
	}
	return nil
}

// inSeed makes a component of the control plane of its values.
func inSeed[V any](decide func(component.Facts) V,
	build func(client.Client, string, secrets.Manager, V) component.Component) Recipe {
	return with(decide, func(b *Builder, values V) component.Component {
		return build(b.Seed, b.Namespace, b.Secrets, values)
	})
}

// with is as inSeed, for what needs more of the builder.
func with[V any](decide func(component.Facts) V, build func(*Builder, V) component.Component) Recipe {
	return Recipe{
		Decide: func(f component.Facts) any { return decide(f) },
		Build: func(b *Builder, values any) component.Component {
			decided, _ := values.(V)
			return build(b, decided)
		},
	}
}

// inShoot makes what runs in the shoot of its values.
func inShoot[V any](decide func(component.Facts) V, objects func(V) ([]client.Object, error)) Recipe {
	return Recipe{
		Decide: func(f component.Facts) any { return decide(f) },
		Objects: func(_ context.Context, _ *Builder, values any) ([]client.Object, error) {
			return objects(values.(V))
		},
	}
}

// withKeys is as inShoot, for values that lack keys or certificates until these exist.
func withKeys[V keyed[V]](decide func(component.Facts) V, objects func(V) ([]client.Object, error)) Recipe {
	return Recipe{
		Decide: func(f component.Facts) any { return decide(f) },
		Objects: func(ctx context.Context, b *Builder, values any) ([]client.Object, error) {
			complete, err := values.(V).WithKeys(ctx, b.Secrets)
			if err != nil {
				return nil, err
			}
			return objects(complete)
		},
	}
}

// sure is for objects that cannot fail to be made.
func sure[V any](objects func(V) []client.Object) func(V) ([]client.Object, error) {
	return func(values V) ([]client.Object, error) { return objects(values), nil }
}

// keyed are values that keys are added to.
type keyed[V any] interface {
	WithKeys(context.Context, secrets.Manager) (V, error)
}
