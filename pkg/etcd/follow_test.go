package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// metric returns the value of a metric, 0 if there is none.
func (p *process) metric(name string) (float64, error) {
	response, err := http.Get("http://" + p.options.HealthAddress + "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	for line := range strings.Lines(string(body)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, err
}

// waitForMetric waits until a metric is there and not 0.
func (p *process) waitForMetric(t *testing.T, name string) {
	t.Helper()
	p.waitUntil(t, name, func() error {
		value, err := p.metric(name)
		if err == nil && value == 0 {
			err = fmt.Errorf("it is 0")
		}
		return err
	})
}

func failure(operation, reason string) string {
	return fmt.Sprintf("etcd_steward_store_failures_total{operation=%q,reason=%q}", operation, reason)
}

func TestMetricsOfTheStore(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	defer p.kill(t)
	// The full snapshot has what was written before it, and a delta what is written after it.
	p.waitForStore(t, p.revision(t))
	writeUntil(t, p, 5)
	p.waitForStore(t, p.revision(t))
	for _, name := range []string{
		`etcd_steward_store_last_success_timestamp_seconds{operation="delta"}`,
		`etcd_steward_store_last_success_timestamp_seconds{operation="full"}`,
		`etcd_steward_store_bytes_total{kind="delta"}`, `etcd_steward_store_bytes_total{kind="full"}`,
		"etcd_steward_store_chain_deltas",
	} {
		p.waitForMetric(t, name)
	}
}

// Whatever the store refuses, etcd serves, metrics tell, and it is made up for without a restart.
func TestAStoreThatRefusesDoesNotStopEtcd(t *testing.T) {
	for reason, refusal := range map[string]storetest.S3Error{
		"permission":  {Status: http.StatusForbidden, Code: "SignatureDoesNotMatch"},
		"full":        {Status: http.StatusInsufficientStorage, Code: "QuotaExceeded"},
		"unavailable": {Status: http.StatusBadRequest, Code: "InvalidArgument"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s, server := s3Store(t)
			p := startProcess(t, storedOptions(t, s))
			defer p.kill(t)
			p.waitForStore(t, p.revision(t))
			server.Refuse(func(r *http.Request) *storetest.S3Error {
				if r.Method == http.MethodGet {
					return nil
				}
				return &refusal
			})
			written := writeUntil(t, p, 20)
			p.waitForMetric(t, failure(status.Delta, reason))
			if err := p.ready(); err != nil {
				t.Error(err)
			}
			checkKeys(t, p, written)
			told := p.told(t).Store
			if refused := told.Failure(status.Delta); refused == nil || refused.Reason != reason ||
				!strings.Contains(refused.Message, "saving") || refused.Since.IsZero() {
				t.Errorf("told is %+v", told)
			}
			server.Refuse(nil)
			p.waitForStore(t, p.revision(t))
			p.waitUntil(t, "a store that is told to be well", func() error {
				told := p.told(t).Store
				if len(told.Failures) > 0 || told.Delta.Revision < p.revision(t) || told.Delta.Succeeded.IsZero() {
					return fmt.Errorf("told is %+v", told)
				}
				return nil
			})
			if said := strings.Count(p.log(), "THE STORE OF BACKUPS cannot be used"); said != 1 {
				t.Errorf("it was said %d times", said)
			}
		})
	}
}

func TestCredentialsRotateWithoutARestart(t *testing.T) {
	s, server := s3Store(t)
	p := startProcess(t, storedOptions(t, s))
	defer p.kill(t)
	p.waitForStore(t, p.revision(t))
	server.Rotate("another")
	writeUntil(t, p, 5)
	p.waitForMetric(t, failure(status.Delta, "permission"))
	write(t, filepath.Join(s.CredentialsDir, "accessKeyID"), "another")
	p.waitForStore(t, p.revision(t))
}

// What is encrypted with another key is not continued, and restored as long as that is known.
func TestAnotherEncryptionKeyBeginsALog(t *testing.T) {
	s, _ := s3Store(t)
	options := storedOptions(t, s)
	p := startProcess(t, options)
	before := p.waitForStore(t, p.revision(t))
	const added = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	write(t, filepath.Join(s.CredentialsDir, encryptionKey), added)
	written := writeUntil(t, p, 5)
	p.waitUntil(t, "another log", func() error {
		if all := chains(t, options); all[0].Full.ID == before.Full.ID || all[0].Last() < p.revision(t) {
			return fmt.Errorf("have %v", all)
		}
		return nil
	})
	p.kill(t)
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
}

// Full snapshots are taken on schedule while deltas go on, both lead to the last change, and what retention lets go is
// deleted.
func TestFullSnapshotsOnSchedule(t *testing.T) {
	options := storedOptions(t, localStore(t))
	options.SnapshotPeriod, options.SnapshotRetention = 100*time.Millisecond, 3
	p := startProcess(t, options)
	written := 0
	seen := map[backup.ID]bool{}
	p.waitUntil(t, "six full snapshots", func() error {
		p.put(t, fmt.Sprintf("key/%d", written), "x")
		written++
		for _, chain := range chains(t, options) {
			seen[chain.Full.ID] = true
		}
		if len(seen) < 6 {
			return fmt.Errorf("there are %d", len(seen))
		}
		return nil
	})
	last := p.revision(t)
	p.waitForStore(t, last)
	p.waitUntil(t, "three full snapshots", func() error {
		if all := chains(t, options); len(all) > 4 {
			return fmt.Errorf("there are %d", len(all))
		}
		return nil
	})
	p.kill(t)
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
}

// Changes that are saved out of turn overtake the full snapshot that is being taken: the log goes on after that.
func TestFullSnapshotsThatAreOvertaken(t *testing.T) {
	options := storedOptions(t, localStore(t))
	s, logs := startSteward(t, options)
	s.backups.pace.full, s.backups.pace.bytes = time.Millisecond, 1
	started, err := currentRevision(t.Context(), s.client)
	if err != nil {
		t.Fatal(err)
	}
	written, fulls := 0, make(chan struct{})
	f := &follower{backups: s.backups, client: s.client, started: started}
	f.snapshot = func(ctx context.Context) (string, func(), error) {
		path, discard, err := s.snapshotFile(ctx)
		if written == 3 {
			close(fulls)
			return path, discard, err
		}
		written++
		put, putErr := s.client.Put(ctx, fmt.Sprintf("key/%04d", written), "x")
		var objects []backup.Object
		last := func(o backup.Object) bool { return o.Last == put.Header.Revision }
		err = errors.Join(err, putErr)
		// Nothing is recorded yet while the first is taken.
		for written > 1 && err == nil && !slices.ContainsFunc(objects, last) {
			objects, err = s.backups.list(ctx)
		}
		return path, discard, err
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.run(ctx, t.Context()); close(ended) }()
	<-fulls
	stop()
	<-ended
	if overtaken := logs.FilterMessageSnippet("overtaken").Len(); overtaken < 2 {
		t.Errorf("%d full snapshots were overtaken", overtaken)
	}
	if err := s.backups.verify(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if all := chains(t, options); len(all) < 3 || len(all[0].Deltas) > 1 {
		t.Errorf("the newest full snapshot of %d does not shorten the way: %v", len(all), all[0])
	}
	p := startProcess(t, storedOptions(t, options.Store))
	defer p.kill(t)
	checkKeys(t, p, written)
}

// Compaction took what the log goes on with: a full snapshot begins another.
func TestAGapBeginsALog(t *testing.T) {
	options := storedOptions(t, localStore(t))
	p := startProcess(t, options)
	p.waitForStore(t, p.revision(t))
	hidden := options.Store.Bucket + ".hidden"
	rename(t, options.Store.Bucket, hidden)
	written := writeUntil(t, p, 20)
	p.waitForMetric(t, failure(status.Delta, "unavailable"))
	if _, err := p.client.Compact(t.Context(), p.revision(t)); err != nil {
		t.Fatal(err)
	}
	rename(t, hidden, options.Store.Bucket)
	p.waitForStore(t, p.revision(t))
	p.kill(t)
	options.DataDir = t.TempDir()
	p = startProcess(t, options)
	defer p.kill(t)
	checkKeys(t, p, written)
}
