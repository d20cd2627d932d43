package nodeagent

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func file(path, data string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: data}},
	}
}

func unit(name, content string, files ...string) extensionsv1alpha1.Unit {
	return extensionsv1alpha1.Unit{Name: name, Content: new(content), FilePaths: files}
}

func names(units []extensionsv1alpha1.Unit) []string {
	var result []string
	for _, unit := range units {
		result = append(result, unit.Name)
	}
	return result
}

func TestDiff(t *testing.T) {
	applied := &desired{
		Files: []extensionsv1alpha1.File{file("/same", "1"), file("/changed", "1"), file("/gone", "1")},
		Units: []extensionsv1alpha1.Unit{
			unit("same", "1", "/same"), unit("uses-changed", "1", "/changed"), unit("gone", "1"),
		},
	}
	wanted := &desired{
		Files: []extensionsv1alpha1.File{file("/same", "1"), file("/changed", "2"), file("/new", "1")},
		Units: []extensionsv1alpha1.Unit{
			unit("same", "1", "/same"), unit("uses-changed", "1", "/changed"), unit("new", "1"),
		},
	}
	got := diff(applied, wanted)
	if len(got.writeFiles) != 2 || got.writeFiles[0].Path != "/changed" || got.writeFiles[1].Path != "/new" {
		t.Errorf("files to write: %v", got.writeFiles)
	}
	if !slices.Equal(got.removeFiles, []string{"/gone"}) || !slices.Equal(got.removeUnits, []string{"gone"}) {
		t.Errorf("to remove: %v %v", got.removeFiles, got.removeUnits)
	}
	if len(got.writeUnits) != 1 || !slices.Equal(names(got.restart), []string{"uses-changed", "new"}) {
		t.Errorf("units: %v, restarts: %v", got.writeUnits, got.restart)
	}
	if !diff(wanted, wanted).empty() {
		t.Error("nothing changed, but there is something to do")
	}
}

func TestDecodeMergesWhatTheExtensionAdds(t *testing.T) {
	got, err := decode([]byte(`
spec:
  units: [{name: kubelet.service, content: core}]
  files: [{path: /a, content: {inline: {data: x}}}]
status:
  extensionUnits: [{name: kubelet.service, dropIns: [{name: 10.conf, content: extension}]}, {name: other.service, content: o}]
  extensionFiles: [{path: /b, content: {inline: {data: y}}}]
`), "a")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Files) != 2 || len(got.Units) != 2 || *got.Units[0].Content != "core" || len(got.Units[0].DropIns) != 1 {
		t.Errorf("got %+v", got)
	}
	if _, err := decode([]byte("spec: {files: [{path: /a, content: {}}]}"), "a"); err == nil ||
		!strings.Contains(err.Error(), "spec.files[0].content") {
		t.Errorf("want an error with the field's path, got %v", err)
	}
}

func TestFilesOfOneMachine(t *testing.T) {
	data := []byte(`
spec:
  files:
  - {path: /one, hostName: a, content: {inline: {data: own}}}
  - {path: /one, content: {inline: {data: all}}}
  - {path: /two, hostName: b, content: {inline: {data: of b}}}
status:
  extensionFiles: [{path: /three, hostName: a, content: {inline: {data: own}}}]
`)
	for host, want := range map[string][]string{
		"a": {"/one=own", "/three=own"}, "b": {"/one=all", "/two=of b"}, "c": {"/one=all"},
	} {
		osc, err := decode(data, host)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range osc.Files {
			got = append(got, file.Path+"="+file.Content.Inline.Data)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", host, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("spec: {files: [{path: /a, content: {inline: {data: x}}}], units: [{name: a.service}]}"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if got, err := decode(data, "a"); err == nil {
			diff(&desired{}, got)
		}
	})
}

// recordedUnits stands in for systemd, whose calls are what is tested.
type recordedUnits struct{ calls []string }

func (r *recordedUnits) record(verb, unit string) error {
	r.calls = append(r.calls, strings.TrimSpace(verb+" "+unit))
	return nil
}
func (r *recordedUnits) Reload(context.Context) error              { return r.record("reload", "") }
func (r *recordedUnits) Enable(_ context.Context, u string) error  { return r.record("enable", u) }
func (r *recordedUnits) Disable(_ context.Context, u string) error { return r.record("disable", u) }
func (r *recordedUnits) Restart(_ context.Context, u string) error { return r.record("restart", u) }
func (r *recordedUnits) Stop(_ context.Context, u string) error    { return r.record("stop", u) }

// containerd must run before files are taken out of images, and these must be there before the units that need them.
func TestApplyOrder(t *testing.T) {
	units := &recordedUnits{}
	root := t.TempDir()
	extract := func(_ context.Context, ref extensionsv1alpha1.FileContentImageRef, target string,
		mode fs.FileMode) error {
		return writeIfChanged(target, []byte(ref.Image), mode)
	}
	m := &machine{root: root, log: logr.Discard(), units: units,
		extract: func(ctx context.Context, ref extensionsv1alpha1.FileContentImageRef, target string,
			mode fs.FileMode) error {
			units.calls = append(units.calls, "extract "+ref.Image)
			return extract(ctx, ref, target, mode)
		}}
	wanted := &desired{
		Files: []extensionsv1alpha1.File{
			{
				Path: "/opt/bin/kubelet", Permissions: new(int32(0o755)),
				Content: extensionsv1alpha1.FileContent{
					ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: "kubelet:v1", FilePathInImage: "/kubelet"},
				},
			},
			file("/etc/config", "x"),
		},
		Units: []extensionsv1alpha1.Unit{unit("kubelet.service", "k"), unit(containerdUnit, "c")},
	}
	if err := m.apply(t.Context(), diff(&desired{}, wanted)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"reload", "enable containerd.service", "restart containerd.service", "extract kubelet:v1",
		"enable kubelet.service", "restart kubelet.service",
	}
	if !slices.Equal(units.calls, want) {
		t.Errorf("got %v, want %v", units.calls, want)
	}
	if info, err := os.Stat(filepath.Join(root, "opt/bin/kubelet")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("kubelet: %v %v", info, err)
	}
	units.calls = nil
	if err := m.apply(t.Context(), diff(wanted, &desired{})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "etc/config")); !os.IsNotExist(err) {
		t.Errorf("the file must be gone: %v", err)
	}
}

func TestCopyFromImageStaysInTheImage(t *testing.T) {
	image, target := t.TempDir(), filepath.Join(t.TempDir(), "bin/kubelet")
	if err := os.WriteFile(filepath.Join(image, "kubernetes"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("kubernetes", filepath.Join(image, "kubelet")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(image, "escape")); err != nil {
		t.Fatal(err)
	}
	if err := copyFromImage(image, "/kubelet", target, 0o755); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "binary" {
		t.Errorf("got %q %v", data, err)
	}
	if err := copyFromImage(image, "/escape", target, 0o755); err == nil {
		t.Error("a link out of the image must not be followed")
	}
}

func TestConfigValidation(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"good":      {"{apiServer: {server: https://a, caBundle: Yg==}, operatingSystemConfigSecretName: s}", ""},
		"no server": {"{apiServer: {caBundle: Yg==}, operatingSystemConfigSecretName: s}", "apiServer.server"},
		"bad bundle": {
			"{apiServer: {server: https://a, caBundle: '!'}, operatingSystemConfigSecretName: s}", "apiServer.caBundle",
		},
		"no secret": {"{apiServer: {server: https://a, caBundle: Yg==}}", "operatingSystemConfigSecretName"},
		"unknown":   {"{apiServers: {}}", "apiServers: Forbidden: there is no such field"},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(c.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadConfig(path)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
