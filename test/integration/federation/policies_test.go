package federation

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestUnknownClusterIsExplained(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	policy := input(t, "003-karmada-cool-policy")[0]
	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"member1", "membre2"}, "spec", "placement",
		"clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, policy, input(t, "000-karmada-nginx-3docs")[0])
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue,
		"membre2: spec.placement.clusterAffinity.clusterNames[1]: the fleet has no cluster of this name; it has "+
			"member1, member2")
	w.replicasIn(t, namespace, 2, -1)

	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"nowhere"}, "spec", "placement",
		"clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, policy)
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse, "no cluster fits: 0 of 2")
}

func TestUnknownKindIsTold(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: mistyped}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}, {apiVersion: apps/v1, kind: Deploymint, name: web}, {apiVersion: v1, kind: ConfigMop}]}}`)[0])
	w.warned(t, namespace, "KindNotServed", "spec.resourceSelectors[1]", "no kind Deploymint in apps/v1",
		"spec.resourceSelectors[2]", "no kind ConfigMop in v1")
}

func TestBadPoliciesAreRefused(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	const selectors = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`
	tests := map[string]struct{ kind, spec, want string }{
		"two affinities": {
			"PropagationPolicy", selectors +
				`, placement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}`,
			"spec.placement.clusterAffinities",
		},
		"no selector": {"PropagationPolicy", `resourceSelectors: []`, "spec.resourceSelectors"},
		"more at least than at most": {
			"PropagationPolicy", selectors +
				`, placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}`,
			"spec.placement.spreadConstraints[0].maxGroups",
		},
		"region without cluster": {
			"PropagationPolicy", selectors + `, placement: {spreadConstraints: [{spreadByField: region}]}`,
			"needs one with spreadByField: cluster",
		},
		"the same field twice": {
			"PropagationPolicy", selectors +
				`, placement: {spreadConstraints: [{spreadByField: cluster}, {maxGroups: 1}]}`,
			"spec.placement.spreadConstraints",
		},
		"a weight of nothing": {
			"PropagationPolicy", selectors +
				`, placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}`, "weight",
		},
		"an unknown division": {
			"PropagationPolicy", selectors + `, placement: {replicaScheduling: {replicaSchedulingType: Sometimes}}`,
			"Duplicated",
		},
		"preemption without a name": {"PropagationPolicy", selectors + `, preemption: Always`, "spec.preemption"},
		"both forms of an override": {
			"OverridePolicy", `targetCluster: {}, overrideRules: [{overriders: {}}]`, "spec.targetCluster",
		},
		"both forms, with overriders": {
			"OverridePolicy", `overriders: {plaintext: [{path: /a, operator: add}]}, overrideRules: [{overriders: {}}]`,
			"spec.overriders",
		},
		"a path that is no pointer": {
			"OverridePolicy", `overriders: {plaintext: [{path: a, operator: add}]}`,
			"spec.overriders.plaintext[0].path",
		},
		"an unknown operator": {
			"OverridePolicy", `overriders: {plaintext: [{path: /a, operator: set}]}`, "operator",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object :=
				parse(t, fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: %s, metadata: {name: bad, "+
					"namespace: %s}, spec: {%s}}", tc.kind, namespace, tc.spec))[0]
			err := w.fleet.Create(ctx, object)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it refused because of %s", err, tc.want)
			}
		})
	}
}
