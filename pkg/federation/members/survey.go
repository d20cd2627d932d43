package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Probe asks the member's API whether it is ready.
func (m *Member) Probe(ctx context.Context) error {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	return m.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// Version of the member's API server.
func (m *Member) Version() (string, error) {
	version, err := m.discovery.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// APIs lists what the member serves. complete is false when some groups could not be asked.
func (m *Member) APIs() (apis []clusterv1alpha1.APIEnablement, complete bool, err error) {
	_, lists, err := m.discovery.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, false, err
	}
	for _, list := range lists {
		enablement := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				enablement.Resources = append(enablement.Resources, clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind})
			}
		}
		slices.SortFunc(enablement.Resources, func(a, b clusterv1alpha1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		apis = append(apis, enablement)
	}
	slices.SortFunc(apis, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	return apis, partial == nil, nil
}

// Resources counts the nodes and adds up what they offer and what pods take.
func (m *Member) Resources(ctx context.Context) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary, error) {
	var nodes []corev1.Node
	var pods []corev1.Pod
	if err := m.list(ctx, "nodes", "", func(item *unstructured.Unstructured) error { return appendTo(&nodes, item) }); err != nil {
		return nil, nil, err
	}
	const unfinished = "status.phase!=Succeeded,status.phase!=Failed"
	if err := m.list(ctx, "pods", unfinished, func(item *unstructured.Unstructured) error { return appendTo(&pods, item) }); err != nil {
		return nil, nil, err
	}
	return nodeSummary(nodes), resourceSummary(nodes, pods), nil
}

// list reads from the member's watch cache: what is a moment old is good enough.
func (m *Member) list(ctx context.Context, resource, fields string, each func(*unstructured.Unstructured) error) error {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	list, err := m.dynamic.Resource(corev1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: fields})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource, err)
	}
	for i := range list.Items {
		if err := each(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func appendTo[T any](list *[]T, item *unstructured.Unstructured) error {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &typed); err != nil {
		return err
	}
	*list = append(*list, typed)
	return nil
}

func nodeSummary(nodes []corev1.Node) *clusterv1alpha1.NodeSummary {
	summary := &clusterv1alpha1.NodeSummary{TotalNum: int32(len(nodes))}
	for i := range nodes {
		if isReady(&nodes[i]) {
			summary.ReadyNum++
		}
	}
	return summary
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// resourceSummary counts the nodes that pods can be scheduled to.
func resourceSummary(nodes []corev1.Node, pods []corev1.Pod) *clusterv1alpha1.ResourceSummary {
	summary := &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{}, Allocated: corev1.ResourceList{}, Allocating: corev1.ResourceList{},
	}
	usable := map[string]bool{}
	for i := range nodes {
		if !nodes[i].Spec.Unschedulable && isReady(&nodes[i]) {
			usable[nodes[i].Name] = true
			core.AddResources(summary.Allocatable, nodes[i].Status.Allocatable)
		}
	}
	for i := range pods {
		switch spec := &pods[i].Spec; {
		case spec.NodeName == "":
			core.AddResources(summary.Allocating, requests(spec))
		case usable[spec.NodeName]:
			core.AddResources(summary.Allocated, requests(spec))
		}
	}
	return summary
}

// requests of a pod, which takes one of the places for pods too.
func requests(pod *corev1.PodSpec) corev1.ResourceList {
	list := core.PodRequest(pod)
	list[corev1.ResourcePods] = core.OnePod
	return list
}
