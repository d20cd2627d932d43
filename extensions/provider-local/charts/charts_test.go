package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/trellis-garden/trellis/pkg/helm"
)

// Where there is one node, a claim has its volume at once. Where there are several, the scheduler chooses first, and
// each other node has what makes its volumes; the cloud stays on one.
func TestVolumesOfOneNodeAndOfSeveral(t *testing.T) {
	for several, want := range map[bool]string{false: "Immediate", true: "WaitForFirstConsumer"} {
		loaded, err := helm.LoadFS(FS, "local-cloud")
		if err != nil {
			t.Fatal(err)
		}
		values, err := chartutil.ToRenderValues(loaded, map[string]any{"token": "t", "otherNodes": several},
			chartutil.ReleaseOptions{Name: "local-cloud", Namespace: "local-cloud"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := engine.Render(loaded, values)
		if err != nil {
			t.Fatal(err)
		}
		text := rendered["local-cloud/templates/local-cloud.yaml"]
		if !strings.Contains(text, "\nvolumeBindingMode: "+want+"\n") ||
			strings.Contains(text, "name: local-volumes") != several ||
			strings.Contains(text, "operator: In,") != several || !strings.Contains(text, "operator: NotIn,") {
			t.Errorf("several nodes: %v, got\n%s", several, text)
		}
	}
}

// The issuer is told its address as browsers see it, may read and change its own Secret only, and there is one of it.
func TestIssuerOfALandscape(t *testing.T) {
	loaded, err := helm.LoadFS(FS, "local-issuer")
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(loaded, map[string]any{
		"host": "login.example", "port": 8443, "clients": []any{"a=https://a.example/b"},
	}, chartutil.ReleaseOptions{Name: "local-issuer", Namespace: "garden"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	text := rendered["local-issuer/templates/issuer.yaml"]
	for _, wanted := range []string{
		"- --url=https://login.example:8443\n", "- --client=a=https://a.example/b\n", "- --secret=local-issuer\n",
		"resourceNames: [local-issuer], verbs: [get, update]", "  replicas: 1\n",
		`hostnames: ["login.example"]`,
	} {
		if !strings.Contains(text, wanted) {
			t.Errorf("no %q in\n%s", wanted, text)
		}
	}
}
