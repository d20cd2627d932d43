package failover

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
)

// fleet is all clusters at one moment. They are shared and must not be changed.
type fleet map[string]*clusterv1alpha1.Cluster

func listFleet(ctx context.Context, reader client.Reader) (fleet, error) {
	var list clusterv1alpha1.ClusterList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	result := make(fleet, len(list.Items))
	for i := range list.Items {
		result[list.Items[i].Name] = &list.Items[i]
	}
	return result, nil
}

// welcome are the clusters that are ready and whose taints are tolerated.
func (f fleet) welcome(tolerations []corev1.Toleration) map[string]bool {
	result := map[string]bool{}
	for name, cluster := range f {
		if isReady(cluster) && cluster.DeletionTimestamp == nil &&
			!failover.Repelled(cluster.Spec.Taints, tolerations) {
			result[name] = true
		}
	}
	return result
}

// steady tells since when the welcome clusters are as they are. A cluster that was not looked at yet has no past.
func (f fleet) steady(tolerations []corev1.Toleration) map[string]time.Time {
	result := map[string]time.Time{}
	for name := range f.welcome(tolerations) {
		if since, known := failover.SteadySince(f[name]); known {
			result[name] = since
		}
	}
	return result
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
}
