// Package dashboard is the server of the dashboard: it serves the pages, keeps who is logged in, and passes on what
// pages ask of the garden and of shoots with the user's own credential. It has no rights itself.
// docs/contracts/dashboard.md says what pages may ask.
package dashboard

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/limits"
	"github.com/trellis-garden/trellis/pkg/dashboard/login"
	"github.com/trellis-garden/trellis/pkg/dashboard/terminal"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// Config is the configuration file.
type Config struct {
	// PublicURL is where browsers find the dashboard: https, without a path. Requests that write have to come from its
	// pages.
	PublicURL string `json:"publicURL"`
	// Garden that the dashboard is for.
	Garden GardenConfig `json:"garden"`
	// Endpoints say at which address hosts of a domain are reached that are not to be looked up, such as those of
	// shoots behind the gateway of a seed.
	Endpoints []clusters.Endpoint `json:"endpoints,omitempty"`
	// Session settings.
	Session SessionConfig `json:"session"`
	// Issuers with which users may log in, beside tokens and kubeconfigs.
	Issuers []IssuerConfig `json:"issuers,omitempty"`
	// Limits for each user. Those that are not given have a default.
	Limits limits.Limits `json:"limits,omitempty"`
	// Terminals in clusters.
	Terminals TerminalsConfig `json:"terminals,omitempty"`
}

// TerminalsConfig is about terminals.
type TerminalsConfig struct {
	// Image of their pods, with kubectl and /bin/sh. Nodes of shoots pull it. Without it there are no terminals.
	Image string `json:"image,omitempty"`
	// Idle is after which time without input they end. Default: 30m.
	Idle *metav1.Duration `json:"idle,omitempty"`
}

// GardenConfig says how the garden is reached.
type GardenConfig struct {
	// Name of the garden, for people.
	Name string `json:"name"`
	// Server is the URL of its API.
	Server string `json:"server"`
	// ServerName that its certificate is for, if not the host of Server.
	ServerName string `json:"serverName,omitempty"`
	// CAFile has the authority of its certificate, in PEM. Default: those of the system.
	CAFile string `json:"caFile,omitempty"`
	// Addresses are further URLs of the API, as users' kubeconfigs name it.
	Addresses []string `json:"addresses,omitempty"`
}

// SessionConfig is about sessions.
type SessionConfig struct {
	// KeysFile has a key in each line, 32 random bytes in base64. The first one is for new sessions, the others are for
	// those that began before it came.
	KeysFile string `json:"keysFile"`
	// Lifetime of a session, after which one has to log in again. Default: 12h.
	Lifetime *metav1.Duration `json:"lifetime,omitempty"`
}

// IssuerConfig is an OIDC issuer whose tokens the garden takes.
type IssuerConfig struct {
	// Name in addresses: lower-case letters, digits and dashes.
	Name string `json:"name"`
	// Title for people. Default: the name.
	Title string `json:"title,omitempty"`
	// URL of the issuer.
	URL string `json:"url"`
	// ClientID of the dashboard, which is the audience of tokens that the garden takes.
	ClientID string `json:"clientID"`
	// ClientSecretFile has the client's secret, if it has one.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// CAFile has the authority of the issuer's certificate. Default: those of the system.
	CAFile string `json:"caFile,omitempty"`
	// Scopes that are asked for. Default: openid, email.
	Scopes []string `json:"scopes,omitempty"`
}

const defaultLifetime = 12 * time.Hour

// ReadConfig reads the configuration file. Its errors name the field.
func ReadConfig(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w: it has to name a file that says where the garden's API is; "+
			"docs/contracts/dashboard.md has an example", err)
	}
	config := &Config{}
	if err := strictyaml.Unmarshal(text, config, nil); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	config.setDefaults()
	if err := config.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return config, nil
}

func (c *Config) setDefaults() {
	if c.Session.Lifetime == nil {
		c.Session.Lifetime = &metav1.Duration{Duration: defaultLifetime}
	}
	defaults := limits.Default()
	for _, limit := range []struct{ value, fallback *int }{
		{&c.Limits.Burst, &defaults.Burst}, {&c.Limits.Concurrent, &defaults.Concurrent},
		{&c.Limits.Sockets, &defaults.Sockets}, {&c.Limits.Subscriptions, &defaults.Subscriptions},
		{&c.Limits.Terminals, &defaults.Terminals},
	} {
		if *limit.value == 0 {
			*limit.value = *limit.fallback
		}
	}
	if c.Terminals.Idle == nil {
		c.Terminals.Idle = &metav1.Duration{Duration: terminal.DefaultIdle}
	}
	if c.Limits.RequestsPerSecond == 0 {
		c.Limits.RequestsPerSecond = defaults.RequestsPerSecond
	}
	for i := range c.Issuers {
		if c.Issuers[i].Title == "" {
			c.Issuers[i].Title = c.Issuers[i].Name
		}
	}
}

var issuerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (c *Config) validate() field.ErrorList {
	var all field.ErrorList
	require := func(path *field.Path, good bool, value any, what string) {
		if !good {
			all = append(all, field.Invalid(path, value, what))
		}
	}
	public, err := url.Parse(c.PublicURL)
	require(field.NewPath("publicURL"), err == nil && public.Scheme == "https" && public.Host != "" &&
		c.PublicURL == "https://"+strings.ToLower(public.Host), c.PublicURL,
		"must be https://HOST[:PORT], nothing more")
	for i, address := range append([]string{c.Garden.Server}, c.Garden.Addresses...) {
		path := field.NewPath("garden", "server")
		if i > 0 {
			path = field.NewPath("garden", "addresses").Index(i - 1)
		}
		_, err := clusters.ServerURL(address)
		require(path, err == nil, address, "must be https://HOST[:PORT]")
	}
	require(field.NewPath("session", "keysFile"), c.Session.KeysFile != "", "", "must be given")
	require(field.NewPath("session", "lifetime"), c.Session.Lifetime.Duration >= time.Minute &&
		c.Session.Lifetime.Duration <= 7*24*time.Hour, c.Session.Lifetime.Duration.String(), "must be from 1m to 168h")
	if image := c.Terminals.Image; image != "" {
		_, err := name.ParseReference(image)
		require(field.NewPath("terminals", "image"), err == nil, image, "must be an image, as REGISTRY/NAME:TAG")
	}
	require(field.NewPath("terminals", "idle"), c.Terminals.Idle.Duration > 0, c.Terminals.Idle.Duration.String(),
		"must be more than 0")
	for i, endpoint := range c.Endpoints {
		path := field.NewPath("endpoints").Index(i)
		require(path.Child("domain"), endpoint.Domain != "", "", "must be given")
		require(path.Child("address"), isAddress(endpoint.Address), endpoint.Address, "must be HOST:PORT")
	}
	names := map[string]bool{}
	for i, issuer := range c.Issuers {
		path := field.NewPath("issuers").Index(i)
		require(path.Child("name"), issuerName.MatchString(issuer.Name) && !names[issuer.Name], issuer.Name,
			"must be of lower-case letters, digits and dashes, and be there once")
		names[issuer.Name] = true
		_, err := clusters.ServerURL(issuer.URL)
		require(path.Child("url"), err == nil, issuer.URL, "must be https://HOST[:PORT][/PATH]")
		require(path.Child("clientID"), issuer.ClientID != "", "", "must be given")
	}
	for _, limit := range []struct {
		of    string
		value float64
	}{
		{"requestsPerSecond", c.Limits.RequestsPerSecond}, {"burst", float64(c.Limits.Burst)},
		{"concurrent", float64(c.Limits.Concurrent)}, {"sockets", float64(c.Limits.Sockets)},
		{"subscriptions", float64(c.Limits.Subscriptions)}, {"terminals", float64(c.Limits.Terminals)},
	} {
		require(field.NewPath("limits", limit.of), limit.value > 0, limit.value, "must be more than 0")
	}
	return all
}

func isAddress(text string) bool {
	host, port, found := strings.Cut(text, ":")
	return found && host != "" && port != "" || strings.HasPrefix(text, "[")
}

// read gives what a file has; nothing if there is no name.
func read(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return os.ReadFile(path)
}

// issuers are made of the configuration and the files that it names.
func (c *Config) issuers() ([]*login.Issuer, error) {
	var result []*login.Issuer
	for i, of := range c.Issuers {
		path := field.NewPath("issuers").Index(i)
		ca, err := read(of.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Child("caFile"), err)
		}
		secret, err := read(of.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Child("clientSecretFile"), err)
		}
		client, err := issuerClient(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path.Child("caFile"), of.CAFile, err)
		}
		result = append(result, &login.Issuer{
			Name: of.Name, Title: of.Title, URL: of.URL, ClientID: of.ClientID,
			ClientSecret: strings.TrimSpace(string(secret)), Scopes: of.Scopes, HTTP: client,
		})
	}
	return result, nil
}

func issuerClient(ca []byte) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("it has no certificate in PEM")
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	return &http.Client{Transport: transport, Timeout: 15 * time.Second}, nil
}

// servers are the addresses of the garden that kubeconfigs may name.
func (c *Config) servers() ([]*url.URL, error) {
	var result []*url.URL
	for _, address := range append([]string{c.Garden.Server}, c.Garden.Addresses...) {
		server, err := clusters.ServerURL(address)
		if err != nil {
			return nil, err
		}
		result = append(result, server)
	}
	return result, nil
}
