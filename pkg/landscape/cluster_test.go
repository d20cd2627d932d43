package landscape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/images"
)

// Who waits in vain is told what was missing last, not that time is over.
func TestAwait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := await(ctx, func(context.Context) (string, error) {
		if tries++; tries == 2 {
			cancel()
			// The question itself fails with the context; that is not what is missing.
			return "context canceled", nil
		}
		return "node is not ready", nil
	})
	if err == nil || err.Error() != "node is not ready" {
		t.Errorf("got %v", err)
	}
	refused := errors.New("refused")
	if err := await(t.Context(), func(context.Context) (string, error) { return "", refused }); !errors.Is(err,
		refused) {
		t.Errorf("an error that waiting does not mend: %v", err)
	}
	tries = 0
	if err := await(t.Context(), func(context.Context) (string, error) {
		tries++
		return map[bool]string{true: "not yet"}[tries < 3], nil
	}); err != nil || tries != 3 {
		t.Errorf("got %v after %d tries", err, tries)
	}
}

func TestCondition(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		"garbage", map[string]any{"type": "Ready", "status": "False", "message": "no heartbeat"},
		map[string]any{"type": "Other", "status": "True"},
	}}}}
	for kind, want := range map[string][2]string{
		"Ready": {"False", "no heartbeat"}, "Other": {"True", ""}, "None": {"", "no condition None yet"},
	} {
		if status, message := condition(object, kind); status != want[0] || message != want[1] {
			t.Errorf("%s: got %q, %q", kind, status, message)
		}
	}
}

func TestWhatTheNodeLacks(t *testing.T) {
	with := func(conditions ...corev1.NodeCondition) client.Client {
		return fake.NewClientBuilder().WithObjects(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{Conditions: conditions},
		}).Build()
	}
	for name, test := range map[string]struct {
		client client.Client
		want   string
	}{
		"not registered":   {fake.NewClientBuilder().Build(), `nodes "local-node" not found`},
		"nothing reported": {with(corev1.NodeCondition{Type: corev1.NodeDiskPressure}), "node has not reported yet"},
		"not ready": {
			with(corev1.NodeCondition{Type: corev1.NodeReady, Status: "False", Message: "no network"}),
			"node is not ready: no network",
		},
		"ready": {with(corev1.NodeCondition{Type: corev1.NodeReady, Status: "True"}), ""},
	} {
		if got := nodeMissing(t.Context(), test.client, nodeName); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if got := controllersMissing(t.Context(), fake.NewClientBuilder().WithObjects(account).Build()); got != "" {
		t.Errorf("got %q", got)
	}
	if got := controllersMissing(t.Context(), fake.NewClientBuilder().Build()); !strings.HasPrefix(got,
		"kube-controller-manager: ") {
		t.Errorf("got %q", got)
	}
}

func TestReadyz(t *testing.T) {
	code := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(code)
	}))
	if got := readyz(t.Context(), server.Client(), server.URL); got != server.URL+
		" is not ready: 500 Internal Server Error" {
		t.Errorf("got %q", got)
	}
	code = http.StatusOK
	if got := readyz(t.Context(), server.Client(), server.URL); got != "" {
		t.Errorf("got %q", got)
	}
	server.Close()
	if got := readyz(t.Context(), server.Client(), server.URL); !strings.Contains(got, "does not answer") {
		t.Errorf("got %q", got)
	}
}

// Workloads of shoots are in the state of their Shoot; the table has those of the landscape itself.
func TestWorkloadsOfTheLandscape(t *testing.T) {
	deployment := func(namespace, name string, ready int32) *appsv1.Deployment {
		one := int32(1)
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       appsv1.DeploymentSpec{Replicas: &one},
			Status: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: ready, AvailableReplicas: ready,
			},
		}
	}
	c := fake.NewClientBuilder().WithObjects(deployment("garden", "etcd", 1), deployment("garden", "gardenlet", 0),
		deployment("shoot--demo--one", "etcd", 0)).Build()
	lines := workloads(t.Context(), c, &appsv1.DeploymentList{})
	if len(lines) != 2 || lines[0].part != "garden/etcd" || !lines[0].healthy || lines[0].detail != "ready" {
		t.Fatalf("got %+v", lines)
	}
	if lines[1].part != "garden/gardenlet" || lines[1].healthy || lines[1].detail == "ready" {
		t.Errorf("got %+v", lines[1])
	}
}

// A landscape that does not run says how it is started, and tells scripts by its error.
func TestStatusWithoutANode(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := l.Status(t.Context(), &out); !errors.Is(err, ErrUnhealthy) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "does not run; `make up NAME=other` starts it") {
		t.Errorf("got %s", out.String())
	}
	if _, err := l.Exec(t.Context(), "", "true"); err == nil || !strings.Contains(err.Error(), "`make up NAME=other`") {
		t.Errorf("got %v", err)
	}
}

// Secrets are rolled out by a checksum: it follows every byte, and not the order of maps.
func TestChecksumOfSecrets(t *testing.T) {
	base := func() map[string]map[string][]byte {
		return map[string]map[string][]byte{"a": {"x": []byte("1"), "y": []byte("2")}, "b": {"x": []byte("3")}}
	}
	first := checksumOf(base())
	for range 10 {
		if got := checksumOf(base()); got != first {
			t.Fatalf("got %s and %s for the same", first, got)
		}
	}
	for name, change := range map[string]func(map[string]map[string][]byte){
		"a value":     func(s map[string]map[string][]byte) { s["a"]["x"] = []byte("4") },
		"a key more":  func(s map[string]map[string][]byte) { s["b"]["z"] = nil },
		"moved bytes": func(s map[string]map[string][]byte) { s["a"]["x"], s["a"]["y"] = []byte("12"), nil },
		"another Secret": func(s map[string]map[string][]byte) {
			s["c"] = map[string][]byte{"x": []byte("3")}
			delete(s, "b")
		},
	} {
		changed := base()
		change(changed)
		if checksumOf(changed) == first {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestSecretsAreReplacedWhole(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	for _, data := range []map[string][]byte{{"a": []byte("1"), "b": []byte("2")}, {"a": []byte("3")}} {
		if err := writeSecret(t.Context(), c, "garden", "dns", data); err != nil {
			t.Fatal(err)
		}
		stored := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "dns"}, stored); err != nil ||
			len(stored.Data) != len(data) || string(stored.Data["a"]) != string(data["a"]) {
			t.Errorf("got %v, %v", stored.Data, err)
		}
	}
}

// Tokens are made once: another run of a phase must change nothing.
func TestKeptFiles(t *testing.T) {
	l, err := New(DefaultName, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Landscape: l}
	made := 0
	create := func() ([]byte, error) { made++; return randomHex(8), nil }
	first, err := r.keep("token", create)
	if err != nil || len(first) != 16 {
		t.Fatalf("got %q, %v", first, err)
	}
	again, err := r.keep("token", create)
	if err != nil || string(again) != string(first) || made != 1 {
		t.Errorf("got %q after %q, made %d times, %v", again, first, made, err)
	}
	if info, err := os.Stat(r.path("token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	failed := errors.New("failed")
	if _, err := r.keep("other", func() ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(r.path("other")); !os.IsNotExist(err) {
		t.Errorf("half a file is kept: %v", err)
	}
}

// A file of an interrupted run neither survives beside the new one nor gives it its mode.
func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "key")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".key.new"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"one", "two", "two"} {
		if err := replaceFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(data) != content || info.Mode().Perm() != 0o600 {
			t.Errorf("got %q with %v, %v, %v", data, info.Mode(), err, statErr)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o644 {
		t.Errorf("an unchanged file was written anew, or keeps its mode: %v, %v", after.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// The programs for people are links into what was built, which survive a move of the clone.
func TestLinkedPrograms(t *testing.T) {
	l, err := New(DefaultName, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(l.BinDir(), "kubectl"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.linkPrograms(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(l.builtProgram("trellisctl")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.builtProgram("trellisctl"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(l.Root, moved); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trellisctl", "kubectl-trellis"} {
		if data, err := os.ReadFile(filepath.Join(moved, "bin", name)); err != nil || string(data) != "binary" {
			t.Errorf("%s: got %q, %v", name, data, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(moved, "bin", "kubectl")); err != nil || filepath.IsAbs(target) {
		t.Errorf("got %q, %v", target, err)
	}
}

func TestStateOfALandscape(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := l.state(); err != nil || s.Name != "" {
		t.Errorf("one that was never started: %+v, %v", s, err)
	}
	if err := os.MkdirAll(l.StateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("state.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.state(); err == nil || !strings.Contains(err.Error(), l.path("state.json")) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(l.path("state.json"), []byte(`{"name":"other","loopback":"127.40.1.1"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	s, err := l.state()
	if err != nil || s.Loopback.String() != "127.40.1.1" || s.running() {
		t.Errorf("got %+v, %v", s, err)
	}
	if addresses := taken([]state{s}); !addresses[s.Loopback] || len(addresses) != 1 {
		t.Errorf("got %v", addresses)
	}
}

// A landscape of the same name elsewhere that no longer runs is no reason to refuse; this one is not its own neighbour.
func TestOtherLandscapes(t *testing.T) {
	l, err := New("one", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	others, err := l.others([]state{
		{Name: "one", Dir: "/elsewhere/.landscape-one"}, {Name: "two", Dir: "/clone/.landscape-two"},
		{Name: "one", Dir: l.StateDir()},
	})
	if err != nil || len(others) != 1 || others[0].Name != "two" {
		t.Errorf("got %+v, %v", others, err)
	}
}

func TestRemoveState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".landscape")
	if err := os.MkdirAll(filepath.Join(dir, "node", "var"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeState(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// What is in the way of removing a record is an error; a folder that others still use is none.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	used := filepath.Join(dir, "used")
	if err := os.MkdirAll(filepath.Join(used, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{used, filepath.Join(dir, "none"), filepath.Join(used, "file")} {
		if err := remove(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(used, "file")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// People name phases on the command line, and a phase that stalls must end some time.
func TestPhases(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range l.phases() {
		if seen[p.name] || p.name == "" || p.title == "" || p.run == nil || p.patience <= 0 {
			t.Errorf("phase %+v", p)
		}
		seen[p.name] = true
		for _, place := range p.lookAt {
			if strings.Contains(place, ".landscape/") {
				t.Errorf("%s sends people to another landscape: %s", p.name, place)
			}
		}
	}
	if names := PhaseNames(); len(names) != len(seen) || names[0] != "host" {
		t.Errorf("got %v", names)
	}
}

// Who mistypes is told what the flag may be, and the clone is as it was before.
func TestRefusedOptionsLeaveNothing(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(l.Root, "images/kubernetes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Root, "images/kubernetes/go-1.35.4.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]UpOptions{
		`--phase is "sead", and has to be one of host, build, node,`:                 {Phases: []string{"build", "sead"}},
		"--nodes is 12, and has to be a number from 1 to 9, as in `make up NODES=3`": {Nodes: 12},
		`--kubernetes-version is "1.34.0", and has to be one of ` + images.DefaultKubernetesVersion + ", 1.35.4, as in": {
			KubernetesVersions: []string{"1.34.0"},
		},
	} {
		do := map[string]func(context.Context, UpOptions, *Progress) error{"up": l.Up}
		if len(options.KubernetesVersions) > 0 {
			do["images"] = l.Build
		}
		for name, run := range do {
			err := run(t.Context(), options, &Progress{out: io.Discard, log: io.Discard})
			if err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "goes on from here") {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
			if _, err := os.Stat(l.StateDir()); err == nil {
				t.Errorf("%s: there is a state folder", want)
			}
		}
	}
}

// The error of a phase says what was wrong, where to look and how to go on.
func TestAPhaseThatFails(t *testing.T) {
	l, err := New("other", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Landscape: l, Progress: NewProgress(out)}
	err = r.runPhase(t.Context(), phase{
		title: "Garden", patience: time.Minute, lookAt: []string{"the log"},
		run: func(context.Context, *run) error { return errors.New("no etcd") },
	})
	for _, part := range []string{
		"Garden: no etcd", "Where to look:\n  the log",
		"`make up NAME=other` goes on from here, `make down NAME=other` removes everything",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
	shown, readErr := os.ReadFile(out.Name())
	if readErr != nil || !strings.Contains(string(shown), "✘ Garden") {
		t.Errorf("shown %q, %v", shown, readErr)
	}
	if err := r.runPhase(t.Context(),
		phase{
			title: "Seed", patience: time.Minute, run: func(context.Context, *run) error { return nil },
		}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestFindRoot(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "pkg", "deep")
	for _, dir := range []string{below, filepath.Join(root, "charts")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(below)
	if _, err := FindRoot(""); err == nil || !strings.Contains(err.Error(), "is not in a clone of Trellis") {
		t.Errorf("got %v", err)
	}
	if _, err := FindRoot(root); err == nil || !strings.Contains(err.Error(), "--root is") {
		t.Errorf("got %v", err)
	}
	for _, file := range []string{"go.mod", "charts/charts.go"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, given := range []string{"", root} {
		if got, err := FindRoot(given); err != nil || got != root {
			t.Errorf("%q: got %s, %v", given, got, err)
		}
	}
}

// All files of values that phases read are YAML of the repository; a broken one is named.
func TestReadYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte("a: {b: [1]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if values, err := readYAML(path); err != nil || len(values) != 1 {
		t.Errorf("got %v, %v", values, err)
	}
	if err := os.WriteFile(path, []byte("a: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readYAML(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}
