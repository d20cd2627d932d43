package kills

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// mountedChecksum is the annotation of a pod that plays what its etcd-steward serves with.
	mountedChecksum = "example.com/mounted"
	// mountedAt is what the pod was asked for when its kubelet looked at its Secrets last.
	mountedAt = "example.com/mounted-at"
)

// runEtcd plays the pod of a single member: of a new template, another one takes its place.
func (w *world) runEtcd(ctx context.Context, set *appsv1.StatefulSet) {
	if !isEtcd(set.Name) || ptr.Deref(set.Spec.Replicas, 1) != 1 {
		return
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name + "-0", Labels: set.Spec.Template.Labels,
		Annotations: map[string]string{mountedChecksum: w.checksumFor(ctx, set.Namespace, set.Name)},
	}}
	_ = w.seedClient.Delete(ctx, pod.DeepCopy())
	_ = w.seedClient.Create(ctx, pod)
}

func isEtcd(name string) bool { return strings.HasPrefix(name, "etcd-") }

// checksumFor is that of what an etcd would mount now.
func (w *world) checksumFor(ctx context.Context, namespace, etcd string) string {
	own := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: etcd + "-certificates"}
	if err := w.seedClient.Get(ctx, key, own); err != nil {
		return ""
	}
	return status.CertificatesChecksum(own.Data[secrets.DataKeyCertificateBundle], own.Data[secrets.DataKeyCertificate])
}

// mountSecrets plays the kubelet: it looks at Secrets only when the pod has changed. A pod whose StatefulSet has none
// is deleted.
func (w *world) mountSecrets(ctx context.Context, pod *corev1.Pod) {
	set := &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: strings.TrimSuffix(pod.Name, "-0")}
	err := w.seedClient.Get(ctx, key, set)
	if err != nil && client.IgnoreNotFound(err) == nil || err == nil && ptr.Deref(set.Spec.Replicas, 1) == 0 {
		_ = w.seedClient.Delete(ctx, pod)
		return
	}
	asked := pod.Annotations[etcdcomponent.RemountAsked]
	if pod.Annotations[mountedAt] == asked {
		return
	}
	pod.Annotations[mountedAt], pod.Annotations[mountedChecksum] = asked, w.checksumFor(ctx, pod.Namespace, key.Name)
	_ = w.seedClient.Update(ctx, pod)
}

// askEtcd plays the etcd-steward of a pod.
func (w *world) askEtcd(ctx context.Context, seed client.Reader, key client.ObjectKey) (*status.Status, error) {
	pod := &corev1.Pod{}
	err := seed.Get(ctx, key, pod)
	return &status.Status{
		Phase: status.Serving, Certificates: &status.Certificates{Checksum: pod.Annotations[mountedChecksum]},
	}, err
}
