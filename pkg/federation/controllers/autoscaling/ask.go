package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-garden/trellis/pkg/federation/autoscale"
)

// member is what is asked of one.
type member interface {
	Pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error)
	Selector(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (string, error)
	Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error)
	Read(ctx context.Context, path string, query url.Values, into any) error
}

// reading of one metric in one member.
type reading struct {
	pods  map[string]autoscale.Sample
	total float64
	// absent means that the member has the API of the metric, and not the object or the metric.
	absent bool
	err    error
}

// asking is a conversation with one member about one object.
type asking struct {
	member
	cluster, namespace, selector string
	// used is what metrics.k8s.io told; it is asked once.
	used    []podMetrics
	usedErr error
	asked   bool
}

// ask about pods and metrics.
func ask(ctx context.Context, m member, cluster string, q question) answer {
	selector, err := selectorOf(ctx, m, q)
	if err != nil {
		return answer{err: err}
	}
	pods, err := m.Pods(ctx, q.namespace, selector)
	if err != nil {
		return answer{err: err}
	}
	var result answer
	for i := range pods {
		result.pods = append(result.pods, podOf(cluster, &pods[i]))
	}
	a := &asking{member: m, cluster: cluster, namespace: q.namespace, selector: selector}
	for _, asked := range q.metrics {
		r := a.read(ctx, asked.MetricSpec)
		if apierrors.IsNotFound(r.err) && !notServed(r.err) {
			r = reading{absent: true}
		}
		result.readings = append(result.readings, r)
	}
	return result
}

// selectorOf the pods. Without any, all pods of the namespace would be meant, so that there must be one.
func selectorOf(ctx context.Context, m member, q question) (string, error) {
	if q.selector != "" {
		return q.selector, nil
	}
	mapping, err := m.Mapping(schema.FromAPIVersionAndKind(q.target.APIVersion, q.target.Kind))
	if err != nil {
		return "", err
	}
	selector, err := m.Selector(ctx, mapping, q.namespace, q.target.Name)
	if err == nil && selector == "" {
		err = fmt.Errorf("the scale of %s %s has no selector in its status, so its pods are not known", q.target.Kind,
			q.target.Name)
	}
	return selector, err
}

func (a *asking) read(ctx context.Context, spec autoscalingv2.MetricSpec) reading {
	switch {
	case spec.Resource != nil && spec.Type == autoscalingv2.ResourceMetricSourceType:
		return a.resource(ctx, spec.Resource.Name, "")
	case spec.ContainerResource != nil && spec.Type == autoscalingv2.ContainerResourceMetricSourceType:
		return a.resource(ctx, spec.ContainerResource.Name, spec.ContainerResource.Container)
	case spec.Pods != nil && spec.Type == autoscalingv2.PodsMetricSourceType:
		return a.ofPods(ctx, spec.Pods.Metric)
	case spec.Object != nil && spec.Type == autoscalingv2.ObjectMetricSourceType:
		return a.ofObject(ctx, spec.Object.DescribedObject, spec.Object.Metric)
	case spec.External != nil && spec.Type == autoscalingv2.ExternalMetricSourceType:
		return a.external(ctx, spec.External.Metric)
	}
	return reading{err: errors.New("the type of the metric is not known, or it is not complete")}
}

// The wire shapes of metrics.k8s.io/v1beta1, custom.metrics.k8s.io/v1beta2 and v1beta1, and
// external.metrics.k8s.io/v1beta1: what of them is read.
type (
	podMetrics struct {
		Metadata   struct{ Name string } `json:"metadata"`
		Timestamp  metav1.Time           `json:"timestamp"`
		Window     metav1.Duration       `json:"window"`
		Containers []struct {
			Name  string              `json:"name"`
			Usage corev1.ResourceList `json:"usage"`
		} `json:"containers"`
	}
	metricValue struct {
		DescribedObject struct{ Name string } `json:"describedObject"`
		Value           resource.Quantity     `json:"value"`
	}
	list[T any] struct {
		Items []T `json:"items"`
	}
)

// resource use of the pods, or of a container in each.
func (a *asking) resource(ctx context.Context, name corev1.ResourceName, container string) reading {
	if !a.asked {
		var answered list[podMetrics]
		a.usedErr = a.Read(ctx, "/apis/metrics.k8s.io/v1beta1/namespaces/"+a.namespace+"/pods",
			url.Values{"labelSelector": {a.selector}}, &answered)
		a.used, a.asked = answered.Items, true
	}
	if a.usedErr != nil {
		return reading{err: a.usedErr}
	}
	result := reading{pods: map[string]autoscale.Sample{}}
	for i := range a.used {
		if value, found := a.used[i].use(name, container); found {
			result.pods[nameIn(a.cluster, a.used[i].Metadata.Name)] = autoscale.Sample{
				Value: value, At: a.used[i].Timestamp.Time, Window: max(a.used[i].Window.Duration, 0),
			}
		}
	}
	return result
}

// use is known if all containers tell it that are asked for.
func (p *podMetrics) use(name corev1.ResourceName, container string) (sum float64, known bool) {
	for _, c := range p.Containers {
		if container != "" && c.Name != container {
			continue
		}
		amount, found := c.Usage[name]
		if !found {
			return 0, false
		}
		sum, known = sum+autoscale.Milli(amount), true
	}
	return sum, known
}

// ofPods reads a metric that pods have themselves.
func (a *asking) ofPods(ctx context.Context, metric autoscalingv2.MetricIdentifier) reading {
	values, err := a.custom(ctx, "namespaces/"+a.namespace+"/pods/*", metric, url.Values{"labelSelector": {a.selector}})
	if err != nil {
		return reading{err: err}
	}
	result := reading{pods: map[string]autoscale.Sample{}}
	for _, v := range values {
		result.pods[nameIn(a.cluster, v.DescribedObject.Name)] = autoscale.Sample{
			Value: autoscale.Milli(v.Value), Window: time.Minute,
		}
	}
	return result
}

// ofObject reads a metric of one object of the namespace, or of the namespace itself, which has a path of its own.
// Others are not asked for, though the fleet could: who may scale in one namespace need not be allowed to see what
// happens in others.
func (a *asking) ofObject(ctx context.Context, object autoscalingv2.CrossVersionObjectReference,
	metric autoscalingv2.MetricIdentifier) reading {
	mapping, err := a.Mapping(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind))
	if err != nil {
		return reading{err: err}
	}
	if problems := path.IsValidPathSegmentName(object.Name); len(problems) > 0 || object.Name == "" {
		return reading{
			err: fmt.Errorf("the name of the described object %q %s", object.Name, strings.Join(problems, ", ")),
		}
	}
	where := mapping.Resource.GroupResource().String() + "/" + object.Name
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		where = "namespaces/" + a.namespace + "/" + where
	case mapping.Resource.GroupResource() == schema.GroupResource{Resource: "namespaces"} && object.Name == a.namespace:
		where += "/metrics"
	default:
		return reading{
			err: fmt.Errorf("the described object %s %s: must be in namespace %s, or be that namespace", object.Kind,
				object.Name, a.namespace),
		}
	}
	values, err := a.custom(ctx, where, metric, url.Values{})
	return summed(values, err)
}

// custom asks for the newer version of the API, and for the older one where that isn't served.
func (a *asking) custom(ctx context.Context, where string, metric autoscalingv2.MetricIdentifier,
	query url.Values) ([]metricValue, error) {
	if err := fits(metric, "metricLabelSelector", query); err != nil {
		return nil, err
	}
	var answered list[metricValue]
	err := a.Read(ctx, "/apis/custom.metrics.k8s.io/v1beta2/"+where+"/"+metric.Name, query, &answered)
	if notServed(err) {
		err = a.Read(ctx, "/apis/custom.metrics.k8s.io/v1beta1/"+where+"/"+metric.Name, query, &answered)
	}
	return answered.Items, err
}

// external reads a metric that belongs to no object.
func (a *asking) external(ctx context.Context, metric autoscalingv2.MetricIdentifier) reading {
	query := url.Values{}
	if err := fits(metric, "labelSelector", query); err != nil {
		return reading{err: err}
	}
	var answered list[metricValue]
	err := a.Read(ctx, "/apis/external.metrics.k8s.io/v1beta1/namespaces/"+a.namespace+"/"+metric.Name, query,
		&answered)
	return summed(answered.Items, err)
}

// summed is absent if there are no values.
func summed(values []metricValue, err error) reading {
	result := reading{err: err, absent: err == nil && len(values) == 0}
	for _, v := range values {
		result.total += autoscale.Milli(v.Value)
	}
	return result
}

// fits checks a name, which becomes a part of a path, and adds the selector to a query.
func fits(metric autoscalingv2.MetricIdentifier, parameter string, query url.Values) error {
	if problems := path.IsValidPathSegmentName(metric.Name); len(problems) > 0 || metric.Name == "" {
		return fmt.Errorf("the name of the metric %q %s", metric.Name, strings.Join(problems, ", "))
	}
	selector, err := selectorText(metric.Selector)
	if err == nil && selector != "" {
		query.Set(parameter, selector)
	}
	return err
}

// notServed tells a missing API from a missing object: the former is not an answer of the API's.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
