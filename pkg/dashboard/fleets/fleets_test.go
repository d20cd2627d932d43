package fleets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/federation/moves"
	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

var today = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// bound is a binding of a Secret or ConfigMap shop/web, in cluster one but not in two.
func bound(kind string) *workv1alpha2.ResourceBinding {
	scheduled := metav1.NewTime(today.Add(-time.Hour))
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + strings.ToLower(kind), Annotations: map[string]string{
				policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
				policyv1alpha1.PropagationPolicyNameAnnotation:      "p",
			},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:  workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: "web"},
			Placement: &policyv1alpha1.Placement{},
			Clusters:  []workv1alpha2.TargetCluster{{Name: "one"}},
			Rollout:   &policyv1alpha1.RolloutStrategy{},
			GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
				{FromCluster: "two", Reason: "TaintUntolerated", CreationTimestamp: &metav1.Time{Time: today}},
			},
		},
		Status: workv1alpha2.ResourceBindingStatus{
			LastScheduledTime: &scheduled,
			Conditions: []metav1.Condition{
				{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: "Success",
					Message: "placed"},
			},
			AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "one", Applied: true, Health: workv1alpha2.ResourceHealthy},
			},
			Decision: &workv1alpha2.PlacementDecision{
				Ranking: workv1alpha2.NewRanking([]workv1alpha2.RankedCluster{{Name: "three"}, {Name: "one",
					Chosen: true, Score: 100}}),
				Rejections: []workv1alpha2.DecisionRejection{
					{Reason: "Taint", Message: "not tolerated", Clusters: "two"},
					{Reason: "Spread", Message: "one is enough", Clusters: "three"},
				},
			},
			Rollout: &workv1alpha2.RolloutStatus{
				Number: 2, Phase: workv1alpha2.RolloutProgressing, StableRevision: "r1", UpdateRevision: "r2",
				Revisions: []workv1alpha2.RolloutRevision{
					{Revision: "r1", Number: 1, Time: metav1.NewTime(today.Add(-48 * time.Hour))},
					{Revision: "r2", Number: 2, Time: metav1.NewTime(today.Add(-2 * time.Hour))},
				},
			},
		},
	}
}

func held(name string, isHeld bool) *workv1alpha1.Work {
	deleted := metav1.NewTime(today)
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.ExecutionNamespace("one"), Name: name, DeletionTimestamp: &deleted,
		Finalizers: []string{"x"},
	}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"` + name + `"}}`),
	}}}
	if isHeld {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionDeletionHeld,
			Status: metav1.ConditionTrue}}
	}
	return w
}

func newFleet() client.Client {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	return fake.NewClientBuilder().WithScheme(fleetscheme.Scheme()).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "b"}},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("hidden")}},
		bound("ConfigMap"), bound("Secret"), held("a", true), held("b", false),
		&policyv1alpha1.OverridePolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"},
			Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
				Overriders: policyv1alpha1.Overriders{
					LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
						{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"tier": "prod"}},
					},
				},
			}}},
		},
	).Build()
}

// ask a question as the handler does.
func ask(t *testing.T, fleet client.Client, question, body string) (string, error) {
	t.Helper()
	method, rest, _ := strings.Cut(question, " ")
	name, _, _ := strings.Cut(rest, "?")
	r := httptest.NewRequest(method, "/"+rest, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer, err := questions[method+" "+name](&Handler{Now: func() time.Time { return today }}, t.Context(), fleet, r)
	text, _ := json.Marshal(answer)
	return string(text), err
}

const webObject = "?apiVersion=v1&kind=ConfigMap&namespace=shop&name=web"

func TestExplain(t *testing.T) {
	got, err := ask(t, newFleet(), "GET explain"+webObject, "")
	var e Explanation
	if err != nil || json.Unmarshal([]byte(got), &e) != nil {
		t.Fatalf("%s %v", got, err)
	}
	var clusters []string
	for _, c := range e.Clusters {
		clusters = append(clusters, strings.TrimSpace(c.Name+" "+c.Reason))
	}
	if strings.Join(clusters, ", ") != "one, three Spread, two Taint" || e.Policy != "PropagationPolicy shop/p" ||
		e.Scheduled.Message != "placed" || !*e.Clusters[0].Applied || e.Clusters[0].Health != "Healthy" ||
		!e.Clusters[1].Fits || e.Clusters[2].Fits {
		t.Errorf("got %s", got)
	}
	for query, wanted := range map[string]string{
		"?apiVersion=v1&kind=ConfigMap&namespace=shop&name=none":            "the fleet has no ConfigMap shop/none",
		"?apiVersion=example.org/v1&kind=ConfigMap&namespace=shop&name=web": "the fleet has no ConfigMap shop/web",
		"?kind=ConfigMap": "must be given",
	} {
		if _, err := ask(t, newFleet(), "GET explain"+query, ""); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestOverrides(t *testing.T) {
	got, err := ask(t, newFleet(), "GET overrides"+webObject, "")
	if err != nil || !strings.Contains(got, `"policy":"OverridePolicy shop/o"`) || !strings.Contains(got, `"prod"`) {
		t.Errorf("got %s %v", got, err)
	}
}

// What is in Secrets is shown by no answer.
func TestAttackSecretsOfFleets(t *testing.T) {
	secret := strings.Replace(webObject, "ConfigMap", "Secret", 1)
	for _, question := range []string{"explain", "overrides", "moves"} {
		got, err := ask(t, newFleet(), "GET "+question+secret, "")
		got = strings.ReplaceAll(got, `"(hidden)"`, "")
		if err != nil || strings.Contains(got, "aGlkZGVu") || strings.Contains(got, "hidden") {
			t.Errorf("%s: %s %v", question, got, err)
		}
	}
	p := &plan.Plan{Objects: []plan.ObjectChange{{Kind: "Secret", Fields: []plan.FieldChange{
		{Path: "/data/password", Now: "hidden", Then: "other"}, {Path: "/metadata/labels/a", Now: "b"},
	}}}}
	hideSecrets(p)
	if f := p.Objects[0].Fields; f[0].Now != hidden || f[0].Then != hidden || f[1].Now != "b" || f[1].Then != nil {
		t.Errorf("got %+v", f)
	}
}

// overriding a Secret and what it was applied with.
func overriding(path, value string) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secret"},
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret"}},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
				Plaintext: []policyv1alpha1.PlaintextOverrider{{
					Path: path, Operator: policyv1alpha1.OverriderOpAdd,
					Value: &apiextensionsv1.JSON{Raw: []byte(value)},
				}},
			}}},
		},
	}
}

func TestOverridesOfSecretsTellWhichKeysChange(t *testing.T) {
	secretObject := strings.Replace(webObject, "ConfigMap", "Secret", 1)
	for path, test := range map[string]struct{ value, field string }{
		"/data/password": {`"b3RoZXI="`, `{"path":"/data/password","before":"(hidden)","after":"(hidden)"`},
		"/data/user":     {`"b3RoZXI="`, `{"path":"/data/user","after":"(hidden)"`},
		"/stringData":    {`{"a":"b3RoZXI="}`, `{"path":"/stringData","after":{"a":"(hidden)"}`},
		"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration": {`"b3RoZXI="`,
			`{"path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",` +
				`"before":"(hidden)","after":"(hidden)"`},
	} {
		fleet := newFleet()
		secret := &corev1.Secret{}
		if err := fleet.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, secret); err != nil {
			t.Fatal(err)
		}
		secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"password":"aGlkZGVu"}}`}
		if err := fleet.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := fleet.Create(t.Context(), overriding(path, test.value)); err != nil {
			t.Fatal(err)
		}
		got, err := ask(t, fleet, "GET overrides"+secretObject, "")
		if err != nil || !strings.Contains(got, test.field) || !strings.Contains(got, `"data":{"password":"(hidden)"}`) {
			t.Errorf("%s: %s %v", path, got, err)
		}
		if strings.Contains(got, "aGlkZGVu") || strings.Contains(got, "b3RoZXI=") {
			t.Errorf("%s: values in %s", path, got)
		}
	}
}

// What could not be applied is told without quoting what it could not be applied to.
func TestErrorsOfOverridesQuoteNoSecret(t *testing.T) {
	for kind, told := range map[string]bool{"Secret": false, "ConfigMap": true} {
		c := &OverriddenCluster{}
		c.fill(kind, nil, errors.New("cannot read password"))
		if c.Error == "" || strings.Contains(c.Error, "password") != told {
			t.Errorf("%s: %q", kind, c.Error)
		}
	}
}

func TestRollouts(t *testing.T) {
	fleet := newFleet()
	const web = `"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"web"`
	for _, step := range []struct{ action, wrong string }{
		{"pause", ""}, {"pause", "paused already"}, {"resume", ""}, {"undo", ""}, {"fly", "action must be"},
	} {
		got, err := ask(t, fleet, "POST rollouts", `{`+web+`,"action":"`+step.action+`"}`)
		if (err == nil) != (step.wrong == "") || err != nil && !strings.Contains(err.Error(), step.wrong) ||
			got != "null" {
			t.Errorf("%s: %s %v", step.action, got, err)
		}
	}
	b := bound("ConfigMap")
	if err := fleet.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	if control := b.Spec.RolloutControl; control == nil || control.Paused || control.Undo == nil ||
		control.Undo.Revision != "r1" {
		t.Errorf("asked for %+v", control)
	}
}

func TestDeletions(t *testing.T) {
	fleet := newFleet()
	works := `{"works":[{"namespace":"karmada-es-one","name":"a"},{"namespace":"karmada-es-one","name":"b"},` +
		`{"namespace":"karmada-es-one","name":"c"}],"answer":"confirm"}`
	if got, err := ask(t, fleet, "POST deletions", works); err != nil || got != `{"answered":1,"gone":2}` {
		t.Errorf("got %s %v", got, err)
	}
	for _, body := range []string{`{"works":[],"answer":"keep"}`, `{"works":[{"name":"a"}],"answer":"keep"}`,
		`{"works":[{"namespace":"x","name":"a"}],"answer":"perhaps"}`} {
		if _, err := ask(t, fleet, "POST deletions", body); err == nil {
			t.Errorf("%s is taken", body)
		}
	}
	w := held("b", false)
	if err := fleet.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || len(w.Annotations) > 0 {
		t.Errorf("what was not held has %v (%v)", w.Annotations, err)
	}
}

// keptMove is a ConfigMap with a move, as the fleet writes it.
func keptMove(namespace, name string, m moves.Move) *corev1.ConfigMap {
	text, _ := json.Marshal([]moves.Move{m})
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{moves.Label: "true"}},
		Data:       map[string]string{"number": "0", "moves": string(text)},
	}
}

func scaled(at time.Time, message string) moves.Move {
	return moves.Move{
		Time:   metav1.NewTime(at),
		Object: moves.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		Type:   "Scale", Reason: "SuccessfulRescale", Message: message,
	}
}

func TestMoves(t *testing.T) {
	fleet := newFleet()
	// Three days ago there was something of which no binding and no event tells any more.
	earlier := keptMove(moves.Namespace, "fleet-moves-0", scaled(today.Add(-72*time.Hour), "3 replicas"))
	if err := fleet.Create(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	got, err := ask(t, fleet, "GET moves"+webObject, "")
	var answer struct{ Items []moves.Move }
	if err != nil || json.Unmarshal([]byte(got), &answer) != nil {
		t.Fatalf("%s %v", got, err)
	}
	var told []string
	for _, m := range answer.Items {
		told = append(told, m.Type+" "+m.Reason)
	}
	const wanted = "Eviction TaintUntolerated, Decision Success, Rollout NewRevision, Rollout NewRevision, " +
		"Scale SuccessfulRescale"
	if strings.Join(told, ", ") != wanted {
		t.Errorf("got %v", told)
	}
	if got, err := ask(t, newFleet(), "GET moves", ""); err != nil || strings.Count(got, `"Eviction"`) != 2 {
		t.Errorf("of all: %s %v", got, err)
	}
}

// What tenants write looks like no move: neither events, of which they may write any, nor what they call like the
// fleet's own.
func TestAttackForgedMoves(t *testing.T) {
	fleet := newFleet()
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	for _, forged := range []client.Object{
		&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forged"}, EventTime: metav1.NewMicroTime(today),
			Action: "Evict", Reason: "Forged", Regarding: about, ReportingController: "failover",
		},
		keptMove("shop", "fleet-moves-0", scaled(today, "forged")),
	} {
		if err := fleet.Create(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
	}
	for _, question := range []string{"GET moves", "GET moves" + webObject} {
		if got, err := ask(t, fleet, question, ""); err != nil || strings.Contains(strings.ToLower(got), "forged") {
			t.Errorf("%s: %s %v", question, got, err)
		}
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	for body, wanted := range map[string]string{
		`{"documents":""}`:        "no documents",
		`{"documents":"kind: X"}`: "metadata.name: must be given",
		`{"documents":"- a"}`:     "it is no object",
		`{"document":""}`:         "cannot be read",
		`{"documents":"` + strings.Repeat(`---\napiVersion: v1\nkind: X\nmetadata: {name: x}\n`,
			101) + `"}`: "at most 100",
	} {
		if _, err := ask(t, newFleet(), "POST plan", body); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

func TestUnknownQuestions(t *testing.T) {
	err := (&Handler{Now: time.Now}).Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/", nil), nil,
		"explain")
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// A fleet that answers more than there is memory for is not asked further.
func TestQuestionsTakeMemory(t *testing.T) {
	const total = 60 << 10
	memory := limits.NewBytes(total)
	asked := 0
	cluster := &clusters.Cluster{
		Name: "shoot/garden-a/one", Base: &url.URL{Scheme: "https", Host: "fleet"}, Memory: memory,
		Transport: answering(func(r *http.Request) string {
			path := r.URL.Path
			switch {
			case path == "/api" || path == "/apis":
				return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`
			case strings.HasSuffix(path, "/work.karmada.io/v1alpha2"):
				return `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"work.karmada.io/v1alpha2",` +
					`"resources":[{"name":"resourcebindings","singularName":"resourcebinding","namespaced":true,` +
					`"kind":"ResourceBinding","verbs":["get","list"]}]}`
			case strings.HasSuffix(path, "/work.karmada.io"):
				return `{"kind":"APIGroup","apiVersion":"v1","name":"work.karmada.io","versions":[` +
					`{"groupVersion":"work.karmada.io/v1alpha2","version":"v1alpha2"}]}`
			}
			asked++
			return fmt.Sprintf(`{"items":[{"metadata":{"name":%q}}]}`, strings.Repeat("x", 20<<10))
		}),
	}
	err := (&Handler{Now: time.Now}).Serve(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/"+webObject, nil), cluster, "explain")
	if status := reply.StatusOf(err); asked != 1 || status.Code != http.StatusServiceUnavailable ||
		!strings.Contains(status.Message, "no memory") {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if err := memory.Nothing(cluster.Credential).Grow(total / 2); err != nil {
		t.Errorf("it is not given back: %v", err)
	}
}

// answering is a fleet whose answers are made by a function.
type answering func(r *http.Request) string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": []string{"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(a(r))),
	}, nil
}
