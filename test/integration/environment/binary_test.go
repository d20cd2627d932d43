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
