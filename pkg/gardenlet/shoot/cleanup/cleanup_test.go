package cleanup

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestNewPlan(t *testing.T) {
	byDefault, err := NewPlan(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Plan{
		Webhooks: Grace{Period: 5 * time.Minute}, ExtendedAPIs: Grace{Period: time.Hour},
		Resources: Grace{Period: 5 * time.Minute}, Namespaces: Grace{Period: 5 * time.Minute},
	}
	if byDefault != want {
		t.Errorf("got %+v", byDefault)
	}
	own, err := NewPlan(map[string]string{
		gardencorev1beta1.ShootSkipCleanup: "true", gardencorev1beta1.ShootCleanupWebhooksFinalizeGracePeriod: "0",
		gardencorev1beta1.ShootCleanupExtendedAPIsFinalizeGracePeriod:        "1",
		gardencorev1beta1.ShootCleanupKubernetesResourcesFinalizeGracePeriod: "2",
		gardencorev1beta1.ShootCleanupNamespacesFinalizeGracePeriod:          "3",
	})
	if err != nil || !own.SkipExtendedAPIs || own.Webhooks != (Grace{0, true}) ||
		own.ExtendedAPIs.Period != time.Second || own.Resources.Period != 2*time.Second ||
		own.Namespaces.Period != 3*time.Second {
		t.Errorf("got %+v, %v", own, err)
	}
	for _, wrong := range []string{"soon", "-1", "5m", "99999999999"} {
		if _, err := NewPlan(map[string]string{
			gardencorev1beta1.ShootCleanupNamespacesFinalizeGracePeriod: wrong,
		}); err == nil || !strings.Contains(err.Error(), gardencorev1beta1.ShootCleanupNamespacesFinalizeGracePeriod) {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
}

// named is the metadata of an object in the namespace default.
func named(name string, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name}
	for _, f := range change {
		f(&m)
	}
	return m
}

func labelled(key, value string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Labels = map[string]string{key: value} }
}

// deleted makes an object one that waits for a finalizer since some time.
func deleted(since time.Duration, finalizer string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.DeletionTimestamp, m.Finalizers = new(metav1.NewTime(now.Add(-since))), []string{finalizer}
	}
}

func controlled(m *metav1.ObjectMeta) {
	m.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "kube-proxy", UID: "u", Controller: new(true)},
	}
}

func cleaner(t *testing.T, objects ...client.Object) *Cleaner {
	t.Helper()
	plan, err := NewPlan(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Cleaner{
		Client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build(), Plan: plan,
		Now: func() time.Time { return now },
	}
}

func TestResources(t *testing.T) {
	const loadBalancer = "service.kubernetes.io/load-balancer-cleanup"
	explicit := func(p *Plan) { p.Resources.Explicit = true }
	for _, test := range []struct {
		name   string
		object client.Object
		plan   func(*Plan)
		// first is part of the error of the first pass; left tells whether the object is still there after it.
		first string
		left  bool
	}{
		{"a user's", &appsv1.Deployment{ObjectMeta: named("web")}, nil, "Deployment default/web", false},
		{"a pod without controller", &corev1.Pod{ObjectMeta: named("shell")}, nil, "Pod default/shell", false},
		{"a controlled pod", &corev1.Pod{ObjectMeta: named("proxy", controlled)}, nil, "", true},
		{
			"the system's", &appsv1.DaemonSet{
				ObjectMeta: named("proxy", labelled(gardencorev1beta1.ShootNoCleanup, "true")),
			}, nil, "", true,
		},
		{
			"an extension's", &appsv1.DaemonSet{
				ObjectMeta: named("flannel", labelled("resources.gardener.cloud/managed-by", "gardener")),
			}, nil, "", true,
		},
		{"the API server's", &corev1.Service{ObjectMeta: named("kubernetes")}, nil, "", true},
		{
			"waits", &corev1.PersistentVolumeClaim{
				ObjectMeta: named("data", deleted(time.Minute, "kubernetes.io/pvc-protection")),
			}, nil, "(finalizers kubernetes.io/pvc-protection)", true,
		},
		{
			"waits too long", &corev1.PersistentVolumeClaim{
				ObjectMeta: named("data", deleted(time.Hour, "example.com/x")),
			}, nil, "PersistentVolumeClaim default/data", false,
		},
		{
			"load balancer", &corev1.Service{ObjectMeta: named("lb", deleted(time.Hour, loadBalancer))}, nil,
			loadBalancer, true,
		},
		{
			"load balancer, given up", &corev1.Service{ObjectMeta: named("lb", deleted(time.Hour, loadBalancer))},
			explicit, loadBalancer, false,
		},
		{"volume to be deleted", volume(corev1.PersistentVolumeReclaimDelete, true), nil, "PersistentVolume pv", true},
		{"volume to be kept", volume(corev1.PersistentVolumeReclaimRetain, true), nil, "", true},
		{"volume that nobody claimed", volume(corev1.PersistentVolumeReclaimDelete, false), nil, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := cleaner(t, test.object)
			if test.plan != nil {
				test.plan(&c.Plan)
			}
			check(t, c.Resources(t.Context()), test.first)
			err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(test.object), test.object)
			if left := err == nil; left != test.left {
				t.Errorf("it is still there: %v (%v), want %v", left, err, test.left)
			}
		})
	}
}

func volume(policy corev1.PersistentVolumeReclaimPolicy, claimed bool) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
	}
	if claimed {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	}
	return v
}

// check compares an error with what it should contain; empty for none.
func check(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestWebhooks(t *testing.T) {
	ours := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ours", Labels: map[string]string{gardencorev1beta1.ShootNoCleanup: "true"},
		},
	}
	c := cleaner(t, ours, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"},
	})
	check(t, c.Webhooks(t.Context()), "ValidatingWebhookConfiguration theirs")
	check(t, c.Webhooks(t.Context()), "")
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(ours), ours); err != nil {
		t.Error(err)
	}
}

func TestExtendedAPIsAreSkippedOnDemand(t *testing.T) {
	c := &Cleaner{Plan: Plan{SkipExtendedAPIs: true}}
	check(t, c.ExtendedAPIs(t.Context()), "")
}

func TestNamespaces(t *testing.T) {
	c := cleaner(t)
	for _, name := range append(slices.Clone(systemNamespaces), "app") {
		if err := c.Client.Create(context.Background(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	check(t, c.Namespaces(t.Context()), "Namespace app")
	check(t, c.Namespaces(t.Context()), "")
	list := &corev1.NamespaceList{}
	if err := c.Client.List(t.Context(), list); err != nil || len(list.Items) != len(systemNamespaces) {
		t.Errorf("%d namespaces are left, %v", len(list.Items), err)
	}
}

func TestOnlySomeOfWhatIsLeftIsNamed(t *testing.T) {
	var r remainder
	for range 7 {
		r.add("Pod", &corev1.Pod{ObjectMeta: named("p")})
	}
	check(t, r.error(), "and 2 more")
}
