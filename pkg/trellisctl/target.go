package trellisctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/trellisctl/certcache"
)

// SessionEnv names the environment variable that tells sessions apart; the terminal's TERM_SESSION_ID and else the
// parent process (the shell) serve where it is not set.
const SessionEnv = "TRELLISCTL_SESSION_ID"

// Target is what commands are about.
type Target struct {
	Garden       string `json:"garden,omitempty"`
	Project      string `json:"project,omitempty"`
	Seed         string `json:"seed,omitempty"`
	Shoot        string `json:"shoot,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

// Merge lays flags over the remembered target: the remembered one fills only levels above the first flag given.
func (t Target) Merge(flags Target) Target {
	switch {
	case flags.Garden != "":
		return flags
	case flags.Project != "" || flags.Seed != "":
		flags.Garden = t.Garden
		return flags
	case flags.Shoot != "":
		flags.Garden, flags.Project, flags.Seed = t.Garden, t.Project, t.Seed
		return flags
	}
	t.ControlPlane = t.ControlPlane || flags.ControlPlane
	return t
}

// Validate tells whether the levels fit together.
func (t Target) Validate() error {
	if t.ControlPlane && t.Shoot == "" {
		return errors.New("--control-plane needs a shoot: add --shoot NAME")
	}
	if t.Project != "" && t.Seed != "" && t.Shoot == "" {
		return errors.New("a project and a seed are given without a shoot: leave out one of them, or add --shoot NAME")
	}
	return nil
}

// Without is the target when a level is forgotten, with what is below it.
func (t Target) Without(level string) Target {
	switch level {
	case "garden":
		return Target{}
	case "project":
		t.Project, t.Shoot, t.ControlPlane = "", "", false
	case "seed":
		t.Seed = ""
		if t.Project == "" {
			t.Shoot, t.ControlPlane = "", false
		}
	case "shoot":
		t.Shoot, t.ControlPlane = "", false
		if t.Project != "" {
			t.Seed = "" // It told where the shoot is, and makes no target together with a project.
		}
	case "control-plane":
		t.ControlPlane = false
	}
	return t
}

// String is the target as a path.
func (t Target) String() string {
	var parts []string
	for _, part := range []struct{ level, name string }{
		{"garden", t.Garden}, {"project", t.Project}, {"seed", t.Seed}, {"shoot", t.Shoot},
	} {
		if part.name != "" {
			parts = append(parts, part.level+"/"+part.name)
		}
	}
	if t.ControlPlane {
		parts = append(parts, "control-plane")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

var sessionPattern = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// SessionDir is the folder of this session's target.
func SessionDir() string {
	id := os.Getenv(SessionEnv)
	if id == "" {
		id = os.Getenv("TERM_SESSION_ID")
	}
	if id == "" {
		id = "shell-" + strconv.Itoa(os.Getppid())
	}
	return filepath.Join(os.TempDir(), "trellisctl-"+strconv.Itoa(os.Getuid()),
		sessionPattern.ReplaceAllString(id, "_"))
}

// LoadTarget reads the remembered target; none is not an error.
func LoadTarget(dir string) (Target, error) {
	var target Target
	data, err := os.ReadFile(filepath.Join(dir, "target.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return target, nil
	}
	if err != nil {
		return target, err
	}
	if err := yaml.UnmarshalStrict(data, &target); err != nil {
		return target, fmt.Errorf("%s: %w; remove it with `trellisctl target unset`", filepath.Join(dir, "target.yaml"),
			err)
	}
	return target, nil
}

// Save remembers the target for this session.
func (t Target) Save(dir string) error {
	data, err := yaml.Marshal(t)
	if err != nil {
		return err
	}
	if err := makeSessionDir(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "target.yaml"), data, 0o600)
}

// makeSessionDir makes the folder of a session, for this user alone: it lies where others may write, and will hold
// keys.
func makeSessionDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, path := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() || certcache.OpenTo(info, 0o022) || !ownedByUser(info) {
			return fmt.Errorf("%s must be a folder of yours that nobody else may write to: remove it, and try again",
				path)
		}
	}
	return nil
}
