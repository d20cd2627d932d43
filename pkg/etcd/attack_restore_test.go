package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// reader reads the keys of a steward all the time, whether it serves or not. Who acts on what is missing does so at the
// first answer: none may have other keys than there were.
type reader struct {
	answers atomic.Int64
	// end returns when nothing is read any more. It may be called again.
	end func()
}

func (p *process) readAllTheTime(t *testing.T, want int) *reader {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.options.ListenClientURL}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{}
	var reading sync.WaitGroup
	r.end = func() { cancel(); reading.Wait() }
	t.Cleanup(func() { r.end(); _ = client.Close() })
	reading.Go(func() {
		for ctx.Err() == nil {
			asking, cancelAsking := context.WithTimeout(ctx, 500*time.Millisecond)
			response, err := client.Get(asking, "key/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			cancelAsking()
			if err != nil {
				continue
			}
			r.answers.Add(1)
			if response.Count != int64(want) {
				t.Errorf("%d keys were served, want %d", response.Count, want)
			}
		}
	})
	return r
}

// The store is out of reach at the moment at which an etcd has lost its data. It says what it waits for, and nobody is
// served an empty etcd: not meanwhile, and not while it restores.
func TestAttackNoEmptyEtcdIsServed(t *testing.T) {
	for name, takeAway := range map[string]func(t *testing.T, s StoreOptions, server *storetest.S3) (bringBack func()){
		"nobody listens": func(t *testing.T, s StoreOptions, server *storetest.S3) func() {
			endpoint := filepath.Join(s.CredentialsDir, "endpoint")
			write(t, endpoint, "https://"+freeAddress(t))
			return func() { write(t, endpoint, server.URL) }
		},
		"the bucket is missing": func(_ *testing.T, _ StoreOptions, server *storetest.S3) func() {
			server.Refuse(func(*http.Request) *storetest.S3Error {
				return &storetest.S3Error{Status: http.StatusNotFound, Code: "NoSuchBucket"}
			})
			return func() { server.Refuse(nil) }
		},
		"it does not know the key": func(_ *testing.T, _ StoreOptions, server *storetest.S3) func() {
			server.Rotate("another")
			return func() { server.Rotate("id") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := s3Store(t)
			options := storedOptions(t, s)
			p := startProcess(t, options)
			written := writeUntil(t, p, 20)
			p.waitForStore(t, p.revision(t))
			p.kill(t)

			options.DataDir = t.TempDir()
			bringBack := takeAway(t, s, server)
			p = launch(t, options)
			r := p.readAllTheTime(t, written)
			p.waitUntil(t, "a steward that waits", func() error {
				if err := p.ready(); err == nil || !strings.Contains(err.Error(), string(status.Awaiting)) {
					return fmt.Errorf("it is ready or says: %w", err)
				}
				return nil
			})
			if told := p.told(t); told.Phase != status.Awaiting || told.Store.Failure(status.Start) == nil {
				t.Errorf("told is %+v, of the store %+v", told, told.Store)
			}
			if answers := r.answers.Load(); answers > 0 || hasData(options.DataDir) {
				t.Errorf("it has served %d times; it has data: %t", answers, hasData(options.DataDir))
			}
			bringBack()
			p.connect(t)
			checkKeys(t, p, written)
			checkRecovery(t, p, status.DataLost, status.BackupStore, "")
			p.waitUntil(t, "an answer to who reads all the time", func() error {
				if r.answers.Load() == 0 {
					return errors.New("there was none")
				}
				return nil
			})
			r.end()
			p.kill(t)
		})
	}
}

// Who may write into the bucket, and does not have the key, has nothing of theirs restored: neither in plain text nor
// by a key of their own. It is not taken for damage either, for which older backups would be restored.
func TestAttackForgedBackups(t *testing.T) {
	for name, key := range map[string]string{
		"in plain text": "", "by another key": "NDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := s3Store(t)
			options := storedOptions(t, s)
			p := startProcess(t, options)
			writeUntil(t, p, 5)
			genuine := p.waitForStore(t, p.revision(t))
			p.kill(t)

			// Revisions of an etcd that begins later are higher: what it saves has most.
			forged := storedOptions(t, s)
			forged.Store.Prefix, forged.Store.CredentialsDir = "forged", t.TempDir()
			if err := os.CopyFS(forged.Store.CredentialsDir, os.DirFS(s.CredentialsDir)); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(forged.Store.CredentialsDir, encryptionKey), key)
			attacker := startProcess(t, forged)
			attacker.put(t, "key/forged", "x")
			attacker.waitForStore(t, attacker.revision(t))
			attacker.stop(t)
			from, to := newStoreAccess(forged.Store), newStoreAccess(options.Store)
			for _, name := range storetest.Names(t, from, "") {
				storetest.Put(t, to, name, storetest.Get(t, from, name))
			}
			if newest := chains(t, options)[0].Last(); newest <= genuine.Last() {
				t.Fatalf("what was forged is of revision %d, what was saved of %d", newest, genuine.Last())
			}

			options.DataDir = t.TempDir()
			p = launch(t, options)
			p.waitForMetric(t, failure(status.Start, "key"))
			if hasData(options.DataDir) {
				t.Error("what was forged, or what is older, was restored")
			}
			p.kill(t)
		})
	}
}
