// Package golden compares objects with files in testdata, so that a change of what a component deploys is seen in
// review. Run the tests with UPDATE_GOLDEN=1 to write the files anew.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apply"
)

// UpdateEnv is set to write the files instead of comparing.
const UpdateEnv = "UPDATE_GOLDEN"

// Check compares objects, as they are sent to the server, with testdata/<name>.yaml.
func Check[T client.Object](t *testing.T, name string, objects ...T) {
	t.Helper()
	CheckWithScheme(t, clientgoscheme.Scheme, name, objects...)
}

// CheckWithScheme is Check for objects whose kinds are not in client-go's scheme.
func CheckWithScheme[T client.Object](t *testing.T, s *runtime.Scheme, name string, objects ...T) {
	t.Helper()
	var got bytes.Buffer
	for i, object := range objects {
		u, err := apply.ToUnstructured(s, object)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			got.WriteString("---\n")
		}
		got.Write(encoded)
	}
	CheckText(t, name, got.String())
}

// CheckText compares YAML that is no object, such as a process's configuration, with testdata/<name>.yaml.
func CheckText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	if os.Getenv(UpdateEnv) != "" {
		write(t, path, []byte(got))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with %s=1 to write it", err, UpdateEnv)
	}
	if difference := cmp.Diff(string(want), got); difference != "" {
		t.Errorf("%s differs (-want +got); run with %s=1 when that is meant:\n%s", path, UpdateEnv, difference)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
