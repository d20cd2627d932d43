package federation

import (
	"errors"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// denied checks that nothing of it is allowed.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("%s: got %v, want it to be refused", what, err)
	}
}

func (w *world) invitationIsPoor(t *testing.T, p *pulled) {
	config, err := clientcmd.RESTConfigFromKubeConfig(p.invitation.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	invited, err := client.New(config, client.Options{Scheme: w.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	denied(t, "its Works", invited.List(ctx, &workv1alpha1.WorkList{},
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(p.name))))
	denied(t, "Clusters", invited.List(ctx, &clusterv1alpha1.ClusterList{}))
	denied(t, "credentials", invited.List(ctx, &corev1.SecretList{},
		client.InNamespace(clusterv1alpha1.CredentialsNamespace)))
	denied(t, "requests of others", invited.List(ctx, &certificatesv1.CertificateSigningRequestList{}))
}

func (w *world) agentIsPoor(t *testing.T, p *pulled, namespace string) {
	own := p.asAgent(t)
	var works workv1alpha1.WorkList
	if err := own.List(ctx, &works, client.InNamespace(clusterv1alpha1.ExecutionNamespace(p.name))); err != nil ||
		len(works.Items) == 0 {
		t.Fatalf("its own Works: %v, %v", works.Items, err)
	}
	denied(t, "Works of others", own.List(ctx, &workv1alpha1.WorkList{},
		client.InNamespace(clusterv1alpha1.ExecutionNamespace("member1"))))
	denied(t, "all Works", own.List(ctx, &workv1alpha1.WorkList{}))
	denied(t, "other members", own.Get(ctx, client.ObjectKey{Name: "member1"}, &clusterv1alpha1.Cluster{}))
	denied(t, "credentials", own.List(ctx, &corev1.SecretList{},
		client.InNamespace(clusterv1alpha1.CredentialsNamespace)))
	denied(t, "templates", own.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace)))
	cluster, err := w.getCluster(p.name)
	if err != nil {
		t.Fatal(err)
	}
	relabeled := cluster.DeepCopy()
	relabeled.Labels["region"] = "elsewhere"
	denied(t, "the labels of its member", own.Patch(ctx, relabeled, client.MergeFrom(cluster)))
	work := &works.Items[0]
	confirmed := work.DeepCopy()
	confirmed.Annotations[workv1alpha1.ConfirmDeletionAnnotation] = workv1alpha1.ConfirmDeletionYes
	eventually(t, "the API server enforces the admission policies", func() error {
		if err := own.Patch(ctx, confirmed.DeepCopy(), client.MergeFrom(work), client.DryRunAll); err == nil {
			return errors.New("an agent may confirm a deletion")
		}
		return nil
	})
	denied(t, "confirmations", own.Patch(ctx, confirmed, client.MergeFrom(work)))
	respecified := work.DeepCopy()
	respecified.Spec.SuspendDispatching = new(true)
	denied(t, "the content of a Work", own.Patch(ctx, respecified, client.MergeFrom(work)))
	finalized := work.DeepCopy()
	finalized.Finalizers = append(finalized.Finalizers, "example.com/test")
	if err := own.Patch(ctx, finalized, client.MergeFrom(work)); err != nil {
		t.Errorf("finalizers: %v", err)
	}
	restored := finalized.DeepCopy()
	restored.Finalizers = work.Finalizers
	if err := own.Patch(ctx, restored, client.MergeFrom(finalized)); err != nil {
		t.Errorf("finalizers: %v", err)
	}
}

// liesAreRefused writes what no agent of ours would.
func (w *world) liesAreRefused(t *testing.T, p *pulled) {
	own := p.asAgent(t)
	lie := func(amount string) {
		patch := fmt.Sprintf(`{"status":{"resourceSummary":{"allocatable":{"cpu":%q}}}}`, amount)
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
		if err := own.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the member is not ready", func() error {
		lie("9e30")
		cluster, err := w.getCluster(p.name)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions,
			clusterv1alpha1.ConditionReady); c.Status != metav1.ConditionFalse ||
			c.Reason != clusterv1alpha1.ReasonImplausible {
			return fmt.Errorf("got %+v", c)
		}
		return nil
	})
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
}
