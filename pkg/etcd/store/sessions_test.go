package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

// issuer is a server that issues tokens.
type issuer interface {
	Issued() int
	Revoke()
}

func TestTokensAreUsedUntilTheyEnd(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, short bool) (store.Store, issuer){
		"GCS": func(t *testing.T, short bool) (store.Store, issuer) {
			server := storetest.NewGCS(t)
			if short {
				server.Lifetime = 1
			}
			return openGCS(t, server.Options()), server
		},
		"Swift": func(t *testing.T, short bool) (store.Store, issuer) {
			server := storetest.NewSwift(t)
			if short {
				server.Lifetime = time.Second
			}
			return openSwift(t, server.Options()), server
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, server := open(t, false)
			for range 3 {
				storetest.Put(t, s, "a", []byte("content"))
			}
			if got := server.Issued(); got != 1 {
				t.Errorf("%d tokens were issued for three objects", got)
			}
			server.Revoke()
			if got := string(storetest.Get(t, s, "a")); got != "content" || server.Issued() != 2 {
				t.Errorf("got %q with %d tokens after the first was revoked", got, server.Issued())
			}
			s, server = open(t, true)
			for range 3 {
				storetest.Put(t, s, "a", []byte("content"))
			}
			if got := server.Issued(); got != 3 {
				t.Errorf("%d tokens were issued for three objects, each of which ends", got)
			}
		})
	}
}

// A token is asked for within the context of who needs it, even where the client knows none.
func TestTokensEndWithTheContext(t *testing.T) {
	gcs, swift := storetest.NewGCS(t), storetest.NewSwift(t)
	for name, test := range map[string]struct {
		store  store.Store
		server *storetest.Server
	}{
		"GCS":   {openGCS(t, gcs.Options()), &gcs.Server},
		"Swift": {openSwift(t, swift.Options()), &swift.Server},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		test.server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			cancel()
			<-r.Context().Done()
			return true
		})
		if _, err := test.store.List(ctx, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestIssuersThatRefuseOrAnswerNonsense(t *testing.T) {
	gcs, swift := storetest.NewGCS(t), storetest.NewSwift(t)
	for _, test := range []struct {
		name   string
		status int
		answer string
		want   error
	}{
		{"refused", http.StatusUnauthorized, `{"error":"invalid_client"}`, store.ErrPermission},
		{"no token", http.StatusCreated, `{"token":{}}`, nil},
		{"no JSON", http.StatusCreated, `<html>`, nil},
		{"busy", http.StatusServiceUnavailable, ``, nil},
	} {
		for name, s := range map[string]struct {
			store  store.Store
			server *storetest.Server
		}{
			"GCS":   {openGCS(t, gcs.Options()), &gcs.Server},
			"Swift": {openSwift(t, swift.Options()), &swift.Server},
		} {
			s.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				body, _ := io.ReadAll(r.Body)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.answer+string(body))
				return true
			})
			_, err := s.store.List(t.Context(), "")
			if err == nil || errors.Is(err, store.ErrPermission) != (test.want != nil) {
				t.Errorf("%s, %s: got %v", name, test.name, err)
			}
			if strings.Contains(err.Error(), "pass-1-word") || strings.Contains(err.Error(), "assertion=") {
				t.Errorf("%s, %s: %v", name, test.name, err)
			}
		}
	}
}

// An upload must not be led to where its parts, and the token, do not belong.
func TestUploadsToGCSStayThere(t *testing.T) {
	for name, location := range map[string]string{
		"another host": "https://other.example.com/upload?upload_id=1", "without TLS": "http://%s/upload?upload_id=1",
		"a user": "https://user:word@%s/upload?upload_id=1", "none": "", "no URL": "%%zz",
	} {
		server := storetest.NewGCS(t)
		s := openGCS(t, server.Options())
		host := strings.TrimPrefix(server.URL, "https://")
		server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("uploadType") == "resumable" {
				w.Header().Set("Location", strings.Replace(location, "%s", host, 1))
				return true
			}
			return r.URL.Path != "/token"
		})
		if err := s.Put(t.Context(), "a", bytes.NewReader(storetest.Bytes(storetest.Large)), store.Unknown); err == nil {
			t.Errorf("%s: no error", name)
		}
		for _, r := range server.Requests() {
			if r.Method == http.MethodPut {
				t.Errorf("%s: a part is sent to %s", name, r.Host)
			}
		}
	}
}

// GCS says how much it has; what is impossible ends the upload, what it has not taken is sent again.
func TestUploadsToGCSAreResumed(t *testing.T) {
	for name, had := range map[string]string{
		"nothing": "", "more than was sent": "bytes=0-99999999", "less than before": "bytes=0--5", "no range": "bytes=1-2",
	} {
		server := storetest.NewGCS(t)
		s := openGCS(t, server.Options())
		parts := 0
		server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut {
				return false
			}
			parts++
			w.Header().Set("Range", had)
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		})
		content := bytes.NewReader(storetest.Bytes(storetest.Large))
		if err := s.Put(t.Context(), "a", content, store.Unknown); err == nil || parts != 1 {
			t.Errorf("%s: got %v after %d parts", name, err, parts)
		}
		if left := server.Uploads(); left > 0 {
			t.Errorf("%s: %d uploads are left", name, left)
		}
	}
}

// What GCS made of the parts is compared with what was sent.
func TestUploadsToGCSAreCompared(t *testing.T) {
	server := storetest.NewGCS(t)
	s := openGCS(t, server.Options())
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.Header.Get("Content-Range"), "/*") && r.Method == http.MethodPut {
			_, _ = io.WriteString(w, `{"name":"a","size":"16789561","crc32c":"AAAAAA=="}`)
			return true
		}
		return false
	})
	err := s.Put(t.Context(), "a", bytes.NewReader(storetest.Bytes(storetest.Large)), store.Unknown)
	if err == nil || !strings.Contains(err.Error(), "size or checksum") {
		t.Errorf("got %v", err)
	}
}

func TestSwiftTakesApplicationCredentials(t *testing.T) {
	server := storetest.NewSwift(t)
	secret := server.Credentials().Password
	for name, credentials := range map[string]store.SwiftCredentials{
		"by id": {
			ApplicationCredentialID: storetest.ApplicationCredential, ApplicationCredentialSecret: secret,
			Username: "of", Password: "no", DomainName: "account",
		},
		"by name": {
			ApplicationCredentialName: "name", ApplicationCredentialSecret: secret, Username: "user",
			DomainName: "domain",
		},
	} {
		options := server.Options()
		options.Credentials = func() (store.SwiftCredentials, error) { return credentials, nil }
		s := openSwift(t, options)
		if err := s.Put(t.Context(), "a", strings.NewReader(name), store.Unknown); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The token goes only where the catalog has one store, over TLS.
func TestCatalogsOfSwift(t *testing.T) {
	for name, change := range map[string]func(server *storetest.Swift, options *store.SwiftOptions){
		"another region":  func(_ *storetest.Swift, o *store.SwiftOptions) { o.Region = "nowhere" },
		"several regions": func(_ *storetest.Swift, o *store.SwiftOptions) { o.Region = "" },
		"no catalog":      func(s *storetest.Swift, _ *store.SwiftOptions) { s.Catalog = nil },
		"no TLS": func(s *storetest.Swift, _ *store.SwiftOptions) {
			s.Catalog = []any{map[string]any{"type": "object-store", "endpoints": []any{map[string]any{
				"region": storetest.Region, "interface": "public", "url": "http://store.example.com/v1",
			}}}}
		},
		"no URL": func(s *storetest.Swift, _ *store.SwiftOptions) {
			s.Catalog = []any{map[string]any{"type": "object-store", "endpoints": []any{map[string]any{
				"region": storetest.Region, "interface": "public", "url": "https://user:pass-1-word@store.example.com",
			}}}}
		},
	} {
		server := storetest.NewSwift(t)
		options := server.Options()
		change(server, &options)
		_, err := openSwift(t, options).List(t.Context(), "")
		if err == nil || strings.Contains(err.Error(), "pass-1-word") {
			t.Errorf("%s: got %v", name, err)
		}
		for _, r := range server.Requests() {
			if r.Header.Get("X-Auth-Token") != "" {
				t.Errorf("%s: the token is sent to %s", name, r.Host)
			}
		}
	}
}

// Segments are not listed, and go with their object, with an upload that fails, and even after a crash.
func TestSegmentsOfSwift(t *testing.T) {
	server := storetest.NewSwift(t)
	s := openSwift(t, server.Options())
	storetest.Put(t, s, "a", storetest.Bytes(storetest.Large))
	storetest.Put(t, s, "a.b/c", storetest.Bytes(storetest.Large))
	if got := storetest.Names(t, s, ""); !slices.Equal(got, []string{"a", "a.b/c"}) || len(server.Stored()) != 6 {
		t.Errorf("listed %q of %q", got, server.Stored())
	}
	// Only the manifest is lost, as when a crash ends an upload.
	content := io.MultiReader(bytes.NewReader(storetest.Bytes(storetest.Large)), iotest.ErrReader(errors.New("gone")))
	if err := s.Put(t.Context(), "new", content, store.Unknown); err == nil {
		t.Error("content that fails is put")
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if got := storetest.Names(t, s, ""); !slices.Equal(got, []string{"a.b/c"}) || len(server.Stored()) != 3 {
		t.Errorf("listed %q of %q", got, server.Stored())
	}
	if got := storetest.Get(t, s, "a.b/c"); len(got) != storetest.Large {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestWrongOptionsOfProviders(t *testing.T) {
	abs, gcs, swift := storetest.NewABS(t).Options(), storetest.NewGCS(t).Options(), storetest.NewSwift(t).Options()
	of := func(a store.ABSOptions, g store.GCSOptions, s store.SwiftOptions) []error {
		_, err1 := store.NewABS(a)
		_, err2 := store.NewGCS(g)
		_, err3 := store.NewSwift(s)
		return []error{err1, err2, err3}
	}
	if err := errors.Join(of(abs, gcs, swift)...); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*store.ABSOptions, *store.GCSOptions, *store.SwiftOptions){
		"no bucket": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Bucket, g.Bucket, s.Bucket = "", "", ""
		},
		"no credentials": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Credentials, g.Credentials, s.Credentials = nil, nil, nil
		},
		"no certificate": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.CA, g.CA, s.CA = []byte("none"), []byte("none"), []byte("none")
		},
		"a path": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Domain, g.Endpoint, s.AuthURL = "example.com/x", "https://example.com/x", "ftp://example.com"
		},
		"a user": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Domain, g.Endpoint, s.AuthURL = "a@example.com", "https://a:word@example.com", "https://a:word@example.com"
		},
		"a query": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Domain, g.Endpoint, s.AuthURL = "example.com?a", "https://example.com?a", "https://example.com?a"
		},
		"no TLS": func(a *store.ABSOptions, g *store.GCSOptions, s *store.SwiftOptions) {
			a.Domain, g.Endpoint, s.AuthURL = "example.com#a", "http://example.com", "http://example.com"
		},
	} {
		a, g, s := abs, gcs, swift
		change(&a, &g, &s)
		for i, err := range of(a, g, s) {
			if err == nil || strings.Contains(err.Error(), "word") {
				t.Errorf("%s, provider %d: got %v", name, i, err)
			}
		}
	}
}

// The account's name becomes part of a host's.
func TestAccountsOfAzure(t *testing.T) {
	for _, account := range []string{"", "ab", "evil.example.net/", "evil#", "UPPER", "a:b@c", strings.Repeat("a", 25)} {
		server := storetest.NewABS(t)
		options := server.Options()
		credentials := server.Credentials()
		credentials.StorageAccount = account
		options.Credentials = func() (store.ABSCredentials, error) { return credentials, nil }
		_, err := openABS(t, options).List(t.Context(), "")
		if err == nil || len(server.Requests()) > 0 {
			t.Errorf("%q: got %v after %d requests", account, err, len(server.Requests()))
		}
	}
	server := storetest.NewABS(t)
	options := server.Options()
	options.Credentials = func() (store.ABSCredentials, error) {
		return store.ABSCredentials{StorageAccount: "account", StorageKey: "no-base-64-!"}, nil
	}
	_, err := openABS(t, options).List(t.Context(), "")
	if !errors.Is(err, store.ErrPermission) || strings.Contains(err.Error(), "no-base") {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestCredentialsOfProvidersThatCannotBeRead(t *testing.T) {
	unreadable := errors.New("the Secret is gone")
	abs, gcs, swift := storetest.NewABS(t).Options(), storetest.NewGCS(t).Options(), storetest.NewSwift(t).Options()
	abs.Credentials = func() (store.ABSCredentials, error) { return store.ABSCredentials{}, unreadable }
	gcs.Credentials = func() (store.GCSCredentials, error) { return store.GCSCredentials{}, unreadable }
	swift.Credentials = func() (store.SwiftCredentials, error) { return store.SwiftCredentials{}, unreadable }
	for name, s := range map[string]store.Store{
		"ABS": openABS(t, abs), "GCS": openGCS(t, gcs), "Swift": openSwift(t, swift),
	} {
		operations := (&served{store: s}).operations(t)
		for _, operation := range slices.Sorted(maps.Keys(operations)) {
			if err := operations[operation]; !errors.Is(err, unreadable) {
				t.Errorf("%s, %s: got %v", name, operation, err)
			}
		}
	}
}
