package cni

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// node is a folder with plugins, and one with networks of the local cloud.
type node struct{ plugins, networks string }

func newNode(t *testing.T) node {
	t.Helper()
	dir := t.TempDir()
	n := node{plugins: filepath.Join(dir, "bin"), networks: filepath.Join(dir, "networks")}
	for _, folder := range []string{n.plugins, n.networks} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n node) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (n node) run(command, container, namespace string) (string, error) {
	config :=
		fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"local-cloud","networksDir":%q,"delegate":{"type":"bridge","bridge":"cni0"}}`, n.networks)
	var out bytes.Buffer
	err := Run(Environment{
		Command: command, ContainerID: container, Args: "K8S_POD_NAMESPACE=" + namespace, Path: n.plugins,
	}, strings.NewReader(config), &out, &out)
	return out.String(), err
}

const echo = "#!/bin/sh\nexec cat\n"

// A container that is attached stays on its network, and is found again, whatever becomes of the network's file.
func TestAttachmentsAreRemembered(t *testing.T) {
	n := newNode(t)
	n.write(t, filepath.Join(n.plugins, "bridge"), echo)
	n.write(t, filepath.Join(n.networks, "infra-a.json"), `{"name":"a","bridge":"lc1","subnet":"10.180.0.0/24"}`)
	for _, step := range []struct{ command, container, namespace, bridge string }{
		{"ADD", "c1", "infra-a", "lc1"}, {"ADD", "c2", "default", "cni0"}, {"CHECK", "c1", "infra-a", "lc1"},
		{"DEL", "c1", "infra-a", "lc1"}, {"DEL", "c2", "default", "cni0"},
	} {
		out, err := n.run(step.command, step.container, step.namespace)
		if err != nil || !strings.Contains(out, `"bridge":"`+step.bridge+`"`) {
			t.Errorf("%s of %s: %s, %v", step.command, step.container, out, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(n.networks), "attachments")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A pod of a network is never attached to that of all others because something is wrong with its own.
func TestABrokenNetworkIsNoOtherOne(t *testing.T) {
	n := newNode(t)
	n.write(t, filepath.Join(n.plugins, "bridge"), echo)
	n.write(t, filepath.Join(n.networks, "infra-a.json"), "{")
	if out, err := n.run("ADD", "c1", "infra-a"); err == nil || !strings.Contains(err.Error(), "infra-a.json") ||
		out != "" {
		t.Errorf("got %s, %v", out, err)
	}
}

// The plugin has said on its output what is wrong; a detachment that failed is repeated with what is remembered.
func TestADelegateThatFails(t *testing.T) {
	n := newNode(t)
	n.write(t, filepath.Join(n.plugins, "bridge"), echo)
	n.write(t, filepath.Join(n.networks, "infra-a.json"), `{"name":"a","bridge":"lc1","subnet":"10.180.0.0/24"}`)
	if _, err := n.run("ADD", "c1", "infra-a"); err != nil {
		t.Fatal(err)
	}
	n.write(t, filepath.Join(n.plugins, "bridge"), "#!/bin/sh\necho '{\"code\":11}'\nexit 3\n")
	out, err := n.run("DEL", "c1", "infra-a")
	var failed *DelegateError
	if !errors.As(err, &failed) || failed.Code != 3 || !strings.Contains(out, `"code":11`) {
		t.Errorf("got %s, %v", out, err)
	}
	n.write(t, filepath.Join(n.plugins, "bridge"), echo)
	if err := os.Remove(filepath.Join(n.networks, "infra-a.json")); err != nil {
		t.Fatal(err)
	}
	if out, err := n.run("DEL", "c1", "infra-a"); err != nil || !strings.Contains(out, `"bridge":"lc1"`) {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	n := newNode(t)
	if _, err := n.run("ADD", "c1", "default"); err == nil ||
		!strings.Contains(err.Error(), `plugin "bridge" is in none of`) {
		t.Errorf("got %v", err)
	}
	var out bytes.Buffer
	if err := Run(Environment{Command: "VERSION"}, strings.NewReader(""), &out, &out); err != nil ||
		!strings.Contains(out.String(), "supportedVersions") {
		t.Errorf("got %s, %v", out.String(), err)
	}
	// A namespace is a name and no way to other files.
	n.write(t, filepath.Join(filepath.Dir(n.networks), "secret.json"), `{"name":"s"}`)
	for _, namespace := range []string{"../secret", "", "a.b"} {
		if network, err := ReadNetwork(n.networks, namespace); network != nil || err != nil {
			t.Errorf("%q: got %+v, %v", namespace, network, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.0.0","name":"pods","delegate":{"type":"bridge"},"prevResult":{}}`))
	f.Add([]byte(`{"delegate":{"type":7}}`))
	f.Fuzz(func(t *testing.T, stdin []byte) {
		config, all, err := ParseConfig(stdin)
		if err != nil {
			return
		}
		for _, network := range []*NetworkFile{nil, {Name: "a", Bridge: "lc1"}} {
			if delegation, err := Delegate(config, all, network); err == nil && delegation.Plugin == "" {
				t.Errorf("%s is handed to no plugin", stdin)
			}
		}
	})
}
