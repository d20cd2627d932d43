package landscape

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/manifests"
)

// objectOf reads an object of files/system/coredns.yaml.
func objectOf[T any](t *testing.T, several bool, kind string) *T {
	t.Helper()
	values := testValues(t)
	values.Several = several
	text, err := render("system/coredns.yaml", values)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	raw, err := yaml.Marshal(objects[i])
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(raw, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// There are two servers of names, which share no node where there are several, and one of them is always left. Their
// Service leads to where they listen, and what runs on a node asks that, too.
func TestTwoServersOfNames(t *testing.T) {
	for several, want := range map[bool]corev1.UnsatisfiableConstraintAction{
		false: corev1.ScheduleAnyway, true: corev1.DoNotSchedule,
	} {
		dns := objectOf[appsv1.Deployment](t, several, "Deployment")
		pod := dns.Spec.Template.Spec
		if *dns.Spec.Replicas != 2 || dns.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
			t.Errorf("%d replicas, strategy %+v", *dns.Spec.Replicas, dns.Spec.Strategy)
		}
		if len(pod.TopologySpreadConstraints) != 1 || pod.TopologySpreadConstraints[0].WhenUnsatisfiable != want ||
			pod.TopologySpreadConstraints[0].TopologyKey != corev1.LabelHostname {
			t.Errorf("several nodes %v: spread %+v", several, pod.TopologySpreadConstraints)
		}
		if pod.HostNetwork || len(pod.NodeSelector) > 0 || len(pod.Tolerations) > 0 {
			t.Errorf("they are bound to a node, or stay on one that is lost: %+v", pod)
		}
		ports := pod.Containers[0].Ports
		for _, port := range objectOf[corev1.Service](t, several, "Service").Spec.Ports {
			if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool {
				return p.Name == port.TargetPort.String() && p.Protocol == port.Protocol
			}) {
				t.Errorf("port %+v leads to none of %+v", port, ports)
			}
		}
	}
	budget := objectOf[policyv1.PodDisruptionBudget](t, true, "PodDisruptionBudget")
	if budget.Spec.MaxUnavailable.IntValue() != 1 || budget.Spec.Selector.MatchLabels["k8s-app"] != "kube-dns" {
		t.Errorf("budget %+v", budget.Spec)
	}
	if text, err := render("node/resolv.conf", testValues(t)); err != nil || text != "nameserver "+dnsServiceIP+"\n" {
		t.Errorf("nodes ask %q, %v", text, err)
	}
}
