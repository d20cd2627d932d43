// Package shoots translates FleetGrowths and Shoots for the decisions of package growth.
package shoots

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/growth"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// Defaults of a FleetGrowth.
const (
	defaultPods     = 110
	defaultCoolDown = 30 * time.Second
	defaultIdle     = 10 * time.Minute
	defaultStep     = 10
)

// Machines are those that may be had. Where empty nodes were found to have less than the spec says, that counts.
func Machines(object *fleetv1alpha1.FleetGrowth) []growth.Machine {
	var result []growth.Machine
	for _, m := range object.Spec.Machines {
		capacity := karmada.Resources(m.Capacity)
		if capacity.Pods == 0 {
			capacity.Pods = defaultPods
		}
		for _, o := range object.Status.Observed {
			if o.Type == m.Type {
				capacity = atMost(capacity, karmada.Resources(o.Capacity))
			}
		}
		result = append(result, growth.Machine{Type: m.Type, Capacity: capacity, Cost: Cost(m.CostPerHour)})
	}
	return result
}

// Check finds what the definition cannot: an error names the field.
func Check(spec *fleetv1alpha1.FleetGrowthSpec) error {
	for i := range spec.Machines {
		m := &spec.Machines[i]
		for _, name := range slices.Sorted(maps.Keys(m.Capacity)) {
			if amount := m.Capacity[name]; amount.Sign() < 0 {
				return fmt.Errorf("spec.machines[%d].capacity[%s]: must not be negative", i, name)
			}
		}
		if m.CostPerHour.Sign() < 0 {
			return fmt.Errorf("spec.machines[%d].costPerHour: must not be negative", i)
		}
	}
	if limit := spec.Limits.CostPerHour; limit != nil && limit.Sign() < 0 {
		return errors.New("spec.limits.costPerHour: must not be negative")
	}
	return nil
}

// atMost lowers CPU and memory.
func atMost(capacity, found core.Resources) core.Resources {
	if found.CPU > 0 {
		capacity.CPU = min(capacity.CPU, found.CPU)
	}
	if found.Memory > 0 {
		capacity.Memory = min(capacity.Memory, found.Memory)
	}
	return capacity
}

// Cost in thousandths of the currency; more than can be counted becomes the most.
func Cost(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64
	}
	return max(0, q.MilliValue())
}

// Limits of a FleetGrowth.
func Limits(spec *fleetv1alpha1.FleetGrowthSpec) growth.Limits {
	limits := growth.Limits{
		Machines: int64(spec.Limits.Machines), Step: int64(ptr.Deref(spec.Limits.Step, defaultStep)),
	}
	if spec.Limits.CostPerHour != nil {
		limits.Cost = new(Cost(*spec.Limits.CostPerHour))
	}
	if spec.Shoots != nil {
		limits.Shoots = int(spec.Shoots.Maximum)
	}
	return limits
}

// CoolDown of a FleetGrowth.
func CoolDown(spec *fleetv1alpha1.FleetGrowthSpec) time.Duration {
	if spec.CoolDownSeconds == nil {
		return defaultCoolDown
	}
	return time.Duration(*spec.CoolDownSeconds) * time.Second
}

// Idle is how long what isn't needed is kept; less than zero: for ever.
func Idle(spec *fleetv1alpha1.FleetGrowthSpec) time.Duration {
	switch {
	case spec.GiveBack == nil || spec.GiveBack.IdleSeconds == nil && !spec.GiveBack.Disabled:
		return defaultIdle
	case spec.GiveBack.Disabled:
		return -1
	}
	return time.Duration(*spec.GiveBack.IdleSeconds) * time.Second
}

// Spec of the shoots of a template. An error names the field.
func Spec(shoots *fleetv1alpha1.GrowthShoots) (*gardencorev1beta1.ShootSpec, error) {
	spec := &gardencorev1beta1.ShootSpec{}
	const path = "spec.shoots.template.spec"
	if err := json.Unmarshal(shoots.Template.Spec.Raw, spec); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case len(spec.Provider.Workers) == 0:
		return nil, fmt.Errorf("%s.provider.workers: a shoot without workers offers no room", path)
	case spec.SeedName != nil:
		return nil, fmt.Errorf("%s.seedName: must not be given; the garden chooses the seed", path)
	case len(spec.Resources) > 0:
		return nil, fmt.Errorf("%s.resources: must not be given; a fleet gets no access to other objects of its "+
			"project", path)
	}
	for i, w := range spec.Provider.Workers {
		if w.Minimum < 0 || w.Maximum < w.Minimum {
			return nil, fmt.Errorf("%s.provider.workers[%d]: needs a maximum that is not less than its minimum", path,
				i)
		}
	}
	return spec, nil
}

// Template of new shoots; nil if there is none.
func Template(object *fleetv1alpha1.FleetGrowth) (*growth.Template, error) {
	if object.Spec.Shoots == nil {
		return nil, nil
	}
	spec, err := Spec(object.Spec.Shoots)
	if err != nil {
		return nil, err
	}
	template := &growth.Template{Prefix: object.Spec.Shoots.NamePrefix}
	for i := range spec.Provider.Workers {
		template.Pools = append(template.Pools, Pool(&spec.Provider.Workers[i]))
	}
	return template, nil
}

// Pool as the Shoot describes it.
func Pool(w *gardencorev1beta1.Worker) growth.Pool {
	set := labels.Set{
		gardencorev1beta1.LabelWorkerPool: w.Name,
		corev1.LabelInstanceTypeStable:    w.Machine.Type,
		corev1.LabelOSStable:              "linux",
		corev1.LabelArchStable:            ptr.Deref(w.Machine.Architecture, "amd64"),
	}
	if w.SystemComponents == nil || w.SystemComponents.Allow {
		set[gardencorev1beta1.LabelWorkerPoolSystemComponents] = "true"
	}
	if len(w.Zones) == 1 {
		set[corev1.LabelTopologyZone] = w.Zones[0]
	}
	for key, value := range w.Labels {
		set[key] = value
	}
	var taints []corev1.Taint
	for _, t := range w.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, t)
		}
	}
	return growth.Pool{
		Name: w.Name, MachineType: w.Machine.Type, Minimum: int64(w.Minimum), Maximum: int64(w.Maximum),
		Node: core.Node{Labels: set, Taints: taints},
	}
}

// Ceiling is the largest maximum that the pool of a member may get; 0: it may not be enlarged. Of several entries the
// first counts.
func Ceiling(spec *fleetv1alpha1.FleetGrowthSpec, member labels.Set, pool string) (int64, error) {
	for i := range spec.Pools {
		p := &spec.Pools[i]
		selector, err := metav1.LabelSelectorAsSelector(&p.ClusterSelector)
		if err != nil {
			return 0, fmt.Errorf("spec.pools[%d].clusterSelector: %w", i, err)
		}
		if selector.Matches(member) && (len(p.Names) == 0 || slices.Contains(p.Names, pool)) {
			return int64(p.Maximum), nil
		}
	}
	return 0, nil
}

// Records of what fleets did to the pools of a shoot. Text that cannot be read is an error: then nothing must be
// changed.
func Records(shoot *gardencorev1beta1.Shoot) (map[string]fleetv1alpha1.PoolRecord, error) {
	records := map[string]fleetv1alpha1.PoolRecord{}
	text := shoot.Annotations[fleetv1alpha1.GrownPoolsAnnotation]
	if strings.TrimSpace(text) == "" {
		return records, nil
	}
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", fleetv1alpha1.GrownPoolsAnnotation, err)
	}
	return records, nil
}
