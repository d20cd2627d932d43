package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// simulated member with some pods, and answers by path.
type simulated struct {
	pods     int
	err      error
	answers  map[string]string
	selector string
	// asked selectors of pods.
	asked []string
}

func (m *simulated) Pods(_ context.Context, _, selector string) ([]corev1.Pod, error) {
	m.asked = append(m.asked, selector)
	var result []corev1.Pod
	for i := range m.pods {
		old := metav1.NewTime(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
		result = append(result, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &old,
				Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
				},
			},
		})
	}
	return result, m.err
}

func (m *simulated) Selector(context.Context, *meta.RESTMapping, string, string) (string, error) {
	return m.selector, nil
}

func (m *simulated) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	scope := meta.RESTScopeNamespace
	if gvk.Kind == "Namespace" || gvk.Kind == "Node" {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: scope}, nil
}

// Read answers like an API server: a path of an API that isn't served is not the same as an object that isn't there.
func (m *simulated) Read(_ context.Context, path string, query url.Values, into any) error {
	if answer, found := m.answers[path+"?"+query.Encode()]; found {
		return json.Unmarshal([]byte(answer), into)
	}
	err := apierrors.NewNotFound(schema.GroupResource{}, path)
	parts := strings.Split(path, "/")
	if served := m.answers[strings.Join(parts[:4], "/")]; served == "" {
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}
	}
	return err
}

// use of a number of pods.
func use(cpu string, count int) map[string]string {
	var items []string
	for i := range count {
		items =
			append(items,
				fmt.Sprintf(`{"metadata": {"name": "%d"}, "timestamp": "2026-05-04T12:00:00Z", "window": "15s", "containers": [{"name": "app", "usage": {"cpu": %q}}]}`, i, cpu))
	}
	return map[string]string{
		"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb": `{"items": [` +
			strings.Join(items, ",") + `]}`,
	}
}

// one value at a path of an API that is served.
func one(path, value string) map[string]string {
	parts := strings.Split(path, "/")
	return map[string]string{path: `{"items": [{"value": "` + value + `"}]}`, strings.Join(parts[:4], "/"): "served"}
}

// recorded scale of an object.
type recorded struct {
	replicas     int32
	selector     string
	err, refused error
}

func (r *recorded) Get(context.Context, string,
	autoscalingv2.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	if r.err != nil {
		return nil, r.err
	}
	return &autoscalingv1.Scale{
		Spec: autoscalingv1.ScaleSpec{Replicas: r.replicas}, Status: autoscalingv1.ScaleStatus{Selector: r.selector},
	}, nil
}

func (r *recorded) Set(_ context.Context, _ string, _ autoscalingv2.CrossVersionObjectReference, replicas int32) error {
	if r.refused == nil {
		r.replicas = replicas
	}
	return r.refused
}

type fixture struct {
	client.Client
	t       *testing.T
	members map[string]*simulated
	scales  *recorded
	now     time.Time
	running *autoscaling
}

var web = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}

// newFixture has clusters a and b with 2 replicas each, and c, which an agent serves, with as many as are given.
func newFixture(t *testing.T, metrics []autoscalingv2.MetricSpec, pulled int32, members map[string]*simulated,
	more ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(autoscalingv1alpha1.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme),
		workv1alpha2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	binding.Spec.Placement = &policyv1alpha1.Placement{
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
		},
	}
	binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 2}}
	if pulled > 0 {
		binding.Spec.Clusters = append(binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: "c", Replicas: pulled})
	}
	objects := append(more, binding, hpa("web", metrics))
	for name, mode := range map[string]clusterv1alpha1.SyncMode{
		"a": clusterv1alpha1.Push, "b": clusterv1alpha1.Push, "c": clusterv1alpha1.Pull,
	} {
		cluster := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode},
		}
		meta.SetStatusCondition(&cluster.Status.Conditions,
			metav1.Condition{
				Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady",
			})
		objects = append(objects, cluster)
	}
	f := &fixture{
		t: t, members: members, scales: &recorded{replicas: 4 + pulled, selector: "app=web"},
		now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
		Client: fake.NewClientBuilder().
			WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&autoscalingv1alpha1.FederatedHPA{}).Build(),
	}
	f.restart()
	return f
}

func hpa(name string, metrics []autoscalingv2.MetricSpec) *autoscalingv1alpha1.FederatedHPA {
	return &autoscalingv1alpha1.FederatedHPA{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 3},
		Spec: autoscalingv1alpha1.FederatedHPASpec{
			ScaleTargetRef: web, MinReplicas: new(int32(2)), MaxReplicas: 20, Metrics: metrics,
		},
	}
}

// restart forgets all that is not written down.
func (f *fixture) restart() {
	connected := func(name string) (member, bool) {
		m, found := f.members[name]
		return m, found
	}
	f.running = &autoscaling{
		client: f.Client, events: events.NewFakeRecorder(100), scales: f.scales, now: func() time.Time { return f.now },
		options:   DefaultOptions(),
		usage:     usage{client: f.Client, connected: connected, patience: time.Minute},
		histories: map[types.NamespacedName]memory{},
	}
}

func (f *fixture) reconcile() autoscalingv2.HorizontalPodAutoscalerStatus {
	f.t.Helper()
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	result, err := f.running.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter != 15*time.Second {
		f.t.Fatalf("%+v, %v", result, err)
	}
	got := &autoscalingv1alpha1.FederatedHPA{}
	if err := f.Get(f.t.Context(), key, got); err != nil {
		f.t.Fatal(err)
	}
	return got.Status
}

// told gives reason and message of a condition.
func told(status autoscalingv2.HorizontalPodAutoscalerStatus,
	kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestMembersAnswer(t *testing.T) {
	identifier := autoscalingv2.MetricIdentifier{
		Name: "requests", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"verb": "get"}},
	}
	perReplica := autoscalingv2.MetricTarget{
		Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("10")),
	}
	object := func(apiVersion, kind, name string) []autoscalingv2.MetricSpec {
		return []autoscalingv2.MetricSpec{{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{
				DescribedObject: autoscalingv2.CrossVersionObjectReference{
					APIVersion: apiVersion, Kind: kind, Name: name,
				},
				Metric: identifier, Target: perReplica,
			}}}
	}
	external := []autoscalingv2.MetricSpec{
		{
			Type:     autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{Metric: identifier, Target: perReplica},
		},
	}
	resourceMetric := func(name corev1.ResourceName, target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{
			Type:     autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: target},
		}
	}
	memory, ofCPU := resourceMetric(corev1.ResourceMemory, perReplica),
		resourceMetric(corev1.ResourceCPU, metricsOf(&autoscalingv1alpha1.FederatedHPASpec{})[0].Resource.Target)
	const (
		ingress   = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/web/requests?metricLabelSelector=verb%3Dget"
		older     = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/ingresses.networking.k8s.io/web/requests?metricLabelSelector=verb%3Dget"
		namespace = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/requests?metricLabelSelector=verb%3Dget"
		queue     = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/requests?labelSelector=verb%3Dget"
		servedToo = "/apis/custom.metrics.k8s.io/v1beta2"
	)
	gone := errors.New("connection refused")
	tests := map[string]struct {
		metrics []autoscalingv2.MetricSpec
		a, b    *simulated
		pulled  int32
		want    int32
		// condition ScalingActive: its reason and a part of its message.
		reason, message string
	}{
		"all are busy": {
			nil, &simulated{pods: 2, answers: use("1600m", 2)}, &simulated{pods: 2, answers: use("1600m", 2)}, 0, 8,
			"ValidMetricFound", "resource cpu",
		},
		"one does not answer": {
			nil, &simulated{pods: 2, answers: use("1600m", 2)}, &simulated{err: gone}, 0, 4, "ValidMetricFound",
			"Without an answer: b: connection refused",
		},
		"one has no metrics": {
			nil, &simulated{pods: 2, answers: use("1600m", 2)}, &simulated{pods: 2}, 0, 4, "ValidMetricFound",
			"Without an answer: b: ",
		},
		"one is not connected": {
			nil, &simulated{pods: 2, answers: use("1600m", 2)}, nil, 0, 4, "ValidMetricFound",
			"b: the cluster is not connected",
		},
		"one has an agent": {
			nil, &simulated{pods: 2, answers: use("3200m", 2)}, &simulated{pods: 2, answers: use("3200m", 2)}, 4, 16,
			"ValidMetricFound", "c: a pull member, whose agent does not tell what pods use; have it join by push " +
				"(trellisctl join)",
		},
		"none has metrics": {
			nil, &simulated{pods: 2}, &simulated{pods: 2}, 0, 4, "FailedGetResourceMetric",
			"no cluster tells it. Without an answer: a: ",
		},
		"sum of an object": {
			object("networking.k8s.io/v1", "Ingress", "web"), &simulated{pods: 2, answers: one(ingress, "30")},
			&simulated{pods: 2, answers: one(ingress, "50")}, 0, 8, "ValidMetricFound", "Ingress web",
		},
		"an older API": {
			object("networking.k8s.io/v1", "Ingress", "web"), &simulated{pods: 2, answers: one(older, "30")},
			&simulated{pods: 2, answers: one(ingress, "50")}, 0, 8, "ValidMetricFound", "Ingress web",
		},
		"an object that one does not have": {
			object("networking.k8s.io/v1", "Ingress", "web"), &simulated{pods: 2, answers: one(ingress, "60")},
			&simulated{pods: 2, answers: map[string]string{servedToo: "served"}}, 0, 6, "ValidMetricFound",
			"Ingress web",
		},
		"an object that nobody has": {
			object("networking.k8s.io/v1", "Ingress", "web"),
			&simulated{pods: 2, answers: map[string]string{servedToo: "served"}},
			&simulated{pods: 2, answers: map[string]string{servedToo: "served"}}, 0, 4, "FailedGetObjectMetric",
			"no cluster tells it",
		},
		"a namespace": {
			object("v1", "Namespace", "shop"), &simulated{pods: 2, answers: one(namespace, "60")},
			&simulated{pods: 2, answers: one(namespace, "0")}, 0, 6, "ValidMetricFound", "Namespace shop",
		},
		"external": {
			external, &simulated{pods: 2, answers: one(queue, "30")}, &simulated{pods: 2, answers: one(queue, "40")}, 0,
			7, "ValidMetricFound", "external metric requests",
		},
		"two that one does not tell": {[]autoscalingv2.MetricSpec{memory, ofCPU},
			&simulated{pods: 2, answers: use("1600m", 2)}, &simulated{pods: 2}, 0, 4, "ValidMetricFound",
			"follows resource cpu. Failed: spec.metrics[0] (resource memory): no pod tells what it uses: 4 have no " +
				"value, 0 are not ready, 0 are in clusters that did not answer. " +
				"Without an answer: b: spec.metrics[0], spec.metrics[1]: "},
		"one of two that nobody tells": {append([]autoscalingv2.MetricSpec{ofCPU}, external...),
			&simulated{pods: 2, answers: use("100m", 2)}, &simulated{pods: 2, answers: use("100m", 2)}, 0, 4,
			"FailedGetExternalMetric", "spec.metrics[1] (external metric requests): no cluster tells it. Without an " +
				"answer: a: spec.metrics[1]: "},
		"external, a part says nothing down": {
			external, &simulated{pods: 2, answers: one(queue, "1")}, &simulated{pods: 2}, 0, 4, "ValidMetricFound",
			"b: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			members := map[string]*simulated{"a": tc.a}
			if tc.b != nil {
				members["b"] = tc.b
			}
			f := newFixture(t, tc.metrics, tc.pulled, members)
			status := f.reconcile()
			if got := told(status, autoscalingv2.ScalingActive); f.scales.replicas != tc.want ||
				!strings.HasPrefix(got, tc.reason+": ") || !strings.Contains(got, tc.message) {
				t.Errorf("%d replicas, want %d: %s", f.scales.replicas, tc.want, got)
			}
			if *status.ObservedGeneration != 3 || status.DesiredReplicas != tc.want || len(tc.a.asked) == 0 ||
				tc.a.asked[0] != "app=web" {
				t.Errorf("status %+v, asked for %v", status, tc.a.asked)
			}
		})
	}
}

// Names become parts of paths: one that leaves its place is not asked for.
func TestNamesOfMetricsStayInTheirPlace(t *testing.T) {
	for _, name := range []string{"", "..", "a/../../secrets", "a%2fb"} {
		if err := fits(autoscalingv2.MetricIdentifier{Name: name}, "labelSelector", url.Values{}); err == nil {
			t.Errorf("%q is asked for", name)
		}
	}
}

// A process that forgot everything does not scale down at once.
func TestRestart(t *testing.T) {
	idle := map[string]*simulated{"a": {pods: 2, answers: use("0", 2)}, "b": {pods: 2, answers: use("0", 2)}}
	f := newFixture(t, nil, 0, idle)
	for range 3 {
		f.restart()
		for range 19 { // less than five minutes
			f.now = f.now.Add(15 * time.Second)
			if f.reconcile(); f.scales.replicas != 4 {
				t.Fatalf("%d replicas at %s", f.scales.replicas, f.now)
			}
		}
	}
	f.now = f.now.Add(time.Minute)
	if status := f.reconcile(); f.scales.replicas != 2 || status.LastScaleTime == nil ||
		!strings.HasPrefix(told(status, autoscalingv2.AbleToScale), "SucceededRescale") {
		t.Errorf("%d replicas, status %+v", f.scales.replicas, status)
	}
	busy := map[string]*simulated{"a": {pods: 2, answers: use("8", 2)}, "b": {pods: 2, answers: use("8", 2)}}
	f.members = busy
	f.now = f.now.Add(5 * time.Second)
	f.restart()
	if status := f.reconcile(); f.scales.replicas != 2 ||
		!strings.HasPrefix(told(status, autoscalingv2.ScalingLimited), "ScaleUpLimit") {
		t.Errorf("%d replicas, status %+v", f.scales.replicas, status)
	}
	f.now = f.now.Add(15 * time.Second)
	if f.reconcile(); f.scales.replicas != 6 {
		t.Errorf("%d replicas", f.scales.replicas)
	}
}

func TestWhatCannotBeScaled(t *testing.T) {
	busy := func() map[string]*simulated {
		return map[string]*simulated{"a": {pods: 2, answers: use("8", 2)}, "b": {pods: 2, answers: use("8", 2)}}
	}
	f := newFixture(t, nil, 0, busy())
	f.reconcile()
	f.scales.err = errors.New("no such thing")
	status := f.reconcile()
	for _, kind := range []autoscalingv2.HorizontalPodAutoscalerConditionType{
		autoscalingv2.AbleToScale, autoscalingv2.ScalingActive,
	} {
		if got := told(status, kind); got != "FailedGetScale: no such thing" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	f = newFixture(t, nil, 0, busy())
	f.scales.refused = errors.New("no")
	if status := f.reconcile(); told(status, autoscalingv2.AbleToScale) != "FailedUpdateScale: no" ||
		status.DesiredReplicas != 4 || status.LastScaleTime != nil {
		t.Errorf("status %+v", status)
	}
	f = newFixture(t, nil, 0, busy(), hpa("other", nil))
	if got := told(f.reconcile(), autoscalingv2.ScalingActive); !strings.HasPrefix(got,
		"AmbiguousSelector: FederatedHPA other") || f.scales.replicas != 4 {
		t.Error(got)
	}
	f = newFixture(t, nil, 0, busy())
	f.scales.replicas = 0
	if got := told(f.reconcile(), autoscalingv2.ScalingActive); !strings.HasPrefix(got, "ScalingDisabled: ") ||
		f.scales.replicas != 0 {
		t.Error(got)
	}
	f = newFixture(t, nil, 0, busy())
	f.scales.selector = "" // Only the members know it, and one of them does.
	f.members["a"].selector = "app=web"
	if got := told(f.reconcile(), autoscalingv2.ScalingActive); !strings.Contains(got,
		"b: the scale of Deployment web has no selector") || len(f.members["b"].asked) != 0 {
		t.Error(got)
	}
	f = newFixture(t, nil, 0, busy())
	if err := f.Delete(t.Context(),
		&workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
		}); err != nil {
		t.Fatal(err)
	}
	if got := told(f.reconcile(), autoscalingv2.ScalingActive); !strings.Contains(got,
		"the object is in no cluster yet") {
		t.Error(got)
	}
}

// TestFailingMetricsMakeEvents: one per change, also while other metrics decide.
func TestFailingMetricsMakeEvents(t *testing.T) {
	ofCPU := metricsOf(&autoscalingv1alpha1.FederatedHPASpec{})[0].MetricSpec
	queue := func(name string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: name},
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("10")),
				},
			}}
	}
	members := func(cpu string) map[string]*simulated {
		return map[string]*simulated{"a": {pods: 2, answers: use(cpu, 2)}, "b": {pods: 2, answers: use(cpu, 2)}}
	}
	f := newFixture(t, []autoscalingv2.MetricSpec{ofCPU, queue("orders"), queue("mails")}, 0, members("800m"))
	const fail = "Warning FailedGetExternalMetric "
	orders, mails := "spec.metrics[1] (external metric orders): no cluster tells it",
		"spec.metrics[2] (external metric mails): no cluster tells it"
	toldOrders := "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/orders?"
	for i, step := range []struct {
		cpu    string
		orders bool
		active corev1.ConditionStatus
		want   []string
	}{
		{"800m", false, corev1.ConditionTrue, []string{fail + orders + "; " + mails}},
		{"800m", false, corev1.ConditionTrue, nil},
		{"800m", true, corev1.ConditionTrue, nil},
		{"800m", false, corev1.ConditionTrue, []string{fail + orders}},
		{"100m", false, corev1.ConditionFalse, []string{fail + orders + "; " + mails}},
		{"100m", false, corev1.ConditionFalse, nil},
	} {
		f.members = members(step.cpu)
		if step.orders {
			for path, answer := range one(toldOrders, "30") {
				f.members["a"].answers[path] = answer
			}
		}
		f.now = f.now.Add(15 * time.Second)
		status := f.reconcile()
		for _, c := range status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Status != step.active {
				t.Errorf("step %d: ScalingActive is %s: %s", i, c.Status, c.Message)
			}
		}
		var got []string
		for recorder := f.running.events.(*events.FakeRecorder); len(recorder.Events) > 0; {
			event, _, _ := strings.Cut(<-recorder.Events, ". Without an answer: ")
			got = append(got, event)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("step %d: events %q, want %q", i, got, step.want)
		}
	}
}

// Where each member has all replicas, the number of replicas is that of one member.
func TestCopies(t *testing.T) {
	f := newFixture(t, nil, 0, map[string]*simulated{
		"a": {pods: 4, answers: use("1600m", 4)}, "b": {pods: 4, answers: use("1600m", 4)},
	})
	binding := &workv1alpha2.ResourceBinding{}
	if err := f.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, binding); err != nil {
		t.Fatal(err)
	}
	binding.Spec.Placement.ReplicaScheduling = nil
	if err := f.Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if f.reconcile(); f.scales.replicas != 8 {
		t.Errorf("%d replicas", f.scales.replicas)
	}
}
