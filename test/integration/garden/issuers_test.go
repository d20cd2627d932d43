package garden

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	localissuer "github.com/trellis-garden/trellis/extensions/provider-local/pkg/issuer"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// wayBack is where people are led after they logged in; nobody is there.
const wayBack = "https://dashboard.example/api/login/callback"

// loginServer is the landscape's issuer with its Secret.
type loginServer struct {
	url, authority string
	http           *http.Client
	secret         *corev1.Secret
}

func startIssuer(t *testing.T) loginServer {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	c := fake.NewClientBuilder().Build()
	key := client.ObjectKey{Namespace: "garden", Name: "issuer"}
	address := "https://" + server.Listener.Addr().String()
	made, err := localissuer.New(t.Context(), localissuer.Options{
		URL: address, TokenLifetime: time.Hour, Clock: clock.RealClock{}, Log: logr.Discard(),
		Clients: []localissuer.Client{{ID: "dashboard", Redirects: []string{wayBack}}},
	}, &localissuer.Store{
		Client: c, Namespace: key.Namespace, Name: key.Name,
		Rotation: localissuer.Rotation{Period: 24 * time.Hour, Announcement: time.Minute, Overlap: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = made.Handler()
	server.StartTLS()
	t.Cleanup(server.Close)
	result := loginServer{url: address, http: server.Client(), secret: &corev1.Secret{}}
	result.authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err := c.Get(t.Context(), key, result.secret); err != nil {
		t.Fatal(err)
	}
	return result
}

// logIn does what a browser and the dashboard do, and returns the ID token.
func (s loginServer) logIn(t *testing.T, user string) string {
	t.Helper()
	verifier := strings.Repeat("v", 50)
	sum := sha256.Sum256([]byte(verifier))
	values := url.Values{
		"client_id": {"dashboard"}, "redirect_uri": {wayBack}, "response_type": {"code"}, "scope": {"openid groups"},
		"state": {"s"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Transport: s.http.Transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := answer(t, func() (*http.Response, error) { return browser.Get(s.url + "/authorize?" + values.Encode()) })
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(form.body)
	if token == nil {
		t.Fatalf("no form: %s", form.body)
	}
	values.Set("token", token[1])
	values.Set("username", user)
	values.Set("password", string(s.secret.Data[localissuer.PasswordPrefix+user]))
	led := answer(t, func() (*http.Response, error) { return browser.PostForm(s.url+"/authorize", values) })
	target, err := url.Parse(led.location)
	if err != nil || target.Query().Get("code") == "" {
		t.Fatalf("led to %q: %s", led.location, led.body)
	}
	got := answer(t, func() (*http.Response, error) {
		return s.http.PostForm(s.url+"/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {target.Query().Get("code")}, "client_id": {"dashboard"},
			"redirect_uri": {wayBack}, "code_verifier": {verifier},
		})
	})
	var tokens struct {
		IDToken string `json:"id_token"`
	}
	if err := json.Unmarshal([]byte(got.body), &tokens); err != nil || tokens.IDToken == "" {
		t.Fatalf("no token: %s (%v)", got.body, err)
	}
	return tokens.IDToken
}

type answered struct{ body, location string }

func answer(t *testing.T, ask func() (*http.Response, error)) answered {
	t.Helper()
	response, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{string(content), response.Header.Get("Location")}
}

// writeIssuers writes what the chart makes of an issuer, as kubelet does with a ConfigMap that changes.
func writeIssuers(t *testing.T, path string, s loginServer, userPrefix, groupPrefix string) {
	t.Helper()
	chart, err := helm.LoadFS(charts.FS, "garden")
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(chart, map[string]any{"authentication": map[string]any{"issuers": []any{
		map[string]any{
			"url": s.url, "audiences": []any{"dashboard"}, "certificateAuthority": s.authority,
			"username": map[string]any{"claim": "sub", "prefix": userPrefix},
			"groups":   map[string]any{"claim": "groups", "prefix": groupPrefix},
		},
	}}}, chartutil.ReleaseOptions{Name: "garden", Namespace: "garden"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	rendered := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict([]byte(files["garden/templates/authentication.yaml"]), rendered); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(rendered.Data[apiserverconfig.KeyConfig]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestIssuersInTheGarden has people log in at the landscape's issuer, and a kube-apiserver with the chart's
// configuration take their tokens; names of the garden's own it refuses, whoever tells them, as soon as the
// configuration changes.
func TestIssuersInTheGarden(t *testing.T) {
	login := startIssuer(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	writeIssuers(t, config, login, "login:", "login:")
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	own, err := environment.StartWith(context.Background(), environment.Options{
		Binary: binary, WithoutGarden: true, KubeAPIServerArguments: []string{"--authentication-config=" + config},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Stop()
	for user, group := range map[string]string{
		"operator": "login:operators", "project-admin": "login:project-admins", "viewer": "login:viewers",
	} {
		token := login.logIn(t, user)
		eventually(t, func() error { return isKnownAs(own.Config, token, "login:"+user, group) })
	}
	token := login.logIn(t, "viewer")
	for _, prefixes := range [][2]string{
		{"system:", "login:"}, {"gardener.cloud:system:", "login:"}, {"login:", "system:"},
		{"login:", "gardener.cloud:system:"},
	} {
		writeIssuers(t, config, login, prefixes[0], prefixes[1])
		eventually(t, func() error {
			if err := isKnownAs(own.Config, token, "", ""); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("with prefixes %q: %v, want it refused", prefixes, err)
			}
			return nil
		})
		writeIssuers(t, config, login, "login:", "login:")
		eventually(t, func() error { return isKnownAs(own.Config, token, "login:viewer", "login:viewers") })
	}
}

// isKnownAs asks an API server who the holder of a token is.
func isKnownAs(server *rest.Config, token, user, group string) error {
	config := rest.AnonymousClientConfig(server)
	config.BearerToken = token
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(context.Background(), review); err != nil {
		return err
	}
	if info := review.Status.UserInfo; info.Username != user || !slices.Contains(info.Groups, group) {
		return fmt.Errorf("%s is %s in %q", user, info.Username, info.Groups)
	}
	return nil
}
