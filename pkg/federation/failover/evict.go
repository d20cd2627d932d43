package failover

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// Eviction is how an object leaves a cluster.
type Eviction struct {
	Cluster, Reason, Producer, Message string
	// PurgeMode in any of its names; empty means Gracefully.
	PurgeMode policyv1alpha1.PurgeMode
	// GracePeriodSeconds bounds how long the old copy stays; nil means until its replacement is healthy.
	GracePeriodSeconds *int32
	// PreservedLabels are carried over to the new copy.
	PreservedLabels map[string]string
	// Affinity is the affinity term in use.
	Affinity string
	// Remember has the object return later.
	Remember bool
}

// PurgeMode gives the newer name of a mode.
func PurgeMode(mode policyv1alpha1.PurgeMode) policyv1alpha1.PurgeMode {
	switch mode {
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeImmediately:
		return policyv1alpha1.PurgeModeDirectly
	case policyv1alpha1.PurgeModeNever:
		return policyv1alpha1.PurgeModeNever
	}
	return policyv1alpha1.PurgeModeGracefully
}

// maxMessage is the longest message that a task may have.
const maxMessage = 1024

// Evict takes a cluster out of the decision and notes what is to become of the copy there. It gives false, and changes
// nothing, if the decision doesn't name the cluster.
func Evict(spec *workv1alpha2.ResourceBindingSpec, e Eviction, now time.Time) bool {
	i := slices.IndexFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == e.Cluster })
	if i < 0 {
		return false
	}
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: e.Cluster, PurgeMode: PurgeMode(e.PurgeMode), Reason: e.Reason, Producer: e.Producer,
		Message:             e.Message,
		PreservedLabelState: e.PreservedLabels, CreationTimestamp: &metav1.Time{Time: now},
		ClustersBeforeFailover: names(spec.Clusters),
	}
	if len(task.Message) > maxMessage {
		task.Message = task.Message[:maxMessage]
	}
	if replicas := spec.Clusters[i].Replicas; replicas > 0 {
		task.Replicas = &replicas
	}
	switch task.PurgeMode {
	case policyv1alpha1.PurgeModeNever:
		task.SuppressDeletion = new(true)
	case policyv1alpha1.PurgeModeGracefully:
		task.GracePeriodSeconds = e.GracePeriodSeconds
	}
	remember(spec, e, now)
	spec.Clusters = slices.Delete(slices.Clone(spec.Clusters), i, i+1)
	spec.GracefulEvictionTasks = append(withoutTask(spec.GracefulEvictionTasks, e.Cluster), task)
	return true
}

func withoutTask(tasks []workv1alpha2.GracefulEvictionTask, cluster string) []workv1alpha2.GracefulEvictionTask {
	return slices.DeleteFunc(slices.Clone(tasks),
		func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster })
}

// remember notes where the object is to return to. Only the first failure after an undisturbed time says where that is.
func remember(spec *workv1alpha2.ResourceBindingSpec, e Eviction, now time.Time) {
	if !e.Remember {
		return
	}
	hash := karmada.PlacementHash(spec.Placement)
	if spec.BeforeFailover == nil || spec.BeforeFailover.PlacementHash != hash {
		spec.BeforeFailover = &workv1alpha2.BeforeFailover{
			Clusters: slices.Clone(spec.Clusters), AffinityName: e.Affinity, PlacementHash: hash,
		}
	}
	if spec.LastFailBack != nil {
		spec.LastFailBack.AffinityName = ""
	}
	failed := slices.DeleteFunc(slices.Clone(spec.BeforeFailover.Failed),
		func(f workv1alpha2.FailedCluster) bool { return f.Name == e.Cluster })
	spec.BeforeFailover.Failed = append(failed,
		workv1alpha2.FailedCluster{Name: e.Cluster, Reason: e.Reason, Time: metav1.NewTime(now)})
}

func names(clusters []workv1alpha2.TargetCluster) []string {
	result := make([]string, len(clusters))
	for i, c := range clusters {
		result[i] = c.Name
	}
	return result
}

func hasTarget(clusters []workv1alpha2.TargetCluster, name string) bool {
	return slices.ContainsFunc(clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == name })
}
