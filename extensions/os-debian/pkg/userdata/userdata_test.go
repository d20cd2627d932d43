package userdata

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

func inline(data string) extensionsv1alpha1.FileContent {
	return extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: data}}
}

func noSecrets(string, string) ([]byte, error) { return nil, errors.New("no Secrets here") }

// The script is run for real, with systemctl replaced by a program that records its calls.
func TestRenderedScriptWritesFilesAndStartsUnits(t *testing.T) {
	dir := t.TempDir()
	plain := inline("token: <<BOOTSTRAP_TOKEN>>\n")
	plain.TransmitUnencoded = ptr.To(true)
	files := []extensionsv1alpha1.File{
		{Path: filepath.Join(dir, "with space/it's"), Permissions: ptr.To(int32(0o600)), Content: inline("a\x00b\n$HOME `id`\n")},
		{Path: filepath.Join(dir, "config.yaml"), Content: plain},
		{Path: filepath.Join(dir, "secret"), Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "s", DataKey: "k"}}},
	}
	units := []extensionsv1alpha1.Unit{{Name: "node-agent.service"}}
	script, err := Render(files, units, func(name, key string) ([]byte, error) { return []byte(name + "/" + key), nil })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(script, "token: <<BOOTSTRAP_TOKEN>>") {
		t.Error("the placeholder must be readable in the script")
	}
	calls := filepath.Join(dir, "calls")
	systemctl := filepath.Join(dir, "systemctl")
	if err := os.WriteFile(systemctl, []byte("#!/bin/sh\necho \"$@\" >> "+calls+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("bash", "-c", script)
	command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for name, want := range map[string]string{
		"with space/it's": "a\x00b\n$HOME `id`\n",
		"config.yaml":     "token: <<BOOTSTRAP_TOKEN>>\n",
		"secret":          "s/k",
		"calls":           "daemon-reload\nenable --quiet node-agent.service\nrestart --no-block node-agent.service\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "with space/it's")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
}

func TestRenderRefuses(t *testing.T) {
	plain := inline("x\n" + endOfFile + "\n")
	plain.TransmitUnencoded = ptr.To(true)
	for name, content := range map[string]extensionsv1alpha1.FileContent{
		"image":            {ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: "a", FilePathInImage: "b"}},
		"unknown encoding": {Inline: &extensionsv1alpha1.FileContentInline{Encoding: "rot13", Data: "a"}},
		"missing secret":   {SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "s", DataKey: "k"}},
		"end marker":       plain,
	} {
		_, err := Render([]extensionsv1alpha1.File{{Path: "/a", Content: content}}, nil, noSecrets)
		if err == nil || !strings.Contains(err.Error(), "spec.files[0] (/a)") {
			t.Errorf("%s: want an error with the field's path, got %v", name, err)
		}
	}
}
