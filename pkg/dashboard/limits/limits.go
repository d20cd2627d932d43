// Package limits bounds what one user of the dashboard may ask of it, over all their sessions and browsers, and what
// answers take of memory.
package limits

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// Limits for each user.
type Limits struct {
	// RequestsPerSecond and Burst bound requests.
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty"`
	Burst             int     `json:"burst,omitempty"`
	// Concurrent requests, with logs that are followed.
	Concurrent int `json:"concurrent,omitempty"`
	// Sockets for live views.
	Sockets int `json:"sockets,omitempty"`
	// Subscriptions of each socket.
	Subscriptions int `json:"subscriptions,omitempty"`
	// Terminals in clusters, each of which is a socket too.
	Terminals int `json:"terminals,omitempty"`
}

// Default limits.
func Default() Limits {
	return Limits{RequestsPerSecond: 50, Burst: 200, Concurrent: 64, Sockets: 8, Subscriptions: 40, Terminals: 4}
}

// Users counts.
type Users struct {
	limits Limits
	now    func() time.Time
	mutex  sync.Mutex
	users  map[string]*usage
}

// usage of one user.
type usage struct {
	rate                         *rate.Limiter
	requests, sockets, terminals int
	seen                         time.Time
}

// forgetAfter a user who does nothing is not counted any more.
const forgetAfter = 10 * time.Minute

// NewUsers counts from now on.
func NewUsers(limits Limits, now func() time.Time) *Users {
	return &Users{limits: limits, now: now, users: map[string]*usage{}}
}

// Request counts a request until done is called.
func (u *Users) Request(user string) (done func(), err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	of, err := u.counted(user)
	if err != nil {
		return nil, err
	}
	if of.requests >= u.limits.Concurrent {
		return nil, reply.TooMany(1, "%d requests are under way, and more are not allowed", of.requests)
	}
	of.requests++
	return u.release(user, func(of *usage) { of.requests-- }), nil
}

// Socket counts a socket until done is called. To open one is a request as well.
func (u *Users) Socket(user string) (done func(), err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	of, err := u.counted(user)
	if err != nil {
		return nil, err
	}
	if of.sockets >= u.limits.Sockets {
		return nil, reply.TooMany(5, "%d sockets are open, and more are not allowed: close other windows", of.sockets)
	}
	of.sockets++
	return u.release(user, func(of *usage) { of.sockets-- }), nil
}

// counted is the usage of a user who asks once more.
func (u *Users) counted(user string) (*usage, error) {
	of := u.of(user)
	if !of.rate.AllowN(u.now(), 1) {
		return nil, reply.TooMany(1, "more than %v requests a second", u.limits.RequestsPerSecond)
	}
	return of, nil
}

// Terminal counts a terminal until done is called. To open one is a request as well.
func (u *Users) Terminal(user string) (done func(), err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	of, err := u.counted(user)
	if err != nil {
		return nil, err
	}
	if of.terminals >= u.limits.Terminals {
		return nil, reply.TooMany(5, "%d terminals are open, and more are not allowed: close one", of.terminals)
	}
	of.terminals++
	return u.release(user, func(of *usage) { of.terminals-- }), nil
}

func (u *Users) release(user string, change func(*usage)) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			u.mutex.Lock()
			defer u.mutex.Unlock()
			change(u.of(user))
		})
	}
}

func (u *Users) of(user string) *usage {
	now := u.now()
	of, found := u.users[user]
	if !found {
		u.forget(now)
		of = &usage{rate: rate.NewLimiter(rate.Limit(u.limits.RequestsPerSecond), u.limits.Burst)}
		u.users[user] = of
	}
	of.seen = now
	return of
}

// forget makes room for somebody new.
func (u *Users) forget(now time.Time) {
	for user, of := range u.users {
		if of.requests == 0 && of.sockets == 0 && of.terminals == 0 && now.Sub(of.seen) > forgetAfter {
			delete(u.users, user)
		}
	}
}
