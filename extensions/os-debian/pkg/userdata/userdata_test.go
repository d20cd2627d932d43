package userdata

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	plain.TransmitUnencoded = new(true)
	files := []extensionsv1alpha1.File{
		{
			Path: filepath.Join(dir, "with space/it's"), Permissions: new(int32(0o600)),
			Content: inline("a\x00b\n$HOME `id`\n"),
		},
		{Path: filepath.Join(dir, "config.yaml"), Content: plain},
		{
			Path: filepath.Join(dir, "secret"),
			Content: extensionsv1alpha1.FileContent{
				SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "s", DataKey: "k"},
			},
		},
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

func TestRenderedScriptWritesFilesOfItsOwnMachineOnly(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	script, err := Render([]extensionsv1alpha1.File{
		{Path: one, HostName: &host, Content: inline("own")}, {Path: one, Content: inline("all")},
		{Path: two, HostName: new("not-" + host), Content: inline("of another")},
	}, nil, noSecrets)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("bash", "-c", "systemctl() { :; }\n"+script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if got, err := os.ReadFile(one); err != nil || string(got) != "own" {
		t.Errorf("got %q (%v), want the file of this machine", got, err)
	}
	if _, err := os.Stat(two); !os.IsNotExist(err) {
		t.Errorf("the file of another machine: got %v", err)
	}
}

func TestRenderRefuses(t *testing.T) {
	plain := inline("x\n" + endOfFile + "\n")
	plain.TransmitUnencoded = new(true)
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

// A unit that is to be off is not started at the first boot, unless its command asks for that.
func TestUnitsAreBroughtToTheirState(t *testing.T) {
	start, stop := extensionsv1alpha1.CommandStart, extensionsv1alpha1.CommandStop
	for name, test := range map[string]struct {
		unit extensionsv1alpha1.Unit
		want string
	}{
		"running": {
			extensionsv1alpha1.Unit{Name: "a.service"},
			"systemctl enable --quiet 'a.service'\nsystemctl restart --no-block 'a.service'\n",
		},
		"disabled": {
			extensionsv1alpha1.Unit{Name: "a.service", Enable: new(false)},
			"systemctl disable 'a.service'\nsystemctl stop --no-block 'a.service'\n",
		},
		"disabled, but started": {
			extensionsv1alpha1.Unit{Name: "a.service", Enable: new(false), Command: &start},
			"systemctl disable 'a.service'\nsystemctl start --no-block 'a.service'\n",
		},
		"enabled for later, only": {
			extensionsv1alpha1.Unit{Name: "a.service", Command: &stop},
			"systemctl enable --quiet 'a.service'\nsystemctl stop --no-block 'a.service'\n",
		},
	} {
		script, err := Render(nil, []extensionsv1alpha1.Unit{test.unit}, noSecrets)
		if err != nil || !strings.HasSuffix(script, "systemctl daemon-reload\n"+test.want) {
			t.Errorf("%s: got %s, %v", name, script, err)
		}
	}
}

// Whatever content and path are, they are data of the script and never commands of it.
func FuzzRenderIsData(f *testing.F) {
	f.Add("/etc/x", "END_OF_USER_DATA_FILE\nrm -rf /", false)
	f.Add("/a'$(id)'", "x", true)
	f.Fuzz(func(t *testing.T, path, data string, plain bool) {
		file := extensionsv1alpha1.File{Path: path, Content: inline(data)}
		file.Content.TransmitUnencoded = &plain
		script, err := Render([]extensionsv1alpha1.File{file}, nil, noSecrets)
		if err != nil {
			return
		}
		if got := strings.Count(script, "\n"+endOfFile+"\n"); got != 1 && !strings.Contains(path, endOfFile) {
			t.Errorf("the file ends %d times in\n%s", got, script)
		}
		if strings.Contains(strings.ReplaceAll(quote(path), `'\''`, ""), "''") && path != "" {
			t.Errorf("%q is not one word: %s", path, quote(path))
		}
	})
}
