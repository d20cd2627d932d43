package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

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

// Secrets as they are published for gardener open stores of each provider, and other credentials are taken up. Azure's
// server cannot be reached by a name here; that its requests are right is for the tests of the store.
func TestSecretsOpenStoresOfProviders(t *testing.T) {
	gcs, swift := storetest.NewGCS(t), storetest.NewSwift(t)
	password := func() string { return swift.Credentials().Password }
	for _, test := range []struct {
		provider StoreProvider
		files    map[string]string
		key      string
		other    func() string
	}{
		{GCSStore, map[string]string{
			"serviceaccount.json": gcs.ServiceAccount(), "storageAPIEndpoint": gcs.URL + "/storage/v1/",
			"trustedCaCert": string(gcs.CA),
		}, "serviceaccount.json", func() string { gcs.Rotate("two"); return gcs.ServiceAccount() }},
		{SwiftStore, map[string]string{
			"authURL": swift.URL, "region": storetest.Region, "trustedCaCert": string(swift.CA), "username": "user",
			"password": password(), "domainName": "domain", "tenantName": "project",
		}, "password", func() string { swift.Rotate("word-2"); return password() }},
	} {
		t.Run(string(test.provider), func(t *testing.T) {
			options := StoreOptions{
				Provider: test.provider, Bucket: "backups", Prefix: "shoot/main", CredentialsDir: t.TempDir(),
			}
			for key, value := range test.files {
				write(t, filepath.Join(options.CredentialsDir, key), value)
			}
			a := newStoreAccess(options)
			storetest.Put(t, a, "a", []byte("content"))
			value := test.other()
			if _, err := a.List(t.Context(), ""); !errors.Is(err, store.ErrPermission) {
				t.Errorf("credentials that are no longer taken: %v", err)
			}
			write(t, filepath.Join(options.CredentialsDir, test.key), value)
			if got := storetest.Names(t, a, ""); len(got) != 1 || got[0] != "a" {
				t.Errorf("listed %q", got)
			}
			write(t, filepath.Join(options.CredentialsDir, "trustedCaCert"), "none")
			if _, err := a.List(t.Context(), ""); err == nil {
				t.Error("a CA that is none is not noticed")
			}
		})
	}
}

func TestSettingsOfAzureAreTakenUp(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "storageAccount"), "account")
	write(t, filepath.Join(dir, "storageKey"), "a2V5")
	a := newStoreAccess(StoreOptions{Provider: ABSStore, Bucket: "backups", CredentialsDir: dir})
	before, err1 := a.current()
	again, err2 := a.current()
	write(t, filepath.Join(dir, "domain"), "blob.example.com")
	after, err3 := a.current()
	if err := errors.Join(err1, err2, err3); err != nil || before != again || before == after {
		t.Errorf("got %v, %v, %v, %v", before, again, after, err)
	}
	write(t, filepath.Join(dir, "domain"), "blob.example.com/path")
	if _, err := a.current(); err == nil {
		t.Error("a domain that is none is not noticed")
	}
}

// The help of the flags names what they take.
func TestHelpOfStores(t *testing.T) {
	options, flags := DefaultOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	options.Store.addFlags(flags)
	for _, provider := range []StoreProvider{S3Store, ABSStore, GCSStore, SwiftStore, LocalStore} {
		if usage := flags.Lookup("store-provider").Usage; !strings.Contains(usage, `"`+string(provider)+`"`) {
			t.Errorf("%s is not in %q", provider, usage)
		}
	}
	for _, key := range []string{
		"storageAccount", "storageKey", "domain", "serviceaccount.json", "storageAPIEndpoint", "authURL", "region",
		"tenantName", "username", "password", "applicationCredentialID", "applicationCredentialSecret", "trustedCaCert",
	} {
		if usage := flags.Lookup("store-credentials-dir").Usage; !strings.Contains(usage, key) {
			t.Errorf("%s is not in %q", key, usage)
		}
	}
}

// The bucket may have room for more than the volume.
func TestTheStoreKeepsANumberOfItsOwn(t *testing.T) {
	for own, want := range map[int]int{0: 2, 5: 5} {
		options := Options{SnapshotRetention: 2, Store: StoreOptions{SnapshotRetention: own}}
		if got := retention(options, nil, time.Now()).Fulls; got != want {
			t.Errorf("of %d, %d are kept", own, got)
		}
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

// withoutStore changes what is the default, which names no store.
func withoutStore(change func(*StoreOptions)) func(*StoreOptions) {
	return func(o *StoreOptions) {
		*o = DefaultOptions().Store
		change(o)
	}
}

func TestValidateStoreOptions(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*StoreOptions)
		want   string
	}{
		{"S3", func(*StoreOptions) {}, ""},
		{"Azure", func(o *StoreOptions) { o.Provider = ABSStore }, ""},
		{"GCS", func(o *StoreOptions) { o.Provider = GCSStore }, ""},
		{"Swift", func(o *StoreOptions) { o.Provider = SwiftStore }, ""},
		{"local", func(o *StoreOptions) { o.Provider, o.CredentialsDir = LocalStore, "" }, ""},
		{"unknown", func(o *StoreOptions) { o.Provider = "tape" }, "--store-provider"},
		{"no provider", func(o *StoreOptions) { o.Provider = NoStore }, "--store-bucket needs --store-provider"},
		{"no bucket", func(o *StoreOptions) { o.Bucket = "" }, "--store-bucket"},
		{"no credentials", func(o *StoreOptions) { o.CredentialsDir = "" }, "--store-credentials-dir"},
		{"no credentials of Azure", func(o *StoreOptions) { o.Provider, o.CredentialsDir = ABSStore, "" },
			"--store-credentials-dir must be set for the provider ABS"},
		{"no credentials of GCS", func(o *StoreOptions) { o.Provider, o.CredentialsDir = GCSStore, "" },
			"--store-credentials-dir must be set for the provider GCS"},
		{"no credentials of Swift", func(o *StoreOptions) { o.Provider, o.CredentialsDir = SwiftStore, "" },
			"--store-credentials-dir must be set for the provider Swift"},
		{"another case", func(o *StoreOptions) { o.Provider = "swift" }, "--store-provider"},
		{"wrong prefix", func(o *StoreOptions) { o.Prefix = "a/../b" }, "--store-prefix"},
		{"often", func(o *StoreOptions) { o.DeltaSnapshotPeriod = time.Second }, "--delta-snapshot-period"},
		{"negative number", func(o *StoreOptions) { o.SnapshotRetention = -1 }, "--store-snapshot-retention"},
		{"negative age", func(o *StoreOptions) { o.SnapshotRetentionAge = -1 }, "--snapshot-retention-age"},
		{"negative period", func(o *StoreOptions) { o.VerifyPeriod = -1 }, "--verify-period"},
		{"no store", withoutStore(func(*StoreOptions) {}), ""},
		{
			"negative number without a store", withoutStore(func(o *StoreOptions) { o.SnapshotRetention = -1 }),
			"--store-snapshot-retention must not be negative",
		},
		{
			"often without a store", withoutStore(func(o *StoreOptions) { o.DeltaSnapshotPeriod = time.Second }),
			"--delta-snapshot-period",
		},
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
