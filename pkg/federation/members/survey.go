package members

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/capacity"
)

// Probe asks the member's API whether it is ready.
func (m *Member) Probe(ctx context.Context) error {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	return m.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

const (
	maxVersion = 256
	// maxAPIs bounds the bytes of what a member serves: they are stored with the rest of its Cluster.
	maxAPIs = 256 << 10
)

// Version of the member's API server.
func (m *Member) Version() (string, error) {
	version, err := m.discovery.ServerVersion()
	if err != nil {
		return "", err
	}
	if len(version.GitVersion) > maxVersion {
		return "", fmt.Errorf("the member's version has %d bytes, more than %d", len(version.GitVersion), maxVersion)
	}
	return version.GitVersion, nil
}

// APIs lists what the member serves. complete is false when some groups could not be asked, or there are too many to be
// stored.
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
				enablement.Resources = append(enablement.Resources,
					clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind})
			}
		}
		slices.SortFunc(enablement.Resources,
			func(a, b clusterv1alpha1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		apis = append(apis, enablement)
	}
	slices.SortFunc(apis, func(a, b clusterv1alpha1.APIEnablement) int {
		return cmp.Compare(a.GroupVersion, b.GroupVersion)
	})
	known := within(apis, maxAPIs)
	return apis[:known], partial == nil && known == len(apis), nil
}

// within tells how many of the first APIs take no more than that many bytes together, as they are stored: JSON has six
// bytes for some letters that no honest name has.
func within(apis []clusterv1alpha1.APIEnablement, most int) int {
	for i := range apis {
		text, err := json.Marshal(&apis[i])
		if most -= len(text) + 1; err != nil || most < 0 {
			return i
		}
	}
	return len(apis)
}

// Capacity tells what the member's nodes have free. With an error, the report is what was known before, or nil.
func (m *Member) Capacity() (*capacity.Report, error) { return m.follower.Report() }

// Violation tells about an answer of the member that was too large a short while ago, or "".
func (m *Member) Violation() string { return m.guard.Violation() }

// ID tells clusters apart: it is the UID of namespace kube-system.
func (m *Member) ID(ctx context.Context) (string, error) {
	ctx, cancel := RequestContext(ctx)
	defer cancel()
	namespace, err := m.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
