package federation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// decidedReferences says of every field that names another object who may reach what by it.
const decidedReferences = "../../../pkg/apis/testdata/references-fleet.txt"

// tenantKinds are those that people of a namespace may write.
var tenantKinds = []string{
	"PropagationPolicy", "OverridePolicy", "ResourceBinding", "FederatedHPA", "CronFederatedHPA",
	"FederatedResourceQuota",
}

// tenantFields are the fields of these kinds that lead to a namespace's own objects, or are held to that, and are tried
// by no other test.
func tenantFields(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(decidedReferences)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "namespace" &&
			(words[0] != "checked" || !strings.HasSuffix(line, t.Name()+"\n")) {
			continue
		}
		for _, kind := range strings.Split(words[1], ",") {
			if slices.Contains(tenantKinds, kind) {
				fields = append(fields, kind+"."+words[2])
			}
		}
	}
	if len(fields) == 0 {
		t.Fatalf("%s has no fields to try", decidedReferences)
	}
	return fields
}

// reach is an object that names what is in another namespace, FOREIGN.
type reach struct {
	object string
	// refused is a part of what the API says; it takes the object without, and then nothing may come of it.
	refused string
}

const (
	reachingPolicy = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: %s}, spec: {
		resourceSelectors: [{apiVersion: v1, kind: %s}], placement: {clusterAffinity: {clusterNames: [member1]}}%s}}`
	reachingOverride = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: %s}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, %s}],
		overrideRules: [{overriders: {plaintext: [{path: /data/theirs, operator: add, value: "changed"}]}}]}}`
	reachingScaler = `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: %s}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, minReplicas: 7, maxReplicas: 9}}`
	reachingClock = `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: %s}, spec: {
		scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, rules: [{name: now, schedule: "* * * * *", targetReplicas: 7}]}}`
	ofOthers = "namespace must be that of the policy"
)

// reaches are tries for each field.
var reaches = map[string][]reach{
	"PropagationPolicy.spec.resourceSelectors[].namespace": {
		{fmt.Sprintf(reachingPolicy, "namespace", "Secret, namespace: FOREIGN", ""), ofOthers},
	},
	"PropagationPolicy.spec.resourceSelectors[].name": {
		{fmt.Sprintf(reachingPolicy, "name", "Secret, name: treasure", ""), ""},
		{fmt.Sprintf(reachingPolicy, "path", "Secret, name: ../../FOREIGN/secrets/treasure", ""), ""},
	},
	"PropagationPolicy.spec.dependentOverrides[]": {
		{fmt.Sprintf(reachingPolicy, "override", "ConfigMap, name: waiting", ", dependentOverrides: [theirs]"), ""},
	},
	"OverridePolicy.spec.resourceSelectors[].namespace": {
		{fmt.Sprintf(reachingOverride, "namespace", "namespace: FOREIGN, name: chart"), ofOthers},
	},
	"OverridePolicy.spec.resourceSelectors[].name": {
		{fmt.Sprintf(reachingOverride, "name", "name: chart"), ""},
		{fmt.Sprintf(reachingOverride, "path", "name: ../../FOREIGN/configmaps/chart"), ""},
	},
	"ResourceBinding.spec.resource.name": {{`{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: path}, spec: {
		clusters: [{name: member1}], resource: {apiVersion: v1, kind: Secret, name: ../../FOREIGN/secrets/treasure}}}`, ""}},
	"FederatedHPA.spec.scaleTargetRef.name": {
		{fmt.Sprintf(reachingScaler, "name", "web"), ""},
		{fmt.Sprintf(reachingScaler, "path", "../../FOREIGN/deployments/web"), ""},
	},
	"CronFederatedHPA.spec.scaleTargetRef.name": {
		{fmt.Sprintf(reachingClock, "name", "web"), ""},
		{fmt.Sprintf(reachingClock, "path", "../../FOREIGN/deployments/web"), ""},
	},
}

// theirs is in the namespace that is attacked. The ConfigMap goes to a member.
const theirs = `
{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: chart}, data: {theirs: "true"}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: theirs}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: none}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: theirs}, spec: {
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: chart}], placement: {clusterAffinity: {clusterNames: [member1]}}}}
`

// TestAttackReferencesOfTenants has an application team name, in each field that is to lead to objects of its own
// namespace, one of another.
func TestAttackReferencesOfTenants(t *testing.T) {
	w := newWorld(t)
	namespace, foreign := w.newNamespace(t), w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	w.grant(t, namespace, "autoscaling.karmada.io", "*")
	apply(t, w.fleet, foreign, parse(t, theirs)...)
	apply(t, alice, namespace, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: waiting}}`)...)
	eventually(t, "alice may scale", func() error {
		return alice.List(ctx, &autoscalingv1alpha1.CronFederatedHPAList{}, client.InNamespace(namespace))
	})
	for _, field := range tenantFields(t) {
		if len(reaches[field]) == 0 {
			t.Errorf("%s is not tried", field)
		}
		for _, try := range reaches[field] {
			object := in(namespace, parse(t, strings.ReplaceAll(try.object, "FOREIGN", foreign))[0])
			err := alice.Create(ctx, object)
			if try.refused == "" && err != nil ||
				try.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), try.refused)) {
				t.Errorf("%s: %s %s: got %v, want %q", field, object.GetKind(), object.GetName(), err, try.refused)
			}
		}
	}
	w.clocksAreDue(t, namespace)
	w.startFederation(t)
	apply(t, alice, namespace, parse(t,
		strings.ReplaceAll(fmt.Sprintf(reachingPolicy, "later", "ConfigMap, name: later", ""), "FOREIGN", foreign)+
			"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}")...)
	eventually(t, "what was written later, and what is theirs, has arrived", func() error {
		if _, err := get(w.member["member1"], "v1", "ConfigMap", namespace, "later"); err != nil {
			return err
		}
		_, err := get(w.member["member1"], "v1", "ConfigMap", foreign, "chart")
		return err
	})
	eventually(t, "all scalers have tried", func() error { return w.scalersHaveFailed(namespace) })
	w.nothingWasReached(t, namespace, foreign)
}

// clocksAreDue has the CronFederatedHPAs of a namespace act as soon as the federation runs.
func (w *world) clocksAreDue(t *testing.T, namespace string) {
	t.Helper()
	var clocks autoscalingv1alpha1.CronFederatedHPAList
	if err := w.fleet.List(ctx, &clocks, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range clocks.Items {
		c := &clocks.Items[i]
		before := c.DeepCopy()
		due := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Minute))
		c.Status.ExecutionHistories = []autoscalingv1alpha1.ExecutionHistory{{RuleName: "now", NextExecutionTime: &due}}
		if err := w.fleet.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

// scalersHaveFailed tells which of a namespace's have not.
func (w *world) scalersHaveFailed(namespace string) error {
	var clocks autoscalingv1alpha1.CronFederatedHPAList
	var scalers autoscalingv1alpha1.FederatedHPAList
	if err := w.fleet.List(ctx, &clocks, client.InNamespace(namespace)); err != nil {
		return err
	}
	if err := w.fleet.List(ctx, &scalers, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, c := range clocks.Items {
		if h := c.Status.ExecutionHistories; len(h) != 1 || len(h[0].FailedExecutions) == 0 {
			return fmt.Errorf("CronFederatedHPA %s: %+v", c.Name, h)
		}
	}
	for _, s := range scalers.Items {
		failed := slices.ContainsFunc(s.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionFalse
		})
		if !failed {
			return fmt.Errorf("FederatedHPA %s: %+v", s.Name, s.Status.Conditions)
		}
	}
	return nil
}

// nothingWasReached finds all that is theirs as it was, and nothing of it where alice could have brought it.
func (w *world) nothingWasReached(t *testing.T, namespace, foreign string) {
	t.Helper()
	web, err := get(w.fleet, "apps/v1", "Deployment", foreign, "web")
	if replicas, _, _ := unstructured.NestedInt64(web.Object, "spec", "replicas"); err != nil || replicas != 2 {
		t.Errorf("their Deployment has %d replicas: %v", replicas, err)
	}
	chart, err := get(w.member["member1"], "v1", "ConfigMap", foreign, "chart")
	if text, _, _ := unstructured.NestedString(chart.Object, "data", "theirs"); err != nil || text != "true" {
		t.Errorf("their ConfigMap holds %q in a member: %v", text, err)
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := w.fleet.List(ctx, &bindings, client.InNamespace(foreign)); err != nil || len(bindings.Items) != 1 {
		t.Errorf("their namespace has %d bindings: %v", len(bindings.Items), err)
	}
	for what, key := range map[string]types.NamespacedName{
		"their Secret":         {Namespace: foreign, Name: "treasure"},
		"a Secret like theirs": {Namespace: namespace, Name: "treasure"},
	} {
		if err := w.member["member1"].Get(ctx, key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is in a member: %v", what, err)
		}
	}
	if err := w.member["member1"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "waiting"},
		&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("what waits for an override of its namespace has gone on by one of another: %v", err)
	}
}
