package main

import (
	"fmt"
	"math/rand"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testCase is a fleet and a binding, in the types of the peer.
type testCase struct {
	clusters []*clusterv1alpha1.Cluster
	spec     *workv1alpha2.ResourceBindingSpec
	status   *workv1alpha2.ResourceBindingStatus
}

// randomCase has small numbers, so that ties and lacks are frequent. What one side doesn't know at all is left out:
// clusters of which no resources are known, and maxGroups of 0, which the two APIs write differently.
func randomCase(r *rand.Rand) testCase {
	c := testCase{spec: &workv1alpha2.ResourceBindingSpec{}, status: &workv1alpha2.ResourceBindingStatus{}}
	count := 1 + r.Intn(9)
	for i := range count {
		c.clusters = append(c.clusters, randomCluster(r, memberName(i)))
	}
	c.spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web",
		UID: types.UID(fmt.Sprint("uid", r.Intn(100))),
	}
	if r.Intn(10) > 0 {
		c.spec.Replicas = int32(1 + r.Intn(30))
		c.spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		if r.Intn(3) == 0 {
			c.spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(choice(r, "250m", "1", "1500m")),
			}
		}
	}
	for i := range count + 1 {
		if r.Intn(4) == 0 {
			c.spec.Clusters = append(c.spec.Clusters,
				workv1alpha2.TargetCluster{Name: memberName(i), Replicas: replicasBefore(r, c.spec.Replicas)})
		}
		if r.Intn(25) == 0 {
			c.spec.GracefulEvictionTasks = append(c.spec.GracefulEvictionTasks,
				workv1alpha2.GracefulEvictionTask{FromCluster: memberName(i)})
		}
	}
	if r.Intn(6) == 0 {
		c.spec.RescheduleTriggeredAt, c.status.LastScheduledTime = &metav1.Time{Time: metav1.Unix(2, 0).Time},
			&metav1.Time{Time: metav1.Unix(1, 0).Time}
	}
	c.spec.Placement = randomPlacement(r, count)
	if terms := c.spec.Placement.ClusterAffinities; len(terms) > 0 && r.Intn(2) == 0 {
		c.status.SchedulerObservedAffinityName = terms[r.Intn(len(terms))].AffinityName
	}
	return c
}

func memberName(i int) string { return fmt.Sprintf("member%02d", i) }

func replicasBefore(r *rand.Rand, wanted int32) int32 {
	if wanted == 0 {
		return 0
	}
	return int32(1 + r.Intn(8))
}

func choice[T any](r *rand.Rand, values ...T) T { return values[r.Intn(len(values))] }

func randomCluster(r *rand.Rand, name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": choice(r, "gold", "iron")}},
	}
	if r.Intn(12) > 0 {
		c.Spec.Region = fmt.Sprint("r", r.Intn(5))
	}
	if r.Intn(12) > 0 {
		c.Spec.Provider = fmt.Sprint("p", r.Intn(3))
	}
	if r.Intn(8) > 0 {
		c.Spec.Zones = []string{fmt.Sprint("z", r.Intn(3))}
	}
	if r.Intn(8) == 0 {
		c.Spec.Taints = []corev1.Taint{
			{
				Key: "down", Effect: choice(r, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute,
					corev1.TaintEffectPreferNoSchedule),
			},
		}
	}
	if r.Intn(12) > 0 {
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{
				GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{
					{Name: "deployments", Kind: "Deployment"},
				},
			},
		}
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: amounts(int64(r.Intn(25)), int64(r.Intn(20000))),
		Allocated:   amounts(int64(r.Intn(5)), int64(r.Intn(1000))),
		Allocating:  amounts(int64(r.Intn(2)), 0),
	}
	return c
}

func amounts(pods, millicores int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceCPU:  *resource.NewMilliQuantity(millicores, resource.DecimalSI),
	}
}

func randomPlacement(r *rand.Rand, clusters int) *policyv1alpha1.Placement {
	p := &policyv1alpha1.Placement{}
	switch r.Intn(3) {
	case 0:
		affinity := randomAffinity(r, clusters)
		p.ClusterAffinity = &affinity
	case 1:
		for i := range 1 + r.Intn(3) {
			p.ClusterAffinities = append(p.ClusterAffinities,
				policyv1alpha1.ClusterAffinityTerm{
					AffinityName: fmt.Sprint("term", i), ClusterAffinity: randomAffinity(r, clusters),
				})
		}
	}
	if r.Intn(4) == 0 {
		p.ClusterTolerations = []corev1.Toleration{{Key: "down", Operator: corev1.TolerationOpExists}}
	}
	p.SpreadConstraints = randomSpread(r)
	p.ReplicaScheduling = randomScheduling(r, clusters)
	return p
}

func randomAffinity(r *rand.Rand, clusters int) policyv1alpha1.ClusterAffinity {
	var a policyv1alpha1.ClusterAffinity
	switch r.Intn(5) {
	case 0:
		a.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": choice(r, "gold", "iron")}}
	case 1:
		for i := range clusters {
			if r.Intn(3) > 0 {
				a.ClusterNames = append(a.ClusterNames, memberName(i))
			}
		}
	case 2:
		a.ExcludeClusters = []string{memberName(r.Intn(clusters))}
	case 3:
		a.FieldSelector = &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{
			{
				Key:      choice(r, "region", "provider", "zone"),
				Operator: choice(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
				Values:   []string{choice(r, "r1", "p1", "z1", "r2", "z2")},
			},
		}}
	}
	return a
}

func randomSpread(r *rand.Rand) []policyv1alpha1.SpreadConstraint {
	bound := func(field policyv1alpha1.SpreadFieldValue, largest int) policyv1alpha1.SpreadConstraint {
		least := 1 + r.Intn(largest)
		return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: least, MaxGroups: least + r.Intn(3)}
	}
	switch r.Intn(7) {
	case 0, 1:
		return []policyv1alpha1.SpreadConstraint{bound(policyv1alpha1.SpreadByFieldCluster, 4)}
	case 2, 3:
		return []policyv1alpha1.SpreadConstraint{
			bound(policyv1alpha1.SpreadByFieldRegion, 3), bound(policyv1alpha1.SpreadByFieldCluster, 6),
		}
	case 4:
		return []policyv1alpha1.SpreadConstraint{
			bound(choice(r, policyv1alpha1.SpreadByFieldProvider, policyv1alpha1.SpreadByFieldZone), 2),
		}
	}
	return nil
}

func randomScheduling(r *rand.Rand, clusters int) *policyv1alpha1.ReplicaSchedulingStrategy {
	s := &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
	switch r.Intn(5) {
	case 0:
		return &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated,
		}
	case 1:
		s.WeightPreference = &policyv1alpha1.ClusterPreferences{}
		for range 1 + r.Intn(3) {
			s.WeightPreference.StaticWeightList = append(s.WeightPreference.StaticWeightList,
				policyv1alpha1.StaticClusterWeight{
					TargetCluster: randomAffinity(r, clusters), Weight: int64(1 + r.Intn(5)),
				})
		}
	case 2:
		s.WeightPreference = &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		}
	case 3:
		s.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
	}
	return s
}
