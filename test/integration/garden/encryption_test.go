package garden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// plaintext is in every secret of the tests, and must not be in etcd.
const plaintext = "nobody-may-read-this-in-etcd"

var gardenSecrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// encryptedGarden is a garden of its own whose API servers encrypt what they store, and whose keys can be rotated.
type encryptedGarden struct {
	*environment.Environment
	t      *testing.T
	etcd   *clientv3.Client
	folder string
	// keys holds the Secrets of the secrets manager.
	keys    client.Client
	clock   *clocktesting.FakePassiveClock
	manager secrets.Manager
	record  encryption.Record
	// written are the data of all objects by their keys in etcd.
	written map[string]string
}

func startEncryptedGarden(t *testing.T) *encryptedGarden {
	t.Helper()
	g := &encryptedGarden{
		t: t, folder: t.TempDir(), keys: fake.NewClientBuilder().Build(), written: map[string]string{},
		clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
	}
	if err := g.configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	argument := func(server string) []string { return []string{"--encryption-provider-config=" + g.file(server)} }
	if g.Environment, err = environment.StartWith(t.Context(), environment.Options{
		Binary: binary, OwnProcesses: true, KubeAPIServerArguments: argument("kube"),
		GardenAPIServerArguments: argument("garden"),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	if g.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{g.EtcdEndpoint}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.etcd.Close() })
	return g
}

func (g *encryptedGarden) file(server string) string {
	return filepath.Join(g.folder, server+"-encryption.yaml")
}

// configure writes the configurations of both servers as the record of the rotation says.
func (g *encryptedGarden) configure(ctx context.Context) (err error) {
	options := secrets.Options{RotationInitiation: g.record.Initiations("kube", "garden"), Clock: g.clock}
	if g.manager, err = secrets.New(ctx, g.keys, "garden", options); err != nil {
		return err
	}
	for server, resources := range map[string][]schema.GroupVersionResource{
		"kube": {gardenSecrets}, "garden": registration.EncryptedResources(),
	} {
		keys, err := encryption.GenerateKeys(ctx, g.manager, server, g.record.Stage)
		if err != nil {
			return err
		}
		var names []string
		for _, resource := range resources {
			names = append(names, resource.GroupResource().String())
		}
		scheme := encryption.Scheme{Provider: encryption.Secretbox, Resources: names}
		encoded, err := yaml.Marshal(encryption.Configuration(scheme, scheme, g.record.Stage, keys))
		if err != nil {
			return err
		}
		if err := os.WriteFile(g.file(server), encoded, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// rotation rotates the keys as an operator would, with processes instead of pods.
func (g *encryptedGarden) rotation() encryption.Rotation {
	return encryption.Rotation{
		Load: func(context.Context) (encryption.Record, error) { return g.record, nil },
		Save: func(_ context.Context, record encryption.Record) error {
			g.record = record
			return nil
		},
		Deploy: func(ctx context.Context, record encryption.Record) error {
			if err := g.configure(ctx); err != nil {
				return err
			}
			if err := g.Restart(ctx, g.KubeAPIServer, g.GardenAPIServer); err != nil {
				return err
			}
			g.write(strings.ToLower(string(record.Stage)))
			return nil
		},
		Rewrite: func(ctx context.Context) error {
			objects, err := metadata.NewForConfig(g.Config)
			if err != nil {
				return err
			}
			count, err := encryption.Rewrite(ctx, objects, append(registration.EncryptedResources(), gardenSecrets))
			if err == nil && count < len(g.written) {
				err = fmt.Errorf("%d objects were written anew, there are %d", count, len(g.written))
			}
			return err
		},
		Drop:  func(ctx context.Context) error { return g.manager.Cleanup(ctx) },
		Clock: g.clock,
	}
}

// write creates one object of each kind that holds a secret.
func (g *encryptedGarden) write(name string) {
	g.t.Helper()
	meta := metav1.ObjectMeta{Namespace: registration.Namespace, Name: "test-" + name}
	text := plaintext + "-" + name
	for key, object := range map[string]client.Object{
		"/registry/secrets/garden/" + meta.Name: &corev1.Secret{
			ObjectMeta: meta, Data: map[string][]byte{"key": []byte(text)},
		},
		"/registry-gardener/core.gardener.cloud/internalsecrets/garden/" +
			meta.Name: &gardencorev1beta1.InternalSecret{
			ObjectMeta: meta, Data: map[string][]byte{"key": []byte(text)},
		},
	} {
		eventually(g.t, func() error {
			return client.IgnoreAlreadyExists(g.Client.Create(context.Background(), object))
		})
		g.written[key] = text
	}
}

// check compares what is stored with what was written, as users and as whoever has the disk see it.
func (g *encryptedGarden) check() {
	g.t.Helper()
	ctx := context.Background()
	for key, text := range g.written {
		name := filepath.Base(key)
		object := client.Object(&corev1.Secret{})
		data := func() []byte { return object.(*corev1.Secret).Data["key"] }
		if strings.Contains(key, "internalsecrets") {
			object = &gardencorev1beta1.InternalSecret{}
			data = func() []byte { return object.(*gardencorev1beta1.InternalSecret).Data["key"] }
		}
		if err := g.Client.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: name},
			object); err != nil {
			g.t.Errorf("%s is lost: %v", key, err)
		} else if string(data()) != text {
			g.t.Errorf("%s reads %q, want %q", key, data(), text)
		}
		if err := g.checkStored(ctx, key); err != nil {
			g.t.Errorf("%s: %v", key, err)
		}
	}
}

// checkStored makes sure that a key of etcd holds nothing to be read, written with the newest key.
func (g *encryptedGarden) checkStored(ctx context.Context, key string) error {
	response, err := g.etcd.Get(ctx, key)
	if err != nil {
		return err
	}
	if len(response.Kvs) != 1 {
		return errors.New("is not in etcd")
	}
	server := "kube"
	if strings.HasPrefix(key, "/registry-gardener") {
		server = "garden"
	}
	newest, _ := g.manager.Get(server)
	stored := string(response.Kvs[0].Value)
	if want := "k8s:enc:secretbox:v1:" + string(newest.Data[secrets.DataKeyEncryptionKeyName]) +
		":"; !strings.HasPrefix(stored, want) {
		return fmt.Errorf("begins with %.40q, want %q", stored, want)
	}
	if strings.Contains(stored, plaintext) {
		return errors.New("is in clear text")
	}
	return nil
}

func TestEncryptionAtRest(t *testing.T) {
	g := startEncryptedGarden(t)
	g.write("before")
	g.check()

	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	if err := g.rotation().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(g.written) != 8 {
		t.Errorf("%d objects were written, want two before the rotation and in each of its stages", len(g.written))
	}
	g.check()
	list := &corev1.SecretList{}
	if err := g.keys.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("%d keys are left, error %v; want one for each server", len(list.Items), err)
	}
}
