package issuer

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAttackIssuerRedirects leads a browser elsewhere: it is led nowhere unless the address is a client's, letter by
// letter, and then only with an error.
func TestAttackIssuerRedirects(t *testing.T) {
	l := newLandscape(t)
	for _, target := range []string{
		"", "https://evil.example/", redirect + "/", redirect + "?x=1", redirect + "#", strings.ToUpper(redirect),
		"https://dashboard.example@evil.example/api/login/callback", "//evil.example", "https://other.example/callback",
		"https://dashboard.example/api/login/callback/../../evil", "javascript:alert(1)", redirect + "\r\nX: y",
	} {
		for method, form := range map[string]url.Values{
			http.MethodGet: nil, http.MethodPost: wanted("redirect_uri", target, "token", "x"),
		} {
			path := pathAuthorize
			if form == nil {
				path += "?" + wanted("redirect_uri", target).Encode()
			}
			response := l.send(method, path, form, nil)
			if response.StatusCode != http.StatusBadRequest || response.Header.Get("Location") != "" {
				t.Errorf("%s %q: %d to %q", method, target, response.StatusCode, response.Header.Get("Location"))
			}
		}
	}
	twice := wanted()
	twice.Add("redirect_uri", "https://evil.example/")
	if response := l.send(http.MethodGet, pathAuthorize+"?"+twice.Encode(), nil, nil); response.StatusCode !=
		http.StatusBadRequest {
		t.Errorf("two addresses: %d", response.StatusCode)
	}
	for name, values := range map[string]url.Values{
		"no PKCE": wanted("code_challenge", ""), "plain PKCE": wanted("code_challenge_method", "plain"),
		"short challenge": wanted("code_challenge", "short"), "implicit": wanted("response_type", "id_token"),
		"hybrid": wanted("response_type", "code id_token"), "no state": wanted("state", ""),
		"a fragment": wanted("response_mode", "fragment"), "no openid": wanted("scope", "email"),
		"silent": wanted("prompt", "none"), "a long state": wanted("state", strings.Repeat("x", 2000)),
	} {
		response := l.send(http.MethodGet, pathAuthorize+"?"+values.Encode(), nil, nil)
		target, err := response.Location()
		if err != nil || !strings.HasPrefix(target.String(), redirect+"?") || target.Query().Get("error") == "" ||
			target.Query().Get("code") != "" {
			t.Errorf("%s: %d to %v (%v)", name, response.StatusCode, target, err)
		}
	}
}

// TestAttackIssuerCodes has a code that was stolen, or used before.
func TestAttackIssuerCodes(t *testing.T) {
	l := newLandscape(t)
	for name, changes := range map[string][]string{
		"without verifier": {"code_verifier", ""}, "with the challenge": {"code_verifier", challengeOf(verifier)},
		"another's verifier":  {"code_verifier", strings.Repeat("b", 43)},
		"for another client":  {"client_id", "other"},
		"for another address": {"redirect_uri", "https://dashboard.example:8443/api/login/callback"},
	} {
		l.clock.SetTime(l.clock.Now().Add(time.Minute)) // so that no limit stands in the way
		code := l.code("viewer")
		if token, status := l.token(redeem(code, changes...)); token != "" || status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
		if token, _ := l.token(redeem(code)); token != "" {
			t.Errorf("%s: the code is good once more", name)
		}
	}
	l.clock.SetTime(l.clock.Now().Add(time.Minute))
	code := l.code("viewer")
	if token, _ := l.token(redeem(code)); token == "" {
		t.Fatal("a good code is refused")
	}
	if token, _ := l.token(redeem(code)); token != "" {
		t.Error("a code is good twice")
	}
	old := l.code("viewer")
	l.clock.SetTime(l.clock.Now().Add(codeLifetime + time.Second))
	for name, values := range map[string]url.Values{
		"an old code": redeem(old), "none": redeem(""), "a guess": redeem("guess"),
		"by password": redeem(code, "grant_type", "password"), "by refresh": redeem(code, "grant_type", "refresh_token"),
	} {
		if token, status := l.token(values); token != "" || status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// TestAttackIssuerPasswords guesses, and finds out which names there are.
func TestAttackIssuerPasswords(t *testing.T) {
	l := newLandscape(t)
	for _, password := range []string{"", "viewer", "12345678", l.password("operator"), l.password("viewer") + " "} {
		response := l.submit("viewer", password)
		body := text(t, response)
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "Name or password is wrong") ||
			len(password) > len("viewer") && strings.Contains(body, password) {
			t.Errorf("%q: %d", password, response.StatusCode)
		}
	}
	if response := l.submit("viewer", l.password("viewer")); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one guess more, the right one: %d", response.StatusCode)
	}
	l.code("operator") // others log in meanwhile
	var statuses []int
	for range 10 {
		statuses = append(statuses, l.submit("nobody", "x").StatusCode)
	}
	if statuses[0] != http.StatusUnauthorized || !slices.Contains(statuses, http.StatusTooManyRequests) {
		t.Errorf("a name that is not there: %v", statuses)
	}
	l.clock.SetTime(l.clock.Now().Add(attemptEvery))
	l.code("viewer")
}

// TestAttackIssuerForms has forms sent by other sites, shows scripts in them, and lays the page into another one.
func TestAttackIssuerForms(t *testing.T) {
	l := newLandscape(t)
	values := wanted("username", "viewer", "password", l.password("viewer"))
	token, cookie := l.open(wanted())
	for name, attempt := range map[string]struct {
		token  string
		cookie *http.Cookie
	}{
		"without cookie": {token, nil}, "without token": {"", cookie}, "with another token": {"x", cookie},
		"with an empty cookie": {"", &http.Cookie{Name: cookieName, Value: ""}},
	} {
		values.Set("token", attempt.token)
		if response := l.send(http.MethodPost, pathAuthorize, values, attempt.cookie); response.StatusCode !=
			http.StatusForbidden {
			t.Errorf("%s: %d", name, response.StatusCode)
		}
	}
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" ||
		cookie.Path != "/" || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("cookie %+v", cookie)
	}
	response := l.send(http.MethodGet, pathAuthorize+"?"+wanted("state", `"><script>alert(1)</script>`).Encode(), nil, nil)
	if body := text(t, response); strings.Contains(body, "<script") {
		t.Errorf("a script is on the page: %s", body)
	}
	policy := response.Header.Get("Content-Security-Policy")
	for _, wanted := range []string{
		"default-src 'none'", "frame-ancestors 'none'", "form-action 'self' https://dashboard.example",
	} {
		if !strings.Contains(policy, wanted) || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q lacks %s", policy, wanted)
		}
	}
	large := wanted("username", strings.Repeat("x", maxBody))
	if response := l.send(http.MethodPost, pathAuthorize, large, cookie); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a form without end: %d", response.StatusCode)
	}
}
