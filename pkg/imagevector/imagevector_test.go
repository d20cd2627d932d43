package imagevector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	vector, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		options []FindOption
		want    string
	}{
		{"etcd-steward", nil, "ghcr.io/trellis-garden/etcd-steward:dev"},
		{"kube-apiserver", []FindOption{Version("1.36.3")}, "registry.k8s.io/kube-apiserver:v1.36.3"},
		{"kubelet", []FindOption{Version("v1.36.3")}, "ghcr.io/trellis-garden/kubelet:v1.36.3"},
		{"pause", nil, "registry.k8s.io/pause:3.10"},
		{"pause", []FindOption{Tag("3.9")}, "registry.k8s.io/pause:3.9"},
		{"pause", []FindOption{Tag("sha256:abc")}, "registry.k8s.io/pause@sha256:abc"},
	} {
		image, err := vector.Find(test.name, test.options...)
		if err != nil || image.String() != test.want {
			t.Errorf("Find(%q) = %q, %v; want %q", test.name, image, err, test.want)
		}
	}
}

func TestFindErrors(t *testing.T) {
	vector := Vector{"kube-apiserver": {Name: "kube-apiserver", Repository: "registry.k8s.io/kube-apiserver"}}
	if _, err := vector.Find("nope"); err == nil ||
		!strings.Contains(err.Error(), `"nope" is not in the image vector`) {
		t.Errorf("got %v", err)
	}
	if _, err := vector.Find("kube-apiserver"); err == nil || !strings.Contains(err.Error(), "has no tag") {
		t.Errorf("got %v", err)
	}
}

func TestLoadWithOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.yaml")
	content :=
		"images:\n- name: pause\n  repository: registry.example.com/pause\n- name: coredns\n  repository: " +
			"registry.example.com/coredns\n  tag: v9\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(OverwriteEnv, path)
	vector, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pause":   "registry.example.com/pause:3.10",
		"coredns": "registry.example.com/coredns:v9",
	} {
		if image, err := vector.Find(name); err != nil || image.String() != want {
			t.Errorf("Find(%q) = %q, %v; want %q", name, image, err, want)
		}
	}
}

func TestParseRejectsMistakes(t *testing.T) {
	for content, want := range map[string]string{
		"images:\n- name: a\n": "must be set",
		"images:\n- {name: a, repository: r}\n- {name: a, repository: r}\n": "listed twice",
		"images:\n- {name: a, repository: r, tga: x}\n": "images[0].tga: Forbidden: there is no such " +
			"field",
		"images:\n- {name: a, repository: r, digests: {v1: " +
			"sha256:abc}}\n": `images[0].digests[v1]: "sha256:abc" is not sha256:`,
	} {
		if _, err := Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) error %v, want %q", content, err, want)
		}
	}
}

func TestParseImage(t *testing.T) {
	for reference, want := range map[string]Image{
		"registry.example/gardenlet:v1":                 {"registry.example/gardenlet", "v1", ""},
		"registry.example:5000/gardenlet:v1":            {"registry.example:5000/gardenlet", "v1", ""},
		"registry.example/gardenlet@sha256:abc":         {"registry.example/gardenlet", "", "sha256:abc"},
		"registry.example:5000/gardenlet:v1@sha256:abc": {"registry.example:5000/gardenlet", "v1", "sha256:abc"},
		"registry.example:5000/gardenlet":               {},
		"registry.example/gardenlet:":                   {},
		"":                                              {},
	} {
		got, err := ParseImage(reference)
		if got != want || (err == nil) != (want != Image{}) {
			t.Errorf("%q: got %+v, %v", reference, got, err)
		}
		if err == nil && got.String() != reference {
			t.Errorf("%q becomes %q", reference, got)
		}
	}
}

// Whoever controls a registry gives no other image for a tag, nor makes us take one that the release does not know.
func TestTagsArePinned(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	vector, err :=
		Parse([]byte("images:\n- name: kube-apiserver\n  repository: registry.example/kube-apiserver\n  digests: " +
			"{v1.36.3: \"" + digest + "\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if image, err := vector.Find("kube-apiserver", Version("1.36.3")); err != nil ||
		image.String() != "registry.example/kube-apiserver:v1.36.3@"+digest {
		t.Errorf("got %s, %v", image, err)
	}
	if _, err := vector.Find("kube-apiserver", Version("1.35.4")); err == nil ||
		!strings.Contains(err.Error(), `none of tag "v1.35.4"`) {
		t.Errorf("got %v", err)
	}
}
