package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/test/ports"
	"github.com/trellis-garden/trellis/test/precedence"
)

const (
	serveEnv = "ETCD_STEWARD_TEST_OPTIONS"
	// killEnv names the step of a restore at which a steward is killed.
	killEnv = "ETCD_STEWARD_TEST_KILL"
)

// TestMain lets the test binary stand in for etcd-steward, so that tests can kill it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == VerifyCommand {
		exit(Verify(os.Args[3]))
	}
	if len(os.Args) == 4 && os.Args[1] == InspectCommand {
		revision, err := Inspect(os.Args[3])
		fmt.Println(revision)
		exit(err)
	}
	if encoded := os.Getenv(serveEnv); encoded != "" {
		var options Options
		if err := json.Unmarshal([]byte(encoded), &options); err != nil {
			exit(err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		log, err := zap.NewProduction(zap.AddStacktrace(zap.PanicLevel))
		if err != nil {
			exit(err)
		}
		exit(newTestSteward(options, log).Run(ctx))
	}
	precedence.Take()
	// Tests wait for stewards most of the time. A default, which the command line may change.
	if err := flag.Set("test.parallel", "5"); err != nil {
		exit(err)
	}
	os.Exit(m.Run())
}

// newTestSteward tries again sooner than others, and has a period of deltas that is too short for others.
func newTestSteward(options Options, log *zap.Logger) *Steward {
	delta := options.Store.DeltaSnapshotPeriod
	options.Store.DeltaSnapshotPeriod = max(delta, leastDeltaPeriod)
	s := New(options, log)
	s.measure = measureUnlessFull(options.DataDir)
	if s.backups != nil {
		p := &s.backups.pace
		p.delta, p.retry, p.mostRetry, p.retryFull = delta, 20*time.Millisecond, 100*time.Millisecond, time.Second
		p.ask, p.request, p.stop = time.Second, time.Second, 2*time.Second
	}
	s.onStep = func(reached string) {
		if reached == os.Getenv(killEnv) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		holdUp(options.DataDir, reached)
	}
	s.memberPace = memberPace{
		retry: 50 * time.Millisecond, mostRetry: 500 * time.Millisecond, ask: 5 * time.Second, change: 20 * time.Second,
		care: 50 * time.Millisecond, patience: time.Second, quorum: time.Second,
		round: 100 * time.Millisecond, compare: 10 * time.Second, settle: 100 * time.Millisecond,
		again: time.Millisecond, gather: 20 * time.Second,
	}
	return s
}

// heldMarker is a file that holds a restore up at a step while it is there.
func heldMarker(dataDir, step string) string { return dataDir + ".held-" + step }

func holdUp(dataDir, step string) {
	for told := false; ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(heldMarker(dataDir, step)); err != nil {
			return
		}
		if !told {
			fmt.Fprintln(os.Stderr, "held up at", step)
		}
		told = true
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	written := writeUntil(t, p, 200)
	p.kill(t)

	p = startProcess(t, options)
	checkKeys(t, p, written)
	if log := p.log(); !strings.Contains(log, "was not stopped in order") {
		t.Errorf("a crash was not noticed:\n%s", log)
	}
	p.stop(t)

	p = startProcess(t, options)
	checkKeys(t, p, written)
	if log := p.log(); strings.Contains(log, "was not stopped in order") {
		t.Errorf("an orderly stop was taken for a crash:\n%s", log)
	}
	p.kill(t)
}

func TestDamagedDataIsRestored(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dataDir string)
		says   string
	}{
		{
			"overwritten pages of the database",
			func(t *testing.T, dir string) { overwrite(t, dbPath(dir), 4096, 64<<10) }, "damaged",
		},
		{"an emptied database", func(t *testing.T, dir string) { truncate(t, dbPath(dir), 0) }, "damaged"},
		{"a shortened database", func(t *testing.T, dir string) { truncate(t, dbPath(dir), 10000) }, "damaged"},
		{
			"a database and a log that are overwritten",
			func(t *testing.T, dir string) {
				overwrite(t, dbPath(dir), 4096, 64<<10)
				overwrite(t, firstWAL(t, dir), 300, 2000)
			},
			"damaged",
		},
		{
			"a lost directory", func(t *testing.T, dir string) { removeAll(t, filepath.Join(dir, memberDir)) },
			"THE DATA IS GONE",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			options := testOptions(t)
			p := startProcess(t, options)
			written := writeUntil(t, p, 50)
			snapshot := p.waitForSnapshot(t, p.revision(t))
			p.kill(t)
			test.damage(t, options.DataDir)

			p = startProcess(t, options)
			defer p.kill(t)
			checkKeys(t, p, written)
			if revision := p.revision(t); revision <= snapshot.Revision {
				t.Errorf("revision is %d after restoring %d: clients would not notice", revision, snapshot.Revision)
			}
			checkCompacted(t, p, snapshot.Revision)
			cause := status.DataDamaged
			if test.says != "damaged" {
				cause = status.DataLost
			}
			got := checkRecovery(t, p, cause, status.BackupDirectory, "")
			if got.Restored.Backup != filepath.Base(snapshot.Path) || got.Restored.Revision != snapshot.Revision ||
				(got.Reason == "") != (cause == status.DataLost) {
				t.Errorf("told is %+v, restored %+v", got, got.Restored)
			}
			if log := p.log(); !strings.Contains(log, "RESTORED") || !strings.Contains(log, test.says) {
				t.Errorf("the log does not tell what happened:\n%s", log)
			}
		})
	}
}

func TestDamagedBackupFallsBackToTheOneBefore(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.waitForSnapshot(t, p.revision(t))
	p.put(t, "later", "x")
	newest := p.waitForSnapshot(t, p.revision(t))
	p.kill(t)
	overwrite(t, newest.Path, 8192, 100)
	removeAll(t, filepath.Join(options.DataDir, memberDir))

	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataLost, status.BackupDirectory, fmt.Sprintf("to %d, and at most", newest.Revision))
}

func TestStaleDataIsReplaced(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	p.stop(t)
	rolledBack := t.TempDir()
	if err := os.CopyFS(rolledBack, os.DirFS(options.DataDir)); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, options)
	revision := p.revision(t)
	written := writeUntil(t, p, 50)
	p.waitForSnapshot(t, revision+int64(written))
	p.stop(t)

	options.DataDir = rolledBack
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataStale, status.BackupDirectory, "at most what was written after revision")
	if log := p.log(); !strings.Contains(log, "stale") {
		t.Errorf("the log does not tell that the data was stale:\n%s", log)
	}
}

func TestDataLossWithoutBackup(t *testing.T) {
	options := testOptions(t)
	options.BackupDir = ""
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	seen := p.revision(t)
	p.kill(t)
	overwrite(t, dbPath(options.DataDir), 0, 64<<10)

	err := New(options, zap.NewNop()).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "there is no backup") {
		t.Fatalf("got %v, want a refusal", err)
	}
	options.OnDataLoss = StartEmpty
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, 0)
	checkCompacted(t, p, seen)
	checkRecovery(t, p, status.DataDamaged, status.Nothing, "all that it had")
	if aside, _ := filepath.Glob(filepath.Join(options.DataDir, "damaged-*", "snap", "db")); len(aside) != 1 {
		t.Errorf("the damaged data was not kept: %v", aside)
	}
}

func TestLostVolumeStartsBeyondWhatClientsKnow(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	seen := p.revision(t)
	p.kill(t)

	options.DataDir, options.BackupDir = t.TempDir(), t.TempDir()
	p = startProcess(t, options)
	checkKeys(t, p, 0)
	checkCompacted(t, p, seen)
	checkKeys(t, p, writeUntil(t, p, 5))
	p.kill(t)
}

func TestDataLossWithUnusableBackups(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	newest := p.waitForSnapshot(t, p.revision(t))
	p.kill(t)
	removeAll(t, filepath.Join(options.DataDir, memberDir))
	backups, err := ListSnapshots(options.BackupDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, backup := range backups {
		truncate(t, backup.Path, 1000)
	}

	err = New(options, zap.NewNop()).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "can be restored") {
		t.Fatalf("got %v, want a refusal", err)
	}
	options.OnDataLoss = StartEmpty
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, 0)
	checkCompacted(t, p, newest.Revision)
	checkRecovery(t, p, status.DataLost, status.Nothing, "all that it had")
}

// process is a steward in a process of its own.
type process struct {
	options Options
	command *exec.Cmd
	output  *output
	exited  chan struct{}
	client  *clientv3.Client
}

// output is what a process has printed so far.
type output struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.Write(p)
}

// String implements fmt.Stringer.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.String()
}

func testOptions(t *testing.T) Options {
	t.Helper()
	options := DefaultOptions()
	options.DataDir = t.TempDir()
	options.BackupDir = t.TempDir()
	options.SnapshotPeriod = 50 * time.Millisecond
	options.ListenClientURL = "http://" + freeAddress(t)
	options.ListenPeerURL = "http://" + freeAddress(t)
	options.HealthAddress = freeAddress(t)
	return options
}

// freeAddress is one that no connection takes while a steward that was stopped is started again.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func startProcess(t *testing.T, options Options) *process {
	t.Helper()
	p := launch(t, options)
	p.connect(t)
	return p
}

// launch starts a steward, with more in its environment, without waiting for it.
func launch(t *testing.T, options Options, environment ...string) *process {
	t.Helper()
	encoded, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		options: options, command: exec.Command(executable), output: &output{}, exited: make(chan struct{}),
	}
	// Many members share a few processors: one that wakes a second thread for each event takes a fifth more of them.
	p.command.Env = slices.Concat(os.Environ(), []string{"GOMAXPROCS=1"}, environment,
		[]string{serveEnv + "=" + string(encoded)})
	p.command.Stdout, p.command.Stderr = p.output, p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.command.Wait(); close(p.exited) }()
	t.Cleanup(func() { _ = p.command.Process.Kill(); <-p.exited })
	return p
}

// connect waits until a steward serves.
func (p *process) connect(t *testing.T) {
	t.Helper()
	p.waitUntil(t, "ready", p.ready)
	var err error
	p.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{p.options.ListenClientURL}, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.client.Close() })
}

func (p *process) ready() error {
	response, err := http.Get("http://" + p.options.HealthAddress + "/readyz")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	return errors.Join(fmt.Errorf("status %d: %s", response.StatusCode, body), err)
}

func (p *process) waitUntil(t *testing.T, what string, check func() error) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-p.exited:
			t.Fatalf("the steward ended while waiting for %s:\n%s", what, p.log())
		case <-timeout:
			t.Fatalf("%s: %v\n%s", what, err, p.log())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// log returns the output of an ended process, after ending it where needed.
func (p *process) log() string {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	<-p.exited
	return p.output.String()
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.exited
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	<-p.exited
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, p.output)
	}
}

// crash ends the steward as a crash does, but after all that was written has reached the database.
func (p *process) crash(t *testing.T) {
	t.Helper()
	p.stop(t)
	removeAll(t, filepath.Join(p.options.DataDir, cleanMarker))
}

func (p *process) put(t *testing.T, key, value string) {
	t.Helper()
	if _, err := p.client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func (p *process) revision(t *testing.T) int64 {
	t.Helper()
	revision, err := currentRevision(t.Context(), p.client)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func (p *process) waitForSnapshot(t *testing.T, revision int64) Snapshot {
	t.Helper()
	var newest Snapshot
	p.waitUntil(t, "a snapshot", func() error {
		list, err := ListSnapshots(p.options.BackupDir)
		if err != nil || len(list) == 0 || list[0].Revision < revision {
			return fmt.Errorf("have %v, error %v", list, err)
		}
		newest = list[0]
		return nil
	})
	return newest
}

func writeUntil(t *testing.T, p *process, count int) int {
	t.Helper()
	for i := range count {
		p.put(t, fmt.Sprintf("key/%04d", i), strings.Repeat("x", 1000))
	}
	return count
}

func checkKeys(t *testing.T, p *process, want int) {
	t.Helper()
	response, err := p.client.Get(t.Context(), "key/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if response.Count != int64(want) {
		t.Errorf("%d keys are there, want %d", response.Count, want)
	}
}

// checkCompacted checks that a client which knows a revision has to list anew.
func checkCompacted(t *testing.T, p *process, revision int64) {
	t.Helper()
	response := <-p.client.Watch(t.Context(), "key/", clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	if !errors.Is(response.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from revision %d got %v, %d events", revision, response.Err(), len(response.Events))
	}
}

func overwrite(t *testing.T, path string, offset int64, length int) {
	t.Helper()
	overwriteWith(t, path, offset, bytes.Repeat([]byte{0xa5}, length))
}

func overwriteWith(t *testing.T, path string, offset int64, content []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(content, offset)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withChecksum returns content as the file of a snapshot has it.
func withChecksum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return content + string(sum[:])
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func firstWAL(t *testing.T, dataDir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(walDir(dataDir), "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no log files: %v", err)
	}
	return files[0]
}
