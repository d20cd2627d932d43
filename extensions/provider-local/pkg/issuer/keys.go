package issuer

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keyBits is the size of a key. RS256 is what every client of OIDC knows.
const keyBits = 2048

// Rotation says how long keys live.
type Rotation struct {
	// Period after which a new key is made.
	Period time.Duration
	// Announcement is how long a new key is published before it signs: clients read the keys at times only.
	Announcement time.Duration
	// Overlap is how long a key is published after it has signed for the last time: at least the lifetime of a token.
	Overlap time.Duration
}

// key signs tokens.
type key struct {
	Created time.Time       `json:"created"`
	JWK     jose.JSONWebKey `json:"key"`
}

// Ring holds the keys, the oldest first.
type Ring struct {
	Keys []key `json:"keys"`
}

// parseRing reads a ring as it is stored. An empty text is an empty ring.
func parseRing(text []byte) (Ring, error) {
	ring := Ring{}
	if len(text) == 0 {
		return ring, nil
	}
	if err := json.Unmarshal(text, &ring); err != nil {
		return Ring{}, fmt.Errorf("signing keys: %w", err)
	}
	for i, key := range ring.Keys {
		if private, ok := key.JWK.Key.(*rsa.PrivateKey); !ok || private.Validate() != nil {
			return Ring{}, fmt.Errorf("signing keys: keys[%d] is no private RSA key", i)
		}
	}
	return ring, nil
}

// rotated returns the ring as it is to be at a time, and whether that differs: it has a key that is young, and none
// whose tokens have all expired.
func (r Ring) rotated(now time.Time, rotation Rotation) (rotated Ring, changed bool, err error) {
	for i, key := range r.Keys {
		if i+1 < len(r.Keys) {
			last := r.Keys[i+1].Created.Add(rotation.Announcement)
			if now.Sub(last) > rotation.Overlap {
				changed = true
				continue
			}
		}
		rotated.Keys = append(rotated.Keys, key)
	}
	if len(rotated.Keys) > 0 && now.Sub(rotated.Keys[len(rotated.Keys)-1].Created) < rotation.Period {
		return rotated, changed, nil
	}
	made, err := newKey(now)
	rotated.Keys = append(rotated.Keys, made)
	return rotated, true, err
}

func newKey(now time.Time) (key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return key{}, err
	}
	return key{
		Created: now.UTC().Truncate(time.Second),
		JWK: jose.JSONWebKey{
			Key: private, KeyID: randomText(), Algorithm: string(jose.RS256), Use: "sig",
		},
	}, nil
}

// signing is the key that signs: the newest that has been published for a while, or else the oldest.
func (r Ring) signing(now time.Time, rotation Rotation) (jose.JSONWebKey, error) {
	for i := len(r.Keys) - 1; i >= 0; i-- {
		if i == 0 || now.Sub(r.Keys[i].Created) >= rotation.Announcement {
			return r.Keys[i].JWK, nil
		}
	}
	return jose.JSONWebKey{}, errors.New("there is no key that signs")
}

// public are the keys with which clients verify tokens.
func (r Ring) public() jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, key := range r.Keys {
		set.Keys = append(set.Keys, key.JWK.Public())
	}
	return set
}

// randomText is what nobody guesses: 32 random bytes.
func randomText() string {
	var bytes [32]byte
	_, _ = rand.Read(bytes[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(bytes[:])
}
