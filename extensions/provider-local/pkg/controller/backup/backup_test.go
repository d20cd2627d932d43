package backup

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// setting is a cloud with a folder for its state, and Secrets with a right and a wrong token for it.
func setting(t *testing.T) (credentials.Source, string) {
	t.Helper()
	folder := t.TempDir()
	cloud := httptest.NewServer(server.New(server.Options{
		StateDir: folder, Token: "right", Log: logr.Discard(),
	}).Handler())
	t.Cleanup(cloud.Close)
	builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for _, token := range []string{"right", "wrong"} {
		builder.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: token},
			Data:       map[string][]byte{"token": []byte(token)},
		})
	}
	return credentials.Source{Reader: builder.Build(), Endpoint: cloud.URL}, filepath.Join(folder, "buckets")
}

func TestBucketsAndDirectories(t *testing.T) {
	source, folder := setting(t)
	buckets := bucketActuator{credentials: source, client: fake.NewClientBuilder().Build()}
	entries := entryActuator{credentials: source}
	ref := corev1.SecretReference{Namespace: "garden", Name: "right"}
	bucket := &extensionsv1alpha1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: extensionsv1alpha1.BackupBucketSpec{SecretRef: ref},
	}
	entry := &extensionsv1alpha1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--uid"},
		Spec:       extensionsv1alpha1.BackupEntrySpec{BucketName: "b", SecretRef: ref},
	}
	ctx, log := t.Context(), logr.Discard()
	for _, step := range []struct {
		what string
		do   func() error
		want string
		// there says whether the bucket and the directory are there afterwards.
		there [2]bool
	}{
		{
			"a directory of no bucket", func() error { return entries.Reconcile(ctx, log, entry, nil) },
			`there is no bucket "b"`, [2]bool{},
		},
		{"a bucket", func() error { return buckets.Reconcile(ctx, log, bucket, nil) }, "", [2]bool{true, false}},
		{
			"the bucket again", func() error { return buckets.Reconcile(ctx, log, bucket, nil) }, "",
			[2]bool{true, false},
		},
		{"a directory", func() error { return entries.Reconcile(ctx, log, entry, nil) }, "", [2]bool{true, true}},
		{
			"the directory again", func() error { return entries.Reconcile(ctx, log, entry, nil) }, "",
			[2]bool{true, true},
		},
		{
			"delete the used bucket", func() error { return buckets.Delete(ctx, log, bucket, nil) },
			`still has the directory "shoot--a--uid"`, [2]bool{true, true},
		},
		{"a backup", func() error {
			return os.WriteFile(filepath.Join(folder, "b", "shoot--a--uid", "full"), []byte("x"), 0o600)
		}, "", [2]bool{true, true}},
		{
			"delete the directory", func() error { return entries.Delete(ctx, log, entry, nil) }, "",
			[2]bool{true, false},
		},
		{
			"delete the directory again", func() error { return entries.Delete(ctx, log, entry, nil) }, "",
			[2]bool{true, false},
		},
		{"delete the bucket", func() error { return buckets.Delete(ctx, log, bucket, nil) }, "", [2]bool{}},
		{"delete the bucket again", func() error { return buckets.Delete(ctx, log, bucket, nil) }, "", [2]bool{}},
	} {
		err := step.do()
		if step.want == "" && err != nil ||
			step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Fatalf("%s: error = %v, want %q", step.what, err, step.want)
		}
		if step.want != "" && !slices.Contains(extension.Codes(err), gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("%s: codes are %v", step.what, extension.Codes(err))
		}
		for i, path := range []string{"b", filepath.Join("b", "shoot--a--uid")} {
			if _, err := os.Stat(filepath.Join(folder, path)); (err == nil) != step.there[i] {
				t.Errorf("%s: %s is there: %v, want %v", step.what, path, err == nil, step.there[i])
			}
		}
	}
}

func TestNobodyLeavesTheStore(t *testing.T) {
	source, folder := setting(t)
	for _, name := range []string{"..", "../x", "a/b", "", "."} {
		bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		bucket.Spec.SecretRef = corev1.SecretReference{Namespace: "garden", Name: "right"}
		err := (bucketActuator{credentials: source}).Reconcile(t.Context(), logr.Discard(), bucket, nil)
		if err == nil {
			t.Errorf("a bucket %q was made", name)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the store: %v, want that nothing was made", err)
	}
}

func TestWrongCredentials(t *testing.T) {
	source, _ := setting(t)
	bucket := &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	for _, secret := range []string{"wrong", "missing"} {
		bucket.Spec.SecretRef = corev1.SecretReference{Namespace: "garden", Name: secret}
		err := bucketActuator{credentials: source}.Reconcile(t.Context(), logr.Discard(), bucket, nil)
		if !slices.Contains(extension.Codes(err), gardencorev1beta1.ErrorInfraUnauthenticated) {
			t.Errorf("%s: error = %v, codes %v", secret, err, extension.Codes(err))
		}
	}
}
