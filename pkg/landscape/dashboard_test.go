package landscape

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/trellis-garden/trellis/charts"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// The chart takes the values: what the garden is told of the issuer, what the dashboard is told, and the names of what
// is there.
func TestDashboardOfALandscape(t *testing.T) {
	chart, err := helm.LoadFS(charts.FS, "garden")
	if err != nil {
		t.Fatal(err)
	}
	authority, loopback := []byte("-----BEGIN CERTIFICATE-----\n"), netip.MustParseAddr("127.0.0.9")
	values, err := chartutil.ToRenderValues(chart, map[string]any{
		"authentication": dashboardIssuers(authority),
		"dashboard":      dashboardValues("dashboard:v1", "terminal:v1", 1, authority, loopback),
	}, chartutil.ReleaseOptions{Name: "garden", Namespace: gardenNS}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	for file, wanted := range map[string][]string{
		"dashboard.yaml": {
			"publicURL: https://dashboard.garden.local.trellis.garden\n", "image: dashboard:v1\n",
			`url: "https://login.garden.local.trellis.garden"`, "secretName: garden-dashboard-session\n",
			"secretName: garden-dashboard-tls\n", `image: "terminal:v1"`,
			`{"address":"172.18.0.2:6443","domain":"127.0.0.9"}`,
		},
		"authentication.yaml": {
			"name: " + authenticationConfigMap + "\n", `audiences: ["dashboard"]`, `prefix: "login:"`,
			`url: "https://login.garden.local.trellis.garden"`,
		},
	} {
		for _, text := range wanted {
			if !strings.Contains(files["garden/templates/"+file], text) {
				t.Errorf("%s lacks %q:\n%s", file, text, files["garden/templates/"+file])
			}
		}
	}
}

func TestKeysOfSessions(t *testing.T) {
	key := newSessionKey()
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(key))); err != nil ||
		len(decoded) != sessionKeyBytes || bytes.Equal(key, newSessionKey()) {
		t.Errorf("key %q, %v", key, err)
	}
}
