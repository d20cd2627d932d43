package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/autoscale"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/members"
)

// atOnce is how many members are asked at the same time for one object.
const atOnce = 32

// usage collects from members what the pods of an object use.
type usage struct {
	client    client.Reader
	connected func(cluster string) (member, bool)
	patience  time.Duration
}

func pooled(pool *members.Pool) func(string) (member, bool) {
	return func(cluster string) (member, bool) { return pool.Get(cluster) }
}

// question is about one object.
type question struct {
	namespace string
	target    autoscalingv2.CrossVersionObjectReference
	// selector of the pods; empty if only the members know it.
	selector string
	replicas int32
	metrics  []metric
}

// metric that is asked for by the field of that path; empty if by none.
type metric struct {
	path string
	autoscalingv2.MetricSpec
}

// collected is what all members answered together.
type collected struct {
	// copies is the number of members if each has all replicas, and else 1.
	copies  int32
	pods    []autoscale.Pod
	unseen  int32
	metrics []autoscale.Metric
	// silent tells why members did not answer, or not everything.
	silent []silence
}

// silence of a member, about all metrics or those that some fields ask for.
type silence struct {
	cluster, why string
	fields       []string
}

func (s silence) String() string {
	if len(s.fields) == 0 {
		return s.cluster + ": " + s.why
	}
	return s.cluster + ": " + strings.Join(s.fields, ", ") + ": " + s.why
}

// notes for people.
func (c *collected) notes() string {
	if len(c.silent) == 0 {
		return ""
	}
	var list []string
	for _, s := range c.silent {
		list = append(list, s.String())
	}
	return "Without an answer: " + strings.Join(list, "; ")
}

// of asks all members that have the object, at the same time.
func (u *usage) of(ctx context.Context, q question) (collected, error) {
	binding, err := bindings.Get(ctx, u.client,
		types.NamespacedName{Namespace: q.namespace, Name: bindings.Name(q.target.Name, q.target.Kind)})
	if err != nil {
		return collected{}, err
	}
	if binding == nil || len(bindings.Targets(binding.BindingSpec())) == 0 {
		return together(q, 1, nil, errors.New("the object is in no cluster yet")), nil
	}
	spec := binding.BindingSpec()
	targets := bindings.Targets(spec)
	copies := int32(1)
	if hasCopies(spec) {
		copies = int32(len(targets))
	}
	ctx, cancel := context.WithTimeout(ctx, u.patience)
	defer cancel()
	answers := make([]answer, len(targets))
	tokens := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, target := range targets {
		expected := target.Replicas
		if copies > 1 {
			expected = q.replicas
		}
		tokens <- struct{}{}
		group.Go(func() {
			answers[i] = u.from(ctx, target.Name, q)
			answers[i].expected = expected
			<-tokens
		})
	}
	group.Wait()
	return together(q, copies, answers, nil), nil
}

// hasCopies tells whether each member has all replicas of an object.
func hasCopies(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Placement == nil || spec.Placement.ReplicaScheduling == nil ||
		spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated
}

// answer of one member.
type answer struct {
	cluster  string
	expected int32
	pods     []autoscale.Pod
	// readings has one for each metric, unless err is there.
	readings []reading
	err      error
}

// errUntold is of pull members, and says what to do about it.
var errUntold = errors.New("a pull member, whose agent does not tell what pods use; have it join by push " +
	"(trellisctl join), keep the object from it, or let a HorizontalPodAutoscaler in it scale")

// from asks one member, if it can be asked.
func (u *usage) from(ctx context.Context, name string, q question) answer {
	var cluster clusterv1alpha1.Cluster
	if err := u.client.Get(ctx, types.NamespacedName{Name: name}, &cluster); err != nil {
		return answer{cluster: name, err: err}
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return answer{cluster: name, err: errUntold}
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
		return answer{cluster: name, err: errors.New("the cluster is not ready")}
	}
	m, found := u.connected(name)
	if !found {
		return answer{cluster: name, err: errors.New("the cluster is not connected")}
	}
	result := ask(ctx, m, name, q)
	result.cluster = name
	return result
}

// together adds up. A metric that nobody told is one that failed.
func together(q question, copies int32, answers []answer, none error) collected {
	result := collected{copies: copies}
	for _, a := range answers {
		if a.err != nil {
			result.unseen += a.expected
			result.hears(a.cluster, "", a.err)
			continue
		}
		result.pods = append(result.pods, a.pods...)
	}
	for i, asked := range q.metrics {
		m := autoscale.Metric{
			Path: asked.path, Spec: asked.MetricSpec, Reading: autoscale.Reading{Pods: map[string]autoscale.Sample{}},
		}
		told := result.add(&m, i, answers)
		if !told {
			m.Err = none
			if m.Err == nil {
				m.Err = errors.New("no cluster tells it")
			}
		}
		result.metrics = append(result.metrics, m)
	}
	return result
}

// add puts together what members told of one metric; false if none did.
func (c *collected) add(m *autoscale.Metric, index int, answers []answer) (told bool) {
	for _, a := range answers {
		if a.err != nil {
			m.Partial = true
			continue
		}
		r := a.readings[index]
		switch {
		case r.err != nil:
			m.Partial = true
			c.hears(a.cluster, m.Path, r.err)
			continue
		case r.absent:
			continue
		}
		told = true
		m.Total += r.total
		for name, sample := range r.pods {
			m.Pods[name] = sample
		}
	}
	return told
}

// hears why a member does not answer, or not what a field asks for. What keeps it from telling several metrics is said
// once.
func (c *collected) hears(cluster, field string, err error) {
	heard := silence{cluster: cluster, why: shortened(err.Error(), 200)}
	index := slices.IndexFunc(c.silent,
		func(s silence) bool { return s.cluster == heard.cluster && s.why == heard.why })
	if index < 0 {
		index = len(c.silent)
		c.silent = append(c.silent, heard)
	}
	if field != "" {
		c.silent[index].fields = append(c.silent[index].fields, field)
	}
}

// podOf keeps what computations need.
func podOf(cluster string, p *corev1.Pod) autoscale.Pod {
	result := autoscale.Pod{
		Name: nameIn(cluster, p.Name), Phase: p.Status.Phase, Deleting: p.DeletionTimestamp != nil,
		Requests: map[string]corev1.ResourceList{},
	}
	if p.Status.StartTime != nil {
		result.Started = p.Status.StartTime.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			result.Ready, result.Since = c.Status, c.LastTransitionTime.Time
		}
	}
	for i := range p.Spec.Containers {
		result.Requests[p.Spec.Containers[i].Name] = p.Spec.Containers[i].Resources.Requests
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil &&
			*c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			result.Requests[c.Name] = c.Resources.Requests
		}
	}
	if p.Spec.Resources != nil {
		result.Overall = p.Spec.Resources.Requests
	}
	return result
}

// nameIn the fleet of a pod in a member.
func nameIn(cluster, pod string) string { return fmt.Sprintf("%s/%s", cluster, pod) }

// selectorText of a metric; empty if all its series count.
func selectorText(selector *metav1.LabelSelector) (string, error) {
	if selector == nil {
		return "", nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("the metric's selector: %w", err)
	}
	return parsed.String(), nil
}
