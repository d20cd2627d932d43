package networkpolicies

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/component"
)

const namespace = "shoot--demo--member1"

func policies(t *testing.T, c client.Client) map[string]networkingv1.NetworkPolicy {
	t.Helper()
	list := &networkingv1.NetworkPolicyList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]networkingv1.NetworkPolicy{}
	for _, policy := range list.Items {
		found[policy.Name] = policy
	}
	return found
}

// replace writes an object as it is applied by the only one who does.
func replace(ctx context.Context, c client.Client, object runtime.ApplyConfiguration) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := json.Unmarshal(raw, policy); err != nil {
		return err
	}
	if err := c.Create(ctx, policy); !apierrors.IsAlreadyExists(err) {
		return err
	}
	present := &networkingv1.NetworkPolicy{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(policy), present); err != nil {
		return err
	}
	policy.ResourceVersion = present.ResourceVersion
	return c.Update(ctx, policy)
}

// Policies of before go, those of others stay, and nothing is written twice.
func TestApply(t *testing.T) {
	other := func(name string, labels map[string]string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		}
	}
	ours := map[string]string{component.LabelGardenRole: component.GardenRoleControlPlane}
	writes := 0
	c := fake.NewClientBuilder().WithObjects(other("block-networks", ours), other("of-an-extension", ours),
		other("allow-to-etcd-main", nil)).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
				_ ...client.ApplyOption) error {
				writes++
				return replace(ctx, c, object)
			},
		}).Build()
	wanted := Objects(Shoot, namespace, values())
	for range 2 {
		if err := Apply(t.Context(), c, namespace, wanted); err != nil {
			t.Fatal(err)
		}
	}
	if writes != len(wanted) {
		t.Errorf("%d writes for %d policies", writes, len(wanted))
	}
	names := []string{"of-an-extension", "allow-to-etcd-main"}
	for _, object := range wanted {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	if found := slices.Sorted(maps.Keys(policies(t, c))); !slices.Equal(found, names) {
		t.Errorf("there are %v, not %v", found, names)
	}

	moved := []Endpoint{{Address: netip.MustParseAddr("172.18.0.9"), Port: 6443}}
	if err := Follow(t.Context(), c, moved); err != nil {
		t.Fatal(err)
	}
	after := values()
	after.APIServer = moved
	writes = 0
	if err := Apply(t.Context(), c, namespace, Objects(Shoot, namespace, after)); err != nil || writes > 0 {
		t.Errorf("after the API server has moved, %d policies were not as they are to be: %v", writes, err)
	}
}

// While the API server has no endpoints, nobody is cut off from where it was.
func TestApplyWithoutEndpoints(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
			_ ...client.ApplyOption) error {
			return replace(ctx, c, object)
		},
	}).Build()
	if err := Apply(t.Context(), c, namespace, Objects(Shoot, namespace, values())); err != nil {
		t.Fatal(err)
	}
	before := policies(t, c)["allow-to-runtime-apiserver"].Spec
	unknown := values()
	unknown.APIServer = nil
	if err := Apply(t.Context(), c, namespace, Objects(Shoot, namespace, unknown)); err != nil {
		t.Fatal(err)
	}
	if after := policies(t, c)["allow-to-runtime-apiserver"].Spec; len(after.Egress) == 0 ||
		len(after.Egress) != len(before.Egress) {
		t.Errorf("the way to the API server is %v, it was %v", after.Egress, before.Egress)
	}
	if err := Apply(t.Context(), c, namespace, nil); err != nil || len(policies(t, c)) > 0 {
		t.Errorf("at last there are %v, %v", policies(t, c), err)
	}
}

func TestAPIServer(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"172.18.0.2"}}},
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(6443))}},
	}
	service := &corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIPs: []string{"10.2.0.1"}, Ports: []corev1.ServicePort{{Port: 443}},
		},
	}
	found, err := APIServer(t.Context(), fake.NewClientBuilder().WithObjects(slice, service).Build())
	want := []Endpoint{{netip.MustParseAddr("10.2.0.1"), 443}, {netip.MustParseAddr("172.18.0.2"), 6443}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v", found, err)
	}
	if found, err := APIServer(t.Context(), fake.NewClientBuilder().WithObjects(service).Build()); err != nil ||
		found != nil {
		t.Errorf("without endpoints: %v, %v", found, err)
	}
}
