package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// past is an etcd that was stopped, whose changes of earlier and of later have been saved at different times.
type past struct {
	options Options
	// to is a time between; earlier and later are how many keys there were then and at the end, seen the last revision.
	to             time.Time
	earlier, later int
	seen           int64
}

// aPast writes, waits until a delta would be of another time, and writes on.
func aPast(t *testing.T, s StoreOptions) past {
	t.Helper()
	h := past{options: storedOptions(t, s)}
	p := startProcess(t, h.options)
	h.earlier = writeUntil(t, p, 20)
	p.waitForStore(t, p.revision(t))
	h.to = p.nextSecond(t)
	p.put(t, "key/later", "x")
	p.waitForStore(t, p.revision(t))
	if _, err := p.client.Delete(t.Context(), "key/0000"); err != nil {
		t.Fatal(err)
	}
	p.put(t, "key/last", "x")
	h.later, h.seen = h.earlier+1, p.revision(t)
	p.waitForStore(t, h.seen)
	p.stop(t)
	return h
}

// nextSecond waits until the present second has passed, and returns it: times of backups are in whole seconds.
func (p *process) nextSecond(t *testing.T) time.Time {
	t.Helper()
	present := time.Now().UTC().Truncate(time.Second)
	p.waitUntil(t, "the next second", func() error {
		if now := time.Now(); now.Before(present.Add(time.Second)) {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
	return present
}

func to(at time.Time, id string) request.Restore {
	return request.Restore{To: at.UTC().Format(time.RFC3339), ID: id}
}

func checkKept(t *testing.T, options Options, want int) {
	t.Helper()
	if aside, _ := filepath.Glob(filepath.Join(options.DataDir, "before-restore-*", "snap", "db")); len(aside) != want {
		t.Errorf("of the data of before, %v are kept, want %d", aside, want)
	}
}

func TestAPointInTimeIsRestoredOnce(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := aPast(t, open(t))
			h.options.Restore = to(h.to, "one")
			p := startProcess(t, h.options)
			checkKeys(t, p, h.earlier)
			checkCompacted(t, p, h.seen)
			checkKept(t, h.options, 1)
			// Backups go on after it, with a full snapshot that begins a log.
			p.put(t, "key/new", "x")
			chain := p.waitForStore(t, p.revision(t))
			if chain.Full.Last <= h.seen || chain.Full.Parent != (backup.ID{}) {
				t.Errorf("backups go on with %s, clients had seen revision %d", chain.Full, h.seen)
			}
			if log := p.log(); !strings.Contains(log, "RESTORED a point in time") {
				t.Errorf("the log does not tell it:\n%s", log)
			}

			// Neither another start nor the loss of the volume repeats it.
			p = startProcess(t, h.options)
			checkKeys(t, p, h.earlier+1)
			p.kill(t)
			h.options.DataDir = t.TempDir()
			p = startProcess(t, h.options)
			defer p.kill(t)
			checkKeys(t, p, h.earlier+1)
			checkKept(t, h.options, 0)
		})
	}
}

// What was there before a restore can be restored as well, and so can what came of it.
func TestARestoreIsUndoneByAnother(t *testing.T) {
	t.Parallel()
	h := aPast(t, localStore(t))
	p := startProcess(t, h.options)
	before := p.nextSecond(t)
	p.stop(t)
	for _, step := range []struct {
		request.Restore
		keys int
	}{{to(h.to, "one"), h.earlier}, {to(before, "two"), h.later}, {to(h.to, "three"), h.earlier}} {
		h.options.Restore = step.Restore
		p = startProcess(t, h.options)
		checkKeys(t, p, step.keys)
		p.waitForStore(t, p.revision(t))
		p.nextSecond(t)
		p.stop(t)
	}
}

// Whatever the last deltas did not save is saved before it is replaced.
func TestWhatIsThereIsSavedBeforeARestore(t *testing.T) {
	h := aPast(t, localStore(t))
	h.options.Store.DeltaSnapshotPeriod = time.Hour
	p := startProcess(t, h.options)
	p.waitForStore(t, p.revision(t))
	p.put(t, "key/unsaved", "x")
	unsaved := p.revision(t)
	p.kill(t)
	if all := chains(t, h.options); all[0].Last() >= unsaved {
		t.Fatalf("%v have revision %d already", all, unsaved)
	}
	h.options.Restore = to(h.to, "one")
	p = startProcess(t, h.options)
	defer p.kill(t)
	checkKeys(t, p, h.earlier)
	saved := false
	for _, chain := range chains(t, h.options) {
		saved = saved || chain.Last() == unsaved
	}
	if !saved {
		t.Errorf("revision %d is nowhere in the store", unsaved)
	}
}

// Killed at any step, it comes to the same, and clients cannot tell.
func TestAnInterruptedRestoreConverges(t *testing.T) {
	for _, step := range []string{"saved", "fetched", "built", "stopped", "complete", "aside", "placed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := aPast(t, localStore(t))
			h.options.Restore = to(h.to, "one")
			p := launch(t, h.options, killEnv+"="+step)
			<-p.exited
			if p.command.ProcessState.Success() || strings.Contains(p.output.String(), "refused") {
				t.Fatalf("it was not interrupted: %s\n%s", p.command.ProcessState, p.output)
			}
			p = startProcess(t, h.options)
			checkKeys(t, p, h.earlier)
			checkCompacted(t, p, h.seen)
			checkKept(t, h.options, 1)
			left, _ := filepath.Glob(filepath.Join(h.options.DataDir, "*"))
			for _, path := range left {
				if name := filepath.Base(path); name == requestedData || name == unfinishedRestore ||
					strings.HasPrefix(name, fetchedDatabase) {
					t.Errorf("left is %s", path)
				}
			}
			p.put(t, "key/new", "x")
			p.stop(t)
			p = startProcess(t, h.options)
			defer p.kill(t)
			checkKeys(t, p, h.earlier+1)
		})
	}
}

// What cannot be restored is told by ending once; after that, the data is served as it was.
func TestARestoreIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		to    func(past) time.Time
		spoil func(t *testing.T, h *past)
		says  []string
	}{
		"before the oldest backup": {
			to:   func(h past) time.Time { return h.to.Add(-time.Hour) },
			says: []string{"that time cannot be restored", "the oldest backup"},
		},
		"in the future": {
			to:   func(past) time.Time { return time.Now().Add(time.Hour) },
			says: []string{"that time cannot be restored", "now"},
		},
		"a damaged delta": {
			spoil: func(t *testing.T, h *past) {
				newest := h.at(t).Deltas[0]
				overwrite(t, h.path(newest), newest.Size/2, 10)
			},
			says: []string{"the backup is damaged", "the one before it is of"},
		},
		"a damaged full snapshot": {
			spoil: func(t *testing.T, h *past) { truncate(t, h.path(h.at(t).Full), 100) },
			says:  []string{"the backup is damaged", "there is none before it"},
		},
		"what was saved later, with the time of earlier": {
			spoil: func(t *testing.T, h *past) {
				deltas := chains(t, h.options)[0].Deltas
				isLater := func(o backup.Object) bool { return o.Taken.After(h.to) }
				forged := deltas[slices.IndexFunc(deltas, isLater)]
				before := h.path(forged)
				forged.Taken = h.to
				rename(t, before, h.path(forged))
			},
			says: []string{"the backup is damaged: it is v1/delta"},
		},
		"no room, in an etcd that is read-only for that": {
			spoil: func(t *testing.T, h *past) {
				p := startProcess(t, h.options)
				p.fill(t)
				p.stop(t)
			},
			says: []string{"lacks room"},
		},
		"a damaged backup, in an etcd whose quota is exhausted": {
			spoil: func(t *testing.T, h *past) {
				truncate(t, h.path(h.at(t).Full), 100)
				h.options.QuotaBackendBytes = 4096
			},
			says: []string{"the backup is damaged"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := aPast(t, localStore(t))
			if test.spoil != nil {
				test.spoil(t, &h)
			}
			at := h.to
			if test.to != nil {
				at = test.to(h)
			}
			h.options.Restore = to(at, "one")
			p := launch(t, h.options)
			<-p.exited
			output := p.output.String()
			if p.command.ProcessState.ExitCode() != 1 {
				t.Errorf("it ended with %s", p.command.ProcessState)
			}
			refusal, _ := h.options.Restore.FindRefusal(output)
			for _, says := range test.says {
				if !strings.Contains(refusal, says) {
					t.Errorf("%q does not say %q:\n%s", refusal, says, output)
				}
			}
			for range 2 {
				p = startProcess(t, h.options)
				checkKeys(t, p, h.later)
				checkKept(t, h.options, 0)
				p.stop(t)
			}
		})
	}
}

// fill has a volume be full, and waits until etcd is read-only for that.
func (p *process) fill(t *testing.T) {
	t.Helper()
	write(t, fullMarker(p.options.DataDir), "")
	p.waitUntil(t, "being read-only", func() error {
		if alarms, err := p.client.AlarmList(t.Context()); err != nil || len(alarms.Alarms) == 0 {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
}

// at is the chain that restores the time between.
func (h *past) at(t *testing.T) backup.Chain {
	t.Helper()
	a := newStoreAccess(h.options.Store)
	listed, err := a.List(t.Context(), "")
	if err := errors.Join(err, a.close()); err != nil {
		t.Fatal(err)
	}
	chain, found := backup.At(backup.Objects(listed), h.to)
	if !found || len(chain.Deltas) == 0 {
		t.Fatalf("at %s there is %t, %+v", h.to, found, chain)
	}
	return chain
}

func (h *past) path(o backup.Object) string {
	return filepath.Join(h.options.Store.Bucket, h.options.Store.Prefix, o.String())
}

// A store that cannot be used holds clients up for a while only.
func TestARestoreDoesNotWaitForAStoreForEver(t *testing.T) {
	s, server := s3Store(t)
	h := aPast(t, s)
	server.Refuse(func(*http.Request) *storetest.S3Error {
		return &storetest.S3Error{Status: http.StatusForbidden, Code: "AccessDenied"}
	})
	h.options.Restore = to(h.to, "one")
	p := launch(t, h.options)
	<-p.exited
	if _, refused := h.options.Restore.FindRefusal(p.output.String()); !refused {
		t.Fatalf("it is not refused:\n%s", p.output)
	}
	p = startProcess(t, h.options)
	checkKeys(t, p, h.later)
	p.kill(t)
	// When the store is back, what was refused is not done after all.
	server.Refuse(nil)
	p = startProcess(t, h.options)
	defer p.kill(t)
	checkKeys(t, p, h.later)
}

func TestARestoreNeedsRoomBesideTheData(t *testing.T) {
	s := New(storedOptions(t, localStore(t)), zap.NewNop())
	aside := filepath.Join(s.options.DataDir, "before-restore-1")
	write(t, aside, "x")
	s.measure = func(string) (volume, error) { return volume{size: 1 << 30, free: 1 << 20}, nil }
	chain := backup.Chain{Full: backup.Object{Size: 1 << 20}}
	var short *noRoomError
	if _, err := s.fetchWithin(t.Context(), chain); !errors.As(err, &short) || passes(err) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(aside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data of an earlier restore was not given up for room: %v", err)
	}
}

func TestTheOutcomeIsAPartOfTheData(t *testing.T) {
	h := aPast(t, localStore(t))
	h.options.Restore = to(h.to, "one")
	p := startProcess(t, h.options)
	defer p.kill(t)
	response, err := p.client.Get(t.Context(), outcomePrefix+"one")
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("got %v, %v", response, err)
	}
	var got outcome
	if err := json.Unmarshal(response.Kvs[0].Value, &got); err != nil {
		t.Fatal(err)
	}
	if got.Refused != "" || got.To != h.options.Restore.To || got.Taken == nil || got.Taken.After(h.to) {
		t.Errorf("got %s", response.Kvs[0].Value)
	}
}

func TestRestorable(t *testing.T) {
	h := aPast(t, localStore(t))
	h.options.Store.DeltaSnapshotPeriod = time.Minute
	got, err := Restorable(t.Context(), h.options.Store)
	if err != nil || len(got) != 1 || got[0].Full.Taken.After(h.to) || !got[0].Taken().After(h.to) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Restorable(t.Context(), StoreOptions{}); err == nil {
		t.Error("there is no store, but it was listed")
	}
}

func TestARestoreNeedsAStore(t *testing.T) {
	options := testOptions(t)
	options.Restore = to(time.Now(), "one")
	if err := options.Validate(); err == nil || !strings.Contains(err.Error(), "needs --store-provider") {
		t.Errorf("got %v", err)
	}
}
