package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// repeatAfter is when a failure that goes on is logged again.
const repeatAfter = 10 * time.Minute

// What is done with a store, as metrics name it.
const (
	operationDelta  = "delta"
	operationFull   = "full"
	operationPrune  = "prune"
	operationVerify = "verification"
	operationStart  = "start"
)

// notices tell of operations that are tried again and again: in metrics each time, in the log when the reason of a
// failure changes, and then every ten minutes.
type notices struct {
	log *zap.Logger
	now func() time.Time

	mu   sync.Mutex
	said map[string]notice
}

type notice struct {
	reason string
	at     time.Time
}

func newNotices(log *zap.Logger) *notices {
	return &notices{log: log, now: time.Now, said: map[string]notice{}}
}

// report takes the result of an operation.
func (n *notices) report(operation string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	before, failing := n.said[operation]
	if err == nil {
		storeSuccess.WithLabelValues(operation).Set(float64(now.Unix()))
		if delete(n.said, operation); failing {
			n.log.Info("THE STORE OF BACKUPS can be used again", zap.String("for", operation))
		}
		return
	}
	reason := storeReason(err)
	storeFailures.WithLabelValues(operation, reason).Inc()
	if failing && before.reason == reason && now.Sub(before.at) < repeatAfter {
		return
	}
	n.said[operation] = notice{reason, now}
	n.log.Error("THE STORE OF BACKUPS cannot be used; it is tried again", zap.String("for", operation),
		zap.String("reason", reason), zap.Error(err))
}

// errBehind says that etcd does not have all that its backups have.
var errBehind = errors.New("the backups in the store have changes that the data does not have, and are left as they " +
	"are: delete the data to have them restored, or move them away to go on with the data")

// storeReason names why an operation failed, as metrics do. Whatever has no name may be the network.
func storeReason(err error) string {
	var short *noRoomError
	for _, r := range []struct {
		cause  error
		reason string
	}{
		{store.ErrPermission, "permission"},
		{store.ErrFull, "full"},
		{store.ErrImmutable, "immutable"},
		{backup.ErrKey, "key"},
		{backup.ErrDamaged, "damaged"},
		{backup.ErrBroken, "damaged"},
		{store.ErrNotFound, "damaged"},
		{history.ErrGap, "gap"},
		{errBehind, "behind"},
		{context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, r.cause) {
			return r.reason
		}
	}
	if errors.As(err, &short) {
		return "room"
	}
	return "unavailable"
}
