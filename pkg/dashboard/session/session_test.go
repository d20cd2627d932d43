package session

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func keyText(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, keySize))
}

func keysOf(t testing.TB, texts ...string) *Keys {
	t.Helper()
	keys, err := ParseKeys(strings.Join(texts, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestKeys(t *testing.T) {
	for text, wrong := range map[string]string{
		keyText(1): "", keyText(1) + "\n" + keyText(2) + "\n": "", "": "there is none", "abc": "key 1",
		keyText(1) + "\nxyz": "key 2", strings.Repeat(keyText(1)+"\n", maxKeys+1): "there are 5",
	} {
		_, err := ParseKeys(text)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", text, err)
		}
	}
	old, both, next := keysOf(t, keyText(1)), keysOf(t, keyText(2), keyText(1)), keysOf(t, keyText(2))
	sealed, err := old.Seal("x", "value")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := both.Open("x", sealed, &got); err != nil || got != "value" {
		t.Errorf("by a new key and the old one: %q %v", got, err)
	}
	for what, err := range map[string]error{
		"by the new key only": next.Open("x", sealed, &got), "for another purpose": old.Open("y", sealed, &got),
	} {
		if !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again, _ := both.Seal("x", "value")
	if next.Open("x", again, &got) != nil || again == sealed {
		t.Error("a new session is not sealed by the first key")
	}
}

// Credentials that do not fit into a cookie are in several, and what is left of a longer one does no harm.
func TestLongCredentials(t *testing.T) {
	now := time.Now()
	cookies := NewCookies(keysOf(t, keyText(1)), func() time.Time { return now })
	noise := make([]byte, 7500)
	_, _ = rand.Read(noise)
	request := &http.Request{Header: http.Header{}}
	for _, size := range []int{7500, 100} {
		token := base64.RawURLEncoding.EncodeToString(noise[:size])
		s := New("alice", LoginToken, Credential{Token: token}, now, time.Hour)
		header := http.Header{}
		if err := cookies.Set(header, s); err != nil {
			t.Fatal(err)
		}
		jar := map[string]string{}
		for _, cookie := range request.Cookies() {
			jar[cookie.Name] = cookie.Value
		}
		for _, cookie := range (&http.Response{Header: header}).Cookies() {
			if len(cookie.Name)+len(cookie.Value) > 3800 {
				t.Errorf("a cookie of %d bytes", len(cookie.Value))
			}
			jar[cookie.Name] = cookie.Value
		}
		request = &http.Request{Header: http.Header{}}
		for name, value := range jar {
			request.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		got, err := cookies.Get(request)
		if err != nil || got.Credential.Token != token {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	huge := make([]byte, 40000)
	_, _ = rand.Read(huge)
	if err := cookies.Set(http.Header{}, New("x", LoginToken, Credential{Certificate: huge}, now,
		time.Hour)); err == nil {
		t.Error("what no browser keeps is set")
	}
}

func TestEndOfSessions(t *testing.T) {
	now := time.Now().Truncate(time.Second).UTC()
	s := New("alice", LoginOIDC, Credential{Token: "x"}, now, time.Hour)
	soon := now.Add(time.Minute)
	for _, test := range []struct {
		expires time.Time
		refresh string
		want    time.Time
	}{
		{time.Time{}, "", now.Add(time.Hour)}, {soon, "", soon}, {soon, "refresh", now.Add(time.Hour)},
		{now.Add(2 * time.Hour), "", now.Add(time.Hour)},
	} {
		s.CredentialExpires, s.Refresh = test.expires, test.refresh
		if got := s.Ends(); !got.Equal(test.want) {
			t.Errorf("%v %q: %v", test.expires, test.refresh, got)
		}
	}
}

// Nothing but what was sealed opens.
func FuzzOpen(f *testing.F) {
	keys := keysOf(f, keyText(1))
	sealed, _ := keys.Seal(cookieName, New("x", LoginToken, Credential{Token: "x"}, time.Now(), time.Hour))
	f.Add("1." + sealed)
	f.Add("2." + sealed)
	f.Add("")
	cookies := NewCookies(keys, time.Now)
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{}}
		r.AddCookie(&http.Cookie{Name: cookieName, Value: value})
		s, err := cookies.Get(r)
		if err == nil && s.User != "x" {
			t.Errorf("%q opens as %+v", value, s)
		}
	})
}
