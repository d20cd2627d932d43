package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

func TestADirectoryThatIsMissingIsNotEmpty(t *testing.T) {
	options := localStore(t)
	a := newStoreAccess(options)
	storetest.Put(t, a, "a", []byte("content"))
	rename(t, options.Bucket, options.Bucket+".hidden")
	_, listed := a.List(t.Context(), "")
	_, got := a.Get(t.Context(), "a")
	for operation, err := range map[string]error{"list": listed, "get": got, "delete": a.Delete(t.Context(), "a")} {
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v", operation, err)
		}
	}
	// Another file system may be mounted there later.
	if err := os.Mkdir(options.Bucket, 0o700); err != nil {
		t.Fatal(err)
	}
	if left := storetest.Names(t, a, ""); len(left) > 0 {
		t.Errorf("listed %q", left)
	}
}

func TestSettingsOfAStoreAreTakenUp(t *testing.T) {
	options, server := s3Store(t)
	a := newStoreAccess(options)
	storetest.Put(t, a, "a", []byte("content"))
	path := filepath.Join(options.CredentialsDir, "endpoint")
	write(t, path, "no URL")
	if _, err := a.List(t.Context(), ""); err == nil {
		t.Error("an endpoint that is wrong is not noticed")
	}
	write(t, path, server.URL+"/")
	if got := storetest.Names(t, a, ""); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}

func TestEncryptionKeys(t *testing.T) {
	one, two := strings.Repeat("A", 43)+"=", strings.Repeat("B", 42)+"A="
	for _, test := range []struct {
		name, text string
		count      int
		wrong      bool
	}{
		{"none", "", 0, false},
		{"one", one + "\n", 1, false},
		{"two", one + "\n" + two, 2, false},
		{"too short", "AAAA", 0, true},
		{"not base64", one + "\n!", 0, true},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, encryptionKey), test.text)
		keys, err := newStoreAccess(StoreOptions{CredentialsDir: dir}).keys()
		if errors.Is(err, backup.ErrKey) != test.wrong {
			t.Errorf("%s: got %v", test.name, err)
		}
		if err == nil && (keys == nil) != (test.count == 0) || keys != nil && len(keys.ByID) != test.count {
			t.Errorf("%s: got %v", test.name, keys)
		}
	}
}

func TestTheFirstKeyEncrypts(t *testing.T) {
	one, two := strings.Repeat("A", 43)+"=", strings.Repeat("B", 42)+"A="
	before, err1 := parseKeys(one)
	after, err2 := parseKeys(two + "\n" + one)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if after.Current == before.Current || after.ByID[before.Current] == nil || after.AcceptPlain {
		t.Errorf("after %v, there is %v", before, after)
	}
}

func TestValidateStoreOptions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*StoreOptions)
		want   string
	}{
		{"S3", func(*StoreOptions) {}, ""},
		{"local", func(o *StoreOptions) { o.Provider, o.CredentialsDir = LocalStore, "" }, ""},
		{"unknown", func(o *StoreOptions) { o.Provider = "tape" }, "--store-provider"},
		{"no provider", func(o *StoreOptions) { o.Provider = NoStore }, "--store-bucket needs --store-provider"},
		{"no bucket", func(o *StoreOptions) { o.Bucket = "" }, "--store-bucket"},
		{"no credentials", func(o *StoreOptions) { o.CredentialsDir = "" }, "--store-credentials-dir"},
		{"wrong prefix", func(o *StoreOptions) { o.Prefix = "a/../b" }, "--store-prefix"},
		{"often", func(o *StoreOptions) { o.DeltaSnapshotPeriod = time.Second }, "--delta-snapshot-period"},
		{"negative age", func(o *StoreOptions) { o.SnapshotRetentionAge = -1 }, "--snapshot-retention-age"},
		{"negative period", func(o *StoreOptions) { o.VerifyPeriod = -1 }, "--verify-period"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := DefaultOptions()
			options.Store.Provider, options.Store.Bucket, options.Store.CredentialsDir = S3Store, "b", "/c"
			options.Store.Prefix = "a/b/"
			test.change(&options.Store)
			err := options.Validate()
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
