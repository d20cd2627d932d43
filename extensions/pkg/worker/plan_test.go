package worker

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func specOfZone(_ extensionsv1alpha1.WorkerPool, zone string) (any, error) {
	return map[string]string{"zone": zone}, nil
}

func pool() extensionsv1alpha1.WorkerPool {
	return extensionsv1alpha1.WorkerPool{
		Name: "cpu", MachineType: "small", Minimum: 3, Maximum: 5, MaxSurge: intstr.FromInt32(1),
		MaxUnavailable: intstr.FromInt32(0),
		Zones:          []string{"a", "b"}, NodeAgentSecretName: new("agent-1"),
	}
}

func TestPlanSpreadsOverZones(t *testing.T) {
	deployments, err := plan("shoot--x--y", []extensionsv1alpha1.WorkerPool{pool()}, specOfZone)
	if err != nil || len(deployments) != 2 {
		t.Fatalf("%v, %v", deployments, err)
	}
	first, second := deployments[0], deployments[1]
	if first.Name != "shoot--x--y-cpu-z1" || second.Name != "shoot--x--y-cpu-z2" {
		t.Errorf("names %s, %s", first.Name, second.Name)
	}
	if first.Minimum != 2 || second.Minimum != 1 || first.Maximum != 3 || second.Maximum != 2 {
		t.Errorf("shares %d-%d, %d-%d", first.Minimum, first.Maximum, second.Minimum, second.Maximum)
	}
	if second.MaxSurge.IntValue() != 1 || second.MaxUnavailable.IntValue() != 0 {
		t.Errorf("a zone must always be able to replace machines: surge %s, unavailable %s", second.MaxSurge.String(),
			second.MaxUnavailable.String())
	}
	if !strings.HasPrefix(first.ClassName, first.Name+"-") || len(first.ClassName) != len(first.Name)+6 {
		t.Errorf("class %s", first.ClassName)
	}
}

func TestPlanReportsTheDelegatesError(t *testing.T) {
	_, err := plan("x", []extensionsv1alpha1.WorkerPool{pool()},
		func(extensionsv1alpha1.WorkerPool, string) (any, error) {
			return nil, errors.New("no such image")
		})
	if err == nil || !strings.Contains(err.Error(), "pool cpu") {
		t.Errorf("got %v", err)
	}
}

func TestClassChangesExactlyWithWhatNeedsNewMachines(t *testing.T) {
	className := func(change func(*extensionsv1alpha1.WorkerPool)) string {
		p := pool()
		change(&p)
		deployments, err := plan("x", []extensionsv1alpha1.WorkerPool{p}, specOfZone)
		if err != nil {
			t.Fatal(err)
		}
		return deployments[0].ClassName
	}
	before := className(func(*extensionsv1alpha1.WorkerPool) {})
	for name, test := range map[string]struct {
		change  func(*extensionsv1alpha1.WorkerPool)
		changes bool
	}{
		"size":       {func(p *extensionsv1alpha1.WorkerPool) { p.Minimum, p.Maximum = 4, 9 }, false},
		"labels":     {func(p *extensionsv1alpha1.WorkerPool) { p.Labels = map[string]string{"a": "b"} }, false},
		"node-agent": {func(p *extensionsv1alpha1.WorkerPool) { p.NodeAgentSecretName = new("agent-2") }, true},
		"provider":   {func(p *extensionsv1alpha1.WorkerPool) { p.Zones = []string{"c"} }, true},
	} {
		if changed := className(test.change) != before; changed != test.changes {
			t.Errorf("%s: class changed: %v, want %v", name, changed, test.changes)
		}
	}
}

func TestReplicas(t *testing.T) {
	deployment := Deployment{Minimum: 2, Maximum: 4}
	for name, test := range map[string]struct {
		current    *int32
		hibernated bool
		want       int32
	}{
		"new":        {nil, false, 2},
		"kept":       {new(int32(3)), false, 3},
		"too few":    {new(int32(1)), false, 2},
		"too many":   {new(int32(9)), false, 4},
		"hibernated": {new(int32(3)), true, 0},
		"woken up":   {new(int32(0)), false, 2},
	} {
		if got := deployment.replicas(test.current, test.hibernated); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestOptionsOfThePoolForTheAutoscaler(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	others := map[string]string{"node.machine.sapcloud.io/trigger-deletion-by-mcm": "a~2026-01-02T03:04:05Z"}
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(others)}}
	wanted := Deployment{Pool: pool()}
	wanted.Pool.ClusterAutoscaler = &extensionsv1alpha1.ClusterAutoscalerOptions{
		ScaleDownUtilizationThreshold: new("0.3"), ScaleDownGpuUtilizationThreshold: new("0.4"),
		ScaleDownUnneededTime: minute, ScaleDownUnreadyTime: minute,
		MaxNodeProvisionTime: minute,
	}
	wanted.applyDeployment(deployment, "r")
	want := maps.Clone(others)
	for key, value := range map[string]string{
		"scale-down-utilization-threshold": "0.3", "scale-down-gpu-utilization-threshold": "0.4",
		"scale-down-unneeded-time": "1m0s",
		"scale-down-unready-time":  "1m0s", "max-node-provision-time": "1m0s",
	} {
		want["autoscaler.gardener.cloud/"+key] = value
	}
	if !maps.Equal(deployment.Annotations, want) {
		t.Errorf("got %v, want %v", deployment.Annotations, want)
	}
	wanted.Pool.ClusterAutoscaler = nil
	if wanted.applyDeployment(deployment, "r"); !maps.Equal(deployment.Annotations, others) {
		t.Errorf("without options: got %v, want %v", deployment.Annotations, others)
	}
}

func TestReadiness(t *testing.T) {
	deployment := func(change func(*machinev1alpha1.MachineDeployment)) *machinev1alpha1.MachineDeployment {
		d := &machinev1alpha1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2},
			Status: machinev1alpha1.MachineDeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2,
			},
		}
		d.Spec.Replicas = 2
		d.Spec.Template.Spec.Class.Name = "class"
		change(d)
		return d
	}
	for name, test := range map[string]struct {
		change func(*machinev1alpha1.MachineDeployment)
		want   string
	}{
		"ready":  {func(*machinev1alpha1.MachineDeployment) {}, ""},
		"unseen": {func(d *machinev1alpha1.MachineDeployment) { d.Generation = 3 }, "not yet seen"},
		"rolling": {
			func(d *machinev1alpha1.MachineDeployment) { d.Status.UpdatedReplicas = 1 },
			"1 of 2 machines are of the wanted kind",
		},
		"surplus": {func(d *machinev1alpha1.MachineDeployment) { d.Status.Replicas = 3 }, "1 machines too many"},
		"unavailable": {
			func(d *machinev1alpha1.MachineDeployment) { d.Status.AvailableReplicas = 0 },
			"0 of 2 machines are available",
		},
	} {
		err := readiness(deployment(test.change), "class")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestNodeTemplateIsCompleteOrAbsent(t *testing.T) {
	deployment := Deployment{Pool: pool()}
	if deployment.nodeTemplate("r") != nil {
		t.Error("no template is known")
	}
	deployment.Pool.NodeTemplate = &extensionsv1alpha1.NodeTemplate{
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
	}
	if deployment.nodeTemplate("r") != nil {
		t.Error("the memory is not known")
	}
	deployment.Pool.NodeTemplate.Capacity[corev1.ResourceMemory] = resource.MustParse("8Gi")
	template := deployment.nodeTemplate("r")
	if template == nil || template.Zone != "r" || template.InstanceType != "small" {
		t.Fatalf("got %+v", template)
	}
	if _, ok := template.Capacity["gpu"]; !ok {
		t.Error("gpu is required by machine-controller-manager")
	}
}
