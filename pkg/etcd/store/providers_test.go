package store_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
	"github.com/trellis-garden/trellis/pkg/etcd/store/storetest"
)

func TestABS(t *testing.T) {
	storetest.Run(t, 25, func(t *testing.T) store.Store { return openABS(t, storetest.NewABS(t).Options()) })
}

func TestGCS(t *testing.T) {
	storetest.Run(t, 25, func(t *testing.T) store.Store {
		server := storetest.NewGCS(t)
		t.Cleanup(func() {
			if left := server.Uploads(); left > 0 {
				t.Errorf("%d uploads are left unfinished", left)
			}
		})
		return openGCS(t, server.Options())
	})
}

func TestSwift(t *testing.T) {
	storetest.Run(t, 25, func(t *testing.T) store.Store { return openSwift(t, storetest.NewSwift(t).Options()) })
}

func openABS(t *testing.T, options store.ABSOptions) store.Store {
	t.Helper()
	s, err := store.NewABS(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openGCS(t *testing.T, options store.GCSOptions) store.Store {
	t.Helper()
	s, err := store.NewGCS(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSwift(t *testing.T, options store.SwiftOptions) store.Store {
	t.Helper()
	s, err := store.NewSwift(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// served is a store and its server, of which a test needs no more than what all have in common.
type served struct {
	store  store.Store
	server *storetest.Server
	// elsewhere is the same store with a bucket that does not exist, untrusted the same without its CA.
	elsewhere, untrusted store.Store
	// rotate has the server take other credentials, and then the store have them.
	rotate func() (take func())
	// fail answers as this provider does.
	fail func(w http.ResponseWriter, status int, code, message string)
	// objects is what paths of requests for objects and listings begin with, those for tokens do not.
	objects string
}

var providers = map[string]func(t *testing.T) served{
	"ABS": func(t *testing.T) served {
		server := storetest.NewABS(t)
		o := server.Options()
		current := server.Credentials()
		o.Credentials = func() (store.ABSCredentials, error) { return current, nil }
		elsewhere, untrusted := o, o
		elsewhere.Bucket, untrusted.CA = "another", nil
		return served{
			openABS(t, o), &server.Server, openABS(t, elsewhere), openABS(t, untrusted),
			func() func() {
				server.Rotate("another key")
				return func() { current = server.Credentials() }
			}, server.Fail, "/",
		}
	},
	"GCS": func(t *testing.T) served {
		server := storetest.NewGCS(t)
		o := server.Options()
		current := server.Credentials()
		o.Credentials = func() (store.GCSCredentials, error) { return current, nil }
		elsewhere, untrusted := o, o
		elsewhere.Bucket, untrusted.CA = "another", nil
		return served{
			openGCS(t, o), &server.Server, openGCS(t, elsewhere), openGCS(t, untrusted),
			func() func() {
				server.Rotate("two")
				return func() { current = server.Credentials() }
			}, server.Fail, "/",
		}
	},
	"Swift": func(t *testing.T) served {
		server := storetest.NewSwift(t)
		o := server.Options()
		current := server.Credentials()
		o.Credentials = func() (store.SwiftCredentials, error) { return current, nil }
		elsewhere, untrusted := o, o
		elsewhere.Bucket, untrusted.CA = "another", nil
		return served{
			openSwift(t, o), &server.Server, openSwift(t, elsewhere), openSwift(t, untrusted),
			func() func() {
				server.Rotate("an-other-password-2")
				return func() { current = server.Credentials() }
			}, func(w http.ResponseWriter, status int, code, message string) {
				http.Error(w, code+" "+message, status)
			}, "/v1/",
		}
	},
}

// each runs a test for each provider.
func each(t *testing.T, test func(t *testing.T, s served)) {
	for name, open := range providers {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// forObjects intercepts requests but those for tokens.
func (s *served) forObjects(answer http.HandlerFunc) {
	s.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" || !strings.HasPrefix(r.URL.Path, s.objects) || r.URL.Path == "/v3/auth/tokens" {
			return false
		}
		answer(w, r)
		return true
	})
}

// operations are the errors of all that can be done with an object "a".
func (s *served) operations(t *testing.T) map[string]error {
	t.Helper()
	_, listed := s.store.List(t.Context(), "")
	content, got := s.store.Get(t.Context(), "a")
	if got == nil {
		_, got = io.Copy(io.Discard, content)
		got = errors.Join(got, content.Close())
	}
	return map[string]error{
		"list": listed, "get": got, "delete": s.store.Delete(t.Context(), "a"),
		"put":       s.store.Put(t.Context(), "a", strings.NewReader("other"), 5),
		"large put": s.store.Put(t.Context(), "a", strings.NewReader(strings.Repeat("a", storetest.Large)), store.Unknown),
	}
}

func TestReasonsOfProviders(t *testing.T) {
	for _, test := range []struct {
		provider string
		status   int
		code     string
		want     error
	}{
		{"ABS", 403, "AuthenticationFailed", store.ErrPermission},
		{"ABS", 403, "AuthorizationFailure", store.ErrPermission},
		{"ABS", 409, "BlobImmutableDueToPolicy", store.ErrImmutable},
		{"ABS", 507, "OfItsOwn", store.ErrFull},
		{"ABS", 412, "LeaseIdMissing", nil},
		{"ABS", 409, "SnapshotsPresent", nil},
		{"ABS", 404, "ContainerNotFound", nil},
		{"ABS", 400, "InvalidHeaderValue", nil},
		{"ABS", 429, "TooManyRequests", nil},
		{"GCS", 401, "authError", store.ErrPermission},
		{"GCS", 403, "forbidden", store.ErrPermission},
		{"GCS", 403, "retentionPolicyNotMet", store.ErrImmutable},
		{"GCS", 403, "objectUnderActiveHold", store.ErrImmutable},
		{"GCS", 403, "quotaExceeded", store.ErrFull},
		{"GCS", 403, "rateLimitExceeded", nil},
		{"GCS", 507, "ofItsOwn", store.ErrFull},
		{"GCS", 412, "conditionNotMet", nil},
		{"GCS", 409, "conflict", nil},
		{"GCS", 429, "rateLimitExceeded", nil},
		{"Swift", 401, "", store.ErrPermission},
		{"Swift", 403, "Forbidden", store.ErrPermission},
		{"Swift", 403, "QuotaExceeded", store.ErrFull},
		{"Swift", 413, "Upload exceeds quota.", store.ErrFull},
		{"Swift", 413, "Your request is too large.", nil},
		{"Swift", 507, "", store.ErrFull},
		{"Swift", 409, "", nil},
		{"Swift", 412, "", nil},
		{"Swift", 429, "", nil},
	} {
		t.Run(fmt.Sprint(test.provider, " ", test.status, " ", test.code), func(t *testing.T) {
			s := providers[test.provider](t)
			storetest.Put(t, s.store, "a", []byte("content"))
			s.forObjects(func(w http.ResponseWriter, _ *http.Request) { s.fail(w, test.status, test.code, "no") })
			for operation, err := range s.operations(t) {
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
			s.server.Intercept(nil)
			if got := string(storetest.Get(t, s.store, "a")); got != "content" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestBucketsOfProvidersThatAreMissingAreNotEmpty(t *testing.T) {
	each(t, func(t *testing.T, s served) {
		s.store = s.elsewhere
		for operation, err := range s.operations(t) {
			if err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %v", operation, err)
			}
		}
	})
}

func TestProvidersTrustOnlyTheOwnCA(t *testing.T) {
	each(t, func(t *testing.T, s served) {
		s.store = s.untrusted
		for operation, err := range s.operations(t) {
			if err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: a certificate of an unknown CA is taken: %v", operation, err)
			}
		}
		if seen := s.server.Requests(); len(seen) > 0 {
			t.Errorf("%d requests came", len(seen))
		}
	})
}

func TestCredentialsOfProvidersAreRotatedInUse(t *testing.T) {
	each(t, func(t *testing.T, s served) {
		storetest.Put(t, s.store, "a", []byte("content"))
		take := s.rotate()
		for operation, err := range s.operations(t) {
			if !errors.Is(err, store.ErrPermission) {
				t.Errorf("%s: got %v", operation, err)
			}
		}
		take()
		if got := string(storetest.Get(t, s.store, "a")); got != "content" {
			t.Errorf("got %q", got)
		}
	})
}

// What passes is not told: the same request is made again.
func TestProvidersAreAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, s served) {
		storetest.Put(t, s.store, "a", []byte("content"))
		var asked atomic.Int32
		statuses := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError}
		s.server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if n := asked.Add(1) % 4; n > 0 {
				s.fail(w, statuses[n-1], "ServerBusy", "later")
				return true
			}
			return false
		})
		for operation, err := range s.operations(t) {
			if err != nil {
				t.Errorf("%s: got %v", operation, err)
			}
		}
		s.server.Intercept(nil)
		if got := storetest.Get(t, s.store, "a"); len(got) != storetest.Large {
			t.Errorf("got %d bytes", len(got))
		}
	})
}

// Whoever is redirected to gets nothing, neither what permits requests nor backups.
func TestProvidersFollowNoRedirections(t *testing.T) {
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer other.Close()
	each(t, func(t *testing.T, s served) {
		storetest.Put(t, s.store, "a", []byte("content"))
		for _, status := range []int{301, 307, 308} {
			for _, location := range []string{other.URL + "/x", s.server.URL + "/elsewhere", "%zz"} {
				before := len(s.server.Requests())
				s.server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Location", location)
					w.WriteHeader(status)
					return true
				})
				for operation, err := range s.operations(t) {
					if err == nil || errors.Is(err, store.ErrNotFound) || strings.Contains(err.Error(), "%zz") {
						t.Errorf("%s, %d to %s: got %v", operation, status, location, err)
					}
				}
				for _, r := range s.server.Requests()[before:] {
					if r.URL.Path == "/elsewhere" {
						t.Errorf("%d to %s is followed", status, location)
					}
				}
			}
		}
	})
	if n := followed.Load(); n > 0 {
		t.Errorf("another host had %d requests", n)
	}
}

// quoted is all of a request that permits it, as a server that wants it in logs would quote it.
func quoted(r *http.Request) string {
	return r.Header.Get("Authorization") + r.Header.Get("X-Auth-Token")
}

// A server may quote what it was asked with, in codes, in words, where a number or a time is expected, or in what is
// not even HTTP.
func TestErrorsHaveNoCredentials(t *testing.T) {
	for name, answer := range map[string]func(s served, w http.ResponseWriter, r *http.Request){
		"an error": func(s served, w http.ResponseWriter, r *http.Request) {
			s.fail(w, http.StatusForbidden, quoted(r), quoted(r))
		},
		"the status line": func(_ served, w http.ResponseWriter, r *http.Request) {
			hijack(w, "HTTP/1.1 "+quoted(r)+"\r\n\r\n")
		},
		"a header": func(_ served, w http.ResponseWriter, r *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\n"+quoted(r)+"\r\n\r\n")
		},
		"no HTTP": func(_ served, w http.ResponseWriter, r *http.Request) { hijack(w, quoted(r)+"\r\n\r\n") },
		"a time": func(_ served, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", quoted(r))
			w.Header().Set("Content-Type", "application/json")
			if strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey") {
				_, _ = fmt.Fprintf(w, "<EnumerationResults><Blobs><Blob><Name>a</Name><Properties><Last-Modified>%s"+
					"</Last-Modified></Properties></Blob></Blobs></EnumerationResults>", quoted(r))
				return
			}
			_, _ = fmt.Fprintf(w, `[{"name":"a","last_modified":%q}]`, quoted(r))
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s served) {
				storetest.Put(t, s.store, "a", []byte("content"))
				s.forObjects(func(w http.ResponseWriter, r *http.Request) { answer(s, w, r) })
				failed := 0
				for operation, err := range s.operations(t) {
					if err == nil {
						continue
					}
					failed++
					for _, r := range s.server.Requests() {
						secret := quoted(r)
						_, token, _ := strings.Cut(secret, " ")
						if secret != "" && (strings.Contains(err.Error(), secret) ||
							token != "" && strings.Contains(err.Error(), token)) {
							t.Fatalf("%s: %v", operation, err)
						}
					}
				}
				if failed == 0 {
					t.Error("nothing failed")
				}
			})
		})
	}
}

// hijack answers what need not be HTTP.
func hijack(w http.ResponseWriter, text string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(connection, text)
	_ = connection.Close()
}

// endless is an answer without an end: it is written until nobody reads any more, and counts the bytes.
func endless(w http.ResponseWriter, kind, text string) int64 {
	w.Header().Set("Content-Type", kind)
	block, written := []byte(strings.Repeat(text, 1<<20/len(text))), int64(0)
	for {
		n, err := w.Write(block)
		if written += int64(n); err != nil {
			return written
		}
	}
}

func TestAnswersWithoutAnEndAreBounded(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		for kind, begin := range map[string]string{"application/json": `["`, "application/xml": "<EnumerationResults>"} {
			each(t, func(t *testing.T, s served) {
				var most atomic.Int64
				s.forObjects(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, begin)
					most.Store(max(most.Load(), endless(w, kind, "aaaaaaaa")))
				})
				if objects, err := s.store.List(t.Context(), ""); err == nil {
					t.Errorf("%d, %s: listed %d objects", status, kind, len(objects))
				}
				if got := most.Load(); got > 48<<20 {
					t.Errorf("%d, %s: %d bytes were read", status, kind, got)
				}
			})
		}
	}
}

// Listings that never end, go back, or have what was not asked for.
func TestListingsAreHeldToWhatTheyAre(t *testing.T) {
	abs := func(marker, blobs string) string {
		return "<EnumerationResults><Blobs>" + blobs + "</Blobs><NextMarker>" + marker + "</NextMarker>" +
			"</EnumerationResults>"
	}
	blob := func(name, size string) string {
		if size != "" {
			size = "<Content-Length>" + size + "</Content-Length>"
		}
		return "<Blob><Name>" + name + "</Name><Properties>" + size +
			"<Last-Modified>Mon, 02 Jan 2006 15:04:05 GMT</Last-Modified></Properties></Blob>"
	}
	for _, test := range []struct{ provider, name, answer string }{
		{"ABS", "empty pages", abs("more", "")},
		{"ABS", "a negative size", abs("", blob("a/1", "-1"))},
		{"ABS", "no size", abs("", blob("a/1", ""))},
		{"ABS", "another prefix", abs("", blob("b/1", "1"))},
		{"ABS", "not a listing", "<html></html>"},
		{"GCS", "empty pages", `{"kind":"storage#objects","nextPageToken":"more"}`},
		{"GCS", "a negative size", item(`"name":"a/1","size":"-1","updated":"2006-01-02T15:04:05Z"`)},
		{"GCS", "no size", item(`"name":"a/1","updated":"2006-01-02T15:04:05Z"`)},
		{"GCS", "no time", item(`"name":"a/1","size":"1"`)},
		{"GCS", "another prefix", item(`"name":"b/1","size":"1","updated":"2006-01-02T15:04:05Z"`)},
		{"GCS", "not a listing", `{}`},
		{"GCS", "not JSON", `<html></html>`},
		{"Swift", "the same page", `[{"name":"a/1","bytes":1}]`},
		{"Swift", "a negative size", `[{"name":"a/1","bytes":-1}]`},
		{"Swift", "another prefix", `[{"name":"b/1","bytes":1}]`},
		{"Swift", "not a listing", `{}`},
		{"Swift", "not JSON", `<html></html>`},
	} {
		t.Run(test.provider+" "+test.name, func(t *testing.T) {
			s := providers[test.provider](t)
			s.forObjects(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, test.answer)
			})
			if objects, err := s.store.List(t.Context(), "a/"); err == nil {
				t.Errorf("listed %v", objects)
			}
			if n := len(s.server.Requests()); n > 110 {
				t.Errorf("%d pages were asked for", n)
			}
		})
	}
}

func item(fields string) string { return `{"kind":"storage#objects","items":[{` + fields + `}]}` }

// A server that alters what it keeps, or breaks off, is found out when the content is read.
func TestContentIsHeldToItsChecksum(t *testing.T) {
	each(t, func(t *testing.T, s served) {
		storetest.Put(t, s.store, "a", []byte("content"))
		for name, other := range map[string]string{"altered": "CONTENT", "broken off": "cont", "empty": ""} {
			s.forObjects(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-MD5", "mgNkuembtIDdJeHwKEyFVQ==")
				w.Header().Set("ETag", "9a0364b9e99bb480dd25e1f0284c8555")
				w.Header().Set("X-Goog-Hash", "crc32c=Ya91Mw==")
				if name == "broken off" {
					w.Header().Set("Content-Length", "7")
				}
				_, _ = io.WriteString(w, other)
			})
			content, err := s.store.Get(t.Context(), "a")
			if err == nil {
				_, err = io.ReadAll(content)
				_ = content.Close()
			}
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}
