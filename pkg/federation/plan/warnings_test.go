package plan

import (
	"strings"
	"testing"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
)

// warned is what a plan warns of, a line each.
func warned(p *Plan) string {
	var lines []string
	for _, w := range p.Warnings {
		lines = append(lines, w.Document+": "+w.Message)
	}
	return strings.Join(lines, "\n")
}

func TestPlanWarnsOfWhatTheFleetHasNot(t *testing.T) {
	clusters := []clusterv1alpha1.Cluster{member("m1", 4), member("m2", 4)}
	mistyped := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deploymint"}
	web1, selecting := policy("web", on("m1")), policy("mistyped", on("m1"))
	web1.Spec.ResourceSelectors[0].Name, selecting.Spec.ResourceSelectors[0].Name = "web", "web"
	selecting.Spec.ResourceSelectors = append(selecting.Spec.ResourceSelectors, mistyped)
	inMembers := func(names ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	rules := overrides.Policy{Namespace: "shop", Name: "image", Spec: &policyv1alpha1.OverrideSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{mistyped},
		OverrideRules:     []policyv1alpha1.RuleWithCluster{{}, {TargetCluster: inMembers("m1", "membre1")}},
	}}
	older := overrides.Policy{Name: "image", Spec: &policyv1alpha1.OverrideSpec{TargetCluster: inMembers("membre2")}}
	again := appsv1alpha1.WorkloadRebalancer{}
	again.Name = "again"
	for _, kindAndName := range [][2]string{
		{"Deployment", "web"}, {"Deployment", "lone"}, {"Deployment", "gone"}, {"Deploymint", "web"},
	} {
		again.Spec.Workloads = append(again.Spec.Workloads,
			appsv1alpha1.ObjectReference{
				APIVersion: "apps/v1", Kind: kindAndName[0], Namespace: "shop", Name: kindAndName[1],
			})
	}
	const group = "policy.karmada.io/v1alpha1"
	tests := map[string]struct {
		document Document
		want     []string
	}{
		"all is there": {
			Document{
				Action: ActionCreate, APIVersion: group, Kind: "PropagationPolicy", Namespace: "shop", Name: "web",
			}, nil,
		},
		"a kind of a policy": {Document{
			Action: ActionUnchanged, APIVersion: group, Kind: "PropagationPolicy", Namespace: "shop", Name: "mistyped",
		}, []string{
			"PropagationPolicy shop/mistyped: spec.resourceSelectors[1]: the fleet serves no kind Deploymint in " +
				"apps/v1; nothing is selected by it until it does",
		}},
		"a policy that goes": {
			Document{
				Action: ActionDelete, APIVersion: group, Kind: "PropagationPolicy", Namespace: "shop", Name: "mistyped",
			}, nil,
		},
		"kinds and clusters of an override policy": {Document{
			Action: ActionCreate, APIVersion: group, Kind: "OverridePolicy", Namespace: "shop", Name: "image",
		}, []string{
			"OverridePolicy shop/image: spec.resourceSelectors[0]: the fleet serves no kind Deploymint in apps/v1; " +
				"nothing is selected by it until it does",
			"OverridePolicy shop/image: spec.overrideRules[1].targetCluster.clusterNames[1]: the fleet has no " +
				"cluster of this name; it has m1, m2",
		}},
		"the older form": {Document{
			Action: ActionUpdate, APIVersion: group, Kind: "ClusterOverridePolicy", Name: "image",
		}, []string{
			"ClusterOverridePolicy image: spec.targetCluster.clusterNames[0]: the fleet has no cluster of this " +
				"name; it has m1, m2",
		}},
		"workloads": {Document{
			Action: ActionCreate, APIVersion: "apps.karmada.io/v1alpha1", Kind: "WorkloadRebalancer", Name: "again",
		}, []string{
			"WorkloadRebalancer again: spec.workloads[1]: Deployment shop/lone is not propagated; its result would " +
				"be Failed, and stay so if that changes later",
			"WorkloadRebalancer again: spec.workloads[2]: the fleet has no Deployment shop/gone; its result would " +
				"be Failed, and stay so if that changes later",
			"WorkloadRebalancer again: spec.workloads[3]: the fleet serves no kind Deploymint in apps/v1; its " +
				"result would be Failed, and stay so if that changes later",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			then := Rules{
				Clusters: clusters, Policies: []policies.Policy{web1, selecting},
				Overrides: []overrides.Policy{rules, older},
			}
			in := input(t, then, then, web("web", 1), web("lone", 1))
			in.Bindings = []bindings.Binding{bound(web("web", 1), web1, "m1")}
			in.Documents, in.Rebalancers = []Document{tc.document}, []appsv1alpha1.WorkloadRebalancer{again}
			if got := warned(Predict(t.Context(), in)); got != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(tc.want, "\n"))
			}
		})
	}
}
