package failover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// taints keeps the taints of members that follow from their conditions, and notes since when a member is as it is.
type taints struct {
	client  client.Client
	events  events.EventRecorder
	now     func() time.Time
	options Options
}

// lookAgain is when a member is looked at again that is spared because most others are away too.
const lookAgain = 30 * time.Second

// Reconcile handles one member.
func (t *taints) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := t.client.Get(ctx, request.NamespacedName, cluster); err != nil || cluster.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := cluster.DeepCopy()
	if err := t.byPolicies(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	next, err := t.byAbsence(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	cluster.Spec.Taints = failover.StampTaints(cluster.Spec.Taints, t.now())
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[clusterv1alpha1.SteadySinceAnnotation] = failover.SteadyNote(cluster, t.now())
	return reconcile.Result{RequeueAfter: next}, t.write(ctx, before, cluster)
}

// byPolicies goes through the ClusterTaintPolicies in the order of their names.
func (t *taints) byPolicies(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var list policyv1alpha1.ClusterTaintPolicyList
	if err := t.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterTaintPolicies: %w", err)
	}
	policies := slices.Clone(list.Items)
	slices.SortFunc(policies, func(a, b policyv1alpha1.ClusterTaintPolicy) int {
		return strings.Compare(a.Name, b.Name)
	})
	identity := karmada.Identity(cluster)
	for i := range policies {
		policy := &policies[i]
		if policy.DeletionTimestamp != nil {
			continue
		}
		affinity, err := karmada.Affinity("spec.targetClusters", policy.Spec.TargetClusters)
		if err != nil {
			t.events.Eventf(policy, nil, corev1.EventTypeWarning, "InvalidPolicy", "Taint", "%v", err)
			continue
		}
		if affinity.Matches(&identity) {
			cluster.Spec.Taints = failover.PolicyTaints(cluster.Spec.Taints, &policy.Spec, cluster.Status.Conditions,
				t.now())
		}
	}
	return nil
}

// byAbsence taints a member that is away for long, unless most others are as well.
func (t *taints) byAbsence(ctx context.Context, cluster *clusterv1alpha1.Cluster) (time.Duration, error) {
	away := failover.AwayOf(cluster)
	spare := false
	if away != nil {
		all, err := listFleet(ctx, t.client)
		if err != nil {
			return 0, err
		}
		spare = failover.MostAway(all.countAway())
	}
	var next time.Duration
	cluster.Spec.Taints, next = failover.AwayTaints(cluster.Spec.Taints, away, t.options.ClusterFailoverAfter, spare,
		t.now())
	if spare && t.options.ClusterFailoverAfter > 0 {
		next = lookAgain
	}
	return next, nil
}

func (f fleet) countAway() (awake, away int) {
	for _, cluster := range f {
		if cluster.Annotations[clusterv1alpha1.HibernatedAnnotation] == "true" ||
			cluster.Status.KubernetesVersion == "" {
			continue
		}
		awake++
		if failover.AwayOf(cluster) != nil {
			away++
		}
	}
	return awake, away
}

func (t *taints) write(ctx context.Context, before, cluster *clusterv1alpha1.Cluster) error {
	if apiequality.Semantic.DeepEqual(before.Spec.Taints, cluster.Spec.Taints) &&
		apiequality.Semantic.DeepEqual(before.Annotations, cluster.Annotations) {
		return nil
	}
	after := cluster.DeepCopy()
	if err := t.client.Patch(ctx, after,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("tainting cluster %s: %w", cluster.Name, err)
	}
	if len(cluster.Spec.Taints) != len(before.Spec.Taints) {
		t.events.Eventf(cluster, nil, corev1.EventTypeNormal, "TaintsChanged", "Taint", "the taints are now: %s",
			describe(cluster.Spec.Taints))
	}
	return nil
}

func describe(taints []corev1.Taint) string {
	if len(taints) == 0 {
		return "none"
	}
	texts := make([]string, len(taints))
	for i := range taints {
		texts[i] = taints[i].ToString()
	}
	return strings.Join(texts, ", ")
}
