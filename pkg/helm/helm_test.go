package helm

import (
	"bytes"
	"io"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var demoChart = fstest.MapFS{
	"demo/Chart.yaml":            {Data: []byte("apiVersion: v2\nname: demo\nversion: 0.1.0\n")},
	"demo/values.yaml":           {Data: []byte("replicas: 1\n")},
	"demo/templates/_helpers":    {Data: []byte("{{- define \"x\" }}y{{ end }}")},
	"demo/templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n")},
}

func TestPackedChartLoadsAgain(t *testing.T) {
	archive, err := Pack(demoChart, "demo")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack(demoChart, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive, again) {
		t.Error("packing the same files twice gave different archives")
	}
	loaded, err := LoadArchive(archive)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Name() != "demo" || len(loaded.Templates) != 2 {
		t.Errorf("got chart %q with %d templates, want demo with 2", loaded.Name(), len(loaded.Templates))
	}
}

func TestLoadFSNamesTheMissingChart(t *testing.T) {
	if _, err := LoadFS(demoChart, "nothere"); err == nil {
		t.Error("loading a chart that does not exist succeeded")
	}
}

func TestTakeOver(t *testing.T) {
	tests := []struct {
		name      string
		statuses  []release.Status
		installed bool
		left      []release.Status
	}{
		{name: "never installed"},
		{
			name: "deployed", statuses: []release.Status{release.StatusDeployed}, installed: true,
			left: []release.Status{release.StatusDeployed},
		},
		{name: "killed while installing", statuses: []release.Status{release.StatusPendingInstall}},
		{name: "install failed", statuses: []release.Status{release.StatusFailed}},
		{
			name:      "killed while upgrading",
			statuses:  []release.Status{release.StatusDeployed, release.StatusPendingUpgrade},
			installed: true,
			left:      []release.Status{release.StatusDeployed, release.StatusFailed},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			configuration := &action.Configuration{Releases: storage.Init(driver.NewMemory())}
			for i, status := range test.statuses {
				revision := &release.Release{
					Name: "demo", Version: i + 1, Chart: &chart.Chart{}, Info: &release.Info{Status: status},
				}
				if err := configuration.Releases.Create(revision); err != nil {
					t.Fatal(err)
				}
			}
			installed, err := takeOver(configuration, "demo")
			if err != nil {
				t.Fatal(err)
			}
			if installed != test.installed {
				t.Errorf("installed = %v, want %v", installed, test.installed)
			}
			history, _ := configuration.Releases.History("demo")
			if len(history) != len(test.left) {
				t.Fatalf("%d revisions are left, want %d", len(history), len(test.left))
			}
			for i, revision := range history {
				if revision.Info.Status != test.left[i] {
					t.Errorf("revision %d is %s, want %s", i+1, revision.Info.Status, test.left[i])
				}
			}
		})
	}
}

func TestUnready(t *testing.T) {
	tests := []struct {
		name   string
		object map[string]any
		want   string
	}{
		{
			name: "ready deployment",
			object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"generation": int64(2)},
				"spec":     map[string]any{"replicas": int64(1)},
				"status": map[string]any{
					"observedGeneration": int64(2), "updatedReplicas": int64(1), "availableReplicas": int64(1),
				}},
		},
		{
			name: "deployment scaled to zero",
			object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"generation": int64(1)},
				"spec":     map[string]any{"replicas": int64(0)},
				"status":   map[string]any{"observedGeneration": int64(1)}},
		},
		{
			name: "unseen stateful set",
			object: map[string]any{
				"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"generation": int64(1)},
			},
			want: "its controller has not seen the latest change yet",
		},
		{
			name: "daemon set starting",
			object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet",
				"status": map[string]any{"desiredNumberScheduled": int64(1), "updatedNumberScheduled": int64(1)}},
			want: "0 of 1 replicas are available",
		},
		{
			name: "API service without endpoints",
			object: map[string]any{"kind": "APIService", "status": map[string]any{"conditions": []any{
				map[string]any{"type": "Available", "status": "False", "message": "endpoints missing"}}}},
			want: "endpoints missing",
		},
		{name: "another kind", object: map[string]any{"kind": "Service"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Unready(&unstructured.Unstructured{Object: test.object}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// losesOldest is a history from which another process takes the oldest revision just before it is deleted here.
type losesOldest struct {
	driver.Driver
	lost bool
}

func (d *losesOldest) Delete(key string) (*release.Release, error) {
	if !d.lost {
		d.lost = true
		if _, err := d.Driver.Delete(key); err != nil {
			return nil, err
		}
	}
	return d.Driver.Delete(key)
}

func TestUninstallBesideAnUpgradeThatEnds(t *testing.T) {
	history := storage.Init(&losesOldest{Driver: driver.NewMemory()})
	for version, status := range []release.Status{release.StatusSuperseded, release.StatusDeployed} {
		revision := &release.Release{
			Name: "demo", Version: version + 1, Info: &release.Info{Status: status}, Chart: &chart.Chart{},
		}
		if err := history.Create(revision); err != nil {
			t.Fatal(err)
		}
	}
	configuration := &action.Configuration{
		Releases: history, KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard}, Log: t.Logf,
	}
	if err := uninstall(configuration, "demo"); err != nil {
		t.Fatal(err)
	}
	if left, err := history.History("demo"); len(left) > 0 {
		t.Errorf("%d revisions are left (%v)", len(left), err)
	}
	if err := uninstall(configuration, "demo"); err != nil {
		t.Errorf("what is gone already: %v", err)
	}
}
