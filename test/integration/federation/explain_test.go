package federation

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/trellisctl"
)

func (w *world) explain(t *testing.T, object, namespace string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := (&trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}).Explain(ctx, &out, object, namespace)
	return out.String(), err
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	objects := input(t, "000-karmada-nginx-3docs")
	apply(t, w.fleet, namespace, objects...)
	w.replicasIn(t, namespace, 1, 1)
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")

	eventually(t, "the explanation is complete", func() error {
		got, err := w.explain(t, "deploy/nginx", namespace)
		if err != nil {
			return err
		}
		for _, want := range []string{
			`Policy: +PropagationPolicy ` + namespace + `/nginx-propagation`, `Division: +StaticWeight of 2 replicas`,
			`member1 +yes +\d+ +1 +- +1 +chosen; applied`,
			`member1 +/spec/template/spec/containers/0/image +dc-1.registry.io/nginx:1.17.0-alpine +OverridePolicy `,
		} {
			if !regexp.MustCompile(want).MatchString(got) {
				return fmt.Errorf("%s is missing in\n%s", want, got)
			}
		}
		return nil
	})

	narrow := parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx-propagation}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
`)
	apply(t, w.fleet, namespace, narrow...)
	eventually(t, "the other cluster has a reason", func() error {
		got, err := w.explain(t, "deployments.v1.apps/nginx", namespace)
		if err != nil {
			return err
		}
		if want :=
			`member2 +no .*AffinityMismatch: spec.placement.clusterAffinity.clusterNames does not list it`; !regexp.MustCompile(want).MatchString(got) {
			return fmt.Errorf("%s is missing in\n%s", want, got)
		}
		return nil
	})

	for object, want := range map[string]string{
		"deployment":         "write TYPE/NAME",
		"deployment/nginx/x": "write TYPE/NAME",
		"dragon/nginx":       "the fleet knows no type \"dragon\"; `kubectl api-resources`",
		"deployment/missing": "the fleet has no Deployment " + namespace +
			"/missing; is it in another namespace (-n)?",
		"node/missing":          "the fleet has no Node missing",
		"namespace/kube-system": "Namespace kube-system is not propagated: no PropagationPolicy",
	} {
		if _, err := w.explain(t, object, namespace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", object, err, want)
		}
	}
}
