package terraformprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/terraform"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
)

// TestMain makes this test program the provider when Terraform starts it.
func TestMain(m *testing.M) {
	if os.Getenv("TF_PLUGIN_MAGIC_COOKIE") != "" {
		if err := providerserver.Serve(context.Background(), New,
			providerserver.ServeOpts{Address: Address}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// noHost is a node without a network: networks exist in the cloud's books only.
type noHost struct{ server.BastionHost }

func (noHost) EnsureBridge(string, netip.Prefix) error            { return nil }
func (noHost) RemoveBridge(string) error                          { return nil }
func (noHost) ApplyFirewall(context.Context, []api.Network) error { return nil }

const configuration = `
terraform {
  required_providers {
    local = { source = "trellis-garden/local" }
  }
}
resource "local_network" "machines" {
  name      = "shoot--a--b"
  namespace = "infra-shoot--a--b"
  range     = "10.180.0.0/16"
}
output "cidr" { value = local_network.machines.cidr }
`

// mirror makes a folder from which terraform and tofu take this test program as the provider.
func mirror(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, registry := range []string{"terraform.io", "opentofu.org"} {
		dir := filepath.Join(root, "registry."+registry, Source, Version, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, filepath.Join(dir, "terraform-provider-local_v"+Version)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTerraform(t *testing.T) {
	binary, err := exec.LookPath("terraform")
	if err != nil {
		if binary, err = exec.LookPath("tofu"); err != nil {
			t.Skip("neither terraform nor tofu is on PATH")
		}
	}
	ctx := t.Context()
	cloud := httptest.NewServer(server.New(server.Options{
		StateDir: t.TempDir(), Token: "secret", Host: noHost{}, Log: logr.Discard(),
		Pool: netip.MustParsePrefix("10.180.0.0/16"), Node: netip.MustParseAddr("172.18.0.2"),
	}).Handler())
	defer cloud.Close()
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	providers := mirror(t)
	newRunner := func(token string) *terraform.Runner {
		return terraform.New(terraform.Options{
			Client: seed, Namespace: "shoot--a--b", Name: "b", WorkDir: t.TempDir(), Binary: binary,
			ProvidersDir: providers,
			Env:          map[string]string{EnvEndpoint: cloud.URL, EnvToken: token}, Log: logr.Discard(),
		})
	}
	apply := func(runner *terraform.Runner) {
		t.Helper()
		started := time.Now()
		outputs, err := runner.Apply(ctx, configuration)
		if err != nil {
			t.Fatal(err)
		}
		var cidr string
		if err := json.Unmarshal(outputs["cidr"], &cidr); err != nil || cidr != "10.180.0.0/24" {
			t.Errorf("output cidr: %s, %v", outputs["cidr"], err)
		}
		t.Logf("applied in %s", time.Since(started))
	}
	books := &api.Client{Endpoint: cloud.URL, Token: "secret"}

	runner := newRunner("secret")
	apply(runner)
	apply(runner)
	// Another process, with the state of the seed and an empty folder.
	apply(newRunner("secret"))
	// The state is lost: the network is found again by its name.
	lost := &corev1.Secret{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: "shoot--a--b", Name: "b.infra.tf-state"}, lost); err != nil {
		t.Fatal(err)
	}
	if err := seed.Delete(ctx, lost); err != nil {
		t.Fatal(err)
	}
	apply(newRunner("secret"))
	// Somebody removed the network.
	if err := books.DeleteNetwork(ctx, "shoot--a--b"); err != nil {
		t.Fatal(err)
	}
	apply(newRunner("secret"))

	if _, err := newRunner("wrong").Apply(ctx, configuration); err == nil || !api.MessageHasCode(err.Error(), 401) ||
		strings.Contains(err.Error(), "│") {
		t.Errorf("a wrong token must be told by the error: %v", err)
	}
	if err := newRunner("secret").Destroy(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := books.GetNetwork(ctx, "shoot--a--b"); !api.IsNotFound(err) {
		t.Errorf("the network is still there: %v", err)
	}
	if err := newRunner("secret").Destroy(ctx, ""); err != nil {
		t.Errorf("destroying again: %v", err)
	}
	secrets := &corev1.SecretList{}
	if err := seed.List(ctx, secrets); err != nil || len(secrets.Items) != 0 {
		t.Errorf("left in the seed: %v, %v", secrets.Items, err)
	}
}
