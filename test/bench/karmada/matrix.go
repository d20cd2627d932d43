package main

import (
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cell is one decision that is measured.
type cell struct {
	Clusters int      `json:"clusters"`
	Division division `json:"division"`
	Spread   string   `json:"spread"`
}

// spread is a kind of spread constraints; regions is over how many of them the clusters are distributed.
type spread struct {
	name                   string
	regions                int
	leastRegion, mostLimit int
}

const (
	noSpread      = "none"
	clusterSpread = "cluster"
)

// spreads: of the regions some are chosen, few enough for the peer's search to end where it can.
var spreads = []spread{
	{name: noSpread, regions: 5},
	{name: clusterSpread, regions: 5},
	{name: "5 regions", regions: 5, leastRegion: 2, mostLimit: 3},
	{name: "20 regions", regions: 20, leastRegion: 3, mostLimit: 5},
	{name: "40 regions", regions: 40, leastRegion: 3, mostLimit: 6},
	{name: "40 regions, half of them", regions: 40, leastRegion: 15, mostLimit: 25},
}

var (
	sizes     = []int{10, 100, 1000, 5000}
	divisions = []division{duplicated, static, dynamic, aggregated}
)

// replicas are placed by every cell.
const replicas = 1000

// cells is the matrix: that half of 40 regions are wanted is measured once only, since it takes the peer longer than
// anybody waits.
func cells() []cell {
	var all []cell
	for _, size := range sizes {
		for _, d := range divisions {
			for _, s := range spreads {
				if s.leastRegion > size || s.leastRegion > 10 && (size != 100 || d != duplicated) {
					continue
				}
				all = append(all, cell{Clusters: size, Division: d, Spread: s.name})
			}
		}
	}
	return all
}

func spreadNamed(name string) (spread, error) {
	for _, s := range spreads {
		if s.name == name {
			return s, nil
		}
	}
	return spread{}, fmt.Errorf("there is no spread %q", name)
}

// prepared gives a cell's fleet and binding: clusters of which all are known, with different room, so that nothing is
// decided by a tie.
func (c cell) prepared() (testCase, error) {
	s, err := spreadNamed(c.Spread)
	if err != nil {
		return testCase{}, err
	}
	result := testCase{status: &workv1alpha2.ResourceBindingStatus{}, spec: &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web",
			UID: "4858ca61-3ff8-4095-8267-f3d059d8074c",
		},
		Replicas: replicas,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{
			ResourceRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
			},
		},
		Placement: &policyv1alpha1.Placement{
			SpreadConstraints: constraints(s, c.Clusters), ReplicaScheduling: scheduling(c.Division),
		},
	}}
	for i := range c.Clusters {
		result.clusters = append(result.clusters, realisticCluster(i, s.regions))
	}
	return result, nil
}

func constraints(s spread, clusters int) []policyv1alpha1.SpreadConstraint {
	byCluster := policyv1alpha1.SpreadConstraint{
		SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: min(clusters/2, 10),
		MaxGroups: min(clusters, 30),
	}
	switch {
	case s.name == noSpread:
		return nil
	case s.name == clusterSpread:
		return []policyv1alpha1.SpreadConstraint{byCluster}
	case s.leastRegion > 10:
		byCluster.MinGroups = 40
		byCluster.MaxGroups = 60
	}
	return []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: s.leastRegion, MaxGroups: s.mostLimit},
		byCluster,
	}
}

func scheduling(d division) *policyv1alpha1.ReplicaSchedulingStrategy {
	divided := &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
	switch d {
	case duplicated:
		return &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated,
		}
	case aggregated:
		divided.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
	case dynamic:
		divided.WeightPreference = &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		}
	case static:
		divided.WeightPreference = &policyv1alpha1.ClusterPreferences{
			StaticWeightList: []policyv1alpha1.StaticClusterWeight{
				{
					TargetCluster: policyv1alpha1.ClusterAffinity{
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
					}, Weight: 3,
				},
				{
					TargetCluster: policyv1alpha1.ClusterAffinity{
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "iron"}},
					}, Weight: 1,
				},
			},
		}
	}
	return divided
}

// realisticCluster is of the size of one that a member reports: 100 kinds in 20 groups, a summary, labels and
// conditions.
func realisticCluster(i, regions int) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("member%05d", i), UID: "d43fdeeb-d750-4e2b-bee3-64eb94534f4c", ResourceVersion: "1000",
		Labels: map[string]string{
			"tier": []string{"gold", "iron"}[i%2], "team": "fleet", "environment": "production", "index": fmt.Sprint(i),
		},
	}}
	c.Spec.Region, c.Spec.Provider, c.Spec.Zones = fmt.Sprintf("region%02d", i%regions), fmt.Sprintf("provider%d", i%3),
		[]string{fmt.Sprintf("zone%d", i%7)}
	c.Spec.APIEndpoint = "https://10.0.0.1:6443"
	for g := range 20 {
		enablement := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group%02d.example.org/v1", g)}
		if g == 0 {
			enablement.GroupVersion = "apps/v1"
		}
		for r := range 5 {
			enablement.Resources = append(enablement.Resources,
				clusterv1alpha1.APIResource{Name: fmt.Sprintf("kind%ds", r), Kind: fmt.Sprintf("Kind%d", r)})
		}
		if g == 0 {
			enablement.Resources[0] = clusterv1alpha1.APIResource{Name: "deployments", Kind: "Deployment"}
		}
		c.Status.APIEnablements = append(c.Status.APIEnablements, enablement)
	}
	quantities := func(share int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(100_000*share+int64(i)*250, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity((400<<30)*share, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(1100*share, resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity((1000<<30)*share, resource.BinarySI),
		}
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: quantities(4), Allocated: quantities(1)}
	c.Status.Conditions = []metav1.Condition{
		{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady",
			Message: "cluster is healthy and ready to accept workloads",
		}, {
			Type: "CompleteAPIEnablements", Status: metav1.ConditionTrue, Reason: "Complete",
		},
	}
	return c
}
