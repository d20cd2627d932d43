package trellisctl

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/certcache"
)

// certificateUntil is a client certificate with its key.
func certificateUntil(t *testing.T, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: today.Add(-time.Hour), NotAfter: end}
	certificate, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
}

// certifying plays the garden: each request gets another certificate, and is counted by its kind.
func certifying(t *testing.T, end time.Time, forbidden bool, count map[string]int) interceptor.Funcs {
	kubeconfig := func() []byte {
		certificate, key := certificateUntil(t, end)
		text, err := clientcmd.Write(clientcmdapi.Config{
			CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
			Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://one.example"}},
			AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: certificate, ClientKeyData: key}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, name string, _, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			count[name]++
			switch typed := request.(type) {
			case *authenticationv1alpha1.AdminKubeconfigRequest:
				if forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "shoots/adminkubeconfig"}, "one",
						errors.New("a viewer"))
				}
				typed.Status.Kubeconfig = kubeconfig()
			case *authenticationv1alpha1.ViewerKubeconfigRequest:
				typed.Status.Kubeconfig = kubeconfig()
			}
			return nil
		},
	}
}

func cacheFor(t *testing.T) *certcache.Cache {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "parent")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	cache, err := certcache.Open(filepath.Join(parent, "credentials"), func(fs.FileInfo) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func askingFor(namespace, name string) askedCluster {
	return askedCluster{execCluster: execCluster{ShootRef: shootRef{namespace, name}}, authority: []byte("authority")}
}

// The garden is asked once for each cluster and access level, and again shortly before the end.
func TestCredentialsAreFetchedWhenNeeded(t *testing.T) {
	end, count := today.Add(time.Hour), map[string]int{}
	s := session(t, Target{}, certifying(t, end, false, count), shoot("garden-demo", "one", "local"))
	cache := cacheFor(t)
	rotated := askingFor("garden-demo", "one")
	rotated.authority = []byte("another")
	for _, step := range []struct {
		what   string
		asked  askedCluster
		level  AccessLevel
		at     time.Time
		counts int
	}{
		{"the first", askingFor("garden-demo", "one"), AccessAdmin, today, 1},
		{"again", askingFor("garden-demo", "one"), AccessAdmin, today.Add(57 * time.Minute), 1},
		{"with another level", askingFor("garden-demo", "one"), AccessAuto, today, 2},
		{"with another authority", rotated, AccessAdmin, today, 3},
		{"near its end", askingFor("garden-demo", "one"), AccessAdmin, today.Add(58 * time.Minute), 4},
	} {
		got, err := s.credential(t.Context(), step.asked, cache, step.level, time.Hour, step.at)
		if err != nil {
			t.Fatal(err)
		}
		if count["adminkubeconfig"] != step.counts {
			t.Errorf("%s: the garden was asked %d times, want %d", step.what, count["adminkubeconfig"], step.counts)
		}
		if got.APIVersion != "client.authentication.k8s.io/v1" || got.Kind != "ExecCredential" ||
			got.Status.Token != "" || !strings.Contains(got.Status.ClientCertificateData, "BEGIN CERTIFICATE") ||
			!strings.Contains(got.Status.ClientKeyData, "PRIVATE KEY") {
			t.Errorf("%s: got %+v", step.what, got)
		}
		early := end.Add(-certcache.Margin)
		if until := got.Status.ExpirationTimestamp.Time; step.at.Before(early) && !until.Equal(early) {
			t.Errorf("%s: kubectl keeps it until %v", step.what, until)
		}
	}
}

func TestViewersGetViewersCredentials(t *testing.T) {
	count := map[string]int{}
	s := session(t, Target{}, certifying(t, today.Add(time.Hour), true, count), shoot("garden-demo", "one", "local"))
	cache := cacheFor(t)
	for range 2 {
		if _, err := s.credential(t.Context(), askingFor("garden-demo", "one"), cache, AccessAuto, time.Hour,
			today); err != nil {
			t.Fatal(err)
		}
	}
	if count["adminkubeconfig"] != 1 || count["viewerkubeconfig"] != 1 {
		t.Errorf("got %v", count)
	}
	if _, err := s.credential(t.Context(), askingFor("garden-demo", "one"), cache, AccessAdmin, time.Hour,
		today); err == nil {
		t.Error("a viewer is an administrator")
	}
}

// A garden that answers with a token, or with nothing, is told; nothing of it is kept.
func TestAnswersWithoutACertificate(t *testing.T) {
	expiration := int64(0)
	s := session(t, Target{}, issuing(t, false, &expiration), shoot("garden-demo", "one", "local"))
	_, err := s.credential(t.Context(), askingFor("garden-demo", "one"), cacheFor(t), AccessAdmin, time.Hour, today)
	if err == nil || !strings.Contains(err.Error(), "shoot garden-demo/one has no client certificate") {
		t.Errorf("got %v", err)
	}
}

func TestWhatKubectlAsks(t *testing.T) {
	const v1 = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",`
	for name, test := range map[string]struct{ info, want string }{
		"nothing":         {"", "kubectl runs this command"},
		"no JSON":         {"{", "KUBERNETES_EXEC_INFO"},
		"another version": {`{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}`, "v1beta1"},
		"no cluster":      {v1 + `"spec":{}}`, "provideClusterInfo"},
		"no extension":    {v1 + `"spec":{"cluster":{"server":"https://a"}}}`, "shootRef"},
		"no name": {
			v1 + `"spec":{"cluster":{"server":"https://a","config":{"shootRef":{"namespace":"garden-demo"}}}}}`, "shootRef",
		},
		"another config": {v1 + `"spec":{"cluster":{"server":"https://a","config":[1]}}}`, "spec.cluster.config"},
		"all": {
			v1 + `"spec":{"cluster":{"config":{"shootRef":{"namespace":"garden-demo","name":"one"}}}}}`, "",
		},
	} {
		asked, err := askedFor(test.info)
		switch {
		case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v", name, err)
		case err == nil && (test.want != "" || asked.ShootRef != shootRef{"garden-demo", "one"}):
			t.Errorf("%s: got %+v", name, asked)
		}
	}
}

// A kubeconfig for another garden gets nothing of this one, though it may have a shoot of the same name.
func TestKubeconfigsOfAnotherGarden(t *testing.T) {
	dir := t.TempDir()
	path, kubeconfig := filepath.Join(dir, "trellisctl.yaml"), filepath.Join(dir, "garden.yaml")
	for file, content := range map[string]string{
		path:       "gardens: [{name: local, identity: landscape-local, kubeconfig: " + kubeconfig + "}]",
		kubeconfig: string(kubeconfigOf(t, "https://garden.example")),
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for told, want := range map[string]string{
		"landscape-local": "", "local": "", "landscape-other": `for a shoot of garden "landscape-other"`,
	} {
		c := &cli{configPath: path, flags: Target{Garden: "local"}}
		_, err := c.gardenOf(askedCluster{execCluster: execCluster{GardenClusterIdentity: told}})
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", told, err)
		}
	}
}
