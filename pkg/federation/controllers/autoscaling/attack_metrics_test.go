package autoscaling

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAttackMetricsOfOthers plays an application team that reads, in the status of its FederatedHPA, metrics of another
// namespace or of what is in none: the fleet may read all of them in its members.
func TestAttackMetricsOfOthers(t *testing.T) {
	const root = "/apis/custom.metrics.k8s.io/v1beta2/"
	for _, test := range []struct {
		described autoscalingv2.CrossVersionObjectReference
		path      string
	}{
		{
			autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "bank"},
			root + "namespaces/bank/metrics/orders?",
		},
		{
			autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"},
			root + "nodes/n/orders?",
		},
	} {
		metrics := []autoscalingv2.MetricSpec{{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{
				DescribedObject: test.described, Metric: autoscalingv2.MetricIdentifier{Name: "orders"},
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse("10")),
				},
			}}}
		f := newFixture(t, metrics, 0,
			map[string]*simulated{
				"a": {pods: 2, answers: one(test.path, "4711")}, "b": {pods: 2, answers: one(test.path, "0")},
			})
		status := f.reconcile()
		if got := told(status, autoscalingv2.ScalingActive); f.scales.replicas != 4 ||
			!strings.HasPrefix(got, "FailedGetObjectMetric: ") ||
			!strings.Contains(got, "must be in namespace shop, or be that namespace") {
			t.Errorf("%s: %d replicas: %s", test.described.Kind, f.scales.replicas, got)
		}
		if len(status.CurrentMetrics) > 0 && status.CurrentMetrics[0].Object != nil {
			t.Errorf("%s: the status tells %+v", test.described.Kind, status.CurrentMetrics[0].Object.Current)
		}
	}
}
