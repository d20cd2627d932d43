package fleets

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
)

// Overrides are what override policies make of an object.
type Overrides struct {
	Template map[string]any      `json:"template"`
	Clusters []OverriddenCluster `json:"clusters"`
}

// OverriddenCluster has the fields in which the object differs in a cluster.
type OverriddenCluster struct {
	Name   string  `json:"name"`
	Fields []Field `json:"fields"`
	Error  string  `json:"error,omitempty"`
}

// Field that has another value.
type Field struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// overridesOf compares an object with what each of its clusters gets.
func overridesOf(ctx context.Context, fleet client.Client, o Object) (*Overrides, error) {
	b, err := bindingOf(ctx, fleet, o)
	if err != nil {
		return nil, err
	}
	template, err := bindings.GetTemplate(ctx, fleet, bindings.TemplateOf(b))
	if err != nil {
		return nil, err
	}
	if template == nil {
		return nil, reply.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "the fleet has no %s", o.key())
	}
	list, err := overrides.List(ctx, fleet, template.GetNamespace())
	if err != nil {
		return nil, err
	}
	template.SetManagedFields(nil)
	shown, _ := concealed(template.GetKind(), "", template.Object).(map[string]any)
	result := &Overrides{Template: shown, Clusters: []OverriddenCluster{}}
	for _, target := range bindings.Targets(b.BindingSpec()) {
		cluster := &clusterv1alpha1.Cluster{}
		of := OverriddenCluster{Name: target.Name, Fields: []Field{}}
		if err := fleet.Get(ctx, client.ObjectKey{Name: target.Name}, cluster); err != nil {
			of.Error = err.Error()
		} else {
			identity := karmada.Identity(cluster)
			differences, err := overrides.Compare(template, overrides.View{Cluster: identity},
				overrides.View{Cluster: identity, Policies: list})
			of.fill(template.GetKind(), differences, err)
		}
		result.Clusters = append(result.Clusters, of)
	}
	return result, nil
}

func (c *OverriddenCluster) fill(kind string, differences []overrides.Difference, err error) {
	if err != nil {
		c.Error = err.Error()
		if kind == "Secret" { // It may quote a value.
			c.Error = "an override policy cannot be applied to this Secret"
		}
		return
	}
	for _, d := range differences {
		field := Field{
			Path: d.Path, Before: concealed(kind, d.Path, d.Before), After: concealed(kind, d.Path, d.After),
		}
		if d.SetBy != nil {
			field.Policy, field.Rule = d.SetBy.Policy, d.SetBy.Rule
		}
		c.Fields = append(c.Fields, field)
	}
}
