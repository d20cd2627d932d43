package clusterautoscaler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

// Growth is the decision to ask for more machines.
type Growth struct {
	Group *nodegroup.Group
	Delta int
}

// ScaleUp is what is decided about pending pods.
type ScaleUp struct {
	// Growths of one group, or of several zones of one pool; none if no machine would help.
	Growths []Growth
	// Helped are the pods that the new nodes are for.
	Helped []*corev1.Pod
	// Unhelped are pods that no group helps, with the reasons by group.
	Unhelped map[*corev1.Pod]map[string]string
}

// option is one way to help: so many nodes of a group, for these pods.
type option struct {
	group *nodegroup.Group
	count int
	pods  []*corev1.Pod
	// waste is the share of CPU and memory of the new nodes that nobody requests.
	waste float64
	// refused are the reasons why the other pods do not fit.
	refused map[*corev1.Pod]string
}

// remaining places pending pods on nodes that are there or on their way, and returns those without room.
func remaining(cluster *scheduling.Cluster, pending []*corev1.Pod) []*corev1.Pod {
	var left []*corev1.Pod
	for _, pod := range pending {
		if _, placed := cluster.PlaceOnAny(pod, cluster.Names()); !placed {
			left = append(left, pod)
		}
	}
	return left
}

// planScaleUp decides which group grows for the pods. paused says why a group must not grow now; the empty string is
// leave.
func (s *Snapshot) planScaleUp(options *Options, world *scheduling.Cluster, pods []*corev1.Pod,
	paused func(group string) string, choose chooser, clock func() time.Time) ScaleUp {
	plan := ScaleUp{Unhelped: map[*corev1.Pod]map[string]string{}}
	deadline := clock().Add(options.MaxBinpackingTime)
	var found []option
	for _, group := range s.Groups {
		if why := s.closed(options, group, paused); why != "" {
			plan.refuse(group.Name, pods, why)
			continue
		}
		candidate := s.estimate(options, world, group, pods, func() bool { return clock().After(deadline) })
		for pod, why := range candidate.refused {
			plan.refuse(group.Name, []*corev1.Pod{pod}, why)
		}
		if candidate.count > 0 {
			found = append(found, candidate)
		}
	}
	for _, candidate := range found {
		for _, pod := range candidate.pods {
			delete(plan.Unhelped, pod)
		}
	}
	if len(found) > 0 {
		best := choose(found, s.Priorities)
		plan.Helped, plan.Growths = best.pods, balance(best, found)
	}
	return plan
}

func (p *ScaleUp) refuse(group string, pods []*corev1.Pod, why string) {
	for _, pod := range pods {
		if p.Unhelped[pod] == nil {
			p.Unhelped[pod] = map[string]string{}
		}
		p.Unhelped[pod][group] = why
	}
}

// closed says why a group cannot grow, whatever for.
func (s *Snapshot) closed(options *Options, group *nodegroup.Group, paused func(string) string) string {
	switch {
	case group.Target >= group.Maximum:
		return fmt.Sprintf("it has its maximum of %d", group.Maximum)
	case paused(group.Name) != "":
		return paused(group.Name)
	case s.template(options, group) == nil:
		return "its machine class does not say what a node has"
	}
	return ""
}

// estimate fits the pods into new nodes of a group, as few as they need and the group may have.
func (s *Snapshot) estimate(options *Options, world *scheduling.Cluster, group *nodegroup.Group, pods []*corev1.Pod,
	late func() bool) option {
	result := option{group: group, refused: map[*corev1.Pod]string{}}
	cluster, template := world.Clone(), s.template(options, group)
	var added []string
	for _, pod := range pods {
		if late() {
			break
		}
		if _, placed := cluster.PlaceOnAny(pod, added); placed {
			result.pods = append(result.pods, pod)
			continue
		}
		if group.Target+len(added) >= group.Maximum {
			result.refused[pod] = fmt.Sprintf("its maximum of %d is reached", group.Maximum)
			continue
		}
		name := fmt.Sprintf("new-%s-%d", group.Name, len(added))
		s.addNew(cluster, template, name)
		if err := cluster.Fits(pod, name); err != nil {
			cluster.Remove(name)
			result.refused[pod] = err.Error()
			continue
		}
		cluster.Place(pod, name)
		added, result.pods = append(added, name), append(result.pods, pod)
	}
	result.count, result.waste = len(added), waste(cluster, added)
	return result
}

// waste is the mean of the shares of CPU and of memory that are left.
func waste(cluster *scheduling.Cluster, names []string) float64 {
	idle := 0.0
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		var total, used int64
		for _, name := range names {
			node := cluster.Node(name)
			quantity := node.Status.Allocatable[resource]
			total += quantity.MilliValue()
			used += requestedMilli(node.Pods, resource)
		}
		if total > 0 {
			idle += 1 - float64(used)/float64(total)
		}
	}
	return idle / 2
}

func requestedMilli(pods []*corev1.Pod, resource corev1.ResourceName) int64 {
	var sum int64
	for _, pod := range pods {
		quantity := scheduling.Requests(pod)[resource]
		sum += quantity.MilliValue()
	}
	return sum
}

// balance spreads the new nodes over the zones of the pool that help the same pods, the smallest first.
func balance(best option, found []option) []Growth {
	similar := []*nodegroup.Group{best.group}
	for _, other := range found {
		if other.group != best.group && best.group.Pool != "" && other.group.Pool == best.group.Pool &&
			len(other.pods) == len(best.pods) && other.count == best.count {
			similar = append(similar, other.group)
		}
	}
	added := map[*nodegroup.Group]int{}
	for range best.count {
		var smallest *nodegroup.Group
		for _, group := range similar {
			size := group.Target + added[group]
			if size < group.Maximum && (smallest == nil || size < smallest.Target+added[smallest]) {
				smallest = group
			}
		}
		added[smallest]++
	}
	var growths []Growth
	for _, group := range similar {
		if added[group] > 0 {
			growths = append(growths, Growth{Group: group, Delta: added[group]})
		}
	}
	return growths
}
