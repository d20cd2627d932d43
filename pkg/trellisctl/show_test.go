package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
)

const technicalID = "shoot--one"

// running is a Deployment, or with stored a StatefulSet, with a pod.
func running(name string, stored bool) []client.Object {
	pods := map[string]string{"app": "kubernetes", "role": name}
	meta := metav1.ObjectMeta{
		Namespace: technicalID, Name: name, CreationTimestamp: metav1.NewTime(today.Add(-2 * 60e9)),
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pods}}
	selector := &metav1.LabelSelector{MatchLabels: pods}
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy()}
	pod.Name, pod.Labels, pod.Spec.NodeName = name+"-0", pods, "node-1"
	pod.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: true, RestartCount: 1}, {RestartCount: 2}}
	if stored {
		set := &appsv1.StatefulSet{
			ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template},
		}
		return []client.Object{set, pod}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template},
	}
	deployment.Status.ReadyReplicas = 1
	return []client.Object{deployment, pod}
}

// inSeed is the place of a shoot's components, in a seed in memory.
func inSeed(functions interceptor.Funcs, objects ...client.Object) *place {
	s := with("Succeeded", func(s *gardencorev1beta1.Shoot) {
		s.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{
			{Name: "external", URL: "https://api.one.example"},
		}
	})
	return &place{
		cluster: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
			WithInterceptorFuncs(functions).Build(),
		of: "shoot garden-demo/one", in: "seed local", namespaces: []string{technicalID}, shoot: s,
	}
}

// Each component that gardenlet deploys is shown by the name that it has there.
func TestComponentsOfAControlPlane(t *testing.T) {
	var objects []client.Object
	for _, c := range components.ControlPlane {
		objects = append(objects, running(c.Name, c.Stage == components.Stores)...)
	}
	p := inSeed(interceptor.Funcs{}, objects...)
	for _, c := range components.ControlPlane {
		var out bytes.Buffer
		err := p.showComponent(t.Context(), &out, c.Name, today)
		got := strings.Join(lines(t, &out, err), "\n")
		if !strings.HasPrefix(got, "Component "+c.Name+" of shoot garden-demo/one: ") ||
			!strings.Contains(got+"\n", "\n"+c.Name+"-0 node-1 1/2 Running 3 2m\n") ||
			strings.Count(got, "node-1") != 1 {
			t.Errorf("%s: got\n%s", c.Name, got)
		}
	}
}

func TestAComponentAndItsAddresses(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: nameOfAPIServer}}
	service.Spec.Selector, service.Spec.Type = map[string]string{"role": nameOfAPIServer}, corev1.ServiceTypeClusterIP
	service.Spec.Ports = []corev1.ServicePort{{Port: 443}, {Port: 8132, Protocol: corev1.ProtocolUDP}}
	other, bare := service.DeepCopy(), service.DeepCopy()
	other.Name, other.Spec.Selector = "other", map[string]string{"role": "x"}
	bare.Name, bare.Spec.Selector = "bare", nil
	public := service.DeepCopy()
	public.Name, public.Spec.Type = "public", corev1.ServiceTypeLoadBalancer
	public.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example"}}
	p := inSeed(interceptor.Funcs{}, append(running(nameOfAPIServer, false), service, other, bare, public)...)
	var out bytes.Buffer
	err := p.showComponent(t.Context(), &out, nameOfAPIServer, today)
	check(t, "kube-apiserver", lines(t, &out, err), []string{
		"Component kube-apiserver of shoot garden-demo/one: Deployment in namespace shoot--one of seed local, 1/1 " +
			"ready",
		"URL: https://api.one.example (external)", "", "POD NODE READY STATUS RESTARTS AGE",
		"kube-apiserver-0 node-1 1/2 Running 3 2m", "", "SERVICE TYPE ADDRESS PORTS",
		"kube-apiserver ClusterIP kube-apiserver.shoot--one.svc 443/TCP,8132/UDP",
		"public LoadBalancer 192.0.2.1,lb.example 443/TCP,8132/UDP",
	})
}

// Who mistypes a component is told which there are, and who sees none why there is none.
func TestComponentsThatAreNotThere(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList,
		...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("a viewer"))
	}}
	asleep := inSeed(interceptor.Funcs{}, func() []client.Object {
		objects := running("kube-scheduler", false)[:1]
		objects[0].(*appsv1.Deployment).Spec.Replicas = new(int32(0))
		return objects
	}()...)
	asleep.shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	asleep.shoot.Status.IsHibernated = true
	both := append(running("kube-scheduler", false), running("etcd-main", true)...)
	garden := inSeed(interceptor.Funcs{})
	garden.of, garden.shoot = "garden local", nil
	for name, test := range map[string]struct {
		place     *place
		component string
		want      string
	}{
		"a mistyped one": {
			inSeed(interceptor.Funcs{}, both...), "etcd",
			`shoot garden-demo/one has no component "etcd"; it has etcd-main, kube-scheduler`,
		},
		"none at all": {
			inSeed(interceptor.Funcs{}), "etcd-main", "has no components in seed local (namespace shoot--one)",
		},
		"an API of others": {
			garden, "etcd-main", "where the garden runs in the cluster of a seed, name that: --seed NAME",
		},
		"without rights":         {inSeed(forbidden, both...), "etcd-main", "only operators of that cluster may: "},
		"of a shoot that sleeps": {asleep, "kube-scheduler", "No pods: the shoot is hibernated"},
	} {
		var out bytes.Buffer
		err := test.place.showComponent(t.Context(), &out, test.component, today)
		if err == nil {
			err = errors.New(out.String())
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Of a seed, the components of several namespaces are listed, and each of a name is shown.
func TestComponentsOfASeed(t *testing.T) {
	objects := running("gardenlet", false)
	again := running("gardenlet", false)
	for _, object := range again {
		object.SetNamespace("extension-x")
	}
	p := inSeed(interceptor.Funcs{}, append(objects, again...)...)
	p.of, p.shoot, p.namespaces = "seed local", nil, []string{technicalID, "extension-x"}
	var list bytes.Buffer
	err := p.show(t.Context(), &list, today)
	check(t, "components", lines(t, &list, err), []string{
		"COMPONENT NAMESPACE KIND READY AGE", "gardenlet extension-x Deployment 1/1 2m",
		"gardenlet shoot--one Deployment 1/1 2m",
	})
	var out bytes.Buffer
	if err := p.showComponent(t.Context(), &out, "gardenlet", today); err != nil ||
		strings.Count(out.String(), "Component gardenlet of seed local") != 2 {
		t.Errorf("got %v\n%s", err, &out)
	}
	workloads, err := p.workloads(t.Context())
	if got := namesOfWorkloads(workloads); err != nil || !slices.Equal(got, []string{"gardenlet"}) {
		t.Errorf("completed %v, %v", got, err)
	}
}

// Who may not look into a seed is told who may, and how to see how the shoot is all the same.
func TestSeedsAreForOperators(t *testing.T) {
	forbidden := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, options ...client.GetOption) error {
		if _, ok := object.(*corev1.Secret); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("a member"))
		}
		return c.Get(ctx, key, object, options...)
	}}
	s := session(t, Target{Project: "demo", Shoot: "one"}, forbidden, shoot("garden-demo", "one", "local"))
	_, err := s.whereComponentsRun(t.Context())
	for _, want := range []string{
		"the control plane of shoot garden-demo/one is in a seed", "which operators may read and you may not",
		"gardener.cloud:system:administrators", "trellisctl describe shoot one --project demo",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err = session(t, Target{Seed: "lcoal"}, interceptor.Funcs{}).whereComponentsRun(t.Context())
	if err == nil || !strings.Contains(err.Error(), "there is none; `trellisctl ls seeds` shows") {
		t.Errorf("got %v", err)
	}
}

// TestAttackTextsOfASeed: what runs in a seed was named by extensions, and by people's own settings.
func TestAttackTextsOfASeed(t *testing.T) {
	objects := running("evil", false)
	pod := objects[1].(*corev1.Pod)
	pod.Spec.NodeName, pod.Status.ContainerStatuses[0].State.Waiting = hostile,
		&corev1.ContainerStateWaiting{Reason: hostile}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "evil"}}
	service.Spec.Selector = map[string]string{"role": "evil"}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: hostile}}
	p := inSeed(interceptor.Funcs{}, append(objects, service)...)
	p.in, p.shoot.Status.AdvertisedAddresses[0].URL = hostile, hostile
	var out bytes.Buffer
	if err := p.showComponent(t.Context(), Visible(&out), "evil", today); err != nil {
		t.Fatal(err)
	}
	expectHarmless(t, "a component", out.String())
}
