package landscape

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/images"
)

// exampleVector is an image vector with the image of provider-example.
const exampleVector = "images:\n- {name: provider-example, repository: registry.example/provider-example, tag: v1}\n"

// withExample gives a landscape an extension beside those of the repository, as far as registering it goes.
func withExample(t *testing.T, l *Landscape) images.Extension {
	t.Helper()
	e := images.Extension{Name: "provider-example", Dir: "extensions/provider-example"}
	dir := filepath.Join(l.Root, e.Dir)
	for path, content := range map[string]string{
		filepath.Join(l.CacheDir(), images.VectorFile):             exampleVector,
		filepath.Join(dir, "charts", e.Name, "Chart.yaml"):         exampleChart,
		filepath.Join(dir, "example/controller-registration.yaml"): exampleRegistration,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.Extensions = append(l.Extensions, e)
	return e
}

const exampleChart = "apiVersion: v2\nname: provider-example\nversion: 0.1.0\n"

const exampleRegistration = `apiVersion: core.gardener.cloud/v1beta1
kind: ControllerDeployment
metadata:
  name: provider-example
type: helm
---
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata:
  name: provider-example
`

// A landscape builds all extensions of the repository, and those that it is given beside them.
func TestExtensionsThatALandscapeIsGivenAreBuilt(t *testing.T) {
	l := builtLandscape(t)
	e := withExample(t, l)
	r := &run{Landscape: l}
	var names []string
	for _, built := range r.buildOptions().Extensions {
		names = append(names, built.Name)
	}
	var want []string
	for _, ours := range images.Extensions {
		want = append(want, ours.Name)
	}
	if want = append(want, e.Name); !slices.Equal(names, want) {
		t.Errorf("built are %q, want %q", names, want)
	}
}

// What a landscape is given in place of the repository's extensions is registered, and nothing else.
func TestExtensionsThatALandscapeIsGivenAreRegistered(t *testing.T) {
	l := builtLandscape(t)
	l.Extensions = nil
	withExample(t, l)
	var applied []string
	record := func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration,
		_ ...client.ApplyOption) error {
		named := object.(interface {
			GetKind() string
			GetName() string
		})
		applied = append(applied, named.GetKind()+" "+named.GetName())
		return nil
	}
	garden := &cluster{client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Apply: record}).Build()}
	r := &run{Landscape: l, Progress: &Progress{out: io.Discard, log: io.Discard, seen: map[string]bool{}}}
	if err := r.registerExtensions(t.Context(), garden); err != nil {
		t.Fatal(err)
	}
	want := []string{"ControllerDeployment provider-example", "ControllerRegistration provider-example"}
	if !slices.Equal(applied, want) {
		t.Errorf("applied are %q, want %q", applied, want)
	}
}

// The registrations of extensions have the chart and the image that were built.
func TestChartOfAnExtension(t *testing.T) {
	l := builtLandscape(t)
	r := &run{Landscape: l}
	objects, err := r.registrationOf(withExample(t, l))
	if err != nil {
		t.Fatal(err)
	}
	config, _ := objects[0].Object["providerConfig"].(map[string]any)
	text, _ := config["chart"].(string)
	archive, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(archive) == 0 {
		t.Errorf("got %d bytes, %v", len(archive), err)
	}
	values, _ := config["values"].(map[string]any)
	if values["image"] != "registry.example/provider-example:v1" || values["imageVectorOverwrite"] != exampleVector {
		t.Errorf("got %v", values)
	}
	if _, found := objects[1].Object["providerConfig"]; found {
		t.Error("a registration has a chart")
	}
	if _, err := r.registrationOf(images.Extension{Name: "none", Dir: "extensions/none"}); err == nil {
		t.Error("a chart was packed that is not there")
	}
}

// The one thing that a landscape needs of its extensions is the cloud that it runs on.
func TestALandscapeNeedsTheLocalCloud(t *testing.T) {
	l := builtLandscape(t)
	if dir, err := l.localProviderDir(); err != nil || dir != "extensions/provider-local" {
		t.Errorf("got %q, %v", dir, err)
	}
	l.Extensions = []images.Extension{{Name: "provider-example"}}
	if _, err := l.localProviderDir(); err == nil || !strings.Contains(err.Error(), "that of provider-local, which") {
		t.Errorf("got %v", err)
	}
}
