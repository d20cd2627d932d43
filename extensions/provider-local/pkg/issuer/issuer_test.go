package issuer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	issuerName = "https://login.example"
	redirect   = "https://dashboard.example/api/login/callback"
	verifier   = "a-verifier-of-forty-three-characters-or-more-0"
)

var rotation = Rotation{Period: 24 * time.Hour, Announcement: 10 * time.Minute, Overlap: time.Hour}

// landscape is an issuer with what a browser and a client see of it.
type landscape struct {
	t       *testing.T
	issuer  *Issuer
	clock   *clocktesting.FakePassiveClock
	client  client.Client
	handler http.Handler
}

func newLandscape(t *testing.T) *landscape {
	t.Helper()
	l := &landscape{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
		client: fake.NewClientBuilder().Build(),
	}
	l.start()
	return l
}

// start begins with what is in the Secret, as a process does.
func (l *landscape) start() {
	l.t.Helper()
	made, err := New(context.Background(), Options{
		URL: issuerName, TokenLifetime: time.Hour, Clock: l.clock, Log: logr.Discard(),
		Clients: []Client{
			{ID: "dashboard", Redirects: []string{redirect, "https://dashboard.example:8443/api/login/callback"}},
			{ID: "other", Redirects: []string{"https://other.example/callback"}},
		},
	}, &Store{Client: l.client, Namespace: "garden", Name: "issuer", Rotation: rotation})
	if err != nil {
		l.t.Fatal(err)
	}
	l.issuer, l.handler = made, made.Handler()
}

func (l *landscape) secret() *corev1.Secret {
	l.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "garden", Name: "issuer"}
	if err := l.client.Get(context.Background(), key, secret); err != nil {
		l.t.Fatal(err)
	}
	return secret
}

func (l *landscape) password(user string) string { return string(l.secret().Data[PasswordPrefix+user]) }

// send is a request with a form or without, and a cookie.
func (l *landscape) send(method, path string, form url.Values, cookie *http.Cookie) *http.Response {
	l.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, issuerName+path, body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	l.handler.ServeHTTP(recorder, r)
	return recorder.Result()
}

func challengeOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// wanted are the parameters of a good request, with changes.
func wanted(changes ...string) url.Values {
	values := url.Values{
		"client_id": {"dashboard"}, "redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"openid groups"},
		"state": {"st&te"}, "nonce": {"once"}, "code_challenge": {challengeOf(verifier)},
		"code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == "" {
			values.Del(changes[i])
		} else {
			values.Set(changes[i], changes[i+1])
		}
	}
	return values
}

func text(t *testing.T, response *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// open opens the form as a browser does.
func (l *landscape) open(values url.Values) (token string, cookie *http.Cookie) {
	l.t.Helper()
	response := l.send(http.MethodGet, pathAuthorize+"?"+values.Encode(), nil, nil)
	found := formToken.FindStringSubmatch(text(l.t, response))
	if response.StatusCode != http.StatusOK || found == nil || len(response.Cookies()) != 1 {
		l.t.Fatalf("the form: %d, cookies %v", response.StatusCode, response.Cookies())
	}
	return found[1], response.Cookies()[0]
}

// submit fills in the form and sends it.
func (l *landscape) submit(user, password string) *http.Response {
	l.t.Helper()
	values := wanted()
	token, cookie := l.open(values)
	values.Set("token", token)
	values.Set("username", user)
	values.Set("password", password)
	return l.send(http.MethodPost, pathAuthorize, values, cookie)
}

// code logs in, and returns the code to which the browser is led.
func (l *landscape) code(user string) string {
	l.t.Helper()
	response := l.submit(user, l.password(user))
	target, err := response.Location()
	if err != nil || response.StatusCode != http.StatusSeeOther {
		l.t.Fatalf("log-in of %s: %d, %v: %s", user, response.StatusCode, err, text(l.t, response))
	}
	query := target.Query()
	if !strings.HasPrefix(target.String(), redirect+"?") || query.Get("state") != "st&te" ||
		query.Get("iss") != issuerName {
		l.t.Errorf("led to %s", target)
	}
	return query.Get("code")
}

func redeem(code string, changes ...string) url.Values {
	values := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"dashboard"}, "redirect_uri": {redirect},
		"code_verifier": {verifier},
	}
	for i := 0; i < len(changes); i += 2 {
		values.Set(changes[i], changes[i+1])
	}
	return values
}

// token redeems a code; the token is empty if it is refused.
func (l *landscape) token(values url.Values) (token string, status int) {
	l.t.Helper()
	response := l.send(http.MethodPost, pathToken, values, nil)
	var answer struct {
		IDToken string `json:"id_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		l.t.Fatal(err)
	}
	return answer.IDToken, response.StatusCode
}

// verify checks a token as a client does, with the keys that are published.
func (l *landscape) verify(token string) (claims, error) {
	l.t.Helper()
	keys := jose.JSONWebKeySet{}
	if err := json.NewDecoder(l.send(http.MethodGet, pathKeys, nil, nil).Body).Decode(&keys); err != nil {
		l.t.Fatal(err)
	}
	for _, key := range keys.Keys {
		if !key.IsPublic() {
			l.t.Fatal("a private key is published")
		}
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		l.t.Fatal(err)
	}
	found := claims{}
	if err := parsed.Claims(keys, &found); err != nil {
		return claims{}, err
	}
	return found, found.ValidateWithLeeway(jwt.Expected{
		Issuer: issuerName, AnyAudience: jwt.Audience{"dashboard"}, Time: l.clock.Now(),
	}, 0)
}

func TestUsersLogIn(t *testing.T) {
	l := newLandscape(t)
	for user, groups := range map[string][]string{
		"operator": {"operators"}, "project-admin": {"project-admins"}, "viewer": {"viewers"},
	} {
		token, status := l.token(redeem(l.code(user)))
		found, err := l.verify(token)
		if status != http.StatusOK || err != nil {
			t.Fatalf("%s: %d, %v", user, status, err)
		}
		if found.Subject != user || !slices.Equal(found.Groups, groups) || found.Nonce != "once" ||
			found.Email != user+"@login.example" || found.AuthTime != l.clock.Now().Unix() ||
			found.Expiry.Time().Sub(l.clock.Now()) != time.Hour {
			t.Errorf("%s has %+v", user, found)
		}
		l.clock.SetTime(l.clock.Now().Add(2 * time.Hour))
		if _, err := l.verify(token); err == nil {
			t.Errorf("%s: a token of two hours ago is good", user)
		}
	}
}

// A client may be named as one that has a secret, as long as that is empty.
func TestClientsAreNamedInEitherWay(t *testing.T) {
	l := newLandscape(t)
	for secret, want := range map[string]int{"": http.StatusOK, "x": http.StatusBadRequest} {
		values := redeem(l.code("viewer"))
		values.Del("client_id")
		r := httptest.NewRequest(http.MethodPost, issuerName+pathToken, strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("dashboard", secret)
		recorder := httptest.NewRecorder()
		l.handler.ServeHTTP(recorder, r)
		if recorder.Code != want {
			t.Errorf("with secret %q: %d, want %d", secret, recorder.Code, want)
		}
	}
}

func TestDiscovery(t *testing.T) {
	l := newLandscape(t)
	var found map[string]any
	if err := json.NewDecoder(l.send(http.MethodGet, pathConfiguration, nil, nil).Body).Decode(&found); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"issuer": issuerName, "authorization_endpoint": issuerName + "/authorize", "token_endpoint": issuerName + "/token",
		"jwks_uri": issuerName + "/keys",
	} {
		if found[name] != want {
			t.Errorf("%s is %v", name, found[name])
		}
	}
}

// A process that begins anew goes on with the Secret; a password that is taken out is replaced, and the one of before
// is not good any more.
func TestPasswordsAndKeysOutliveTheProcess(t *testing.T) {
	l := newLandscape(t)
	before := l.password("viewer")
	token, _ := l.token(redeem(l.code("viewer")))
	l.start()
	if _, err := l.verify(token); err != nil || l.password("viewer") != before || len(before) < passwordLength {
		t.Errorf("after a restart: %v, password changed: %v", err, l.password("viewer") != before)
	}
	secret := l.secret()
	delete(secret.Data, PasswordPrefix+"viewer")
	if err := l.client.Update(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	if err := l.issuer.refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if response := l.submit("viewer", before); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the password of before: %d", response.StatusCode)
	}
	l.code("viewer")
}

// Keys are announced before they sign, and stay until the last token of theirs has expired.
func TestKeysRotate(t *testing.T) {
	l := newLandscape(t)
	signer := func() string {
		key, err := l.issuer.state.Load().ring.signing(l.clock.Now(), rotation)
		if err != nil {
			t.Fatal(err)
		}
		return key.KeyID
	}
	after := func(pause time.Duration, wantKeys int, wantSame bool) {
		t.Helper()
		before := signer()
		l.clock.SetTime(l.clock.Now().Add(pause))
		if err := l.issuer.refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := len(l.issuer.state.Load().ring.Keys); got != wantKeys || (signer() == before) != wantSame {
			t.Errorf("%s later: %d keys, want %d; the same signs: %v", pause, got, wantKeys, signer() == before)
		}
	}
	after(23*time.Hour, 1, true)
	after(time.Hour, 2, true) // the new one is only announced
	token, _ := l.token(redeem(l.code("viewer")))
	after(rotation.Announcement, 2, false)
	if _, err := l.verify(token); err != nil {
		t.Errorf("a token of the key of before: %v", err)
	}
	after(rotation.Overlap, 2, true)
	after(time.Minute, 1, true)
	if _, err := l.verify(token); err == nil {
		t.Error("a token is good whose key is gone")
	}
}

func TestKeysThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"{", `{"keys":[{"key":{"kty":"oct","k":"c2VjcmV0"}}]}`} {
		if _, err := parseRing([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestOptionsOfTheIssuer(t *testing.T) {
	good := Options{
		URL: issuerName, TokenLifetime: time.Hour, Clients: []Client{{ID: "a", Redirects: []string{redirect}}},
	}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no TLS": func(o *Options) { o.URL = "http://login.example" }, "a path": func(o *Options) { o.URL += "/x" },
		"tokens of days": func(o *Options) { o.TokenLifetime = 48 * time.Hour },
		"no client":      func(o *Options) { o.Clients = nil },
		"no way back":    func(o *Options) { o.Clients = []Client{{ID: "a"}} },
		"a pattern":      func(o *Options) { o.Clients = []Client{{ID: "a", Redirects: []string{"https://*.example/"}}} },
		"a script":       func(o *Options) { o.Clients = []Client{{ID: "a", Redirects: []string{"javascript:alert(1)"}}} },
		"a fragment":     func(o *Options) { o.Clients = []Client{{ID: "a", Redirects: []string{redirect + "#x"}}} },
	} {
		options := good
		change(&options)
		if err := options.validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// FuzzRequests sends parameters of all sorts: a browser is led to the client's own address or nowhere.
func FuzzRequests(f *testing.F) {
	f.Add(wanted().Encode())
	f.Add("client_id=dashboard&redirect_uri=https%3A%2F%2Fevil.example")
	f.Add("client_id=dashboard&client_id=other&redirect_uri=" + url.QueryEscape(redirect))
	issuer := &Issuer{options: Options{Clients: []Client{{ID: "dashboard", Redirects: []string{redirect}}}}}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		request, why := issuer.parse(values)
		if (why == nil || why.code != "") && request.redirect != redirect {
			t.Errorf("%q leads to %q", query, request.redirect)
		}
		if why == nil && (request.state == "" || !challengePattern.MatchString(request.challenge)) {
			t.Errorf("%q is taken: %+v", query, request)
		}
	})
}
