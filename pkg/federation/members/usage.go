package members

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pods lists those with labels that a selector matches, as the member's API server has them in memory.
func (m *Member) Pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	list, err := m.core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Selector is that of the pods of an object, as its subresource scale tells it.
func (m *Member) Selector(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (string, error) {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	scale, err := m.Resource(mapping, namespace).Get(ctx, name, metav1.GetOptions{}, "scale")
	if err != nil {
		return "", err
	}
	selector, _, err := unstructured.NestedString(scale.Object, "status", "selector")
	return selector, err
}

// Read asks for a path of an API that has no client here, such as those of metrics, and decodes the JSON of the answer.
func (m *Member) Read(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	request := m.discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json")
	for name, values := range query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // Unlike that of Raw, it is the one that the API tells.
		return err
	}
	answer, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer to %s cannot be understood: %w", path, err)
	}
	return nil
}
