package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/history"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// repeatAfter is when a failure that goes on is logged again.
const repeatAfter = 10 * time.Minute

// notices tell of operations that are tried again and again: in metrics each time, in the log and in the status when
// the reason of a failure changes, and then every ten minutes.
type notices struct {
	log *zap.Logger
	now func() time.Time

	mu   sync.Mutex
	said map[string]notice
	// done are the operations that have succeeded.
	done map[string]status.Operation
}

// notice is what was said of a failure last, and when.
type notice struct {
	status.Failure
	at time.Time
}

func newNotices(log *zap.Logger) *notices {
	return &notices{log: log, now: time.Now, said: map[string]notice{}, done: map[string]status.Operation{}}
}

// succeeded takes what is known of an operation that did; report counts it.
func (n *notices) succeeded(operation string, with status.Operation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[operation] = with
}

// store is what the status tells.
func (n *notices) store() *status.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := &status.Store{
		Delta: n.done[status.Delta], Full: n.done[status.Full], Verification: n.done[status.Verification],
	}
	for _, operation := range slices.Sorted(maps.Keys(n.said)) {
		told.Failures = append(told.Failures, n.said[operation].Failure)
	}
	return told
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
	if failing && before.Reason == reason && now.Sub(before.at) < repeatAfter {
		return
	}
	since := before.Since
	if !failing {
		since = now.UTC()
	}
	n.said[operation] = notice{
		status.Failure{Operation: operation, Since: since, Reason: reason, Message: status.Text(err.Error())}, now,
	}
	n.log.Error("THE STORE OF BACKUPS cannot be used; it is tried again", zap.String("for", operation),
		zap.String("reason", reason), zap.Error(err))
}

// errBehind says that etcd does not have all that its backups have.
var errBehind = errors.New("the backups in the store have changes that the data does not have, and are left as they " +
	"are: delete the data to have them restored, or move them away to go on with the data")

// storeReason names why an operation failed, as metrics and the status do.
func storeReason(err error) string {
	var short *noRoomError
	for _, r := range []struct {
		cause  error
		reason string
	}{
		{store.ErrPermission, status.Permission},
		{store.ErrFull, status.FullStore},
		{store.ErrImmutable, status.Immutable},
		{backup.ErrKey, status.Key},
		{backup.ErrDamaged, status.Damaged},
		{backup.ErrBroken, status.Damaged},
		{store.ErrNotFound, status.Damaged},
		{history.ErrGap, status.Gap},
		{errBehind, status.Behind},
		{errTakenOver, status.Behind},
		{context.DeadlineExceeded, status.Timeout},
	} {
		if errors.Is(err, r.cause) {
			return r.reason
		}
	}
	if errors.As(err, &short) {
		return status.Room
	}
	return status.Unavailable
}
