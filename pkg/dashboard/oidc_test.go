package dashboard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/dashboard/gardentest"
)

// issuer gives ID tokens to whom it gave a code.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey
	// claims of the next token; the code's challenge and nonce are those of the last log-in.
	claims           map[string]any
	challenge, nonce string
	refreshes        int
	garden           *gardentest.Garden
	now              func() time.Time
}

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// withIssuer is a dashboard with an issuer, and users of the garden with its tokens.
func withIssuer(t *testing.T) (*landscape, *issuer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, claims: map[string]any{}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Server.Close)
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLandscape(t, func(c *Config) {
		c.Issuers = []IssuerConfig{{Name: "main", Title: "Main", URL: i.URL, ClientID: "dashboard", CAFile: ca}}
	})
	i.garden, i.now = l.garden, time.Now
	return l, i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/auth",
			"token_endpoint": i.URL + "/token",
			"jwks_uri":       i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
	case "/keys":
		public, err := i.key.PublicKey.Bytes()
		if err != nil {
			i.t.Error(err)
		}
		answer = map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "kid": "k", "alg": "ES256",
			"use": "sig", "x": base64url(public[1:33]), "y": base64url(public[33:])}}}
	case "/token":
		_ = r.ParseForm()
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		refreshing := r.Form.Get("grant_type") == "refresh_token" &&
			r.Form.Get("refresh_token") == fmt.Sprint("refresh-", i.refreshes)
		if !refreshing && (r.Form.Get("code") != "good" || base64url(sum[:]) != i.challenge) {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"error": "invalid_grant"}
			break
		}
		if refreshing {
			i.refreshes++
		}
		token := i.token()
		i.garden.Users[token] = gardentest.User{Name: "oidc:carol"}
		answer = map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": token,
			"refresh_token": fmt.Sprint("refresh-", i.refreshes)}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// token as it should be, but for the claims that a test wants.
func (i *issuer) token() string {
	claims := map[string]any{"iss": i.URL, "aud": "dashboard", "sub": "carol", "nonce": i.nonce,
		"exp": i.now().Add(5 * time.Minute).Unix(), "iat": time.Now().Unix(), "n": i.refreshes}
	for name, value := range i.claims {
		claims[name] = value
	}
	payload, _ := json.Marshal(claims)
	signed := base64url([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + base64url(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64url(signature)
}

// begin follows the page's link to the issuer, and gives the state with which it leads back.
func (i *issuer) begin(b *browser, next string) (state string) {
	i.t.Helper()
	a := b.do("GET", "/api/login/oidc?name=main&next="+url.QueryEscape(next), "")
	target, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.code != 302 || !strings.HasPrefix(target.String(), i.URL+"/auth?") {
		i.t.Fatalf("led to %d %v", a.code, target)
	}
	query := target.Query()
	i.challenge, i.nonce = query.Get("code_challenge"), query.Get("nonce")
	if query.Get("code_challenge_method") != "S256" || query.Get("redirect_uri") != b.url+"/api/login/callback" {
		i.t.Errorf("asked for %v", query)
	}
	return query.Get("state")
}

func callback(b *browser, state, code string) string {
	a := b.do("GET", "/api/login/callback?"+url.Values{"state": {state}, "code": {code}}.Encode(), "")
	return a.header.Get("Location")
}

func TestLogInWithAnIssuer(t *testing.T) {
	l, i := withIssuer(t)
	for next, wanted := range map[string]string{
		"/projects/a?x=1#y": "/projects/a?x=1#y", "https://evil.example": "/", "//evil.example": "/",
		"/\\evil.example": "/",
		"/api/logout":     "/",
	} {
		b := l.browser()
		if got := callback(b, i.begin(b, next), "good"); got != wanted {
			t.Errorf("%s: led to %s", next, got)
		}
		var session struct{ User, Login string }
		b.do("GET", "/api/session", "").read(t, &session)
		if session.User != "oidc:carol" || session.Login != "oidc" {
			t.Errorf("got %+v", session)
		}
	}
}

func TestSessionsAreRenewed(t *testing.T) {
	l, i := withIssuer(t)
	b := l.browser()
	callback(b, i.begin(b, "/"), "good")
	before := map[string]string{}
	for name, value := range b.cookies {
		before[name] = value
	}
	i.now = func() time.Time { return time.Now().Add(time.Hour) }
	l.clock.pass(4*time.Minute + 30*time.Second)
	want(t, "shortly before the end", b.do("GET", "/api/session", ""), 200, "")
	if i.refreshes != 1 {
		t.Errorf("renewed %d times", i.refreshes)
	}
	old := &browser{landscape: l, cookies: before}
	want(t, "with the cookie of before", old.do("GET", "/api/session", ""), 200, "")
	if i.refreshes != 1 {
		t.Errorf("the refresh token was used %d times", i.refreshes)
	}
	if a := old.do("GET", "/api/session", ""); a.code != 200 {
		t.Errorf("once more: %d %s", a.code, a.text)
	}
	i.Close()
	l.clock.pass(3 * time.Hour)
	if a := b.do("GET", "/api/session", ""); a.code != 503 {
		t.Errorf("without the issuer: %d %s", a.code, a.text)
	}
}

// The issuer takes each refresh token once. What it gave instead is not lost when the garden, or the issuer's keys,
// cannot be asked after that: the browser has it, and the server for requests that were sent before.
func TestRefreshTokensAreKeptWhenTheGardenDoesNotAnswer(t *testing.T) {
	for what, passes := range map[string]time.Duration{
		"before the credential ends": 4*time.Minute + 30*time.Second, "after it ended": time.Hour,
	} {
		for _, elsewhere := range []bool{false, true} {
			l, i := withIssuer(t)
			b := l.browser()
			callback(b, i.begin(b, "/"), "good")
			old := &browser{landscape: l, cookies: maps.Clone(b.cookies)}
			i.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			l.clock.pass(passes)
			l.garden.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
			want(t, what+", without the garden", b.do("GET", "/api/session", ""), 503, "")
			if i.refreshes != 1 {
				t.Errorf("%s: renewed %d times", what, i.refreshes)
			}
			l.garden.Answer = nil
			if elsewhere {
				l.restart() // Another replica knows what the browser has, and nothing else.
				old.cookies = b.cookies
			}
			want(t, what+", with it", old.do("GET", "/api/session", ""), 200, "")
			want(t, what+", once more", b.do("GET", "/api/session", ""), 200, "")
		}
	}
}

func TestRefreshTokensAreKeptWhenTheTokenIsNotGood(t *testing.T) {
	l, i := withIssuer(t)
	b := l.browser()
	callback(b, i.begin(b, "/"), "good")
	i.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	l.clock.pass(time.Hour)
	i.claims = map[string]any{"aud": "other"}
	want(t, "with a token for somebody else", b.do("GET", "/api/session", ""), 503, "")
	i.claims = nil
	l.restart()
	want(t, "with one that is good", b.do("GET", "/api/session", ""), 200, "")
}
