package node

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSpecSurvivesItsFile(t *testing.T) {
	spec := Spec{
		Name: "local", Hostname: "node", Dir: t.TempDir(), Address: "172.18.0.2/24",
		Files:    []File{{Path: "/etc/hosts", Content: "127.0.0.1 localhost\n", Mode: 0o644}},
		Forwards: []Forward{{Listen: "127.32.1.1:443", Target: "172.18.0.2:443"}},
	}
	path, err := spec.Save()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadSpec(path)
	if err != nil {
		t.Fatal(err)
	}
	if !loaded.Equal(spec) {
		t.Errorf("got %+v, want %+v", loaded, spec)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	for name, test := range map[string]struct {
		line  string
		state byte
		start uint64
		fails bool
	}{
		"plain":               {line: "12 (systemd)" + rest, state: 'S', start: 4711},
		"parentheses in name": {line: "12 (a) b (c)" + rest, state: 'S', start: 4711},
		"no name":             {line: "12 S", fails: true},
		"cut off":             {line: "12 (x) S 1 2", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			state, start, err := parseStat([]byte(test.line))
			if (err != nil) != test.fails || state != test.state || start != test.start {
				t.Errorf("got %c, %d, %v", state, start, err)
			}
		})
	}
}

func TestProcessIsKnownByItsStart(t *testing.T) {
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill() }()
	process, err := LookUp(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !process.Running() {
		t.Error("a running process is not running")
	}
	recycled := process
	recycled.Start++
	if recycled.Running() {
		t.Error("another process with the same PID is taken for the one that was meant")
	}
	go func() { _ = command.Wait() }()
	if err := process.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if process.Running() {
		t.Error("a killed process runs")
	}
}

func TestParseHierarchies(t *testing.T) {
	const v1 = `30 29 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
33 30 0:30 / /mnt/cgroup rw - cgroup cgroup rw,memory
`
	const v2 = "30 29 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	for name, test := range map[string]struct {
		mountinfo string
		want      []hierarchy
	}{
		"v1 with a v2 beside it": {
			v1, []hierarchy{{path: "/sys/fs/cgroup/cpu"}, {path: "/sys/fs/cgroup/unified", v2: true}},
		},
		"v2 only": {v2, []hierarchy{{path: "/sys/fs/cgroup", v2: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseHierarchies(strings.NewReader(test.mountinfo))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestReplaceDoesNotFollowLinks(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "etc", "resolv.conf")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := replace(link, func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "untouched" {
		t.Errorf("the link's target was written: %s, %v", data, err)
	}
}

func TestForwardKeepsAnswersAfterTheQuestionEnds(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	go func() {
		connection, err := target.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		question, _ := io.ReadAll(connection)
		_, _ = connection.Write(append([]byte("answer to "), question...))
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() { _ = forward(ctx, listener, target.Addr().String()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || string(answer) != "answer to question" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestAwaitReport(t *testing.T) {
	for report, want := range map[string]string{
		"ready\n":              "",
		"network: no bridge\n": "network: no bridge",
		"":                     "its first process ended without a word",
		"ready\nbecoming systemd: no such file\n": "becoming systemd: no such file",
	} {
		got := ""
		if err := awaitReport(strings.NewReader(report)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("report %q: got %q, want %q", report, got, want)
		}
	}
}

func TestMissingControllers(t *testing.T) {
	for name, test := range map[string]struct{ available, enabled, want string }{
		"machine with systemd": {"cpuset cpu io memory hugetlb pids rdma misc", "cpu memory pids", "cpuset io"},
		"all there":            {"cpuset cpu io memory pids", "cpuset cpu io memory pids", ""},
		"all mounted as v1":    {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(missingControllers(test.available, test.enabled), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestLandscapeHasMoreOfTheCPUThanOneProcess(t *testing.T) {
	for name, test := range map[string]struct {
		v2         bool
		file, want string
	}{
		"v2":                 {true, "cpu.weight", "1000"},
		"v1":                 {false, "cpu.shares", "10240"},
		"another hierarchy":  {false, "memory.limit_in_bytes", "100"},
		"v2 without the CPU": {true, "memory.max", "100"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte("100"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := (hierarchy{v2: test.v2}).prefer(dir); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, test.file))
			if err != nil || string(got) != test.want {
				t.Errorf("%s is %s, %v", test.file, got, err)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
				t.Errorf("there are %v, %v", files, err)
			}
		})
	}
}
