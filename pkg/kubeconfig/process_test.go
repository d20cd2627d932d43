package kubeconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// outside has the test run as a process that is in no pod.
func outside(t *testing.T) { t.Setenv("KUBERNETES_SERVICE_HOST", "") }

func TestOfProcess(t *testing.T) {
	outside(t)
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for path, content := range map[string]string{good: fmt.Sprintf(text, "", "token: a"), bad: "clusters: 1"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		good: "", bad: "reading the kubeconfig of the fleet: ",
		filepath.Join(dir, "none"): "reading the kubeconfig of the fleet: stat " + filepath.Join(dir, "none"),
		"":                         "the API of the fleet is not known: name a file with a kubeconfig of it by --kubeconfig",
	} {
		config, err := kubeconfig.OfProcess(path, "the fleet")
		requireExplained(t, path, err, want)
		if err == nil && config.Host != "https://c.example" {
			t.Errorf("%s leads to %s", path, config.Host)
		}
	}
}

// The programs whose cluster controller-runtime finds say the same.
func TestExplain(t *testing.T) {
	outside(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	_, err := ctrl.GetConfig()
	if err == nil {
		t.Fatal("it is found")
	}
	requireExplained(t, "no file", kubeconfig.Explain("the seed", err), "the API of the seed is not known: name a file")
}

func requireExplained(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q: error %v, want %q", name, err, want)
	}
}
