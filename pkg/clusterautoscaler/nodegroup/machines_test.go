package nodegroup

import (
	"reflect"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const namespace = "shoot--demo--member1"

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func deployment(replicas int32) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "pool-z1", Labels: map[string]string{labelPool: "pool"},
		Annotations: map[string]string{
			extensionsv1alpha1.ScaleDownUnneededTimeAnnotation:         "3m",
			extensionsv1alpha1.ScaleDownUtilizationThresholdAnnotation: "0.3",
			extensionsv1alpha1.MaxNodeProvisionTimeAnnotation:          "soon",
		},
	}}
	d.Spec.Replicas = replicas
	d.Spec.Template.Spec.Class.Name = "class"
	d.Spec.Template.Spec.NodeTemplateSpec = machinev1alpha1.NodeTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"disk": "ssd"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}},
	}
	return d
}

func machine(name, node string, change func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now),
		Labels: map[string]string{labelName: "pool-z1", machinev1alpha1.NodeLabelKey: node},
	}}
	if change != nil {
		change(m)
	}
	return m
}

func class() *machinev1alpha1.MachineClass {
	return &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "class"},
		NodeTemplate: &machinev1alpha1.NodeTemplate{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
				"gpu": resource.MustParse("1"),
			},
			InstanceType: "large", Region: "eu", Zone: "eu-a", Architecture: new("arm64"),
		},
	}
}

func groups(t *testing.T, objects ...client.Object) *Machines {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Machines{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Namespace: namespace,
		Now:    func() time.Time { return now },
		Limits: []Limits{{Name: "pool-z1", Minimum: 1, Maximum: 3}, {Name: "missing", Maximum: 1}},
		Defaults: Options{
			ScaleDownUtilizationThreshold: 0.5, ScaleDownUnneededTime: time.Hour,
			MaxNodeProvisionTime: 20 * time.Minute,
		},
	}
}

func list(t *testing.T, m *Machines) *Group {
	t.Helper()
	found, err := m.List(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v; want the one group that exists", found, err)
	}
	return found[0]
}

func TestList(t *testing.T) {
	group := list(t, groups(t, deployment(2), class(),
		machine("b", "node-b", nil),
		machine("a", "", func(m *machinev1alpha1.Machine) {
			m.Status.LastOperation = machinev1alpha1.LastOperation{
				Type: machinev1alpha1.MachineOperationCreate, State: machinev1alpha1.MachineStateFailed,
				Description: "no capacity",
			}
		}),
		machine("other", "", func(m *machinev1alpha1.Machine) { m.Labels[labelName] = "pool-z2" }),
		machine("gone", "", func(m *machinev1alpha1.Machine) {
			m.DeletionTimestamp, m.Finalizers = new(metav1.NewTime(now)), []string{"mcm"}
		}),
	))
	if group.Target != 2 || group.Pool != "pool" || group.Minimum != 1 || group.Maximum != 3 {
		t.Errorf("got %+v", group)
	}
	want := Options{
		ScaleDownUtilizationThreshold: 0.3, ScaleDownUnneededTime: 3 * time.Minute,
		MaxNodeProvisionTime: 20 * time.Minute,
	}
	if group.Options != want {
		t.Errorf("options: got %+v, want those of the annotations, and defaults for what they do not say: %+v",
			group.Options, want)
	}
	if group.Rolling {
		t.Error("no machine is being replaced")
	}
	replacing := deployment(2)
	replacing.Status.Replicas, replacing.Status.UpdatedReplicas = 3, 1
	if !list(t, groups(t, replacing, class())).Rolling {
		t.Error("two machines are to be replaced")
	}
	if len(group.Machines) != 2 || group.Machines[0].Problem != "no capacity" || group.MachineOf("node-b") == nil ||
		group.MachineOf("") != nil {
		t.Errorf("machines: got %+v", group.Machines)
	}
}

func TestTemplate(t *testing.T) {
	node := list(t, groups(t, deployment(0), class())).Template
	for key, want := range map[string]string{
		"disk": "ssd", corev1.LabelInstanceTypeStable: "large", corev1.LabelTopologyZone: "eu-a",
		corev1.LabelTopologyRegion: "eu", corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux",
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s: got %q, want %q", key, node.Labels[key], want)
		}
	}
	if len(node.Spec.Taints) != 1 {
		t.Errorf("taints: got %v", node.Spec.Taints)
	}
	got := map[corev1.ResourceName]string{}
	for name, quantity := range node.Status.Allocatable {
		got[name] = quantity.String()
	}
	want := map[corev1.ResourceName]string{
		corev1.ResourceCPU: "3920m", corev1.ResourceMemory: "7Gi", corev1.ResourcePods: "110", "nvidia.com/gpu": "1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("allocatable: got %v, want %v", got, want)
	}
	if list(t, groups(t, deployment(0),
		&machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "class"},
		})).Template != nil {
		t.Error("nothing is known")
	}
}

func TestIncrease(t *testing.T) {
	m := groups(t, deployment(1), class())
	if err := m.Increase(t.Context(), list(t, m), 2); err != nil {
		t.Fatal(err)
	}
	if got := list(t, m).Target; got != 3 {
		t.Errorf("got %d machines, want 3", got)
	}
	if err := m.Increase(t.Context(), list(t, m), 1); err == nil || !strings.Contains(err.Error(), "maximum of 3") {
		t.Errorf("got %v, want the maximum", err)
	}
}

func TestDelete(t *testing.T) {
	m := groups(t, deployment(3), class(), machine("a", "node-a", nil), machine("b", "node-b", nil),
		machine("c", "node-c", nil))
	before := list(t, m)
	for range 2 {
		// The second time nothing is left to do.
		if err := m.Delete(t.Context(), before, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Delete(t.Context(), before, "b"); err != nil {
		t.Fatal(err)
	}
	after := list(t, m)
	if after.Target != 1 || len(after.Machines) != 1 || after.Machines[0].Name != "c" {
		t.Errorf("got %+v, want the machine c only", after)
	}
	changed := &machinev1alpha1.MachineDeployment{}
	if err := m.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pool-z1"}, changed); err != nil {
		t.Fatal(err)
	}
	if got, want := changed.Annotations[machineutils.TriggerDeletionByMCM],
		"a~2026-01-02T03:04:05Z,b~2026-01-02T03:04:05Z"; got != want {
		t.Errorf("machine-controller-manager is told to delete %q, want %q", got, want)
	}
	if err := m.Delete(t.Context(), after, "c"); err == nil || !strings.Contains(err.Error(), "minimum of 1") {
		t.Errorf("got %v, want the minimum", err)
	}
}

func TestParseLimits(t *testing.T) {
	want := Limits{Name: "pool-z1", Minimum: 1, Maximum: 3}
	got, err := ParseLimits(want.String(namespace), namespace)
	if err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	for text, problem := range map[string]string{
		"1:2":                            "must be <minimum>",
		"x:2:" + namespace + ".pool":     "the minimum must be a number",
		"1:x:" + namespace + ".pool":     "the maximum must be a number",
		"3:2:" + namespace + ".pool":     "not below the minimum",
		"1:2:shoot--demo--member2.pool":  "must be in namespace " + namespace,
		"1:2:shoot--demo--member1-2.abc": "must be in namespace " + namespace,
	} {
		if _, err := ParseLimits(text, namespace); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: got %v, want %q", text, err, problem)
		}
	}
}
