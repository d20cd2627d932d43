//go:build e2e

package e2e

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// dashboardAnswer is what a request to the dashboard got.
type dashboardAnswer struct {
	*http.Response
	body string
}

func send(t *testing.T, from *http.Client, request *http.Request) dashboardAnswer {
	t.Helper()
	response, err := from.Do(request.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	return dashboardAnswer{response, string(body)}
}

func newRequest(t *testing.T, method, address, body string, headers ...string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

// loginFields are the hidden fields of the issuer's form.
var loginFields = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// logIn logs a client in as a browser would: by the dashboard to the issuer's form, and back.
func (l *landscape) logIn(t *testing.T, user string) *http.Client {
	t.Helper()
	person := l.outside(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	person.Jar = jar
	form := send(t, person, newRequest(t, http.MethodGet,
		dashboardURL+"/api/login/oidc?name=landscape&next=%2Fprojects", ""))
	if form.StatusCode != http.StatusOK || form.Request.URL.Host != strings.TrimPrefix(issuerURL, "https://") {
		t.Fatalf("the log-in leads to %s: %s\n%s", form.Request.URL.Redacted(), form.Status, form.body)
	}
	values := url.Values{"username": {user}, "password": {l.dashboardPassword(t, user)}}
	for _, found := range loginFields.FindAllStringSubmatch(form.body, -1) {
		values.Set(html.UnescapeString(found[1]), html.UnescapeString(found[2]))
	}
	page := send(t, person, newRequest(t, http.MethodPost, issuerURL+"/authorize", values.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Origin", issuerURL, "Sec-Fetch-Site", "same-origin"))
	if got := page.Request.URL; page.StatusCode != http.StatusOK || got.Scheme+"://"+got.Host != dashboardURL {
		t.Fatalf("after the log-in as %s: %s %s\n%s", user, got.Redacted(), page.Status, page.body)
	}
	return person
}

// TestPeopleLogInToTheDashboard: each user of the issuer is who they are, sees the project that they are a member of,
// and acts with their own rights.
func TestPeopleLogInToTheDashboard(t *testing.T) {
	l := open(t)
	for _, user := range dashboardUsers {
		t.Run(user, func(t *testing.T) { logsIn(t, l, user) })
	}
}

func logsIn(t *testing.T, l *landscape, user string) {
	person := l.logIn(t, user)
	var session struct{ User, Login, CSRFToken string }
	readJSON(t, person, dashboardURL+"/api/session", &session)
	if session.User != "login:"+user || session.Login != "oidc" || session.CSRFToken == "" {
		t.Errorf("session of %s by %s", session.User, session.Login)
	}
	projects := gardencorev1beta1.ProjectList{}
	readJSON(t, person, dashboardURL+"/api/garden/apis/core.gardener.cloud/v1beta1/projects", &projects)
	if !slices.ContainsFunc(projects.Items, func(p gardencorev1beta1.Project) bool { return p.Name == "demo" }) {
		t.Errorf("projects of %s: %v", user, projects.Items)
	}
	for path, want := range map[string]bool{
		"/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots": true,
		"/api/garden/apis/core.gardener.cloud/v1beta1/controllerinstallations":       user == "operator",
		"/api/shoot/garden-demo/member1/api/v1/nodes":                                true,
	} {
		answer := send(t, person, newRequest(t, http.MethodGet, dashboardURL+path, ""))
		if got := answer.StatusCode == http.StatusOK; got != want {
			t.Errorf("GET %s: %s, want that it is allowed: %t\n%s", path, answer.Status, want, answer.body)
		}
	}
	patch := send(t, person, newRequest(t, http.MethodPatch,
		dashboardURL+"/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/member1?dryRun=All",
		`{"spec":{"purpose":"testing"}}`, "Content-Type", "application/merge-patch+json", "Origin", dashboardURL,
		"X-CSRF-Token", session.CSRFToken))
	want := http.StatusOK
	if user == "viewer" {
		want = http.StatusForbidden
	}
	if patch.StatusCode != want {
		t.Errorf("a change by %s: %s, want %d\n%s", user, patch.Status, want, patch.body)
	}
	logout := send(t, person, newRequest(t, http.MethodPost, dashboardURL+"/api/logout", "{}", "Content-Type",
		"application/json", "Origin", dashboardURL, "X-CSRF-Token", session.CSRFToken))
	if logout.StatusCode != http.StatusNoContent {
		t.Errorf("log-out: %s\n%s", logout.Status, logout.body)
	}
	if after := send(t, person, newRequest(t, http.MethodGet, dashboardURL+"/api/session", "")); after.StatusCode !=
		http.StatusUnauthorized {
		t.Errorf("the session after the log-out: %s", after.Status)
	}
}

// TestStrangersOfTheDashboard: who is not logged in gets nothing, whatever they send.
func TestStrangersOfTheDashboard(t *testing.T) {
	l := open(t)
	stranger := l.outside(t)
	for _, test := range []struct {
		method, path, body string
		headers            []string
		want               []int
	}{
		{"GET", "/api/session", "", nil, []int{401}},
		{"GET", "/api/garden/api/v1/namespaces", "", nil, []int{401}},
		{"GET", "/api/garden/version", "", nil, []int{401}},
		{"GET", "/api/shoot/garden-demo/member1/api/v1/nodes", "", nil, []int{401}},
		{"GET", "/api/fleet/garden-demo/fleet/moves", "", nil, []int{401}},
		{"GET", "/api/kubeconfig/shoot/garden-demo/member1", "", []string{"Sec-Fetch-Mode", "navigate"}, []int{401}},
		{"GET", "/api/garden/version", "", []string{"Authorization", "Bearer stranger"}, []int{401}},
		{"GET", "/api/session", "", []string{"Cookie", "__Host-trellis-session-0=1.AAAA"}, []int{401}},
		{"POST", "/api/login/token", `{"token":"stranger"}`, []string{"Origin", dashboardURL}, []int{401}},
		{"POST", "/api/login/token", `{"token":"stranger"}`, []string{"Origin", "https://stranger.example"}, []int{403}},
		{"POST", "/api/login/token", `{"token":"stranger"}`, nil, []int{403}},
		{"GET", "/api/login/callback?code=x&state=y", "", nil, []int{302, 303, 400}},
	} {
		headers := slices.Concat([]string{"Content-Type", "application/json"}, test.headers)
		stranger.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		answer := send(t, stranger, newRequest(t, test.method, dashboardURL+test.path, test.body, headers...))
		if !slices.Contains(test.want, answer.StatusCode) {
			t.Errorf("%s %s: %s, want %v\n%s", test.method, test.path, answer.Status, test.want, answer.body)
		}
		if location := answer.Header.Get("Location"); location != "" && !strings.HasPrefix(location, "/login?error=") {
			t.Errorf("%s %s leads to %s", test.method, test.path, location)
		}
	}
}

// TestThePageOfTheDashboard: the page comes with a policy that lets only the dashboard's own scripts run, what the API
// answers is no page, and what anybody may know is no more than the log-in needs.
func TestThePageOfTheDashboard(t *testing.T) {
	l := open(t)
	stranger := l.outside(t)
	for _, path := range []string{"/", "/projects/demo/shoots", "/login"} {
		page := send(t, stranger, newRequest(t, http.MethodGet, dashboardURL+path, ""))
		policy := page.Header.Get("Content-Security-Policy")
		if page.StatusCode != http.StatusOK || !strings.Contains(page.body, `<div id="root">`) {
			t.Errorf("GET %s: %s\n%s", path, page.Status, page.body)
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("the policy of %s lets too much run: %s", path, policy)
		}
		for _, part := range []string{
			"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
		} {
			if !strings.Contains(policy, part) {
				t.Errorf("the policy of %s lacks %q: %s", path, part, policy)
			}
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000",
		} {
			if got := page.Header.Get(name); got != want {
				t.Errorf("GET %s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	config := send(t, stranger, newRequest(t, http.MethodGet, dashboardURL+"/api/config", ""))
	var known map[string]any
	if err := json.Unmarshal([]byte(config.body), &known); err != nil || config.StatusCode != http.StatusOK {
		t.Fatalf("what anybody may know: %s %v\n%s", config.Status, err, config.body)
	}
	for name := range known {
		if !slices.Contains([]string{"version", "garden", "login", "terminal"}, name) {
			t.Errorf("anybody is told %s", name)
		}
	}
	if got := config.Header.Get("Content-Security-Policy"); !strings.Contains(got, "sandbox") {
		t.Errorf("what the API answers may be a page: %s", got)
	}
}
