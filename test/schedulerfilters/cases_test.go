package schedulerfilters

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The values are few, so that they often meet.
var (
	apps       = []string{"web", "db"}
	zones      = []string{"a", "b"}
	topologies = []string{corev1.LabelHostname, corev1.LabelTopologyZone, "rack"}
	operators  = []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
		metav1.LabelSelectorOpDoesNotExist,
	}
	effects = []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule,
	}
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// often is true so many times of a hundred.
func often(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func randomCase(r *rand.Rand) randomised {
	c := randomised{pod: randomPod(r, "wanted")}
	for n := range 1 + r.IntN(5) {
		node := randomNode(r, fmt.Sprintf("node-%d", n))
		c.nodes = append(c.nodes, node)
		for m := range r.IntN(4) {
			pod := randomPod(r, fmt.Sprintf("pod-%d-%d", n, m))
			pod.Spec.NodeName = node.Name
			if often(r, 10) {
				at := metav1.Unix(1_800_000_000, 0)
				pod.DeletionTimestamp = &at
			}
			c.pods = append(c.pods, pod)
		}
	}
	return c
}

func randomNode(r *rand.Rand, name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}
	if often(r, 85) {
		node.Labels[corev1.LabelTopologyZone] = pick(r, zones...)
	}
	if often(r, 50) {
		node.Labels["rack"] = pick(r, "1", "2", "3")
	}
	if often(r, 50) {
		node.Labels["disk"] = pick(r, "ssd", "hdd")
	}
	node.Spec.Unschedulable = often(r, 5)
	if often(r, 20) {
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: pick(r, "dedicated", "gpu"), Value: pick(r, "", "db"), Effect: pick(r, effects...)})
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(pick(r, "1", "2", "3500m")),
		corev1.ResourceMemory:           resource.MustParse(pick(r, "1Gi", "4Gi")),
		corev1.ResourcePods:             resource.MustParse(pick(r, "2", "4", "10")),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
	}
	if often(r, 20) {
		node.Status.Allocatable["example.com/gpu"] = resource.MustParse(pick(r, "1", "2"))
	}
	return node
}

func randomPod(r *rand.Rand, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, "x", "y"), Name: name, UID: types.UID(name)}}
	if often(r, 90) {
		pod.Labels = map[string]string{"app": pick(r, apps...)}
		if often(r, 30) {
			pod.Labels["version"] = pick(r, "1", "2")
		}
	}
	pod.Spec.Containers = []corev1.Container{randomContainer(r)}
	if often(r, 20) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r))
	}
	for range 2 {
		if often(r, 10) {
			container := randomContainer(r)
			if often(r, 50) {
				always := corev1.ContainerRestartPolicyAlways
				container.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		}
	}
	if often(r, 5) {
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}
	randomPlacement(r, pod)
	return pod
}

func randomContainer(r *rand.Rand) corev1.Container {
	c := corev1.Container{Name: fmt.Sprint(r.Uint32())}
	c.Resources.Requests = corev1.ResourceList{}
	if often(r, 80) {
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(pick(r, "0", "100m", "500m", "1", "1500m"))
	}
	if often(r, 50) {
		c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(pick(r, "100Mi", "1Gi"))
	}
	if often(r, 5) {
		c.Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	}
	if often(r, 5) {
		c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(r, "1Gi", "6Gi"))
	}
	if often(r, 30) {
		c.Ports = []corev1.ContainerPort{{
			ContainerPort: 80, HostPort: pick[int32](r, 0, 80, 80, 81),
			Protocol: pick(r, "", corev1.ProtocolTCP, corev1.ProtocolUDP),
			HostIP:   pick(r, "", "0.0.0.0", "127.0.0.1"),
		}}
	}
	return c
}

// randomPlacement says where a pod may be.
func randomPlacement(r *rand.Rand, pod *corev1.Pod) {
	if often(r, 10) {
		pod.Spec.NodeSelector = map[string]string{"disk": pick(r, "ssd", "hdd")}
	}
	for range 2 {
		if often(r, 20) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key:      pick(r, "", "dedicated", "gpu", corev1.TaintNodeUnschedulable),
				Operator: pick(r, "", corev1.TolerationOpEqual, corev1.TolerationOpExists),
				Value:    pick(r, "", "db"), Effect: pick(r, append(effects, "")...),
			})
		}
	}
	affinity := &corev1.Affinity{}
	if often(r, 10) {
		affinity.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: randomNodeSelector(r),
		}
	}
	if often(r, 15) {
		affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: randomTerms(r)}
	}
	if often(r, 20) {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: randomTerms(r),
		}
	}
	pod.Spec.Affinity = affinity
	for range 2 {
		if often(r, 15) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, randomSpread(r))
		}
	}
}

func randomNodeSelector(r *rand.Rand) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for range 1 + r.IntN(2) {
		term := corev1.NodeSelectorTerm{}
		for range r.IntN(3) {
			requirement := corev1.NodeSelectorRequirement{
				Key: pick(r, "disk", "rack", corev1.LabelTopologyZone),
				Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
					corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt),
			}
			switch requirement.Operator {
			case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
				requirement.Values = []string{pick(r, "ssd", "hdd", "a", "b", "1")}
			case corev1.NodeSelectorOpGt:
				requirement.Values = []string{"1"}
			}
			term.MatchExpressions = append(term.MatchExpressions, requirement)
		}
		if often(r, 15) {
			term.MatchFields = []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
				Values: []string{"node-0"},
			}}
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return selector
}

func randomTerms(r *rand.Rand) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range 1 + r.IntN(2) {
		term := corev1.PodAffinityTerm{TopologyKey: pick(r, topologies...), LabelSelector: randomSelector(r)}
		if often(r, 20) {
			term.Namespaces = []string{pick(r, "x", "y")}
		}
		if often(r, 20) {
			term.NamespaceSelector = pick(r, &metav1.LabelSelector{},
				&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "one"}})
		}
		terms = append(terms, term)
	}
	return terms
}

// randomSelector is nil at times, which selects nothing, and empty at others, which selects all.
func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	switch r.IntN(10) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2, 3:
		requirement := metav1.LabelSelectorRequirement{Key: pick(r, "app", "version"), Operator: pick(r, operators...)}
		if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpNotIn {
			requirement.Values = []string{pick(r, "web", "1")}
		}
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, apps...)}}
}

func randomSpread(r *rand.Rand) corev1.TopologySpreadConstraint {
	policies := []*corev1.NodeInclusionPolicy{nil}
	for _, policy := range []corev1.NodeInclusionPolicy{
		corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore,
	} {
		policies = append(policies, &policy)
	}
	constraint := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + r.IntN(2)), TopologyKey: pick(r, topologies...), LabelSelector: randomSelector(r),
		WhenUnsatisfiable:  pick(r, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
		NodeAffinityPolicy: pick(r, policies...), NodeTaintsPolicy: pick(r, policies...),
	}
	if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && often(r, 20) {
		domains := int32(1 + r.IntN(3))
		constraint.MinDomains = &domains
	}
	if constraint.LabelSelector != nil && often(r, 15) {
		constraint.MatchLabelKeys = []string{"version"}
	}
	return constraint
}
