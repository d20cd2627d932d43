package login

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Issuer is an OIDC issuer whose tokens the garden takes.
type Issuer struct {
	// Name in addresses of pages.
	Name string
	// Title for people.
	Title string
	// URL of the issuer, as its tokens have it.
	URL string
	// ClientID and ClientSecret of the dashboard; no secret for public clients.
	ClientID, ClientSecret string
	// Scopes that are asked for. Default: openid, email.
	Scopes []string
	// HTTP connects to the issuer.
	HTTP *http.Client

	mutex    sync.Mutex
	provider *oidc.Provider
}

// flow is a log-in that is under way. The browser keeps it, sealed.
type flow struct {
	Issuer   string    `json:"i"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Next     string    `json:"p"`
	Until    time.Time `json:"u"`
}

// tokens are what an issuer gave.
type tokens struct {
	id      string
	refresh string
	expires time.Time
}

// errIssuer tells that the issuer, and not the browser, is at fault.
var errIssuer = errors.New("the issuer cannot be asked")

// begin gives the address at which the user logs in, and what has to be known when they come back.
func (i *Issuer) begin(ctx context.Context, callback, next string, now time.Time) (string, flow, error) {
	config, _, err := i.client(ctx, callback)
	if err != nil {
		return "", flow{}, err
	}
	f := flow{
		Issuer: i.Name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Next:  LocalPath(next),
		Until: now.Add(flowLifetime),
	}
	return config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), f, nil
}

// finish exchanges the code with which the user came back.
func (i *Issuer) finish(ctx context.Context, callback string, f flow, code string) (tokens, error) {
	config, provider, err := i.client(ctx, callback)
	if err != nil {
		return tokens{}, err
	}
	answer, err := config.Exchange(oidc.ClientContext(ctx, i.HTTP), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return tokens{}, fmt.Errorf("exchanging the code: %w", err)
	}
	result, token, err := i.verified(ctx, provider, answer)
	if err != nil {
		return tokens{}, err
	}
	if token.Nonce != f.Nonce {
		return tokens{}, errors.New("the issuer's token is for another log-in")
	}
	return result, nil
}

// renew asks for new tokens. With an error, too, a refresh token is given if there is another one: the issuer may not
// take the old one again.
func (i *Issuer) renew(ctx context.Context, refresh string) (tokens, error) {
	config, provider, err := i.client(ctx, "")
	if err != nil {
		return tokens{}, err
	}
	answer, err := config.TokenSource(oidc.ClientContext(ctx, i.HTTP), &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return tokens{}, fmt.Errorf("renewing the session: %w", err)
	}
	result, _, err := i.verified(ctx, provider, answer)
	if result.refresh = answer.RefreshToken; result.refresh == "" {
		result.refresh = refresh
	}
	return result, err
}

// verified takes the ID token out of an answer, and checks that it is good and meant for the dashboard.
func (i *Issuer) verified(ctx context.Context, provider *oidc.Provider, answer *oauth2.Token) (tokens, *oidc.IDToken,
	error) {
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return tokens{}, nil, errors.New("the issuer gave no ID token; is the scope openid missing?")
	}
	token, err := provider.VerifierContext(oidc.ClientContext(ctx, i.HTTP), &oidc.Config{ClientID: i.ClientID}).
		Verify(ctx, raw)
	if err != nil {
		return tokens{}, nil, err
	}
	if err := checkToken(raw); err != nil {
		return tokens{}, nil, err
	}
	return tokens{id: raw, refresh: answer.RefreshToken, expires: token.Expiry}, token, nil
}

// client knows where to ask. The issuer is looked at when it is needed first, so that the dashboard starts without it.
func (i *Issuer) client(ctx context.Context, callback string) (*oauth2.Config, *oidc.Provider, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.provider == nil {
		// Its keys are fetched later with the same context, which must not have ended then.
		ctx = oidc.ClientContext(context.WithoutCancel(ctx), i.HTTP)
		provider, err := oidc.NewProvider(ctx, i.URL)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errIssuer, err)
		}
		i.provider = provider
	}
	scopes := i.Scopes
	if len(scopes) == 0 {
		scopes = []string{oidc.ScopeOpenID, "email"}
	}
	return &oauth2.Config{
		ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: i.provider.Endpoint(), RedirectURL: callback,
		Scopes: scopes,
	}, i.provider, nil
}

// isRefused tells whether an issuer answered that it gives no tokens, so that asking again is of no use.
func isRefused(err error) bool {
	refusal := &oauth2.RetrieveError{}
	return errors.As(err, &refusal) && refusal.Response != nil && refusal.Response.StatusCode < 500
}

// failed is where a browser goes after a log-in that did not succeed.
func failed(code, message string) string {
	if runes := []rune(message); len(runes) > 200 {
		message = string(runes[:200])
	}
	return "/login?" + url.Values{"error": {code}, "message": {message}}.Encode()
}
