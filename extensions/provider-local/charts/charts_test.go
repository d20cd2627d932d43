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
