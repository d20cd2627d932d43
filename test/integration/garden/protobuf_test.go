package garden

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/client/clientset/versioned"
)

// protobufMagic is what Kubernetes' protobuf begins with.
const protobufMagic = "k8s\x00"

// What is created in one format is read in the other, and lies in etcd as protobuf. What earlier versions stored as
// JSON is read, and becomes protobuf when it is written again.
func TestFormats(t *testing.T) {
	clients := map[string]versioned.Interface{
		"protobuf": clientsetFor(t, runtime.ContentTypeProtobuf), "json": clientsetFor(t, runtime.ContentTypeJSON),
	}
	for writes, reads := range map[string]string{"protobuf": "json", "json": "protobuf"} {
		t.Run("written as "+writes, func(t *testing.T) {
			ctx := context.Background()
			created, err := clients[writes].CoreV1beta1().CloudProfiles().Create(ctx, newProfile("as-"+writes),
				metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			read, err := clients[reads].CoreV1beta1().CloudProfiles().Get(ctx, created.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !apiequality.Semantic.DeepEqual(created, read) {
				t.Errorf("was %v\nis %v", created, read)
			}
			requireStored(t, profileKey(created.Name), protobufMagic)
		})
	}
	t.Run("stored as JSON", func(t *testing.T) { testStoredJSON(t, clients["protobuf"]) })
	t.Run("answers", testAnswers)
}

// clientsetFor speaks one format only.
func clientsetFor(t *testing.T, contentType string) versioned.Interface {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// profileKey is where a CloudProfile lies in etcd.
func profileKey(name string) string {
	return "/registry-gardener/core.gardener.cloud/cloudprofiles/" + name
}

func testStoredJSON(t *testing.T, clients versioned.Interface) {
	ctx := context.Background()
	profile := newProfile("of-old")
	profile.APIVersion, profile.Kind, profile.UID = gardencorev1beta1.SchemeGroupVersion.String(), "CloudProfile",
		"6f6c6400-0000-4000-8000-000000000000"
	stored, err := json.Marshal(profile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcdClient(t).Put(ctx, profileKey(profile.Name), string(stored)); err != nil {
		t.Fatal(err)
	}
	read, err := clients.CoreV1beta1().CloudProfiles().Get(ctx, profile.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	apis.GardenScheme().Default(profile) // which reading does, too
	if read.UID != profile.UID || !apiequality.Semantic.DeepEqual(read.Spec, profile.Spec) {
		t.Errorf("was %v\nis %v", profile, read)
	}
	requireStored(t, profileKey(profile.Name), `{"`)
	read.Labels = map[string]string{"touched": "yes"}
	if _, err := clients.CoreV1beta1().CloudProfiles().Update(ctx, read, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	requireStored(t, profileKey(profile.Name), protobufMagic)
}

// The server answers in the format that is asked for; an error is readable in each.
func testAnswers(t *testing.T) {
	for accepted, begins := range map[string]string{
		runtime.ContentTypeProtobuf:                                 protobufMagic,
		runtime.ContentTypeJSON:                                     `{"`,
		runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON: protobufMagic,
		"application/json;as=Table;v=v1;g=meta.k8s.io," +
			runtime.ContentTypeJSON: `{"kind":"Table"`,
		runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": protobufMagic,
		runtime.ContentTypeJSON +
			";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io;q=0.9,text/plain": `{"kind":"PartialObjectMetadataList"`,
	} {
		answer, err := clientsetFor(t,
			runtime.ContentTypeJSON).CoreV1beta1().RESTClient().Get().Resource("cloudprofiles").
			SetHeader("Accept", accepted).Do(context.Background()).Raw()
		if err != nil || !bytes.HasPrefix(answer, []byte(begins)) {
			t.Errorf("Accept %s: the answer begins with %.60q, error %v", accepted, answer, err)
		}
	}
	_, err := clientsetFor(t, runtime.ContentTypeProtobuf).CoreV1beta1().CloudProfiles().Get(context.Background(),
		"nobody", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("error is %v, want NotFound", err)
	}
}

func etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{env.EtcdEndpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}

func requireStored(t *testing.T, key, begins string) {
	t.Helper()
	response, err := etcdClient(t).Get(context.Background(), key)
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("%s is not in etcd, error %v", key, err)
	}
	if !bytes.HasPrefix(response.Kvs[0].Value, []byte(begins)) {
		t.Errorf("%s begins with %.60q, want %q", key, response.Kvs[0].Value, begins)
	}
}
