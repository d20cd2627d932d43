package landscape

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/backup"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// objectStore plays that of the local cloud: the buckets that were made, with their users.
type objectStore map[string]api.Bucket

func (o objectStore) Put(_ context.Context, name string) (api.Bucket, error) {
	if _, found := o[name]; !found {
		o[name] = api.Bucket{
			Endpoint: "https://172.18.0.2:9000", Region: "here", AccessKeyID: name, SecretAccessKey: "of " + name,
			CA: "authority",
		}
	}
	return o[name], nil
}

func (o objectStore) Remove(_ context.Context, name string) error {
	delete(o, name)
	return nil
}

// startCloud serves the real API of the local cloud; nil is one without an object store.
func startCloud(t *testing.T, objects server.ObjectStore) cloudAPI {
	t.Helper()
	cloud := httptest.NewServer(server.New(server.Options{
		StateDir: t.TempDir(), Token: "right", Log: logr.Discard(), Objects: objects,
	}).Handler())
	t.Cleanup(cloud.Close)
	return cloudAPI{endpoint: cloud.URL, token: "right", http: cloud.Client()}
}

// ensure runs ensureBackupSecret with a cloud, and returns what the Secret has; nil if there is none.
func ensure(t *testing.T, c client.Client, cloud cloudAPI) (map[string][]byte, error) {
	t.Helper()
	err := ensureBackupSecret(t.Context(), c, func(ctx context.Context) (bucket.Access, error) {
		return cloud.awaitBucket(ctx, gardenBucket)
	})
	return backupSecret(t, c), err
}

func backupSecret(t *testing.T, c client.Client) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "etcd-backup"}, secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// What the cloud tells of a bucket is what etcd-steward reads, with a key of the garden's own.
func TestGardenHasABucketOfItsOwn(t *testing.T) {
	objects := objectStore{}
	// That of the seed is another one's.
	seed, err := objects.Put(t.Context(), "6f2c1e5a-6c53-4b6f-9d3f-2b3a4c5d6e7f")
	if err != nil {
		t.Fatal(err)
	}
	data, err := ensure(t, fake.NewClientBuilder().Build(), startCloud(t, objects))
	if err != nil {
		t.Fatal(err)
	}
	mounted := t.TempDir()
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(mounted, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := store.S3OptionsIn(mounted)
	if err != nil {
		t.Fatal(err)
	}
	user, err := options.Credentials()
	if err != nil || user.AccessKeyID != "garden" || user.SecretAccessKey != "of garden" {
		t.Errorf("the user is %q, %v", user.AccessKeyID, err)
	}
	if user.AccessKeyID == seed.AccessKeyID || user.SecretAccessKey == seed.SecretAccessKey {
		t.Error("the user is that of the seed's bucket")
	}
	if options.Endpoint != "https://172.18.0.2:9000" || options.Region != "here" || !options.PathStyle ||
		string(options.CA) != "authority" || string(data["bucketName"]) != "garden" {
		t.Errorf("the store is %+v", options)
	}
	key, err := base64.StdEncoding.DecodeString(string(data["encryptionKey"]))
	if err != nil || len(key) != 32 || bytes.Equal(key, make([]byte, 32)) {
		t.Errorf("the key has %d bytes, %v", len(key), err)
	}
	way, err := backup.WayToStore("garden", options.Endpoint)
	if err != nil || !apiequality.Semantic.DeepEqual(way, wayToBuckets()) {
		t.Errorf("the way is %+v, want %+v, %v", wayToBuckets(), way, err)
	}
}

// An empty bucket in the place of a lost one would be a first start for an etcd that has lost its data.
func TestALostBucketIsNotMadeAnew(t *testing.T) {
	objects, c := objectStore{}, fake.NewClientBuilder().Build()
	cloud := startCloud(t, objects)
	first, err := ensure(t, c, cloud)
	if err != nil {
		t.Fatal(err)
	}
	delete(objects, gardenBucket)
	again, err := ensure(t, c, cloud)
	if err != nil || len(objects) > 0 || string(again["encryptionKey"]) != string(first["encryptionKey"]) {
		t.Errorf("there are the buckets %v, %v", objects, err)
	}
}

// Without access to a bucket no Secret is written, so that the next `up` makes both.
func TestNoBucketNoSecret(t *testing.T) {
	withToken := func(cloud cloudAPI, token string) cloudAPI { cloud.token = token; return cloud }
	for want, cloud := range map[string]cloudAPI{
		"the bearer token is missing or wrong": withToken(startCloud(t, objectStore{}), "wrong"),
		"has no object store":                  startCloud(t, nil),
	} {
		data, err := ensure(t, fake.NewClientBuilder().Build(), cloud)
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("got %v, want %q; the Secret has %d keys", err, want, len(data))
		}
	}
}

// The cloud may answer before its object store does.
func TestABucketIsWaitedFor(t *testing.T) {
	cloud := startCloud(t, objectStore{})
	answers := []string{"starting", "{}}"}
	via := cloud.http.Transport
	cloud.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if len(answers) == 0 {
			return via.RoundTrip(r)
		}
		body := io.NopCloser(strings.NewReader(answers[0]))
		answers = answers[1:]
		if len(answers) == 0 {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		}
		return &http.Response{StatusCode: http.StatusInternalServerError, Body: body}, nil
	})
	if data, err := ensure(t, fake.NewClientBuilder().Build(), cloud); err != nil || data == nil {
		t.Errorf("the Secret has %d keys, %v", len(data), err)
	}
	cloud.http.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("nobody listens")
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cloud.awaitBucket(ctx, gardenBucket); err == nil {
		t.Error("a bucket was made by nobody")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The garden's objects are backed up, its events are not: others have the same as their status.
func TestGardenEtcds(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if _, err := ensure(t, c, startCloud(t, objectStore{})); err != nil {
		t.Fatal(err)
	}
	manager, err := gardenManager(t.Context(), c, encryption.Record{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager, kubeapiserver.Authorities()); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[etcdcomponent.Role][]string{
		etcdcomponent.Main: {
			"--on-data-loss=fail", "--store-provider=S3", "--store-bucket=garden", "--store-prefix=garden/etcd-main",
			"--store-credentials-dir=/etc/etcd/store", "--store-snapshot-retention=12",
		},
		etcdcomponent.Events: {"--on-data-loss=start-empty"},
	} {
		values := gardenEtcd(role, "i", gardenAvailability(1))
		if err := etcdcomponent.New(c, gardenNS, manager, values).Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		set := &appsv1.StatefulSet{}
		key := client.ObjectKey{Namespace: gardenNS, Name: etcdcomponent.Name(role)}
		if err := c.Get(t.Context(), key, set); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, argument := range set.Spec.Template.Spec.Containers[0].Args {
			if strings.HasPrefix(argument, "--store-") || strings.HasPrefix(argument, "--on-data-loss") {
				got = append(got, argument)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", role, got, want)
		}
		for key, value := range wayToBuckets().Spec.PodSelector.MatchLabels {
			if isLedOut := set.Spec.Template.Labels[key] == value; isLedOut != (role == etcdcomponent.Main) {
				t.Errorf("%s is led to the buckets: %t", role, isLedOut)
			}
		}
	}
}

// The way to the buckets is there whether the Secret is made now or was before.
func TestGardenIsLedToItsBucket(t *testing.T) {
	var applied []string
	record := func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration,
		_ ...client.ApplyOption) error {
		named := object.(interface {
			GetKind() string
			GetNamespace() string
			GetName() string
		})
		applied = append(applied, named.GetKind()+" "+named.GetNamespace()+"/"+named.GetName())
		return nil
	}
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "etcd-backup"},
	}).WithInterceptorFuncs(interceptor.Funcs{Apply: record}).Build()
	r := &run{Landscape: builtLandscape(t), Progress: &Progress{
		out: io.Discard, log: io.Discard, seen: map[string]bool{},
	}}
	if err := r.backUpGarden(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := []string{"NetworkPolicy garden/allow-to-object-store"}; !slices.Equal(applied, want) {
		t.Errorf("applied are %q, want %q", applied, want)
	}
	// A node that does not run has no cloud, and no key is made for nothing.
	none := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Apply: record}).Build()
	if err := r.backUpGarden(t.Context(), none); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("got %v", err)
	}
}
