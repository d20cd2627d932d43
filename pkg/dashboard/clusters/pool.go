package clusters

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// unused connections are closed after this time.
	unused = 10 * time.Minute
	// maxOpen bounds how many are held. Those unused for longest go first.
	maxOpen = 512
)

// pool holds the connections that are one user's own.
type pool struct {
	now   func() time.Time
	mutex sync.Mutex
	open  map[string]*pooled
}

// pooled is a connection, or the making of one, until ready is closed.
type pooled struct {
	ready   chan struct{}
	cluster *Cluster
	err     error
	// expires is when it is to be made anew; zero for never.
	expires time.Time
	used    time.Time
}

func newPool(now func() time.Time) *pool { return &pool{now: now, open: map[string]*pooled{}} }

// get gives what is open, or makes it. Those who ask at the same time wait for one that is made; if whoever makes it
// goes away, the next one does.
func (p *pool) get(ctx context.Context, key string,
	make func(context.Context) (*Cluster, time.Time, error)) (*Cluster, error) {
	for {
		entry, mine := p.enter(key)
		if mine {
			cluster, expires, err := make(ctx)
			p.fill(key, entry, pooled{cluster: cluster, expires: expires, err: err})
			return cluster, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-entry.ready:
		}
		switch {
		case errors.Is(entry.err, context.Canceled):
			continue
		case entry.err != nil:
			return nil, entry.err
		case entry.expires.IsZero() || p.now().Before(entry.expires):
			return entry.cluster, nil
		}
		p.drop(key, entry)
	}
}

// fill ends the waiting for an entry. One that could not be made is not kept.
func (p *pool) fill(key string, entry *pooled, made pooled) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	entry.cluster, entry.expires, entry.err = made.cluster, made.expires, made.err
	if made.err != nil && p.open[key] == entry {
		delete(p.open, key)
	}
	close(entry.ready)
}

// enter finds the entry of a key; mine says that the caller has to fill it.
func (p *pool) enter(key string) (entry *pooled, mine bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if entry, found := p.open[key]; found {
		entry.used = p.now()
		return entry, false
	}
	if len(p.open) >= maxOpen {
		p.dropOldest()
	}
	entry = &pooled{ready: make(chan struct{}), used: p.now()}
	p.open[key] = entry
	return entry, true
}

// drop removes an entry unless another has its place. Requests that use it go on.
func (p *pool) drop(key string, entry *pooled) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.open[key] == entry {
		delete(p.open, key)
	}
	entry.close()
}

func (p *pool) forget(key string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if entry, found := p.open[key]; found {
		delete(p.open, key)
		entry.close()
	}
}

func (p *pool) dropOldest() {
	var oldest string
	for key, entry := range p.open {
		if oldest == "" || entry.used.Before(p.open[oldest].used) {
			oldest = key
		}
	}
	p.open[oldest].close()
	delete(p.open, oldest)
}

// close ends connections that nobody uses at the moment.
func (e *pooled) close() {
	if e.cluster == nil {
		return
	}
	if way, ok := e.cluster.Transport.(*transport); ok {
		if base, ok := way.base.(*http.Transport); ok {
			base.CloseIdleConnections()
		}
	}
}

// keep drops what was not used for long, until the context ends.
func (p *pool) keep(ctx context.Context) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.dropUnused()
		}
	}
}

func (p *pool) dropUnused() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for key, entry := range p.open {
		expired := !entry.expires.IsZero() && p.now().After(entry.expires)
		if expired || p.now().Sub(entry.used) > unused {
			entry.close()
			delete(p.open, key)
		}
	}
}
