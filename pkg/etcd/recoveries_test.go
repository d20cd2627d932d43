package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// told is what the steward tells of itself.
func (p *process) told(t *testing.T) *status.Status {
	t.Helper()
	told, err := status.Ask(t.Context(), p.options.HealthAddress)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// checkRecovery checks that exactly one recovery is told, what of, and that what was found is where that says.
func checkRecovery(t *testing.T, p *process, cause status.Cause, from status.Source, missing string) status.Recovery {
	t.Helper()
	told := p.told(t)
	if len(told.Recoveries) != 1 || told.Recovering != nil {
		t.Fatalf("told are %+v, and %+v", told.Recoveries, told.Recovering)
	}
	got := told.Recoveries[0]
	if got.Cause != cause || got.Restored == nil || got.Restored.From != from ||
		!strings.Contains(got.Missing, missing) {
		t.Errorf("told is %+v, restored %+v, want %s, %s, missing %q", got, got.Restored, cause, from, missing)
	}
	if got.Finished.Before(got.Found) || told.PhaseSince.Before(got.Finished) || got.Found.IsZero() {
		t.Errorf("found at %s, finished at %s, serving since %s", got.Found, got.Finished, told.PhaseSince)
	}
	if cause == status.DataLost {
		if got.Aside != "" {
			t.Errorf("%s was kept of nothing", got.Aside)
		}
	} else if _, err := os.Stat(filepath.Join(got.Aside, "snap", "db")); err != nil {
		t.Errorf("what was found is not kept: %v", err)
	}
	return got
}

func TestNothingIsToldOfAnOrderlyStart(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	first := p.told(t)
	p.kill(t)
	p = startProcess(t, options)
	defer p.kill(t)
	for _, told := range []*status.Status{first, p.told(t)} {
		if len(told.Recoveries) > 0 || told.Recovering != nil || told.Phase != status.Serving || told.Store != nil ||
			!told.Leads {
			t.Errorf("told is %+v", told)
		}
	}
}

func TestRecoveriesAreToldAfterARestart(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	writeUntil(t, p, 5)
	p.waitForSnapshot(t, p.revision(t))
	p.kill(t)
	truncate(t, dbPath(options.DataDir), 0)
	p = startProcess(t, options)
	before := checkRecovery(t, p, status.DataDamaged, status.BackupDirectory, "")
	p.kill(t)

	p = startProcess(t, options)
	after := checkRecovery(t, p, status.DataDamaged, status.BackupDirectory, "")
	if !after.Finished.Equal(before.Finished) || after.Missing != before.Missing {
		t.Errorf("told is %+v, before it was %+v", after, before)
	}
	// What made room is not pointed to.
	removeAll(t, after.Aside)
	if told := p.told(t); told.Recoveries[0].Aside != "" {
		t.Errorf("told is %+v", told.Recoveries)
	}
	p.kill(t)
}

func newTestRecoveries(t *testing.T, dir string) *recoveries {
	t.Helper()
	r := newRecoveries(dir, zap.NewNop())
	r.load()
	return r
}

// A start that is killed between the steps of a recovery hides nothing from the next one.
func TestInterruptedRecoveriesAreTold(t *testing.T) {
	for name, interrupted := range map[string]bool{"before it was decided what to restore": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newTestRecoveries(t, dir)
			aside := t.TempDir()
			r.begin(status.Recovery{Cause: status.DataDamaged, Reason: "page 3"})
			r.setAside(aside)
			if interrupted {
				r.restored(status.Restored{From: status.BackupDirectory, Revision: 7})
			}
			found := r.state.Begun.Found

			r = newTestRecoveries(t, dir)
			r.begin(status.Recovery{Cause: status.DataLost})
			if begun, _ := r.told(); begun == nil || begun.Restored != nil {
				t.Fatalf("told is %+v", begun)
			}
			r.restored(status.Restored{From: status.BackupStore, Revision: 8})
			r.end()
			begun, ended := newTestRecoveries(t, dir).told()
			if begun != nil || len(ended) != 1 {
				t.Fatalf("told are %+v and %+v", begun, ended)
			}
			got := ended[0]
			if got.Cause != status.DataDamaged || got.Reason != "page 3" || got.Aside != aside ||
				got.Restored.Revision != 8 || !got.Found.Equal(found) {
				t.Errorf("told is %+v", got)
			}
		})
	}
}

// Data that was restored and is found damaged before it ever served is another finding.
func TestAnotherFindingTakesThePlace(t *testing.T) {
	r := newTestRecoveries(t, t.TempDir())
	r.begin(status.Recovery{Cause: status.DataLost})
	r.restored(status.Restored{From: status.BackupStore, Revision: 7})
	r.begin(status.Recovery{Cause: status.LogDamaged, Revision: 9})
	if begun, _ := r.told(); begun.Cause != status.LogDamaged || begun.Restored != nil {
		t.Errorf("told is %+v", begun)
	}
}

// A person who does otherwise has not restored what was begun.
func TestWhatAPersonDoesIsNoRecovery(t *testing.T) {
	r := newTestRecoveries(t, t.TempDir())
	r.begin(status.Recovery{Cause: status.DataDamaged})
	r.end()
	if begun, ended := r.told(); begun != nil || len(ended) > 0 {
		t.Errorf("told are %+v and %+v", begun, ended)
	}
}

func TestFewRecoveriesAreRemembered(t *testing.T) {
	r := newTestRecoveries(t, t.TempDir())
	for revision := range int64(2 * status.MostRecoveries) {
		r.begin(status.Recovery{Cause: status.DataDamaged, Reason: strings.Repeat("long\n", 1000)})
		r.restored(status.Restored{From: status.BackupDirectory, Revision: revision})
		r.end()
	}
	_, ended := r.told()
	if len(ended) != status.MostRecoveries || ended[len(ended)-1].Restored.Revision != 2*status.MostRecoveries-1 {
		t.Errorf("told are %+v", ended)
	}
	if info, err := os.Stat(r.path); err != nil || info.Size() > 10_000 {
		t.Errorf("%v, %v are written of it", info, err)
	}
}

// To tell is not worth a stop: neither a file that cannot be read nor one that cannot be written is one.
func TestRecoveriesThatCannotBeRemembered(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, recoveriesFile), "{")
	r := newTestRecoveries(t, dir)
	if begun, ended := r.told(); begun != nil || len(ended) > 0 {
		t.Errorf("told are %+v and %+v", begun, ended)
	}
	removeAll(t, dir)
	r.begin(status.Recovery{Cause: status.DataDamaged})
	r.restored(status.Restored{From: status.Nothing})
	r.end()
	if _, ended := r.told(); len(ended) != 1 {
		t.Errorf("told is %+v", ended)
	}
}

func TestMissing(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	const after = "at most what was written after revision 7, from 2026-01-01T12:00:00Z to "
	for _, test := range []struct {
		name     string
		recovery status.Recovery
		from     status.Source
		want     string
	}{
		{"empty", status.Recovery{}, status.Nothing, "all that it had"},
		{"the database", status.Recovery{}, status.Database, "in the moment before etcd ended"},
		{"until it was found", status.Recovery{Found: at(9)}, status.BackupStore, after + "2026-01-01T12:09:00Z"},
		{
			"until the data was written last", status.Recovery{Found: at(9), Written: at(3)}, status.BackupDirectory,
			after + "2026-01-01T12:03:00Z",
		},
		{
			"nothing since", status.Recovery{Found: at(9), Written: at(-3)}, status.BackupStore,
			"nothing, as far as the data tells: it was written last at 2026-01-01T11:57:00Z, before the backup",
		},
		{
			"old data tells nothing", status.Recovery{Found: at(9), Written: at(-3), Revision: 5}, status.BackupStore,
			after + "2026-01-01T12:09:00Z",
		},
		{
			"what cannot be restored", status.Recovery{Found: at(9), KnownRevision: 9}, status.BackupStore,
			"revisions 8 to 9, and " + after + "2026-01-01T12:09:00Z",
		},
	} {
		test.recovery.Restored = &status.Restored{From: test.from, Revision: 7, Taken: noon}
		if got := missing(&test.recovery); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestLastWritten(t *testing.T) {
	dir := t.TempDir()
	if got := lastWritten(dir); !got.IsZero() {
		t.Errorf("got %s of no log", got)
	}
	want := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i, age := range []time.Duration{time.Hour, 0, 2 * time.Hour} {
		path := filepath.Join(walDir(dir), fmt.Sprintf("%d.wal", i))
		write(t, path, "x")
		if err := os.Chtimes(path, want, want.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if got := lastWritten(dir); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
