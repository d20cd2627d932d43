package failover

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// slowest is the pace when the rate is 0.
const slowest = 30 * time.Minute

// pace lets evictions happen one after the other. Who has to wait keeps the place in the queue.
type pace struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	queue   map[types.NamespacedName]*rate.Reservation
}

func newPace(perSecond float64) *pace {
	limit := rate.Limit(perSecond)
	if perSecond == 0 {
		limit = rate.Every(slowest)
	}
	return &pace{limiter: rate.NewLimiter(limit, 1), queue: map[types.NamespacedName]*rate.Reservation{}}
}

// wait tells how long the eviction has to wait; 0 means that it happens now.
func (p *pace) wait(key types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	place, waiting := p.queue[key]
	if !waiting {
		place = p.limiter.ReserveN(now, 1)
		p.queue[key] = place
	}
	if left := place.DelayFrom(now); left > 0 {
		return left
	}
	delete(p.queue, key)
	return 0
}

// leave the queue: there is nothing to evict any more.
func (p *pace) leave(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place, waiting := p.queue[key]; waiting {
		place.CancelAt(now)
		delete(p.queue, key)
	}
}
