package trellisctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	remembered := Target{Garden: "g", Project: "p", Shoot: "s", ControlPlane: true}
	for name, c := range map[string]struct{ flags, want Target }{
		"nothing given":         {Target{}, remembered},
		"another shoot":         {Target{Shoot: "t"}, Target{Garden: "g", Project: "p", Shoot: "t"}},
		"another project":       {Target{Project: "q"}, Target{Garden: "g", Project: "q"}},
		"another garden":        {Target{Garden: "h"}, Target{Garden: "h"}},
		"a seed":                {Target{Seed: "x"}, Target{Garden: "g", Seed: "x"}},
		"project and shoot":     {Target{Project: "q", Shoot: "t"}, Target{Garden: "g", Project: "q", Shoot: "t"}},
		"control plane of this": {Target{ControlPlane: true}, remembered},
	} {
		t.Run(name, func(t *testing.T) {
			if got := remembered.Merge(c.flags); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestValidateTarget(t *testing.T) {
	for name, c := range map[string]struct {
		target  Target
		problem string
	}{
		"shoot":                     {Target{Project: "p", Shoot: "s"}, ""},
		"shoot by seed and project": {Target{Project: "p", Seed: "x", Shoot: "s"}, ""},
		"control plane of nothing":  {Target{ControlPlane: true}, "--shoot"},
		"project and seed":          {Target{Project: "p", Seed: "x"}, "leave out one"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.target.Validate()
			if (err == nil) != (c.problem == "") || (err != nil && !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("got %v, want %q", err, c.problem)
			}
		})
	}
}

func TestTargetIsRemembered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "session")
	if target, err := LoadTarget(dir); err != nil || target != (Target{}) {
		t.Fatalf("before: %v, %v", target, err)
	}
	want := Target{Garden: "g", Project: "p", Shoot: "s", ControlPlane: true}
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadTarget(dir); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "target.yaml"), []byte("{garden"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTarget(dir); err == nil || !strings.Contains(err.Error(), "target unset") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestSessionDirOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	err := Target{Garden: "g"}.Save(dir)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder that others may write must be refused, got %v", err)
	}
}

func TestSessionDirFollowsTheSession(t *testing.T) {
	t.Setenv(SessionEnv, "a/../b c")
	if dir := SessionDir(); strings.Contains(dir, "..") || strings.Contains(dir, " ") {
		t.Errorf("got %s", dir)
	}
}
