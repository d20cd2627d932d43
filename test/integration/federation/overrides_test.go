package federation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestLegacyOverride(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")...)
	w.replicasIn(t, namespace, 1, 1)

	one, err := deployment(w.member["member1"], namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := imageOf(one); got != "dc-1.registry.io/nginx:1.17.0-alpine" || one.GetAnnotations()["foo"] != "bar" {
		t.Errorf("member1: image %s, annotations %v", got, one.GetAnnotations())
	}
	two, err := deployment(w.member["member2"], namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := imageOf(two); got != "nginx" || two.GetAnnotations()["foo"] != "" {
		t.Errorf("member2: image %s, annotations %v", got, two.GetAnnotations())
	}
}

func imageOf(object *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	image, _ := list[0].(map[string]any)["image"].(string)
	return image
}

func TestOverrideWithMissingPathIsShown(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: broken}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders:
      plaintext: [{path: /spec/strategy/nothing/here, operator: replace, value: 1}]
`)...)
	policy := input(t, "003-karmada-cool-policy")[0]
	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"broken"}, "spec",
		"dependentOverrides"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, policy, input(t, "000-karmada-nginx-3docs")[0])
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse,
		`OverridePolicy `+namespace+
			`/broken: spec.overrideRules[0].overriders.plaintext[0].path: "/spec/strategy/nothing" does not exist in the object`)
	w.replicasIn(t, namespace, 2, -1)
}
