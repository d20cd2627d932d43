package store

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func testKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
	}))
}

// An answer that does not end is given up on, but for an object's content, which has the caller's context.
func TestAnswersEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the beginning")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	client := &http.Client{Transport: bounded{next: http.DefaultTransport, timeout: time.Millisecond}}
	response, err := client.Get(server.URL)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	if err == nil {
		t.Error("an answer without an end ends")
	}
	request, err := http.NewRequestWithContext(withContent(t.Context()), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err = client.Do(request); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 13)); err != nil {
		t.Errorf("content is bounded: %v", err)
	}
	_ = response.Body.Close()
}

func TestHowLongAStoreMayHaveUsWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "2": 2 * time.Second, "99999999999999999999": 0, "60000": 60000 * time.Second,
	} {
		got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {text}}})
		if got != want || min(got, longestDelay) > 30*time.Second {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestListingsAreBounded(t *testing.T) {
	for name, object := range map[string]Object{
		"objects": {Name: "a"}, "names": {Name: strings.Repeat("a", 100_000)},
	} {
		var l listing
		var err error
		n := 0
		for ; err == nil; n++ {
			err = l.add(object)
		}
		if !errors.Is(err, errAnswer) || n > maxObjects+1 {
			t.Errorf("%s: got %v after %d", name, err, n)
		}
	}
}

// Whatever a store calls its error, only a word of letters is told.
func FuzzCode(f *testing.F) {
	f.Add("AuthenticationFailed", 403)
	f.Add("Bearer ya29.token", 401)
	f.Fuzz(func(t *testing.T, text string, status int) {
		err := refused(status, text, absCodes)
		rest := strings.TrimPrefix(err.Error(), ErrPermission.Error()+": ")
		for _, reason := range []error{ErrFull, ErrImmutable, ErrNotFound} {
			rest = strings.TrimPrefix(rest, reason.Error()+": ")
		}
		if code(text) == "" && rest != fmt.Sprintf("the store answers %d %s", status, http.StatusText(status)) {
			t.Errorf("%q: %v", text, err)
		}
		if len(code(text)) > maxCode {
			t.Errorf("%q is told", text)
		}
	})
}

func FuzzPageOfGCS(f *testing.F) {
	f.Add(`{"kind":"storage#objects","items":[{"name":"a/1","size":"1","updated":"2006-01-02T15:04:05Z"}]}`)
	f.Add(`{"kind":"storage#objects","items":[{"name":"a/1","size":"-1"}]}`)
	f.Add(`{"items":[null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var page gcsPage
		if json.Unmarshal([]byte(text), &page) != nil {
			return
		}
		found := listing{prefix: "a/"}
		if err := page.addTo(&found); err != nil {
			if !errors.Is(err, errAnswer) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		for _, object := range found.sorted() {
			if !strings.HasPrefix(object.Name, "a/") || object.Size < 0 || object.Modified.IsZero() &&
				!strings.Contains(text, "0001-01-01") {
				t.Errorf("%q: listed %+v", text, object)
			}
		}
	})
}

// Session URIs and ranges of uploads are what GCS says.
func FuzzRangeOfGCS(f *testing.F) {
	f.Add("bytes=0-262143", int64(0), int64(1<<20))
	f.Add("bytes=0--1", int64(5), int64(10))
	f.Fuzz(func(t *testing.T, text string, sent, end int64) {
		if sent < 0 || end <= sent || end-sent > partSize {
			return
		}
		taken, err := (&gcsUpload{sent: sent}).taken(text, end)
		if err == nil && (taken < 1 || int64(taken) > end-sent) {
			t.Errorf("%q: %d taken of %d to %d", text, taken, sent, end)
		}
	})
}
