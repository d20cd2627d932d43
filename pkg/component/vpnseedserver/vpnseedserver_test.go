package vpnseedserver

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func values() Values {
	return Values{
		Image: "vpn:v1", Replicas: 1, NodeNetworks: []string{"10.180.0.0/24"}, PodNetworks: []string{"10.3.0.0/16"},
		ServiceNetworks: []string{"10.4.0.0/16"}, ClusterDNS: "10.4.0.10",
		PriorityClass: component.PriorityControlPlane300,
	}
}

// pathOf a control plane that outlasts the failure of a zone.
func pathOf(path Path) Values {
	v := values()
	v.Path = path
	v.Availability = component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone}
	return v
}

var files = []component.SecretFiles{
	{Secret: "vpn-seed-server-11111111", Files: map[string]string{"tls.crt": "tls/tls.crt"}},
}

func TestObjects(t *testing.T) {
	golden.Check[client.Object](t, "objects", service(namespace, First, "cHVibGlj"),
		deployment(namespace, values(), files))
	golden.Check[client.Object](t, "second", service(namespace, Second, "c2Vjb25k"),
		deployment(namespace, pathOf(Second), files), budget(namespace))
}

// cluster is a seed's API with the namespace, and a manager of its secrets.
func cluster(t *testing.T) (client.Client, secrets.Manager) {
	t.Helper()
	of := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	c := fake.NewClientBuilder().WithObjects(of).Build()
	manager, err := secrets.New(t.Context(), c, namespace, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager,
		[]string{component.CAVPN}); err != nil {
		t.Fatal(err)
	}
	return c, manager
}

// keyOf is the public key by which the gateway knows the server of a path.
func keyOf(t *testing.T, c client.Client, path Path) string {
	t.Helper()
	service := &corev1.Service{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: path.Named(Name)}, service); err != nil {
		t.Fatal(err)
	}
	return service.Annotations[vpnv1alpha1.AnnotationPublicKey]
}

// grants are the keys that the namespace was given.
func grants(t *testing.T, c client.Client) string {
	t.Helper()
	of := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, of); err != nil {
		t.Fatal(err)
	}
	return of.Annotations[vpnv1alpha1.AnnotationPublicKey]
}

func TestBothEndsKnowEachOther(t *testing.T) {
	for name, deployed := range map[string][]Values{
		"one path": {values()}, "two paths": {pathOf(First), pathOf(Second)},
		"two paths, the second first": {pathOf(Second), pathOf(First)}, "one becomes two": {values(), pathOf(Second)},
	} {
		c, manager := cluster(t)
		var keys []string
		for _, v := range deployed {
			if err := New(c, namespace, manager, v).Deploy(t.Context()); err != nil {
				t.Fatal(err)
			}
			private, seedPublic, err := ShootKeys(t.Context(), manager, v.Path)
			if err != nil {
				t.Fatal(err)
			}
			shoot, _ := manager.Get(shootKeys(v.Path).Name)
			if !bytes.Equal(private, shoot.Data[secrets.DataKeyWireGuardPrivateKey]) {
				t.Errorf("%s: the shoot's private key is not the one whose public key the seed has", name)
			}
			if got := keyOf(t, c, v.Path); got != string(seedPublic) {
				t.Errorf("%s: the gateway is told another public key than the shoot: %s", name, got)
			}
		}
		for _, path := range Paths(deployed[len(deployed)-1].Availability) {
			_, seedPublic, err := ShootKeys(t.Context(), manager, path)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, string(seedPublic))
		}
		if got := grants(t, c); got != strings.Join(keys, ",") {
			t.Errorf("%s: the namespace was given %q, want %q", name, got, keys)
		}
	}
}

// Who has the keys of one path, as root on the node of a vpn-shoot, cannot be an end of the other: no key is in two
// pods, and each server knows the one key of its peer.
func TestAttackEndOfTheOtherPath(t *testing.T) {
	c, manager := cluster(t)
	secretsOf := func(path Path) map[string]bool {
		if err := New(c, namespace, manager, pathOf(path)).Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: namespace, Name: path.Named(Name)}
		if err := c.Get(t.Context(), key, deployment); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, source := range deployment.Spec.Template.Spec.Volumes[0].Projected.Sources {
			names[source.Secret.Name] = true
		}
		return names
	}
	first, second := secretsOf(First), secretsOf(Second)
	bundle, err := component.CABundle(manager, component.CAVPN)
	if err != nil {
		t.Fatal(err)
	}
	for name := range first {
		if second[name] && name != bundle.Name {
			t.Errorf("Secret %s is mounted by the servers of both paths", name)
		}
	}
	private, seedPublic, err := ShootKeys(t.Context(), manager, First)
	if err != nil {
		t.Fatal(err)
	}
	otherPrivate, otherPublic, err := ShootKeys(t.Context(), manager, Second)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(private, otherPrivate) || bytes.Equal(seedPublic, otherPublic) {
		t.Error("both paths have one key")
	}
}

// Where a second path comes, the pod of the first stays, and so does its tunnel.
func TestTheFirstPathStaysWhenASecondComes(t *testing.T) {
	one, first := deployment(namespace, values(), files), deployment(namespace, pathOf(First), files)
	if !apiequality.Semantic.DeepEqual(one.Spec.Template, first.Spec.Template) ||
		!apiequality.Semantic.DeepEqual(one.Spec.Selector, first.Spec.Selector) {
		t.Errorf("the first path is replaced: %+v", first.Spec.Template)
	}
	if !apiequality.Semantic.DeepEqual(service(namespace, First, "a"), service(namespace, Path(0), "a")) {
		t.Error("its Service changes")
	}
}

// No Service leads to the other path's server, where its tunnel would end in another one's.
func TestServicesTellPathsApart(t *testing.T) {
	for _, path := range []Path{First, Second} {
		for _, other := range []Path{First, Second} {
			selector := labels.SelectorFromSet(service(namespace, path, "").Spec.Selector)
			pods := deployment(namespace, pathOf(other), files).Spec.Template.Labels
			if got := selector.Matches(labels.Set(pods)); got != (path == other) {
				t.Errorf("the Service of path %d leads to the pods of path %d: %v", path, other, got)
			}
		}
	}
}

// Drains take one server at a time, and the budget goes with them; one that is alone has none.
func TestDisruptionBudgetOfPaths(t *testing.T) {
	c, manager := cluster(t)
	budgets := func() []policyv1.PodDisruptionBudget {
		list := &policyv1.PodDisruptionBudgetList{}
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	deploy := func(v Values) component.Component {
		made := New(c, namespace, manager, v)
		if err := made.Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		return made
	}
	deploy(values())
	if got := budgets(); len(got) != 0 {
		t.Errorf("one path has budgets: %v", got)
	}
	first, second := deploy(pathOf(First)), deploy(pathOf(Second))
	got := budgets()
	if len(got) != 1 {
		t.Fatalf("two paths have budgets %v", got)
	}
	for _, path := range []Path{First, Second} {
		pods := deployment(namespace, pathOf(path), files).Spec.Template.Labels
		for label, value := range got[0].Spec.Selector.MatchLabels {
			if pods[label] != value {
				t.Errorf("the budget does not count path %d: %v", path, maps.Clone(pods))
			}
		}
	}
	for _, part := range []component.Component{second, first} {
		if err := part.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := budgets(); len(got) != 0 {
		t.Errorf("budgets of nothing: %v", got)
	}
}
