package session

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// cookieName has the prefix with which browsers take the cookie only over TLS, for this host and all its paths.
	cookieName = "__Host-trellis-session"
	// chunkSize keeps each cookie below the 4,096 bytes that browsers keep, with its name and attributes.
	chunkSize = 3600
	maxChunks = 6
	// maxRevoked bounds how many sessions that were ended early are remembered.
	maxRevoked = 10000
)

// Cookies keep sessions in browsers.
type Cookies struct {
	keys *Keys
	now  func() time.Time

	mutex   sync.Mutex
	revoked map[string]time.Time
}

// NewCookies keeps sessions with these keys.
func NewCookies(keys *Keys, now func() time.Time) *Cookies {
	return &Cookies{keys: keys, now: now, revoked: map[string]time.Time{}}
}

// Set has the browser keep a session.
func (c *Cookies) Set(header http.Header, s *Session) error {
	sealed, err := c.keys.Seal(cookieName, s)
	if err != nil {
		return err
	}
	chunks := (len(sealed) + chunkSize - 1) / chunkSize
	if chunks > maxChunks {
		return fmt.Errorf("the credential is too large for a session: %d bytes, at most %d", len(sealed),
			maxChunks*chunkSize)
	}
	for i := range chunks {
		value := sealed[i*chunkSize : min(len(sealed), (i+1)*chunkSize)]
		if i == 0 {
			value = strconv.Itoa(chunks) + "." + value
		}
		setCookie(header, chunkName(i), value, s.Expires.Sub(c.now()))
	}
	return nil
}

// Clear has the browser forget its session.
func (c *Cookies) Clear(header http.Header, r *http.Request) {
	for i := range maxChunks {
		if _, err := r.Cookie(chunkName(i)); err == nil {
			setCookie(header, chunkName(i), "", -1)
		}
	}
}

// Get gives the session of a request. The error is ErrTampered, ErrExpired, or http.ErrNoCookie.
func (c *Cookies) Get(r *http.Request) (*Session, error) {
	sealed, err := joined(r)
	if err != nil {
		return nil, err
	}
	s := &Session{}
	if err := c.keys.Open(cookieName, sealed, s); err != nil {
		return nil, err
	}
	if !c.now().Before(s.Expires) || c.Revoked(s.ID) {
		return nil, ErrExpired
	}
	return s, nil
}

// joined puts the parts of a session together. What is left of a longer one is not looked at.
func joined(r *http.Request) (string, error) {
	first, err := r.Cookie(cookieName)
	if err != nil {
		return "", http.ErrNoCookie
	}
	count, text, _ := strings.Cut(first.Value, ".")
	chunks, err := strconv.Atoi(count)
	if err != nil || chunks < 1 || chunks > maxChunks {
		return "", ErrTampered
	}
	for i := 1; i < chunks; i++ {
		part, err := r.Cookie(chunkName(i))
		if err != nil {
			return "", ErrTampered
		}
		text += part.Value
	}
	return text, nil
}

// Revoke ends a session before its time. Another replica, or this one after a restart, does not know of that.
func (c *Cookies) Revoke(s *Session) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.revoked) >= maxRevoked {
		for id, expires := range c.revoked {
			if c.now().After(expires) {
				delete(c.revoked, id)
			}
		}
	}
	if len(c.revoked) < maxRevoked {
		c.revoked[s.ID] = s.Expires
	}
}

// Revoked tells whether a session was ended before its time.
func (c *Cookies) Revoked(id string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, revoked := c.revoked[id]
	return revoked
}

func chunkName(i int) string {
	if i == 0 {
		return cookieName
	}
	return cookieName + "-" + strconv.Itoa(i)
}

func setCookie(header http.Header, name, value string, lifetime time.Duration) {
	cookie := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lifetime.Seconds()), HttpOnly: true, Secure: true,
		SameSite: http.SameSiteStrictMode,
	}
	if cookie.MaxAge <= 0 {
		cookie.MaxAge = -1
	}
	header.Add("Set-Cookie", cookie.String())
}
