package environment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrongBinaryIsToldWithItsVariable(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(folder, "missing"), folder, text} {
		t.Setenv(binaryVariable, path)
		_, err := KubernetesBinary()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), binaryVariable) ||
			!strings.Contains(err.Error(), "make bin/kubernetes") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(binaryVariable, self)
	if path, err := KubernetesBinary(); err != nil || path != self {
		t.Errorf("got %q, %v", path, err)
	}
}

// The repository is found from folders below it without a look at what changes with each new module, so that tests of
// before need not run again then.
func TestTheBinaryOfTheRepository(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "test", "integration", "some")
	for _, folder := range []string{below, filepath.Join(root, "bin")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(binaryVariable, "")
	t.Chdir(below)
	if _, err := KubernetesBinary(); err == nil || !strings.Contains(err.Error(), "no repository around") {
		t.Errorf("without a repository: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "LICENSE"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := KubernetesBinary(); err == nil || !strings.Contains(err.Error(), "is not built") {
		t.Errorf("without a binary: got %v", err)
	}
	binary := filepath.Join(root, "bin", "kubernetes")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := KubernetesBinary(); err != nil || path != binary {
		t.Errorf("got %s, %v", path, err)
	}
}
