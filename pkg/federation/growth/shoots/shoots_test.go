package shoots

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

func TestDefaults(t *testing.T) {
	spec := &fleetv1alpha1.FleetGrowthSpec{}
	if CoolDown(spec) != 30*time.Second || Idle(spec) != 10*time.Minute || Limits(spec).Step != 10 ||
		Limits(spec).Cost != nil {
		t.Errorf("got %s, %s, %+v", CoolDown(spec), Idle(spec), Limits(spec))
	}
	spec.CoolDownSeconds, spec.GiveBack = new(int32(0)), &fleetv1alpha1.GrowthGiveBack{IdleSeconds: new(int32(60))}
	spec.Limits.CostPerHour = new(resource.MustParse("1.5"))
	if CoolDown(spec) != 0 || Idle(spec) != time.Minute || *Limits(spec).Cost != 1500 {
		t.Errorf("got %s, %s, %+v", CoolDown(spec), Idle(spec), Limits(spec))
	}
	if spec.GiveBack.Disabled = true; Idle(spec) >= 0 {
		t.Error("disabled means never")
	}
}

func TestMachines(t *testing.T) {
	object := &fleetv1alpha1.FleetGrowth{Spec: fleetv1alpha1.FleetGrowthSpec{Machines: []fleetv1alpha1.GrowthMachine{
		{
			Type: "a", Capacity: corev1.ResourceList{
				"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
			}, CostPerHour: resource.MustParse("0.25"),
		},
		{
			Type: "b", Capacity: corev1.ResourceList{
				"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("30"),
			},
		},
	}}}
	object.Status.Observed = []fleetv1alpha1.ObservedMachine{
		{Type: "a", Capacity: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("9Gi")}},
	}
	got := Machines(object)
	if a := got[0]; a.Cost != 250 || a.Capacity.CPU != 3000 || a.Capacity.Memory != 8<<30 || a.Capacity.Pods != 110 {
		t.Errorf("a: %+v", a)
	}
	if b := got[1]; b.Cost != 0 || b.Capacity.CPU != 4000 || b.Capacity.Pods != 30 {
		t.Errorf("b: %+v", b)
	}
	for text, want := range map[string]int64{"-1": 0, "0.0004": 1, "1e30": 1<<63 - 1} {
		if got := Cost(resource.MustParse(text)); got != want {
			t.Errorf("%s costs %d, want %d", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	spec := &fleetv1alpha1.FleetGrowthSpec{
		Machines: []fleetv1alpha1.GrowthMachine{{Type: "a", CostPerHour: resource.MustParse("-1")}},
	}
	if err := Check(spec); err == nil || !strings.Contains(err.Error(), "spec.machines[0].costPerHour") {
		t.Error(err)
	}
	spec.Machines[0].CostPerHour = resource.MustParse("1")
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, "example.com/gpu",
	} {
		spec.Machines[0].Capacity = corev1.ResourceList{name: resource.MustParse("-1")}
		if err := Check(spec); err == nil ||
			err.Error() != fmt.Sprintf("spec.machines[0].capacity[%s]: must not be negative", name) {
			t.Errorf("%s: %v", name, err)
		}
		spec.Machines[0].Capacity = corev1.ResourceList{name: resource.MustParse("0")}
		if err := Check(spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec.Machines, spec.Limits.CostPerHour = nil, new(resource.MustParse("-1"))
	if err := Check(spec); err == nil || !strings.Contains(err.Error(), "spec.limits.costPerHour") {
		t.Error(err)
	}
	spec.Limits.CostPerHour = nil
	if err := Check(spec); err != nil {
		t.Error(err)
	}
}

func TestPool(t *testing.T) {
	p := Pool(&gardencorev1beta1.Worker{
		Name: "w", Minimum: 1, Maximum: 3, Machine: gardencorev1beta1.Machine{Type: "small"}, Zones: []string{"a"},
		Labels: map[string]string{"disk": "fast"},
		Taints: []corev1.Taint{
			{Key: "x", Effect: corev1.TaintEffectNoSchedule}, {Key: "y", Effect: corev1.TaintEffectPreferNoSchedule},
		},
	})
	want := labels.Set{
		"worker.gardener.cloud/pool": "w", "node.kubernetes.io/instance-type": "small", "kubernetes.io/os": "linux",
		"kubernetes.io/arch":                      "amd64",
		"worker.gardener.cloud/system-components": "true", "topology.kubernetes.io/zone": "a", "disk": "fast",
	}
	if !labels.Equals(p.Node.Labels, want) || len(p.Node.Taints) != 1 || p.Minimum != 1 || p.Maximum != 3 ||
		p.MachineType != "small" {
		t.Errorf("got %+v", p)
	}
}

func TestCeiling(t *testing.T) {
	spec := &fleetv1alpha1.FleetGrowthSpec{Pools: []fleetv1alpha1.GrowthPools{
		{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}},
			Names:           []string{"burst"}, Maximum: 3,
		}, {
			Names: []string{"burst", "web"}, Maximum: 5,
		},
	}}
	for _, tc := range []struct {
		stage, pool string
		want        int64
	}{{"prod", "burst", 3}, {"test", "burst", 5}, {"prod", "web", 5}, {"prod", "db", 0}} {
		if got, err := Ceiling(spec, labels.Set{"stage": tc.stage}, tc.pool); err != nil || got != tc.want {
			t.Errorf("%+v: %d, %v", tc, got, err)
		}
	}
	spec.Pools[0].ClusterSelector = metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}},
	}
	if _, err := Ceiling(spec, nil, "x"); err == nil ||
		!strings.Contains(err.Error(), "spec.pools[0].clusterSelector") {
		t.Error(err)
	}
}

// FuzzRecords: what people write into the annotation is read or refused.
func FuzzRecords(f *testing.F) {
	f.Add(`{"w":{"fleet":"f","growth":"g","minimum":1,"maximum":3,"since":"2024-01-01T00:00:00Z"}}`)
	f.Add(`[`)
	f.Add(` `)
	f.Fuzz(func(t *testing.T, text string) {
		shoot := &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleetv1alpha1.GrownPoolsAnnotation: text}},
		}
		if records, err := Records(shoot); err != nil && records != nil {
			t.Errorf("%d records beside %v", len(records), err)
		}
	})
}

// FuzzTemplate: a template that is accepted has pools with sensible limits.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"region":"r","provider":{"type":"local","workers":[{"name":"w","machine":{"type":"small"},"minimum":1,"maximum":2}]}}`))
	f.Add([]byte(`{"provider":{"workers":[{"minimum":-1}]}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		object := &fleetv1alpha1.FleetGrowth{}
		object.Spec.Shoots = &fleetv1alpha1.GrowthShoots{
			NamePrefix: "x", Template: fleetv1alpha1.GrowthShootTemplate{Spec: runtime.RawExtension{Raw: raw}},
		}
		template, err := Template(object)
		if err != nil {
			return
		}
		if len(template.Pools) == 0 {
			t.Error("no pools")
		}
		for _, p := range template.Pools {
			if p.Minimum < 0 || p.Maximum < p.Minimum {
				t.Errorf("pool %+v", p)
			}
		}
	})
}
