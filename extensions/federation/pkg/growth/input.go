package growth

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/growth"
	"github.com/trellis-garden/trellis/pkg/federation/growth/shoots"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// isGrown tells whether a shoot was created for a FleetGrowth of this fleet.
func (w *world) isGrown(shoot *gardencorev1beta1.Shoot, name string) bool {
	return shoot.Labels[fleetv1alpha1.GrownByLabel] == w.key.Name && shoot.Labels[fleetv1alpha1.GrownForLabel] == name
}

// has tells whether anything is there that was had for a FleetGrowth.
func (w *world) has(name string) bool {
	return slices.ContainsFunc(w.shoots, func(shoot gardencorev1beta1.Shoot) bool {
		records, err := shoots.Records(&shoot)
		if err != nil || w.isGrown(&shoot, name) {
			return w.isGrown(&shoot, name)
		}
		for _, record := range records {
			if record.Fleet == w.key.Name && record.Growth == name {
				return true
			}
		}
		return false
	})
}

// input of the decision. An error tells what is wrong with the FleetGrowth.
func (w *world) input(object *fleetv1alpha1.FleetGrowth) (growth.Input, error) {
	if err := shoots.Check(&object.Spec); err != nil {
		return growth.Input{}, err
	}
	template, err := shoots.Template(object)
	if err != nil {
		return growth.Input{}, err
	}
	if object.Spec.Shoots != nil && object.Spec.Shoots.Template.Labels[fleetv1alpha1.JoinLabel] == "false" {
		return growth.Input{}, fmt.Errorf("spec.shoots.template.labels[%s]: such shoots never join the fleet",
			fleetv1alpha1.JoinLabel)
	}
	if !w.create {
		template = nil
	}
	in := growth.Input{
		Now: w.now, Machines: shoots.Machines(object), Limits: shoots.Limits(&object.Spec),
		CoolDown: shoots.CoolDown(&object.Spec),
		Idle:     shoots.Idle(&object.Spec), Ending: object.DeletionTimestamp != nil, Template: template,
		Items: items(object.Status.Demand),
	}
	for name := range w.clusters {
		in.Taken = append(in.Taken, name)
	}
	for i := range w.shoots {
		in.Taken = append(in.Taken, w.shoots[i].Name)
		if len(w.shoots[i].Spec.Provider.Workers) == 0 {
			continue
		}
		member, err := w.member(object, &w.shoots[i])
		if err != nil {
			return growth.Input{}, err
		}
		in.Members = append(in.Members, member)
	}
	w.others(&in)
	return in, nil
}

// others are members that aren't shoots: what is free there counts.
func (w *world) others(in *growth.Input) {
	for name, c := range w.clusters {
		if !slices.ContainsFunc(in.Members, func(m growth.Member) bool { return m.Name == name }) {
			in.Members = append(in.Members,
				growth.Member{Name: name, Joined: true, Room: karmada.Room(c.Status.ResourceSummary)})
		}
	}
}

func items(demand *fleetv1alpha1.GrowthDemand) []growth.Item {
	var result []growth.Item
	for i := range demand.Items {
		d := &demand.Items[i]
		result = append(result, growth.Item{
			Name: d.Binding, Replicas: int64(d.Replicas), Request: karmada.Resources(d.Request),
			Nodes:      karmada.NodeClaim(d.NodeClaim),
			Components: components(d.Components), Clusters: d.Clusters, MaxClusters: int(d.MaxClusters),
			NewShoot: d.NewShoot, Useless: d.Useless,
		})
	}
	return result
}

func components(waiting []fleetv1alpha1.GrowthDemandComponent) []core.Component {
	var result []core.Component
	for _, c := range waiting {
		result = append(result, core.Component{
			Name: c.Name, Replicas: c.Replicas, Request: karmada.Resources(c.Request),
			Nodes: karmada.NodeClaim(c.NodeClaim),
		})
	}
	return result
}

// member is a shoot as the decision sees it.
func (w *world) member(object *fleetv1alpha1.FleetGrowth, shoot *gardencorev1beta1.Shoot) (growth.Member, error) {
	m := growth.Member{
		Name: shoot.Name, Created: shoot.CreationTimestamp.Time, Deleting: shoot.DeletionTimestamp != nil,
		Grown: w.isGrown(shoot, object.Name),
		Used:  slices.Contains(object.Status.Demand.Used, shoot.Name),
	}
	c := w.clusters[shoot.Name]
	if c != nil && c.Labels[clusterv1alpha1.ShootLabel] == shoot.Name {
		m.Joined, m.Room = true, karmada.Room(c.Status.ResourceSummary)
		m.LeavingSince = leavingSince(c)
	} else {
		c = nil
	}
	for _, unused := range object.Status.Unused {
		if unused.Name == shoot.Name {
			m.UnusedSince = unused.Since.Time
		}
	}
	records, err := shoots.Records(shoot)
	for i := range shoot.Spec.Provider.Workers {
		p, failure := w.pool(object, shoot, c, &shoot.Spec.Provider.Workers[i], records)
		if failure != nil {
			return m, failure
		}
		if err != nil {
			p.Blocked, p.Record = "has records that cannot be read: "+err.Error(), nil
		}
		m.Pools = append(m.Pools, p)
	}
	return m, nil
}

// pool is a worker pool as the decision sees it.
func (w *world) pool(object *fleetv1alpha1.FleetGrowth, shoot *gardencorev1beta1.Shoot, c *clusterv1alpha1.Cluster,
	worker *gardencorev1beta1.Worker, records map[string]fleetv1alpha1.PoolRecord) (growth.Pool, error) {
	p := shoots.Pool(worker)
	p.Blocked = blocked(shoot)
	if record, found := records[worker.Name]; found {
		if record.Fleet == w.key.Name && record.Growth == object.Name {
			p.Record = recordOf(record)
		} else {
			p.Blocked = fmt.Sprintf("was enlarged for FleetGrowth %s of fleet %s", record.Growth, record.Fleet)
		}
	}
	if c == nil {
		return p, nil
	}
	var told bool
	p.Nodes, p.Trusted, told = nodesOf(c, worker.Name)
	if !told && p.Blocked == "" {
		p.Blocked = "is of a member whose nodes cannot be told apart by pool (status.resourceSummary.nodeClasses)"
	}
	var err error
	p.Ceiling, err = shoots.Ceiling(&object.Spec, c.Labels, worker.Name)
	return p, err
}

func recordOf(r fleetv1alpha1.PoolRecord) *growth.Record {
	return &growth.Record{
		Minimum: int64(r.Minimum), Maximum: int64(r.Maximum), Nodes: int64(r.Nodes),
		SetMinimum: int64(r.SetMinimum), SetMaximum: int64(r.SetMaximum), Since: r.Since.Time,
	}
}

// blocked says why no pool of a shoot is enlarged.
func blocked(shoot *gardencorev1beta1.Shoot) string {
	switch {
	case shoot.DeletionTimestamp != nil:
		return "is of a shoot that is being deleted"
	case shoot.Status.IsHibernated, shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false):
		return "is of a shoot that sleeps"
	}
	return ""
}

// nodesOf counts the nodes of a pool. all: none of the cluster is left out. told: nodes can be told apart by pool.
func nodesOf(c *clusterv1alpha1.Cluster, pool string) (count int64, all, told bool) {
	summary := c.Status.ResourceSummary
	if summary == nil || c.Status.NodeSummary == nil {
		return 0, false, false
	}
	sum, told := int64(0), true
	for _, class := range summary.NodeClasses {
		sum += int64(class.Count)
		name, found := class.Labels[gardencorev1beta1.LabelWorkerPool]
		told = told && found
		if name == pool {
			count += int64(class.Count)
		}
	}
	return count, told && sum == int64(c.Status.NodeSummary.TotalNum),
		told && (sum > 0 || c.Status.NodeSummary.ReadyNum == 0)
}

func leavingSince(c *clusterv1alpha1.Cluster) time.Time {
	for _, t := range c.Spec.Taints {
		if t.Key == fleetv1alpha1.TaintLeaving && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// observe learns what empty nodes have, where that is less than the FleetGrowth says: else machines would be added
// again and again for what does not fit on them. An empty node has three quarters at least of what it should, and
// hardly any pods.
func (w *world) observe(object *fleetv1alpha1.FleetGrowth) {
	if object.Status.ObservedGeneration != object.Generation {
		object.Status.Observed = nil
	}
	for i := range object.Spec.Machines {
		m := &object.Spec.Machines[i]
		declared := karmada.Resources(m.Capacity)
		best := corev1.ResourceList{}
		for j := range w.shoots {
			for k := range w.shoots[j].Spec.Provider.Workers {
				if worker := &w.shoots[j].Spec.Provider.Workers[k]; worker.Machine.Type == m.Type {
					emptiest(best, w.clusters[w.shoots[j].Name], worker.Name, declared.CPU, declared.Memory)
				}
			}
		}
		remember(object, m, best)
	}
}

// daemonPods is how many pods an empty node has at most.
const daemonPods = 10

func emptiest(best corev1.ResourceList, c *clusterv1alpha1.Cluster, pool string, cpu, memory int64) {
	if c == nil || c.Status.ResourceSummary == nil {
		return
	}
	for _, class := range c.Status.ResourceSummary.NodeClasses {
		free := karmada.Resources(class.Free)
		if class.Labels[gardencorev1beta1.LabelWorkerPool] != pool || free.CPU < cpu/4*3 || free.Memory < memory/4*3 ||
			free.Pods < 110-daemonPods {
			continue
		}
		if current := best[corev1.ResourceCPU]; free.CPU > current.MilliValue() {
			best[corev1.ResourceCPU], best[corev1.ResourceMemory] = class.Free[corev1.ResourceCPU],
				class.Free[corev1.ResourceMemory]
		}
	}
}

// remember the most that was seen on an empty node.
func remember(object *fleetv1alpha1.FleetGrowth, m *fleetv1alpha1.GrowthMachine, best corev1.ResourceList) {
	if len(best) == 0 {
		return
	}
	list := &object.Status.Observed
	at := slices.IndexFunc(*list, func(o fleetv1alpha1.ObservedMachine) bool { return o.Type == m.Type })
	if at >= 0 {
		if before := (*list)[at].Capacity; before.Cpu().Cmp(*best.Cpu()) >= 0 {
			return
		}
		*list = slices.Delete(*list, at, at+1)
	}
	if best.Cpu().Cmp(*m.Capacity.Cpu()) < 0 || best.Memory().Cmp(*m.Capacity.Memory()) < 0 {
		*list = append(*list, fleetv1alpha1.ObservedMachine{Type: m.Type, Capacity: best})
	}
}
