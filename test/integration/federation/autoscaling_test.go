package federation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// adapter serves APIs of metrics, which a member's API server has from it by aggregation.
type adapter struct {
	mu      sync.Mutex
	answers map[string]string
	asked   map[string]url.Values
}

func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.Count(r.URL.Path, "/") <= 3 { // Discovery, by which the API server tells whether the API is there.
		_, _ = fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": []}`)
		return
	}
	a.asked[r.URL.Path] = r.URL.Query()
	answer, found := a.answers[r.URL.Path]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		answer =
			`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "there is no such metric", "code": 404}`
	}
	_, _ = fmt.Fprint(w, answer)
}

func (a *adapter) answer(path, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[path] = text
}

func (a *adapter) queryOf(path string) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[path]
}

// aggregated has a member's API server serve APIs of an adapter until the test ends.
func (w *world) aggregated(t *testing.T, c client.Client, groupVersions ...string) *adapter {
	t.Helper()
	a := &adapter{answers: map[string]string{}, asked: map[string]url.Values{}}
	address := w.ownAddress(t)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	service := parse(t, fmt.Sprintf(`
{apiVersion: v1, kind: Service, metadata: {name: adapter}, spec: {ports: [{name: https, port: 443}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: adapter, labels: {kubernetes.io/service-name: adapter}}
addressType: IPv4
endpoints: [{addresses: [%s], conditions: {ready: true}}]
ports: [{name: https, protocol: TCP, port: %s}]
`, address, port))
	apply(t, c, metav1.NamespaceDefault, service...)
	t.Cleanup(func() {
		for _, object := range service {
			remove(t, c, in(metav1.NamespaceDefault, object))
		}
	})
	for _, groupVersion := range groupVersions {
		group, version, _ := strings.Cut(groupVersion, "/")
		object := parse(t, fmt.Sprintf(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: %[2]s.%[1]s}, spec: {
			group: %[1]s, version: %[2]s, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
			service: {namespace: default, name: adapter, port: 443}}}`, group, version))[0]
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, object) })
		eventually(t, groupVersion+" is served", func() error {
			current, err := get(c, "apiregistration.k8s.io/v1", "APIService", "", object.GetName())
			if text, _ := json.Marshal(current.Object["status"]); err != nil ||
				!strings.Contains(string(text), `"status":"True"`) {
				return fmt.Errorf("%s %w", text, err)
			}
			return nil
		})
	}
	return a
}

// runPods makes pods of the Deployment, as if its controller and a kubelet had.
func runPods(t *testing.T, c client.Client, namespace string, count int) (names []string) {
	t.Helper()
	for range count {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.Labels = namespace, "nginx-"+utilrand.String(8), map[string]string{"app": "nginx"}
		object := parse(t, `{spec: {containers: [{name: nginx, image: nginx, resources: {requests: {cpu: 100m}}}]}}`)[0]
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, pod); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(ctx, pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, pod, client.GracePeriodSeconds(0)) })
		before := metav1.NewTime(time.Now().Add(-time.Hour))
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &before
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: before},
		}
		if err := c.Status().Update(ctx, pod); err != nil {
			t.Fatal(err)
		}
		names = append(names, pod.Name)
	}
	return names
}

// used tells what metrics.k8s.io says when each pod uses so much.
func used(names []string, cpu string) string {
	var items []string
	for _, name := range names {
		items =
			append(items,
				fmt.Sprintf(`{"metadata": {"name": %q}, "timestamp": %q, "window": "15s", "containers": [{"name": "nginx", "usage": {"cpu": %q, "memory": "10Mi"}}]}`,
					name, time.Now().UTC().Format(time.RFC3339), cpu))
	}
	return `{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [` + strings.Join(items, ",") +
		`]}`
}

// values tells what the other APIs of metrics say.
func values(value string, names ...string) string {
	var items []string
	for _, name := range names {
		items =
			append(items,
				fmt.Sprintf(`{"describedObject": {"name": %q}, "timestamp": "2026-05-04T12:00:00Z", "value": %q}`, name,
					value))
	}
	return `{"items": [` + strings.Join(items, ",") + `]}`
}

const nginxWithRequests = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: nginx}, spec: {replicas: 4, selector: {matchLabels: {app: nginx}}, template: {
	metadata: {labels: {app: nginx}}, spec: {containers: [{name: nginx, image: nginx, resources: {requests: {cpu: 100m}}}]}}}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: nginx}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}], placement: {
	clusterAffinity: {clusterNames: [member1, member2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted,
	weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1]}, weight: 1}, {targetCluster: {clusterNames: [member2]}, weight: 1}]}}}}}`

// federatedHPA goes both ways at once.
func federatedHPA(metrics string) string {
	return `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: nginx}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nginx},
		minReplicas: 2, maxReplicas: 10, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, metrics: [` + metrics + `]}}`
}

func often(options *controllers.Options) { options.Autoscaling.Interval = 200 * time.Millisecond }

// scaledTo waits until a FederatedHPA has set and told a number of replicas, because of what its condition
// ScalingActive says.
func (w *world) scaledTo(t *testing.T, namespace string, want int32,
	reason, text string) *autoscalingv1alpha1.FederatedHPA {
	t.Helper()
	f := &autoscalingv1alpha1.FederatedHPA{}
	eventually(t, fmt.Sprintf("there are %d replicas", want), func() error {
		if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "nginx"}, f); err != nil {
			return err
		}
		for _, c := range f.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Reason == reason && strings.Contains(c.Message, text) &&
				f.Status.CurrentReplicas == want && f.Status.DesiredReplicas == want {
				return nil
			}
		}
		return fmt.Errorf("status %+v", f.Status)
	})
	return f
}

// TestFederatedHPA: what pods use in two members decides how many there are of them in the fleet, and the policy
// divides them.
func TestFederatedHPA(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, nginxWithRequests)...)
	w.startFederation(t, often)
	w.replicasIn(t, namespace, 2, 2)
	apis := []string{"metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2", "external.metrics.k8s.io/v1beta1"}
	// The second member has an older adapter.
	adapters := []*adapter{
		w.aggregated(t, w.member["member1"], apis...),
		w.aggregated(t, w.member["member2"], "metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta1", apis[2]),
	}
	version := []string{"v1beta2", "v1beta1"}
	pods := [][]string{runPods(t, w.member["member1"], namespace, 2), runPods(t, w.member["member2"], namespace, 2)}
	use := "/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods"
	for i, a := range adapters {
		a.answer(use, used(pods[i], "100m"))
	}

	const cpu = `{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`
	apply(t, w.fleet, namespace, parse(t, federatedHPA(cpu))...)
	f := w.scaledTo(t, namespace, 8, "ValidMetricFound", "resource cpu")
	w.replicasIn(t, namespace, 4, 4)
	if f.Status.LastScaleTime == nil || *f.Status.ObservedGeneration != 1 ||
		*f.Status.CurrentMetrics[0].Resource.Current.AverageUtilization != 100 {
		t.Errorf("status %+v", f.Status)
	}
	if got := adapters[0].queryOf(use).Get("labelSelector"); got != "app=nginx" {
		t.Errorf("the pods' selector is %q", got)
	}

	for i, name := range memberNames {
		pods[i] = append(pods[i], runPods(t, w.member[name], namespace, 2)...)
	}
	metrics := func(path string, text func(int) string) {
		for i, a := range adapters {
			a.answer("/apis/custom.metrics.k8s.io/"+version[i]+path, text(i))
		}
	}
	// Each of 8 pods has 5 requests, the target is 10.
	metrics("/namespaces/"+namespace+"/pods/*/requests", func(i int) string { return values("5", pods[i]...) })
	apply(t, w.fleet, namespace, parse(t,
		federatedHPA(`{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 10}}}`))...)
	w.scaledTo(t, namespace, 4, "ValidMetricFound", "requests")

	// An Ingress in each member has 30 requests, the target is 10 per pod.
	metrics("/namespaces/"+namespace+"/ingresses.networking.k8s.io/web/requests",
		func(int) string { return values("30", "web") })
	apply(t, w.fleet, namespace, parse(t, federatedHPA(`{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: web}, metric: {name: requests},
		target: {type: AverageValue, averageValue: 10}}}`))...)
	w.scaledTo(t, namespace, 6, "ValidMetricFound", "Ingress web")

	// A queue that only one member knows, in three series.
	queue := "/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/queue"
	adapters[0].answer(queue, values("1", "", "", ""))
	apply(t, w.fleet, namespace, parse(t,
		federatedHPA(`{type: External, external: {metric: {name: queue, selector: {matchLabels: {kind: mail}}}, target: {type: AverageValue, averageValue: 1}}}`))...)
	w.scaledTo(t, namespace, 3, "ValidMetricFound", "queue")
	if got := adapters[0].queryOf(queue).Get("labelSelector"); got != "kind=mail" {
		t.Errorf("the metric's selector is %q", got)
	}

	// Without metrics there is no change.
	apply(t, w.fleet, namespace, parse(t,
		federatedHPA(`{type: Pods, pods: {metric: {name: nothing}, target: {type: AverageValue, averageValue: 10}}}`))...)
	w.scaledTo(t, namespace, 3, "FailedGetPodsMetric", "no cluster tells it")
}

// TestFederatedHPAWithoutAMember: a member that does not tell what its pods use is named, and keeps its replicas.
func TestFederatedHPAWithoutAMember(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, nginxWithRequests)...)
	w.startFederation(t, often)
	w.replicasIn(t, namespace, 2, 2)
	a := w.aggregated(t, w.member["member1"], "metrics.k8s.io/v1beta1")
	pods := runPods(t, w.member["member1"], namespace, 2)
	runPods(t, w.member["member2"], namespace, 2)
	a.answer("/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods", used(pods, "0"))
	apply(t, w.fleet, namespace, parse(t,
		federatedHPA(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 90}}}`))...)
	f := w.scaledTo(t, namespace, 3, "ValidMetricFound", "member2: ")
	if got := *f.Status.CurrentMetrics[0].Resource.Current.AverageUtilization; got != 0 {
		t.Errorf("%d %% is used", got)
	}
}

// TestCronFederatedHPAOfFederatedHPA: the clock changes limits, and these change the number of replicas.
func TestCronFederatedHPAOfFederatedHPA(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, nginxWithRequests)...)
	apply(t, w.fleet, namespace, parse(t, federatedHPA(""))...)
	due := time.Now().UTC().Add(-time.Minute).Truncate(time.Minute)
	clock := parse(t, fmt.Sprintf(`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: clock}, spec: {
		scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: nginx}, rules: [
		{name: now, schedule: "%d %d * * *", targetMinReplicas: 6, targetMaxReplicas: 12}]}}`, due.Minute(), due.Hour()))[0]
	apply(t, w.fleet, namespace, clock)
	c := &autoscalingv1alpha1.CronFederatedHPA{}
	key := types.NamespacedName{Namespace: namespace, Name: "clock"}
	if err := w.fleet.Get(ctx, key, c); err != nil {
		t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Status.ExecutionHistories = []autoscalingv1alpha1.ExecutionHistory{
		{RuleName: "now", NextExecutionTime: new(metav1.NewTime(due))},
	}
	if err := w.fleet.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.startFederation(t, often)
	w.replicasIn(t, namespace, 3, 3)
	if err := w.fleet.Get(ctx, key, c); err != nil {
		t.Fatal(err)
	}
	h := c.Status.ExecutionHistories[0]
	if len(h.SuccessfulExecutions) != 1 || *h.SuccessfulExecutions[0].AppliedMinReplicas != 6 ||
		*h.SuccessfulExecutions[0].AppliedMaxReplicas != 12 {
		t.Errorf("history %+v", h)
	}
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "nginx"}, f); err != nil ||
		*f.Spec.MinReplicas != 6 || f.Spec.MaxReplicas != 12 {
		t.Errorf("spec %+v, %v", f.Spec, err)
	}
}
