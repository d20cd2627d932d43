package trellisctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// commandLine runs trellisctl with a session of its own, and returns what it prints.
func commandLine(t *testing.T, line string) (string, error) {
	t.Helper()
	root := NewCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(strings.Fields(line))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// gardensConfigured is a configuration of gardens that nobody connects to.
func gardensConfigured(t *testing.T, content string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trellisctl.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ConfigEnv, path)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(SessionEnv, "test")
}

// Rows that come later stand under those that were first, and widen a column only for those after them.
func TestColumnsOfLaterRows(t *testing.T) {
	var out bytes.Buffer
	c := columns{out: &out}
	for _, rows := range [][][]string{
		{{"NAME", "AGE"}, {"one", "5m"}}, {{"a", ""}}, {{"longer", "ä"}}, {{"b\nc", "2m"}},
	} {
		if err := c.print(rows...); err != nil {
			t.Fatal(err)
		}
	}
	const want = "NAME   AGE\none    5m\na      -\nlonger   ä\nb c      2m\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestKindsHaveSeveralNames(t *testing.T) {
	for word, want := range map[string]*gardenKind{
		"shoots": shootKind, "shoot": shootKind, "sh": shootKind, "project": projectKind, "proj": projectKind,
		"seeds": seedKind, "sd": seedKind, "node": nil, "": nil,
	} {
		if got := kindCalled(word); got != want {
			t.Errorf("%q: got %v", word, got)
		}
	}
}

// Every kind has a cell for each of its columns.
func TestEveryColumnIsFilled(t *testing.T) {
	s := session(t, Target{}, interceptor.Funcs{})
	for _, k := range gardenKinds {
		cells, err := k.cells(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		object := map[*gardenKind]func() []string{
			projectKind: func() []string { return cells(&gardencorev1beta1.Project{}) },
			shootKind:   func() []string { return cells(&gardencorev1beta1.Shoot{}) },
			seedKind:    func() []string { return cells(&gardencorev1beta1.Seed{}) },
		}[k]
		if got := len(object()); got != len(k.header)+len(k.wide) {
			t.Errorf("%s: %d cells for %d columns", k.plural, got, len(k.header)+len(k.wide))
		}
	}
}

func TestNarrowedLists(t *testing.T) {
	ill := shoot("garden-other", "ill", "local")
	ill.Labels = map[string]string{"shoot.gardener.cloud/status": "unhealthy"}
	production := gardencorev1beta1.ShootPurposeProduction
	ill.Spec.Purpose, ill.Spec.Region, ill.Status.Gardener.Version = &production, "here", "v1"
	s := session(t, Target{Project: "demo"}, interceptor.Funcs{}, ill, shoot("garden-demo", "one", "local"))
	named := listing{formatFlag: formatFlag{value: formatName}}
	for name, test := range map[string]struct {
		options listing
		want    []string
	}{
		"names": {named, []string{"shoot.core.gardener.cloud/one"}},
		"of all projects": {
			listing{formatFlag: named.formatFlag, all: true}, []string{
				"shoot.core.gardener.cloud/one", "shoot.core.gardener.cloud/ill",
			},
		},
		"by label": {
			listing{formatFlag: named.formatFlag, all: true, labels: "shoot.gardener.cloud/status=unhealthy"},
			[]string{"shoot.core.gardener.cloud/ill"},
		},
		"by field, none": {listing{formatFlag: named.formatFlag, fields: "metadata.name=ill"}, nil},
		"wide": {
			listing{formatFlag: formatFlag{value: formatWide}, all: true, fields: "metadata.name=ill"}, []string{
				"SHOOT PROJECT SEED PROVIDER VERSION NODES LAST OPERATION STATUS PURPOSE REGION GARDENLET AGE",
				"ill other local local 1.36.3 none waiting unhealthy production here v1 60m",
			},
		},
	} {
		var out bytes.Buffer
		err := listed(s, shootKind, &test.options, &out).list(t.Context())
		check(t, name, lines(t, &out, err), test.want)
	}
}

// Documents are what kubectl takes, and one even where there is nothing to list.
func TestListsAsDocuments(t *testing.T) {
	s := session(t, Target{Project: "demo"}, interceptor.Funcs{}, shoot("garden-demo", "one", "local"))
	for format, read := range map[string]func([]byte, any) error{
		formatJSON: json.Unmarshal, formatYAML: func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
	} {
		var out bytes.Buffer
		options := &listing{formatFlag: formatFlag{value: format}}
		if err := listed(s, shootKind, options, &out).list(t.Context()); err != nil {
			t.Fatal(err)
		}
		var list struct {
			APIVersion string                    `json:"apiVersion"`
			Kind       string                    `json:"kind"`
			Items      []gardencorev1beta1.Shoot `json:"items"`
		}
		if err := read(out.Bytes(), &list); err != nil || list.APIVersion != "v1" || list.Kind != "List" ||
			len(list.Items) != 1 || list.Items[0].Kind != "Shoot" || list.Items[0].Name != "one" {
			t.Errorf("%s: got %+v, %v", format, list, err)
		}
	}
	var out bytes.Buffer
	options := &listing{formatFlag: formatFlag{value: formatYAML}}
	err := listed(s, seedKind, options, &out).list(t.Context())
	check(t, "nothing", lines(t, &out, err), []string{"apiVersion: v1", "items: []", "kind: List"})
}

func TestListingGardens(t *testing.T) {
	gardensConfigured(t, "gardens:\n- {name: local, identity: id, kubeconfig: /k}\n"+
		"- {name: b, kubeconfig: /l, context: c}\n")
	out, err := commandLine(t, "ls gardens")
	check(t, "gardens", lines(t, bytes.NewBufferString(out), err), []string{
		"GARDEN IDENTITY KUBECONFIG CONTEXT", "local id /k -", "b - /l c",
	})
	if out, err = commandLine(t, "ls gd -o name"); err != nil || out != "garden/local\ngarden/b\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err = commandLine(t, "ls garden -o json"); err != nil || !json.Valid([]byte(out)) ||
		!strings.Contains(out, `"identity": "id"`) {
		t.Errorf("got %q, %v", out, err)
	}
}
