package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// objects plays the object store of a cloud. images/objectstore tests the real one.
type objects map[string]api.Bucket

func (o objects) Put(_ context.Context, bucket string) (api.Bucket, error) {
	o[bucket] = api.Bucket{
		Endpoint: "https://172.18.0.2:9000", Region: "local", AccessKeyID: bucket, SecretAccessKey: "secret",
		CA: "authority",
	}
	return o[bucket], nil
}

func (o objects) Remove(_ context.Context, bucket string) error {
	delete(o, bucket)
	return nil
}

// applyOnce creates NetworkPolicies, which the fake client cannot apply.
func applyOnce(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
	options ...client.ApplyOption) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := json.Unmarshal(raw, policy); err != nil || policy.Kind != "NetworkPolicy" {
		return c.Apply(ctx, object, options...)
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, policy))
}

// seed is one with a shoot, beside a cloud with an object store.
func seed(t *testing.T, o objects) (client.Client, credentials.Source) {
	t.Helper()
	cloud := httptest.NewServer(server.New(server.Options{
		StateDir: t.TempDir(), Token: "right", Log: logr.Discard(), Objects: o,
	}).Handler())
	t.Cleanup(cloud.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(&gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: "uid"}})
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&extensionsv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--one"},
			Spec:       extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "bucket-b"},
			Data:       map[string][]byte{"token": []byte("right")},
		},
	).WithInterceptorFuncs(interceptor.Funcs{Apply: applyOnce}).Build()
	return c, credentials.Source{Reader: c, Endpoint: cloud.URL}
}

// The whole way: what the cloud tells of a bucket arrives where etcd reads it, and a way to it.
func TestAccessReachesEtcd(t *testing.T) {
	o := objects{}
	c, source := seed(t, o)
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	bucket.Spec.SecretRef = corev1.SecretReference{Namespace: "garden", Name: "bucket-b"}
	buckets := bucketActuator{c, source, "extension-provider-local"}
	if err := buckets.Reconcile(t.Context(), logr.Discard(), bucket, nil); err != nil {
		t.Fatal(err)
	}
	made := &corev1.Secret{}
	ref := bucket.Status.GeneratedSecretRef
	if ref == nil || ref.Namespace != "extension-provider-local" {
		t.Fatalf("the access is said to be in %v", ref)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, made); err != nil ||
		made.Labels[extensionsv1alpha1.LabelBackupBucket] != "b" {
		t.Fatalf("made is %v, %v", made.Labels, err)
	}

	entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--demo--one--uid"}}
	entry.Spec.BucketName, entry.Spec.SecretRef = "b", *ref
	entries := entryActuator{c, source}
	for range 2 {
		if err := entries.Reconcile(t.Context(), logr.Discard(), entry, nil); err != nil {
			t.Fatal(err)
		}
	}
	written, policy := &corev1.Secret{}, &networkingv1.NetworkPolicy{}
	for name, object := range map[string]client.Object{"etcd-backup": written, "allow-to-object-store": policy} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shoot--demo--one", Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]string{
		"bucketName": "b", "accessKeyID": "b", "secretAccessKey": "secret", "region": "local",
		"endpoint": "https://172.18.0.2:9000", "s3ForcePathStyle": "true", "trustedCaCert": "authority",
	} {
		if string(written.Data[key]) != want {
			t.Errorf("%s is %q, want %q", key, written.Data[key], want)
		}
	}

	if err := buckets.Delete(t.Context(), logr.Discard(), bucket, nil); err != nil || len(o) > 0 {
		t.Errorf("after the deletion there are %v, %v", o, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), made); client.IgnoreNotFound(err) != nil ||
		err == nil {
		t.Errorf("the access is left: %v", err)
	}
}

// Of a shoot that is gone, or of which another has the name now, nothing is written.
func TestEntriesOutliveTheirShoots(t *testing.T) {
	c, source := seed(t, objects{})
	generated := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"},
		Data:       map[string][]byte{"accessKeyID": []byte("id"), "endpoint": []byte("https://172.18.0.2:9000")},
	}
	if err := c.Create(t.Context(), generated); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shoot--demo--gone--uid", "shoot--demo--one--earlier"} {
		entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: name}}
		entry.Spec.SecretRef = corev1.SecretReference{Namespace: "garden", Name: "entry"}
		if err := (entryActuator{c, source}).Reconcile(t.Context(), logr.Discard(), entry, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("there are %d Secrets, %v", len(list.Items), err)
	}
}

func TestWayToStore(t *testing.T) {
	policy, err := WayToStore("shoot--demo--one", "https://172.18.0.2:9000")
	if err != nil {
		t.Fatal(err)
	}
	rule := policy.Spec.Egress[0]
	if rule.To[0].IPBlock.CIDR != "172.18.0.2/32" || rule.Ports[0].Port.IntVal != 9000 {
		t.Errorf("it leads to %+v", rule)
	}
	if other, err := WayToStore("n", "https://[fd00::2]:9000"); err != nil ||
		other.Spec.Egress[0].To[0].IPBlock.CIDR != "fd00::2/128" {
		t.Errorf("IPv6: %+v, %v", other, err)
	}
	for _, endpoint := range []string{"", "https://172.18.0.2", "https://store.example.com:9000", "https://[::1"} {
		if _, err := WayToStore("n", endpoint); err == nil {
			t.Errorf("%q is a way", endpoint)
		}
	}
}

func TestDirectoriesAreEmptied(t *testing.T) {
	whole, err := store.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shoot--a--uid/etcd-main/full", "shoot--a--uid/x", "shoot--a--uid2/full"} {
		if err := whole.Put(t.Context(), name, bytes.NewReader(nil), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := emptyStore(t.Context(), store.Below(whole, "shoot--a--uid")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := whole.List(t.Context(), "")
	if err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Name, "shoot--a--uid2/") {
		t.Errorf("left are %v, %v", left, err)
	}
}
