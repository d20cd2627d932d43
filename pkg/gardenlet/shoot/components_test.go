package shoot

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// One line in a list brings a component into the plan with its image, into the flow, and among what must be healthy.
func TestAComponentIsOneLine(t *testing.T) {
	nothing := func(context.Context, *components.Builder, any) ([]client.Object, error) { return nil, nil }
	decide := func(f component.Facts) any { return "decided for " + f.Namespace }
	controlPlane, system := components.ControlPlane, components.System
	t.Cleanup(func() { components.ControlPlane, components.System = controlPlane, system })
	components.ControlPlane = append(slices.Clip(controlPlane), components.Component{
		Name: "pretended", Images: []string{"pretended"},
		Recipe: components.Recipe{
			Decide: decide, Build: func(*components.Builder, any) component.Component { return nil },
		},
		LeftOut: func(shoot *gardencorev1beta1.ShootSpec) bool { return len(shoot.Provider.Workers) == 0 },
	})
	components.System = append(slices.Clip(system),
		components.Component{
			Name: "shoot-core-pretended", Recipe: components.Recipe{Decide: decide, Objects: nothing},
		})
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		inFlow string
		isPart bool
	}{
		"workers":    {func(*plan.Inputs) {}, "Waiting until pretended is ready <- ", true},
		"workerless": {plantest.Workerless, "Waiting until pretended is ready (skipped) <- ", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := operation(t, test.change)
			if o.Plan.Images["pretended"] == "" || o.Plan.Has("pretended") != test.isPart ||
				!o.Plan.Has("shoot-core-pretended") {
				t.Errorf("planned: %q, images %q", o.Plan.Components, o.Plan.Images)
			}
			if _, decided := o.Plan.Values["pretended"]; decided != test.isPart ||
				o.Plan.Values["shoot-core-pretended"] != "decided for "+o.Plan.Namespace {
				t.Errorf("decided: %v", o.Plan.Values)
			}
			graph, err := o.ReconcileFlow()
			if err != nil {
				t.Fatal(err)
			}
			if flow := graph.String(); !strings.Contains(flow, test.inFlow) ||
				!strings.Contains(flow, "Deploying shoot-core-pretended <- ") {
				t.Errorf("the flow is\n%s", flow)
			}
		})
	}
}

// What a line says of its stage decides what the component waits for, and what waits for it.
func TestAStageWaits(t *testing.T) {
	const secrets, apiServer = "Initializing secrets management", "Waiting until kube-apiserver is ready"
	const backup = "Waiting until the backup entry is ready"
	for stage, test := range map[components.Stage]struct{ after, before, waitedFor string }{
		components.Controllers: {after: apiServer},
		components.Stores: {
			after: secrets + ", " + backup, before: apiServer, waitedFor: "Waiting until pretended is ready",
		},
		components.Tunnels: {
			after: secrets, before: "Waiting until the tunnel to the nodes is up", waitedFor: "Deploying pretended",
		},
		components.Autoscalers: {after: "Waiting until worker pools are ready"},
	} {
		graph := flowWith(t, components.Component{
			Name: "pretended", Stage: stage,
			Recipe: components.Recipe{Build: func(*components.Builder, any) component.Component { return nil }},
		})
		if dependencies := dependenciesOf(graph, "Deploying pretended"); dependencies != test.after {
			t.Errorf("stage %d: it waits for %q, want %q", stage, dependencies, test.after)
		}
		if !strings.Contains(dependenciesOf(graph, test.before), test.waitedFor) {
			t.Errorf("stage %d: %q does not wait for it:\n%s", stage, test.before, graph)
		}
	}
}

// Of two that stand in for each other, the second waits for the first.
func TestPathsAreReplacedOneAfterTheOther(t *testing.T) {
	graph := flowWith(t)
	if got := dependenciesOf(graph, "Deploying vpn-seed-server-1"); !strings.Contains(got,
		"Waiting until vpn-seed-server is ready") {
		t.Errorf("the second path waits for %q", got)
	}
	if got := dependenciesOf(graph, "Deploying vpn-seed-server"); strings.Contains(got, "vpn-seed-server") {
		t.Errorf("the first path waits for %q", got)
	}
}

// No line is without tasks, but those of what extensions deploy.
func TestComponentsHaveTasks(t *testing.T) {
	graph := flowWith(t)
	for _, c := range components.ControlPlane {
		for _, task := range []string{"Deploying " + c.Name, "Waiting until " + c.Name + " is ready"} {
			if has := dependenciesOf(graph, task) != ""; has != (c.Recipe.Build != nil) {
				t.Errorf("%s: the flow has a task %q: %v", c.Name, task, has)
			}
		}
	}
}

// The authorities of the lines are enough: whatever a shoot has can be made with them.
func TestComponentsHaveTheirAuthorities(t *testing.T) {
	for name, change := range map[string]func(*plan.Inputs){
		"workers": func(*plan.Inputs) {}, "workerless": plantest.Workerless,
	} {
		t.Run(name, func(t *testing.T) {
			p := plantest.New(t, change)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}
			seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(namespace).Build()
			b := builder(t, seed, p)
			if err := component.GenerateCertificateAuthorities(t.Context(), b.Secrets, p.Authorities); err != nil {
				t.Fatal(err)
			}
			for _, c := range slices.Concat(components.ControlPlane, components.System) {
				if !p.Has(c.Name) {
					continue
				}
				var err error
				switch {
				case c.Recipe.Objects != nil:
					_, err = c.Objects(t.Context(), b)
				case c.Recipe.Build != nil && c.Stage != components.Autoscalers:
					err = c.Build(b).Deploy(t.Context())
				}
				if err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			}
		})
	}
}

// builder makes the components of a plan. It knows the authority of the seed.
func builder(t *testing.T, seed client.Client, p *plan.Plan) *components.Builder {
	t.Helper()
	garden, err := secrets.New(t.Context(), seed, "garden", secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := garden.Generate(t.Context(),
		secrets.CertificateConfig{Name: component.CAEgress, CommonName: "egress", CertType: secrets.CACert})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := secrets.New(t.Context(), seed, p.Namespace,
		secrets.Options{Authorities: map[string]*corev1.Secret{component.CAEgress: authority}})
	if err != nil {
		t.Fatal(err)
	}
	return &components.Builder{
		Seed: seed, Namespace: p.Namespace, Secrets: manager, Values: p.Values,
	}
}

// flowWith is the flow of a shoot with workers and more components in the control plane.
func flowWith(t *testing.T, more ...components.Component) string {
	t.Helper()
	listed := components.ControlPlane
	t.Cleanup(func() { components.ControlPlane = listed })
	components.ControlPlane = append(slices.Clip(listed), more...)
	graph, err := operation(t, func(*plan.Inputs) {}).ReconcileFlow()
	if err != nil {
		t.Fatal(err)
	}
	components.ControlPlane = listed
	return graph.String()
}

// dependenciesOf are what a task of a printed flow waits for; empty if it has none.
func dependenciesOf(graph, task string) string {
	_, rest, _ := strings.Cut(strings.ReplaceAll(graph, " (skipped)", ""), "  "+task+" <- ")
	dependencies, _, _ := strings.Cut(rest, "\n")
	return dependencies
}
