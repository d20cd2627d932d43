package store_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

func TestDirectory(t *testing.T) {
	storetest.Run(t, 100, func(t *testing.T) store.Store {
		d, err := store.NewDirectory(filepath.Join(t.TempDir(), "backups"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	})
}

func openS3(t *testing.T, options store.S3Options) store.Store {
	t.Helper()
	s, err := store.NewS3(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	storetest.Run(t, 25, func(t *testing.T) store.Store {
		server := storetest.NewS3(t)
		t.Cleanup(func() {
			if left := server.Uploads(); left > 0 {
				t.Errorf("%d uploads are left unfinished", left)
			}
		})
		return openS3(t, server.Options())
	})
}

func TestReasonsOfS3(t *testing.T) {
	for name, test := range map[string]struct {
		refusal storetest.S3Error
		want    error
	}{
		"no permission":   {storetest.S3Error{Status: 403, Code: "AccessDenied"}, store.ErrPermission},
		"wrong key":       {storetest.S3Error{Status: 403, Code: "SignatureDoesNotMatch"}, store.ErrPermission},
		"expired token":   {storetest.S3Error{Status: 400, Code: "ExpiredToken"}, store.ErrPermission},
		"another refusal": {storetest.S3Error{Status: 403, Code: "OfItsOwn"}, store.ErrPermission},
		"quota of Ceph":   {storetest.S3Error{Status: 403, Code: "QuotaExceeded"}, store.ErrFull},
		"full MinIO":      {storetest.S3Error{Status: 400, Code: "XMinioStorageFull"}, store.ErrFull},
		"full":            {storetest.S3Error{Status: 507, Code: "OfItsOwn"}, store.ErrFull},
		"lock of MinIO":   {storetest.S3Error{Status: 400, Code: "ObjectLocked"}, store.ErrImmutable},
		"lock of AWS": {
			storetest.S3Error{Status: 403, Code: "AccessDenied", Message: "object protected by object lock."},
			store.ErrImmutable,
		},
		"a mistake of ours": {storetest.S3Error{Status: 400, Code: "InvalidArgument"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := storetest.NewS3(t)
			s := openS3(t, server.Options())
			storetest.Put(t, s, "a", []byte("content"))
			server.Refuse(func(r *http.Request) *storetest.S3Error {
				if r.Method == http.MethodPut || r.Method == http.MethodDelete {
					return &test.refusal
				}
				return nil
			})
			for operation, err := range map[string]error{
				"put":    s.Put(t.Context(), "a", strings.NewReader("other"), 5),
				"delete": s.Delete(t.Context(), "a"),
			} {
				if err == nil {
					t.Errorf("%s: no error", operation)
				}
				for _, reason := range []error{
					store.ErrNotFound, store.ErrPermission, store.ErrFull, store.ErrImmutable, store.ErrName,
				} {
					if got := errors.Is(err, reason); got != (reason == test.want) {
						t.Errorf("%s: %v: it is for the reason %q: %t", operation, err, reason, got)
					}
				}
			}
			if got := string(storetest.Get(t, s, "a")); got != "content" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestABucketThatIsMissingIsNotEmpty(t *testing.T) {
	options := storetest.NewS3(t).Options()
	options.Bucket = "another"
	s := openS3(t, options)
	_, listed := s.List(t.Context(), "")
	_, got := s.Get(t.Context(), "a")
	for operation, err := range map[string]error{"list": listed, "get": got, "delete": s.Delete(t.Context(), "a")} {
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v", operation, err)
		}
	}
}

func TestCredentialsAreRotatedInUse(t *testing.T) {
	server := storetest.NewS3(t)
	options := server.Options()
	current := store.S3Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}
	options.Credentials = func() (store.S3Credentials, error) { return current, nil }
	s := openS3(t, options)
	storetest.Put(t, s, "a", []byte("content"))
	server.Rotate("new")
	if _, err := s.Get(t.Context(), "a"); !errors.Is(err, store.ErrPermission) {
		t.Errorf("got %v", err)
	}
	current.AccessKeyID = "new"
	if got := string(storetest.Get(t, s, "a")); got != "content" {
		t.Errorf("got %q", got)
	}
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	options := storetest.NewS3(t).Options()
	unreadable := errors.New("the Secret is gone")
	options.Credentials = func() (store.S3Credentials, error) { return store.S3Credentials{}, unreadable }
	if _, err := openS3(t, options).Get(t.Context(), "a"); !errors.Is(err, unreadable) {
		t.Errorf("got %v", err)
	}
}

func TestS3IsAskedToEncrypt(t *testing.T) {
	for name, test := range map[string]struct {
		encryption store.Encryption
		key        string
		want, id   string
	}{
		"the bucket's default":        {},
		"with the store's keys":       {encryption: store.AES256, want: "AES256"},
		"with a KMS":                  {encryption: store.KMS, want: "aws:kms"},
		"with a key of ours in a KMS": {encryption: store.KMS, key: "ours", want: "aws:kms", id: "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			server := storetest.NewS3(t)
			options := server.Options()
			options.Encryption, options.KMSKey = test.encryption, test.key
			storetest.Put(t, openS3(t, options), "a", []byte("content"))
			for _, r := range server.Requests() {
				if got := r.Header.Get("X-Amz-Server-Side-Encryption"); got != test.want {
					t.Errorf("%s: encryption %q, want %q", r.Method, got, test.want)
				}
				if got := r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"); got != test.id {
					t.Errorf("%s: key %q, want %q", r.Method, got, test.id)
				}
			}
		})
	}
}

func TestOnlyTheOwnCAIsTrusted(t *testing.T) {
	options := storetest.NewS3(t).Options()
	options.CA = nil
	if _, err := openS3(t, options).Get(t.Context(), "a"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a certificate of an unknown CA is taken: %v", err)
	}
}

func TestWrongOptionsOfS3(t *testing.T) {
	for name, change := range map[string]func(*store.S3Options){
		"no endpoint":             func(o *store.S3Options) { o.Endpoint = "" },
		"no URL":                  func(o *store.S3Options) { o.Endpoint = "s3.example.com" },
		"another protocol":        func(o *store.S3Options) { o.Endpoint = "ftp://s3.example.com" },
		"a path":                  func(o *store.S3Options) { o.Endpoint = "https://s3.example.com/bucket" },
		"no bucket":               func(o *store.S3Options) { o.Bucket = "" },
		"no credentials":          func(o *store.S3Options) { o.Credentials = nil },
		"no certificate":          func(o *store.S3Options) { o.CA = []byte("none") },
		"a CA without TLS":        func(o *store.S3Options) { o.Endpoint = "http://s3.example.com" },
		"an unknown encryption":   func(o *store.S3Options) { o.Encryption = "rot13" },
		"a KMS key without a KMS": func(o *store.S3Options) { o.KMSKey = "ours" },
	} {
		options := storetest.NewS3(t).Options()
		change(&options)
		if _, err := store.NewS3(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
