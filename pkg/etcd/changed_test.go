package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// waitDiffers waits until a steward tells that its data differs from a kind of backup.
func (p *process) waitDiffers(t *testing.T, from status.Source) status.Difference {
	t.Helper()
	var found status.Difference
	p.waitUntil(t, "telling that it differs", func() error {
		told := p.told(t).Differs
		if told == nil || told.From != from {
			return fmt.Errorf("it tells %+v", told)
		}
		found = *told
		return nil
	})
	return found
}

// A single member serves on with what a disk has changed, and tells: by its snapshots, or by what is in the store.
func TestASingleMemberTellsWhatADiskHasChanged(t *testing.T) {
	for name, test := range map[string]struct {
		from    status.Source
		options func(t *testing.T) Options
		saved   func(t *testing.T, p *process) string
	}{
		"by its snapshots": {
			status.BackupDirectory, testOptions, func(t *testing.T, p *process) string {
				return p.waitForSnapshot(t, p.revision(t)).name()
			},
		},
		"by the store": {
			status.BackupStore, func(t *testing.T) Options {
				options := storedOptions(t, localStore(t))
				options.Store.VerifyPeriod = 100 * time.Millisecond
				return options
			}, func(t *testing.T, p *process) string {
				return p.waitForStore(t, p.revision(t)).Newest().String()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := test.options(t)
			p := startProcess(t, options)
			written := writeUntil(t, p, 30)
			backup := test.saved(t, p)
			p.waitUntil(t, "a verification", func() error {
				if told := p.told(t); told.Store != nil && told.Store.Verification.Succeeded.IsZero() {
					return errors.New("there was none")
				}
				return nil
			})
			if told := p.told(t); told.Differs != nil {
				t.Fatalf("intact data is told to differ: %+v", told.Differs)
			}
			p.crash(t)
			key := changeValue(t, options.DataDir, "key/")

			p = startProcess(t, options)
			checkKeys(t, p, written)
			p.put(t, "later", "x")
			found := p.waitDiffers(t, test.from)
			if len(found.Changed) != 1 || found.Changed[0].Key != key || found.Since.IsZero() || !strings.Contains(
				found.Describe(), fmt.Sprintf("revision %d of key %q", found.Changed[0].Revision, key)) {
				t.Errorf("told is %+v, backup %s, key %s", found, backup, key)
			}
			p.stop(t)
			// What was written anew, and compacted, is nothing to tell any more; until then a start does not hide it.
			p = startProcess(t, options)
			defer p.kill(t)
			if again := p.waitDiffers(t, test.from); !again.Since.Equal(found.Since) {
				t.Errorf("told is %+v, before it was %+v", again, found)
			}
			p.put(t, key, "as it should be")
			if _, err := p.client.Compact(t.Context(), p.revision(t), clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
			p.waitUntil(t, "nothing that differs", func() error {
				if told := p.told(t).Differs; told != nil {
					return fmt.Errorf("it tells %+v", told)
				}
				return nil
			})
		})
	}
}

// Etcd does not start with a value that it cannot read, however often it is started.
func TestAValueThatCannotBeReadIsDamage(t *testing.T) {
	options := testOptions(t)
	p := startProcess(t, options)
	written := writeUntil(t, p, 20)
	p.waitForSnapshot(t, p.revision(t))
	p.crash(t)
	_, stored := liveValue(t, options.DataDir, "key/")
	// The first byte says which field of the message follows: there is none of number 0.
	if changeStored(t, options.DataDir, stored, 0, stored[0]^0x07) == 0 {
		t.Fatal("the value is not in the file")
	}
	if _, err := Inspect(options.DataDir); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}

	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
	checkRecovery(t, p, status.DataDamaged, status.BackupDirectory, "")
}

func TestDifferencesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	r := newTestRecoveries(t, dir)
	changed := func(from, count int) (all []status.Changed) {
		for i := range count {
			all = append(all, status.Changed{Revision: int64(from + i), Key: "key"})
		}
		return all
	}
	r.differs(status.Difference{From: status.BackupDirectory, Backup: "one", Changed: changed(1, 2)})
	since := r.difference().Since
	r.differs(status.Difference{From: status.BackupDirectory, Backup: "two", Changed: changed(2, 2)})
	r = newTestRecoveries(t, dir)
	if told := r.difference(); len(told.Changed) != 3 || told.Backup != "two" || !told.Since.Equal(since) {
		t.Errorf("told is %+v", told)
	}
	r.settled(status.Members)
	r.left(func(c status.Changed) bool { return c.Revision == 3 })
	if told := r.difference(); len(told.Changed) != 1 || told.Changed[0].Revision != 3 {
		t.Errorf("told is %+v", told)
	}
	r.differs(status.Difference{From: status.BackupDirectory, Changed: changed(10, 2*status.MostChanged)})
	if told := r.difference(); len(told.Changed) != status.MostChanged {
		t.Errorf("%d are remembered", len(told.Changed))
	}
	// What was rebuilt of the database has what that had; what was restored has not.
	r.begin(status.Recovery{Cause: status.LogDamaged})
	if r.difference() == nil {
		t.Error("it is forgotten")
	}
	r.begin(status.Recovery{Cause: status.DataDamaged})
	if told := newTestRecoveries(t, dir).difference(); told != nil {
		t.Errorf("told is %+v of other data", told)
	}
}
