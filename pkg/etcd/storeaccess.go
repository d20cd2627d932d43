package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// storeAccess is the store that the options name, of which settings and credentials may change while it is used. It
// counts what is put.
type storeAccess struct {
	options StoreOptions

	mu     sync.Mutex
	opened store.Store
	// settings that a store of buckets was opened with; directory that a local one is.
	settings  string
	directory os.FileInfo
	close     func() error
}

func newStoreAccess(options StoreOptions) *storeAccess {
	return &storeAccess{options: options, close: func() error { return nil }}
}

// current is the store as it is configured now.
func (a *storeAccess) current() (store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := a.openBucket
	if a.options.Provider == LocalStore {
		open = a.openDirectory
	}
	if err := open(); err != nil {
		return nil, err
	}
	return store.Below(a.opened, a.options.Prefix), nil
}

// bucketStore is a store of buckets as a Secret says where it is: the settings, which the credentials are not among, as
// they are read whenever they are used, and what opens it.
type bucketStore struct {
	settings []any
	open     func() (store.Store, error)
}

// bucketStores read Secrets, by provider.
var bucketStores = map[StoreProvider]func(dir, bucket string) (bucketStore, error){
	S3Store: func(dir, bucket string) (bucketStore, error) {
		o, err := store.S3OptionsIn(dir)
		o.Bucket = bucket
		return bucketStore{
			settings: []any{o.Endpoint, o.Region, o.PathStyle, o.CA, o.Encryption},
			open:     func() (store.Store, error) { return store.NewS3(o) },
		}, err
	},
	ABSStore: func(dir, bucket string) (bucketStore, error) {
		o, err := store.ABSOptionsIn(dir)
		o.Bucket = bucket
		return bucketStore{
			settings: []any{o.Domain, o.CA}, open: func() (store.Store, error) { return store.NewABS(o) },
		}, err
	},
	GCSStore: func(dir, bucket string) (bucketStore, error) {
		o, err := store.GCSOptionsIn(dir)
		o.Bucket = bucket
		return bucketStore{
			settings: []any{o.Endpoint, o.CA}, open: func() (store.Store, error) { return store.NewGCS(o) },
		}, err
	},
	SwiftStore: func(dir, bucket string) (bucketStore, error) {
		o, err := store.SwiftOptionsIn(dir)
		o.Bucket = bucket
		return bucketStore{
			settings: []any{o.AuthURL, o.Region, o.CA}, open: func() (store.Store, error) { return store.NewSwift(o) },
		}, err
	},
}

func (a *storeAccess) openBucket() error {
	bucket, err := bucketStores[a.options.Provider](a.options.CredentialsDir, a.options.Bucket)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("%q", bucket.settings)
	if a.opened != nil && settings == a.settings {
		return nil
	}
	opened, err := bucket.open()
	if err != nil {
		return fmt.Errorf("opening the store of backups, of the settings in %s: %w", a.options.CredentialsDir, err)
	}
	a.opened, a.settings = opened, settings
	return nil
}

// openDirectory does not make the directory: one that is missing, such as that of a file system which is not mounted,
// must not look like a store without backups.
func (a *storeAccess) openDirectory() error {
	present, err := os.Stat(a.options.Bucket)
	if err != nil {
		return fmt.Errorf("the directory of the store of backups cannot be used: %w; create or mount it", err)
	}
	if a.opened != nil && os.SameFile(present, a.directory) {
		return nil
	}
	opened, err := store.NewDirectory(a.options.Bucket)
	if err != nil {
		return err
	}
	_ = a.close()
	a.opened, a.directory, a.close = opened, present, opened.Close
	return nil
}

// Put implements store.Store.
func (a *storeAccess) Put(ctx context.Context, name string, content io.Reader, size int64) error {
	s, err := a.current()
	if err != nil {
		return err
	}
	counted := &countingReader{Reader: content}
	if err := s.Put(ctx, name, counted, size); err != nil {
		return err
	}
	if parsed, err := backup.ParseName(name); err == nil {
		storeBytes.WithLabelValues(string(parsed.Kind)).Add(float64(counted.read))
		if parsed.Kind == backup.Delta {
			storeChain.Inc()
		}
	}
	return nil
}

// Get implements store.Store.
func (a *storeAccess) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s, err := a.current()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, name)
}

// List implements store.Store.
func (a *storeAccess) List(ctx context.Context, prefix string) ([]store.Object, error) {
	s, err := a.current()
	if err != nil {
		return nil, err
	}
	return s.List(ctx, prefix)
}

// Delete implements store.Store.
func (a *storeAccess) Delete(ctx context.Context, name string) error {
	s, err := a.current()
	if err != nil {
		return err
	}
	return s.Delete(ctx, name)
}

type countingReader struct {
	io.Reader
	read int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += n
	return n, err
}

// encryptionKey is the key of the Secret with what encrypts backups before they are put: keys of 32 bytes in base64,
// one a line. The first encrypts, all decrypt.
const encryptionKey = "encryptionKey"

// keys are nil if nothing is encrypted.
func (a *storeAccess) keys() (*backup.Keys, error) {
	if a.options.CredentialsDir == "" {
		return nil, nil
	}
	text, err := store.SecretValue(store.SecretVersion(a.options.CredentialsDir), encryptionKey)
	if err == nil {
		var keys *backup.Keys
		if keys, err = parseKeys(text); err == nil {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("%w: %s in %s: %w", backup.ErrKey, encryptionKey, a.options.CredentialsDir, err)
}

func parseKeys(text string) (*backup.Keys, error) {
	if text == "" {
		return nil, nil
	}
	keys := &backup.Keys{ByID: map[string][]byte{}}
	for _, line := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != 32 {
			return nil, errors.New("a line is not 32 bytes in base64")
		}
		sum := sha256.Sum256(key)
		id := hex.EncodeToString(sum[:8])
		if keys.Current == "" {
			keys.Current = id
		}
		keys.ByID[id] = key
	}
	return keys, nil
}
