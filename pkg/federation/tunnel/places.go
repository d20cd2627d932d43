package tunnel

import (
	"errors"
	"sync"
)

// Both are for those who ask.
var (
	errBusy     = errors.New("too many requests to the member are under way")
	errUserBusy = errors.New("too many requests of this user to the member are under way")
)

// IsBusy tells whether a request was not passed on because of others.
func IsBusy(err error) bool { return errors.Is(err, errBusy) || errors.Is(err, errUserBusy) }

// places bounds the requests that are under way in a tunnel: of each user, so that none keeps the others out, and of
// all together.
type places struct {
	mu    sync.Mutex
	taken int
	of    map[string]int
}

// take a place for a user; release gives it to somebody else.
func (p *places) take(user string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= maxStreams:
		return nil, errBusy
	case p.of[user] >= maxUserStreams:
		return nil, errUserBusy
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.taken++
	p.of[user]++
	return sync.OnceFunc(func() { p.leave(user) }), nil
}

func (p *places) leave(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[user]--; p.of[user] == 0 {
		delete(p.of, user)
	}
}

// inUse are the places that somebody has.
func (p *places) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
