package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/prober"
)

var zeroCounts prober.Counts

func shootFrom(t *testing.T, text string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	if err := json.Unmarshal([]byte(text), shoot); err != nil {
		t.Fatal(err)
	}
	return shoot
}

func TestShootsAreDoneAndHealthy(t *testing.T) {
	const done = `"observedGeneration": 2, "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100}`
	for _, test := range []struct {
		name, status string
		// without is part of why it is not done, and unhealthy of why it is not healthy; empty if it is.
		without, unhealthy string
	}{
		{"new", ``, "nothing was done", "nothing was done"},
		{
			"under way",
			`"observedGeneration": 2, "lastOperation": {"type": "Create", "state": "Processing", "progress": 40}`,
			"Create Processing (40%)", "Processing",
		},
		{
			"of before the change",
			`"observedGeneration": 1, "lastOperation": {"type": "Create", "state": "Succeeded"}`,
			"generation 1 of 2", "generation 1 of 2",
		},
		{
			"another operation",
			`"observedGeneration": 2, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}, ` +
				`"conditions": [{"type": "A", "status": "True"}]`,
			"Reconcile Succeeded", "",
		},
		{"without conditions", done, "", "no conditions"},
		{
			"one that does not hold", done + `, "conditions": [{"type": "A", "status": "True"}, ` +
				`{"type": "B", "status": "Progressing", "message": "soon"}]`,
			"", "B is Progressing: soon",
		},
		{"healthy", done + `, "conditions": [{"type": "A", "status": "True"}]`, "", ""},
	} {
		shoot := shootFrom(t, `{"metadata": {"name": "one", "generation": 2}, "status": {`+test.status+`}}`)
		for _, check := range []struct {
			err  error
			want string
		}{
			{succeeded(shoot, gardencorev1beta1.LastOperationTypeCreate), test.without},
			{healthy(shoot), test.unhealthy},
		} {
			if (check.err == nil) != (check.want == "") ||
				check.err != nil && !strings.Contains(check.err.Error(), check.want) {
				t.Errorf("%s: got %v, want %q", test.name, check.err, check.want)
			}
		}
	}
}

// inRoot has a test read files as the program does, which runs in the root of the repository.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

func TestManifestsOfShoots(t *testing.T) {
	inRoot(t)
	member, err := shootLikeMember1("grown")
	if err != nil {
		t.Fatal(err)
	}
	older, err := olderShoot("upgraded")
	if err != nil {
		t.Fatal(err)
	}
	for name, manifest := range map[string]string{
		"grown": member, "upgraded": older, "dense-3": denseShoot("dense-3", "dense-0"),
	} {
		if !strings.Contains(manifest, "\n  name: "+name+"\n") ||
			!strings.Contains(manifest, "\n    federation.trellis.garden/join: \"false\"\n") {
			t.Errorf("%s has another name, or joins the fleet:\n%s", name, manifest)
		}
	}
	if strings.Contains(older, newerVersion) || strings.Count(older, "version: "+olderVersion) != 2 {
		t.Errorf("control plane and pool do not have the older version:\n%s", older)
	}
}

func TestPodsOfNamespaces(t *testing.T) {
	const lines = "shoot--demo--a 1\nshoot--demo--ab 2\nkube-system 3\nshoot--demo--b 4\nshoot--demo--a 5\n\n"
	got := uidsIn(lines, []string{technicalNamespace("a"), technicalNamespace("b")})
	if want := []string{"1", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The script that runs in the landscape adds up a file of those processes only in whose cgroups a UID is.
func TestSumsOverProcesses(t *testing.T) {
	proc := t.TempDir()
	for process, files := range map[string]map[string]string{
		"1": {
			"cgroup": "0::/kubepods/pod-a/x\n", "stat": "1 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 20 0\n",
			"smaps_rollup": "Pss: 5 kB\n",
		},
		"22": {
			"cgroup": "0::/kubepods/pod-b\n", "stat": "22 (x) S 1 2 3 4 5 6 7 8 9 10 1 2 0\n",
			"smaps_rollup": "Rss: 9 kB\nPss: 3000000000 kB\nPss_Anon: 1 kB\n",
		},
		"3": {
			"cgroup": "0::/system\n", "stat": "3 (x) S 1 2 3 4 5 6 7 8 9 10 50 50 0\n", "smaps_rollup": "Pss: 7 kB\n",
		},
		// One that has just ended.
		"4": {"cgroup": "0::/kubepods/pod-a/y\n"},
	} {
		for name, content := range files {
			path := filepath.Join(proc, process, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	script := strings.ReplaceAll(overProcesses, "/proc/", proc+"/")
	for _, test := range []struct{ uids, file, program, want string }{
		{"pod-a pod-b", "smaps_rollup", pssOfRollup, "3000000005"},
		{"pod-a pod-b", "stat", ticksOfStat, "123"},
		{"pod-b", "stat", ticksOfStat, "3"},
		{"pod-c", "stat", ticksOfStat, "0"},
	} {
		out, err := exec.Command("sh", "-c", script, test.uids, test.file, test.program).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != test.want {
			t.Errorf("%s of %s: got %q, %v, want %s", test.file, test.uids, got, err, test.want)
		}
	}
}

func TestDensityEnds(t *testing.T) {
	s := densitySettings{most: 10, batch: 4, patience: 1, spareGiB: 2}
	for _, test := range []struct {
		created   int
		available float64
		want      int
		full      string
	}{
		{0, 8, 4, ""}, {8, 8, 2, ""}, {4, 2, 4, ""}, {10, 8, 0, "no more than 10"}, {4, 1.9, 0, "less than 2 GiB"},
		{0, 1, 0, "less than 2 GiB"},
	} {
		count, full := s.next(test.created, test.available)
		if count != test.want || !strings.HasPrefix(full, test.full) || (full == "") != (test.full == "") {
			t.Errorf("%d shoots, %g GiB: got %d, %q, want %d, %q", test.created, test.available, count, full, test.want,
				test.full)
		}
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []densitySettings{{}, {1, 0, 1, 1}, {0, 1, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, -1}} {
		if err := wrong.validate(); err == nil || !strings.Contains(err.Error(), "--density-count") {
			t.Errorf("%+v: got %v", wrong, err)
		}
	}
}

func TestDensityPerControlPlane(t *testing.T) {
	d := density{names: []string{"a", "b", "c", "d"}, full: "it was full", settings: densitySettings{batch: 2}}
	got := map[string]float64{}
	for _, m := range d.figures(800_000_000, 0.2) {
		got[m.Name] = m.Value
	}
	if got[figureDensity] != 4 || got[figureDensityMemory] != 200 || got[figureDensityCPU] != 5 {
		t.Errorf("got %v", got)
	}
}

// Memory is told by the machine that the test runs on.
func TestAvailableMemory(t *testing.T) {
	if available, err := availableGiB(); err != nil || available <= 0 {
		t.Errorf("got %g GiB, %v", available, err)
	}
}
