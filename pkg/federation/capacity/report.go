package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// Report is what is known of a cluster's nodes.
type Report struct {
	Nodes     clusterv1alpha1.NodeSummary
	Resources clusterv1alpha1.ResourceSummary
	// Problems are nodes that are left out because of what they claim; some of them, if there are many.
	Problems []string
	// Summed reports have no node by node parts.
	Summed bool

	usable []room
	// pods that were summed up.
	pods int
}

// room is a usable node.
type room struct {
	free   amounts
	labels map[string]string
	taints []corev1.Taint
}

// maxProblems bounds the list of problems.
const maxProblems = 3

// Report adds up. What it returns must not be changed.
func (l *Account) Report() *Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.report != nil {
		return l.report
	}
	r := &Report{}
	allocatable, allocated := amounts{}, amounts{}
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		n := l.nodes[name]
		if n.name == "" {
			continue
		}
		r.Nodes.TotalNum++
		if n.ready {
			r.Nodes.ReadyNum++
		}
		if n.problem != "" {
			r.addProblem(n.problem)
		}
		if !n.usable {
			continue
		}
		allocatable.add(n.allocatable)
		allocated.add(n.used)
		r.usable = append(r.usable, room{free: n.allocatable.without(n.used), labels: n.labels, taints: n.taints})
	}
	r.sums(allocatable, allocated, l.pending)
	r.Resources.Contiguous = mostRoom(r.usable).list()
	r.Resources.NodeClasses = classes(r.usable)
	l.report = r
	return r
}

func (r *Report) sums(allocatable, allocated, allocating amounts) {
	allocatable, allocated, allocating = allocatable.first(2*maxResources), allocated.first(2*maxResources),
		allocating.first(2*maxResources)
	r.Resources.Allocatable = allocatable.list()
	r.Resources.Allocated = allocated.list()
	r.Resources.Allocating = allocating.list()
	r.Resources.Available = allocatable.without(allocated, allocating).list()
}

func (r *Report) addProblem(problem string) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, problem)
	}
}

// Describe writes a report into the status of a cluster that has these resource models. Node by node parts are missing
// in reports that are sums.
func (r *Report) Describe(models []clusterv1alpha1.ResourceModel,
	status *clusterv1alpha1.ClusterStatus) (reason, message string) {
	nodes, resources := r.Nodes, *r.Resources.DeepCopy()
	status.NodeSummary, status.ResourceSummary = &nodes, &resources
	if r.Summed {
		return clusterv1alpha1.ReasonSummed,
			"The cluster has more nodes or pods than are kept in memory; decisions use the sums over all nodes"
	}
	grades, err := gradesOf(models)
	if err != nil {
		return clusterv1alpha1.ReasonInvalidModels, err.Error()
	}
	resources.AllocatableModelings = modelings(grades, r.usable)
	if len(r.Problems) > 0 {
		return clusterv1alpha1.ReasonImplausible,
			fmt.Sprintf("Left out: %s; see the nodes' status.allocatable", strings.Join(r.Problems, "; "))
	}
	return clusterv1alpha1.ReasonObserved, "Every node's free resources are known"
}

// mostRoom is what the node has free on which the scarcer of CPU and memory is least scarce, each compared with the
// most that any node has free of it.
func mostRoom(nodes []room) amounts {
	most := amounts{}
	for _, n := range nodes {
		most[cpu], most[memory] = max(most[cpu], n.free[cpu]), max(most[memory], n.free[memory])
	}
	share := func(free amounts, name string) float64 {
		return float64(free[name]) / float64(max(most[name], 1))
	}
	var best amounts
	var bestShare float64
	for _, n := range nodes {
		if n.free[pods] == 0 {
			continue
		}
		if s := min(share(n.free, cpu), share(n.free, memory)); best == nil || s > bestShare {
			best, bestShare = n.free, s
		}
	}
	return best
}
