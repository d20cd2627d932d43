package issuer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// attemptsAtOnce is how many log-ins one name may try at once, and attemptEvery how often one more.
	attemptsAtOnce = 5
	attemptEvery   = 10 * time.Second
	// allAtOnce and allEvery are those of all names together, also of names that nobody has.
	allAtOnce = 30
	allEvery  = time.Second
)

// limiter bounds attempts to log in. Names that nobody has share one limit, so that what is remembered is bounded, too.
type limiter struct {
	all    *rate.Limiter
	mutex  sync.Mutex
	byName map[string]*rate.Limiter
}

func newLimiter() *limiter {
	return &limiter{all: rate.NewLimiter(rate.Every(allEvery), allAtOnce), byName: map[string]*rate.Limiter{}}
}

// allow tells whether an attempt may be made now. It is counted before the password is looked at.
func (l *limiter) allow(name string, now time.Time) bool {
	known := ""
	for _, user := range landscapeUsers {
		if user.Name == name {
			known = name
		}
	}
	l.mutex.Lock()
	if l.byName[known] == nil {
		l.byName[known] = rate.NewLimiter(rate.Every(attemptEvery), attemptsAtOnce)
	}
	own := l.byName[known]
	l.mutex.Unlock()
	// That of the name comes first: one that is used up takes nothing from the others.
	return own.AllowN(now, 1) && l.all.AllowN(now, 1)
}
