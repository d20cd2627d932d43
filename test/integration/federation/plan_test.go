package federation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/plan"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/trellisctl"
)

const planWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, labels: {app: nginx}}
spec:
  replicas: 4
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers: [{name: nginx, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
`

// planPolicy places the Deployment; more goes into its spec.
func planPolicy(name, placement, more string) string {
	return fmt.Sprintf(`
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {%s}
  %s
`, name, placement, more)
}

const (
	everywhere = `replicaScheduling: {replicaSchedulingType: Duplicated}`
	onlyOne    = `clusterAffinity: {clusterNames: [member1]}, replicaScheduling: {replicaSchedulingType: Duplicated}`
	oneToThree = `replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [` +
		`{targetCluster: {clusterNames: [member1]}, weight: 1}, {targetCluster: {clusterNames: [member2]}, weight: 3}]}}`
	nowhere = `clusterAffinity: {clusterNames: [member1], exclude: [member1]}`
)

// predicted is what a plan says of an object: cluster and replicas.
type predicted struct {
	policy   string
	clusters map[string]int32
}

// planned asks for a plan and prints it, as people see it.
func (w *world) planned(t *testing.T, namespace, text string, deleting bool) *plan.Plan {
	t.Helper()
	options := trellisctl.PlanOptions{
		Namespace: namespace, Delete: deleting, Output: "text", Settings: plan.DefaultSettings(),
	}
	f := &trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}
	result, err := f.Plan(ctx, written(t, text), options, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := trellisctl.PrintPlan(&out, result, options); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	return result
}

// written reads documents as they are read from a file.
func written(t *testing.T, text string) []plan.Written {
	t.Helper()
	documents, err := plan.Parse(strings.NewReader(text), "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// expectation is what the plan says of an object, or, if it says nothing, what there is.
func (w *world) expectation(t *testing.T, p *plan.Plan, namespace, kind, name string) predicted {
	t.Helper()
	for _, o := range p.Objects {
		if o.Namespace != namespace || o.Kind != kind || o.Name != name {
			continue
		}
		clusters := map[string]int32{}
		for _, c := range o.Clusters {
			if c.Effect != plan.EffectRemoved && c.Effect != plan.EffectKept {
				clusters[c.Name] = 0
				if c.ReplicasThen != nil {
					clusters[c.Name] = *c.ReplicasThen
				}
			}
		}
		return predicted{o.PolicyThen, clusters}
	}
	return w.actual(t, namespace, kind, name)
}

func (w *world) actual(t *testing.T, namespace, kind, name string) predicted {
	t.Helper()
	result := predicted{clusters: map[string]int32{}}
	b, err := bindings.Get(ctx, w.fleet, types.NamespacedName{Namespace: namespace, Name: bindings.Name(name, kind)})
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		return result
	}
	result.policy = policies.ClaimedBy(b)
	for _, target := range bindings.Targets(b.BindingSpec()) {
		result.clusters[target.Name] = target.Replicas
	}
	return result
}

func (w *world) becomes(t *testing.T, want predicted, namespace, kind, name string) {
	t.Helper()
	eventually(t, kind+" "+name+" is as it was planned", func() error {
		got := w.actual(t, namespace, kind, name)
		if got.policy != want.policy || !maps.Equal(got.clusters, want.clusters) {
			return fmt.Errorf("got %+v, planned %+v", got, want)
		}
		return nil
	})
}

func (w *world) theFleetKnowsWhatMembersServe(t *testing.T) {
	t.Helper()
	for _, name := range memberNames {
		eventually(t, "the fleet knows what "+name+" serves", func() error {
			cluster := &clusterv1alpha1.Cluster{}
			if err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
				return err
			}
			if len(cluster.Status.APIEnablements) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

func TestPlanIsWhatHappens(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	w.theFleetKnowsWhatMembersServe(t)
	tests := map[string]struct {
		before, change string
		deleting       bool
		// deployment and settings are what is expected of both, plan and fleet: replicas in member1 and member2, -1 for
		// absent.
		deployment, settings [2]int32
		note                 string
	}{
		"a first policy": {
			before: planWeb, change: planPolicy("web", oneToThree, ""), deployment: [2]int32{1, 3},
			settings: [2]int32{-1, -1},
		},
		"a narrower affinity": {
			before: planWeb + planPolicy("web", everywhere, ""), change: planPolicy("web", onlyOne, ""),
			deployment: [2]int32{4, -1}, settings: [2]int32{-1, -1},
		},
		"another division": {
			before: planWeb + planPolicy("web", everywhere, ""), change: planPolicy("web", oneToThree, ""),
			deployment: [2]int32{1, 3}, settings: [2]int32{-1, -1},
		},
		"no cluster fits": {before: planWeb + planPolicy("web", everywhere, ""), change: planPolicy("web", nowhere, ""),
			deployment: [2]int32{-1, -1}, settings: [2]int32{-1, -1},
			note: "no cluster fits"},
		"deletion": {
			before: planWeb + planPolicy("web", everywhere, ""), change: planPolicy("web", everywhere, ""),
			deleting: true, deployment: [2]int32{-1, -1}, settings: [2]int32{-1, -1},
		},
		"deletion with another policy in the wings": {
			before: planWeb + planPolicy("a", everywhere, "") + planPolicy("b", onlyOne, ""),
			change: planPolicy("a", everywhere, ""), deleting: true,
			deployment: [2]int32{4, -1}, settings: [2]int32{-1, -1},
		},
		"no preemption": {before: planWeb + planPolicy("a", everywhere, ""),
			change: planPolicy("b", onlyOne, "priority: 9"), deployment: [2]int32{4, 4}, settings: [2]int32{-1, -1},
			note: "to take it over, this one needs spec.preemption: Always"},
		"preemption": {
			before: planWeb + planPolicy("a", everywhere, ""),
			change: planPolicy("b", onlyOne, "priority: 9\n  preemption: Always"), deployment: [2]int32{4, -1},
			settings: [2]int32{-1, -1},
		},
		"dependencies": {
			before: planWeb + planPolicy("web", onlyOne, ""),
			change: planPolicy("web", everywhere, "propagateDeps: true"), deployment: [2]int32{4, 4},
			settings: [2]int32{0, 0},
		},
		"dependencies that move": {before: planWeb + planPolicy("web", everywhere, "propagateDeps: true"),
			change:     planPolicy("web", onlyOne, "propagateDeps: true"),
			deployment: [2]int32{4, -1}, settings: [2]int32{0, -1}},
		"dependencies that go": {
			before: planWeb + planPolicy("web", onlyOne, "propagateDeps: true"), change: planPolicy("web", onlyOne, ""),
			deployment: [2]int32{4, -1}, settings: [2]int32{-1, -1},
		},
		"a lazy policy": {before: planWeb + planPolicy("web", everywhere, ""),
			change: planPolicy("web", onlyOne, "activationPreference: Lazy"), deployment: [2]int32{4, 4},
			settings: [2]int32{-1, -1},
			note:     "lazy"},
		"an object with its policy": {
			change: planWeb + planPolicy("web", oneToThree, ""), deployment: [2]int32{1, 3}, settings: [2]int32{-1, -1},
		},
		"more replicas": {before: planWeb + planPolicy("web", oneToThree, ""),
			change: strings.ReplaceAll(planWeb, "replicas: 4", "replicas: 8"), deployment: [2]int32{2, 6},
			settings: [2]int32{-1, -1}},
		"a policy that waits": {
			before: planWeb, change: planPolicy("web", everywhere, "dependentOverrides: [later]"),
			deployment: [2]int32{-1, -1}, settings: [2]int32{-1, -1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := w.newNamespace(t)
			if tc.before != "" {
				apply(t, w.fleet, namespace, parse(t, tc.before)...)
			}
			if strings.Contains(tc.before, "PropagationPolicy") {
				eventually(t, "the object is placed", func() error {
					if len(w.actual(t, namespace, "Deployment", "nginx").clusters) == 0 {
						return fmt.Errorf("nowhere yet")
					}
					return nil
				})
			}
			if strings.Contains(tc.before, "propagateDeps: true") {
				eventually(t, "the dependency follows", func() error {
					if len(w.actual(t, namespace, "ConfigMap", "settings").clusters) != len(w.actual(t, namespace,
						"Deployment", "nginx").clusters) {
						return fmt.Errorf("not yet")
					}
					return nil
				})
			}
			p := w.planned(t, namespace, tc.change, tc.deleting)
			deployment, settings := w.expectation(t, p, namespace, "Deployment", "nginx"),
				w.expectation(t, p, namespace, "ConfigMap", "settings")
			checkPlanned(t, "Deployment", deployment, tc.deployment)
			checkPlanned(t, "ConfigMap", settings, tc.settings)
			if text, _ := json.Marshal(p); tc.note != "" && !strings.Contains(string(text), tc.note) {
				t.Errorf("%q is not mentioned in %s", tc.note, text)
			}
			for _, object := range parse(t, tc.change) {
				if tc.deleting {
					object.SetNamespace(namespace)
					remove(t, w.fleet, object)
				} else {
					apply(t, w.fleet, namespace, object)
				}
			}
			w.becomes(t, deployment, namespace, "Deployment", "nginx")
			w.becomes(t, settings, namespace, "ConfigMap", "settings")
		})
	}
}

// A policy that is there without effect is asked about as well.
func TestPlanTellsWhyAPolicyHasNoEffect(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, planWeb+planPolicy("a", everywhere, ""))...)
	w.replicasIn(t, namespace, 4, 4)
	late := planPolicy("b", onlyOne, "")
	apply(t, w.fleet, namespace, parse(t, late)...)

	p := w.planned(t, namespace, late, false)
	if p.Documents[0].Action != plan.ActionUnchanged || !p.Empty() || len(p.PassedOver) != 1 {
		t.Fatalf("got %+v", p)
	}
	got := p.PassedOver[0]
	want := plan.KeptObject{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "nginx",
		Policy: "PropagationPolicy " + namespace + "/a",
	}
	if got.Policy != "PropagationPolicy "+namespace+"/b" || len(got.Objects) != 1 || got.Objects[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !strings.Contains(got.Reason, "spec.preemption: Always") ||
		!strings.Contains(got.Reason, "a spec.priority above 0") {
		t.Errorf("the reason doesn't tell what to change: %s", got.Reason)
	}
}

// What names kinds, clusters and workloads that the fleet has not is accepted, since they may come later.
func TestPlanWarnsOfWhatTheFleetHasNot(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	here := func(text string) string { return strings.ReplaceAll(text, "NS", namespace) }
	p := w.planned(t, namespace, here(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: mistyped}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deploymint}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: image}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [membre2]}
    overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: NS, name: gone}, {apiVersion: apps/v1, kind: Deploymint, namespace: NS, name: gone}]}
`), false)
	want := []plan.Warning{
		{
			Document: "PropagationPolicy NS/mistyped",
			Message: "spec.resourceSelectors[0]: the fleet serves no kind Deploymint in apps/v1; nothing is " +
				"selected by it until it does",
		},
		{
			Document: "OverridePolicy NS/image",
			Message: "spec.overrideRules[0].targetCluster.clusterNames[0]: the fleet has no cluster of this name; " +
				"it has member1, member2",
		},
		{
			Document: "WorkloadRebalancer again",
			Message: "spec.workloads[0]: the fleet has no Deployment NS/gone; its result would be Failed, and stay " +
				"so if that changes later",
		},
		{
			Document: "WorkloadRebalancer again",
			Message: "spec.workloads[1]: the fleet serves no kind Deploymint in apps/v1; its result would be " +
				"Failed, and stay so if that changes later",
		},
	}
	for i := range want {
		want[i].Document, want[i].Message = here(want[i].Document), here(want[i].Message)
	}
	if !slices.Equal(p.Warnings, want) {
		t.Errorf("got %+v\nwant %+v", p.Warnings, want)
	}
}

// An application that comes with its namespace is planned as a whole.
func TestPlanOfANewNamespace(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	w.theFleetKnowsWhatMembersServe(t)
	namespace := namespacePrefix + utilrand.String(5)
	// What is there already in the namespace in which the fleet checks instead is not in the way.
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "settings"}}
	if err := w.fleet.Create(ctx, other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, other) })
	policy := fmt.Sprintf(`
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: %s}], placement: {%s}}
`, namespace, onlyOne)
	rest := strings.TrimPrefix(planWeb, "\n") + planPolicy("web", oneToThree, "") + policy
	made := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", namespace)
	p := w.planned(t, namespace, rest+"---\n"+made, false)
	deployment, settings := w.expectation(t, p, namespace, "Deployment", "nginx"),
		w.expectation(t, p, namespace, "ConfigMap", "settings")
	checkPlanned(t, "Deployment", deployment, [2]int32{1, 3})
	checkPlanned(t, "ConfigMap", settings, [2]int32{0, -1})
	if err := w.fleet.Get(ctx, types.NamespacedName{Name: namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("a plan made the namespace: %v", err)
	}
	for text, want := range map[string]string{
		made + "---" + strings.Replace(policy, "namespace: "+namespace, "namespace: default",
			1): "spec.resourceSelectors: namespace must be that of the policy",
		made + "---\n{apiVersion: v1, kind: Service, metadata: {name: no " +
			"ports}}": "metadata.name: Invalid value",
	} {
		_, err := (&trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}).Plan(ctx, written(t, text),
			trellisctl.PlanOptions{Namespace: namespace, Settings: plan.DefaultSettings()}, time.Now())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	if err := w.fleet.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.emptyNamespace(t, namespace) })
	apply(t, w.fleet, namespace, parse(t, rest)...)
	w.becomes(t, deployment, namespace, "Deployment", "nginx")
	w.becomes(t, settings, namespace, "ConfigMap", "settings")
}

func checkPlanned(t *testing.T, what string, got predicted, want [2]int32) {
	t.Helper()
	for i, name := range memberNames {
		replicas, there := got.clusters[name]
		if !there {
			replicas = -1
		}
		if replicas != want[i] {
			t.Errorf("%s in %s: planned %d, want %d", what, name, replicas, want[i])
		}
	}
}

func TestPlanOfOverrides(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, planWeb+planPolicy("web", everywhere, ""))...)
	w.replicasIn(t, namespace, 4, 4)

	override := `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: image}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders: {imageOverrider: [{component: Tag, operator: add, value: "1.2"}]}
`
	p := w.planned(t, namespace, override, false)
	if len(p.Objects) != 1 || len(p.Objects[0].Fields) != 1 {
		t.Fatalf("got %+v, want one field of one object", p.Objects)
	}
	want := plan.FieldChange{
		Cluster: "member2", Path: "/spec/template/spec/containers/0/image", Now: "nginx", Then: "nginx:1.2",
		SetBy: "OverridePolicy " + namespace + "/image spec.overrideRules[0]",
	}
	if got := p.Objects[0].Fields[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	apply(t, w.fleet, namespace, parse(t, override)...)
	eventually(t, "member2 has the image", func() error {
		object, err := deployment(w.member["member2"], namespace)
		if err == nil && imageOf(object) != "nginx:1.2" {
			err = fmt.Errorf("it is %s", imageOf(object))
		}
		return err
	})
	p = w.planned(t, namespace, override, true)
	if len(p.Objects) != 1 || len(p.Objects[0].Fields) != 1 || p.Objects[0].Fields[0].Then != "nginx" ||
		p.Objects[0].Fields[0].SetBy != "" {
		t.Errorf("deletion: got %+v", p.Objects)
	}
	if p := w.planned(t, namespace, override, false); !p.Empty() || p.Documents[0].Action != plan.ActionUnchanged {
		t.Errorf("the same again: got %+v", p)
	}
}

func TestPlanRefusesWhatTheFleetRefuses(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	const settings = "\n---\n# The second document.\n{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}\n" +
		"---\n"
	tests := map[string]struct {
		text     string
		deleting bool
		// want is said of the document in these lines.
		want string
	}{
		"two affinities and no selector": {
			"{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web}, spec: {" +
				"resourceSelectors: [], placement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}}}",
			false,
			"a.yaml, document 2: PropagationPolicy NS/web: the fleet refuses it:\n  spec.resourceSelectors: .*\n  " +
				"spec.placement.clusterAffinities: .*",
		},
		"what admission refuses": {
			"{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web}, spec: {" +
				"resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: other}]}}", false,
			"a.yaml, document 2: PropagationPolicy NS/web: the fleet refuses it:\n  spec.resourceSelectors: " +
				"namespace must be that of the policy.*",
		},
		"an unknown kind": {"{apiVersion: policy.karmada.io/v1alpha1, kind: Dragon, metadata: {name: a}}", false,
			"a.yaml, document 2: Dragon a: the fleet serves no kind Dragon in policy.karmada.io/v1alpha1;\n  " +
				"correct kind or apiVersion, or install its CustomResourceDefinition in the fleet"},
		"another version": {"{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}", false,
			"a.yaml, document 2: Deployment a: the fleet serves no kind Deployment in apps/v1beta1,\n  but in " +
				"apps/v1: correct apiVersion"},
		"several": {
			"{apiVersion: policy.karmada.io/v1alpha1, kind: Dragon, metadata: {name: a}}" +
				planPolicy("web", "", "priorty: 1") + "\n---\n" + planWeb, false,
			"a.yaml, document 2: Dragon a: the fleet serves no kind Dragon in .*;\n  correct .*\n" +
				"a.yaml, document 3: PropagationPolicy NS/web: the fleet refuses it:\n  unknown field " +
				"\"spec.priorty\"",
		},
		"deletion of none": {planPolicy("web", "", ""), true,
			"a.yaml, document 1: ConfigMap NS/settings: there is no such object to delete\na.yaml, document 2: " +
				"PropagationPolicy NS/web: there is no such object to delete"},
		"fields that there aren't": {planPolicy("web", "clusterAfinity: {}", "priorty: 1"), false,
			"a.yaml, document 2: PropagationPolicy NS/web: the fleet refuses it:\n  unknown field " +
				"\"spec.placement.clusterAfinity\"\n  unknown field \"spec.priorty\""},
		"fields of other objects that there aren't": {strings.Replace(planWeb, "replicas: 4", "replica: 4", 1), false,
			"a.yaml, document 2: Deployment NS/nginx: the fleet refuses it:\n  unknown field \"spec.replica\""},
		"a namespace that isn't there": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}",
			false,
			"a.yaml, document 2: ConfigMap nowhere/a: the fleet has no namespace nowhere; create it, have the " +
				"documents create it, or name another one \\(-n\\)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			options := trellisctl.PlanOptions{
				Namespace: namespace, Delete: tc.deleting, Settings: plan.DefaultSettings(),
			}
			_, err := (&trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}).Plan(ctx,
				written(t, settings+tc.text), options, time.Now())
			want := regexp.MustCompile("^" + strings.ReplaceAll(tc.want, "NS", namespace) + "$")
			if err == nil || !want.MatchString(err.Error()) {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
}

// The budget would hold the removal of many objects from one member.
func TestPlanTellsOfTheDeletionBudget(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	var text strings.Builder
	const many = 30
	for i := range many {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, labels: {plan: many}}}\n", i)
	}
	policy :=
		`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: many}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {plan: many}}}]}}`
	apply(t, w.fleet, namespace, parse(t, text.String()+"---\n"+policy)...)
	eventually(t, "all are placed", func() error {
		for i := range many {
			if got := w.actual(t, namespace, "ConfigMap",
				fmt.Sprintf("c%d", i)); len(got.clusters) != len(memberNames) {
				return fmt.Errorf("c%d is in %v", i, got.clusters)
			}
		}
		return nil
	})
	options := trellisctl.PlanOptions{Namespace: namespace, Delete: true, Settings: plan.DefaultSettings()}
	f := &trellisctl.Fleet{Client: w.fleet, Config: w.fleetConfig}
	options.Settings.Budget.Percent = 1
	p, err := f.Plan(ctx, written(t, policy), options, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if p.Summary.LosePolicy != many || p.Summary.Removed != 2*many || len(p.Held) != 3 || p.Held[0].Deletions != many {
		t.Errorf("got summary %+v, held %+v", p.Summary, p.Held)
	}
}
