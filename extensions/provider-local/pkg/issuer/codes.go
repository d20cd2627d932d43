package issuer

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// codeLifetime is how long a client has to redeem a code.
	codeLifetime = time.Minute
	// maxCodes bounds what is remembered. Only who knows a password makes one.
	maxCodes = 1000
)

// grant is a log-in that a client has not redeemed yet.
type grant struct {
	user    User
	request request
	at      time.Time
}

// codes remembers log-ins by the hash of the code that stands for them. They are lost with the process: then one logs
// in again.
type codes struct {
	mutex  sync.Mutex
	grants map[[sha256.Size]byte]grant
}

func newCodes() *codes { return &codes{grants: map[[sha256.Size]byte]grant{}} }

// issue returns the code for a log-in; false if there are too many.
func (c *codes) issue(of grant) (string, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for hash, known := range c.grants {
		if of.at.Sub(known.at) > codeLifetime {
			delete(c.grants, hash)
		}
	}
	if len(c.grants) >= maxCodes {
		return "", false
	}
	code := randomText()
	c.grants[sha256.Sum256([]byte(code))] = of
	return code, true
}

// redeem returns the log-in of a code, once.
func (c *codes) redeem(code string, now time.Time) (grant, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	hash := sha256.Sum256([]byte(code))
	found, ok := c.grants[hash]
	delete(c.grants, hash)
	return found, ok && now.Sub(found.at) <= codeLifetime
}
