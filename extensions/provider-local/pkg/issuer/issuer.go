// Package issuer is a small OIDC provider for a landscape: three users, the authorization code flow with PKCE, and
// nothing else. It is for trying out a garden; people of a real one have an issuer already.
package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	pathConfiguration = "/.well-known/openid-configuration"
	pathKeys          = "/keys"
	pathAuthorize     = "/authorize"
	pathToken         = "/token"
	pathHealth        = "/healthz"

	// upkeepPeriod is how often the Secret is read again.
	upkeepPeriod = time.Minute
	// maxBody is far more than any form has.
	maxBody = 16 << 10
)

// Client is a program for which people log in. It has no secret: PKCE tells that who redeems a code asked for it.
type Client struct {
	ID string
	// Redirects are the URLs to which people are led back; one has to be named letter by letter.
	Redirects []string
}

// Options of an issuer.
type Options struct {
	// URL of the issuer, without a path.
	URL     string
	Clients []Client
	// TokenLifetime of ID tokens.
	TokenLifetime time.Duration
	Clock         clock.PassiveClock
	Log           logr.Logger
}

// Issuer serves the provider.
type Issuer struct {
	options Options
	store   *Store
	state   atomic.Pointer[state]
	codes   *codes
	limits  *limiter
}

// New makes an issuer that has what its store keeps.
func New(ctx context.Context, options Options, store *Store) (*Issuer, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	i := &Issuer{options: options, store: store, codes: newCodes(), limits: newLimiter()}
	return i, i.refresh(ctx)
}

// issuerURL has no path: discovery, cookies and the gateway need none.
var issuerURL = regexp.MustCompile(`^https://[a-z0-9.-]+(:[0-9]+)?$`)

func (o Options) validate() error {
	if !issuerURL.MatchString(o.URL) {
		return fmt.Errorf("URL %q of the issuer: must be https://HOST[:PORT] in lower case, nothing more", o.URL)
	}
	if o.TokenLifetime < time.Minute || o.TokenLifetime > 12*time.Hour {
		return fmt.Errorf("lifetime %s of tokens: must be from 1m to 12h", o.TokenLifetime)
	}
	if len(o.Clients) == 0 {
		return errors.New("no client is given: nobody could log in")
	}
	for _, client := range o.Clients {
		if client.ID == "" || len(client.Redirects) == 0 {
			return fmt.Errorf("client %q: it needs a name and an URL to which people are led back", client.ID)
		}
		for _, redirect := range client.Redirects {
			if parsed, err := url.Parse(redirect); err != nil || parsed.Scheme != "https" || parsed.Host == "" ||
				parsed.Fragment != "" || parsed.User != nil || strings.ContainsAny(redirect, "* \t\n;,'\"") {
				return fmt.Errorf("client %q: %q must be a whole https URL without user, fragment or pattern",
					client.ID, redirect)
			}
		}
	}
	return nil
}

// refresh takes over what the store keeps.
func (i *Issuer) refresh(ctx context.Context) error {
	kept, err := i.store.ensure(ctx, i.options.Clock.Now())
	if err == nil {
		i.state.Store(&kept)
	}
	return err
}

// Upkeep rotates keys, and reads passwords again, until the context ends.
func (i *Issuer) Upkeep(ctx context.Context) error {
	ticker := time.NewTicker(upkeepPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := i.refresh(ctx); err != nil {
				i.options.Log.Error(err, "Cannot read or rotate keys, trying again", "after", upkeepPeriod)
			}
		}
	}
}

// Handler serves all paths.
func (i *Issuer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathConfiguration, i.serveConfiguration)
	mux.HandleFunc("GET "+pathKeys, i.serveKeys)
	mux.HandleFunc("GET "+pathAuthorize, i.serveForm)
	mux.HandleFunc("POST "+pathAuthorize, i.logIn)
	mux.HandleFunc("POST "+pathToken, i.serveToken)
	mux.HandleFunc("GET "+pathHealth, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

func (i *Issuer) serveConfiguration(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         i.options.URL,
		"authorization_endpoint":                         i.options.URL + pathAuthorize,
		"token_endpoint":                                 i.options.URL + pathToken,
		"jwks_uri":                                       i.options.URL + pathKeys,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{string(jose.RS256)},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"scopes_supported":                               []string{"openid", "email", "profile", "groups"},
		"claims_supported":                               []string{"sub", "email", "groups", "name", "preferred_username"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (i *Issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, i.state.Load().ring.public())
}

// claims of an ID token.
type claims struct {
	jwt.Claims
	Nonce             string   `json:"nonce,omitempty"`
	AuthTime          int64    `json:"auth_time"`
	Email             string   `json:"email"`
	EmailVerified     bool     `json:"email_verified"`
	Name              string   `json:"name"`
	PreferredUsername string   `json:"preferred_username"`
	Groups            []string `json:"groups"`
}

// sign makes the ID token of a log-in.
func (i *Issuer) sign(of grant) (string, error) {
	now := i.options.Clock.Now()
	key, err := i.state.Load().ring.signing(now, i.store.Rotation)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	host := strings.TrimPrefix(i.options.URL, "https://")
	host, _, _ = strings.Cut(host, ":")
	return jwt.Signed(signer).Claims(claims{
		Claims: jwt.Claims{
			Issuer: i.options.URL, Subject: of.user.Name, Audience: jwt.Audience{of.request.client.ID},
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(i.options.TokenLifetime)),
			ID: randomText(),
		},
		Nonce: of.request.nonce, AuthTime: of.at.Unix(), Email: of.user.Name + "@" + host, EmailVerified: true,
		Name: of.user.Title, PreferredUsername: of.user.Name, Groups: slices.Clone(of.user.Groups),
	}).Serialize()
}

func writeJSON(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content)
}
