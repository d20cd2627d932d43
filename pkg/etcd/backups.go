package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/backup"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// pace is how often something is done with a store, and how long it may take.
type pace struct {
	// delta, full and verify are the periods.
	delta, full, verify time.Duration
	// bytes of changes are kept in memory, about, before they are saved out of turn.
	bytes int64
	// retry is the first time after which something that failed is tried again; it doubles up to mostRetry. retryFull
	// is that of full snapshots, which cost more.
	retry, mostRetry, retryFull time.Duration
	// ask is how long a start with usable data waits for the store.
	ask time.Duration
	// request is how long a restore that was asked for waits for a store that fails, before it is refused.
	request time.Duration
	// stop is how long the last delta may hold up an orderly stop.
	stop time.Duration
}

func newPace(options Options) pace {
	return pace{
		delta: options.Store.DeltaSnapshotPeriod, full: options.SnapshotPeriod, verify: options.Store.VerifyPeriod,
		bytes: 16 << 20,
		retry: time.Second, mostRetry: 30 * time.Second, retryFull: min(10*time.Minute, options.SnapshotPeriod),
		ask: 3 * time.Second, request: 2 * time.Minute, stop: 10 * time.Second,
	}
}

// Bounds of single operations on a store that does not answer.
const (
	listTimeout = time.Minute
	cutTimeout  = 2 * time.Minute
	fullTimeout = 2 * time.Hour
)

// deltaGrace is the age up to which deltas are kept that seem to belong to nothing.
const deltaGrace = 24 * time.Hour

// wholeLogs is for how many full snapshots all changes after them are kept: should the newest be damaged, the one
// before it leads as far.
const wholeLogs = 2

// backups are those in the store.
type backups struct {
	options Options
	pace    pace
	log     *zap.Logger
	store   *storeAccess
	notices *notices
	measure measureFn
	// compare compares the data with what was restored on trial.
	compare func(ctx context.Context, path string, from status.Source, backup string)

	mu sync.Mutex
	// lost are objects that were found damaged or missing since the start; they count for nothing.
	lost map[backup.Name]bool
	// verified are full snapshots that were restored on trial since the start.
	verified []backup.ID
}

// newBackups returns nil if no store is configured.
func newBackups(options Options, log *zap.Logger, measure measureFn) *backups {
	if options.Store.Provider == NoStore {
		return nil
	}
	return &backups{
		options: options, pace: newPace(options), log: log, store: newStoreAccess(options.Store),
		notices: newNotices(log), measure: measure, lost: map[backup.Name]bool{},
	}
}

// list returns the backups in the store, without those that are known to be lost. They are nobody's but whose who took
// them over last.
func (b *backups) list(ctx context.Context) ([]backup.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := b.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing the store of backups: %w", err)
	}
	if newestClaim(listed) > b.options.Store.Claim {
		return nil, errTakenOver
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(backup.Objects(listed), func(o backup.Object) bool { return b.lost[o.Name] }), nil
}

// giveUp takes an object for lost if that is what an error says, and tells whether it is.
func (b *backups) giveUp(err error) (backup.Name, bool) {
	var failed *backup.ObjectError
	if !errors.As(err, &failed) || !failed.Lost() {
		return backup.Name{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost[failed.Object.Name] = true
	b.log.Error("A BACKUP IS DAMAGED OR MISSING; going on with what is before it and beside it",
		zap.Stringer("object", failed.Object.Name), zap.Error(err))
	return failed.Object.Name, true
}

// lostCount changes whenever an object is given up.
func (b *backups) lostCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lost)
}

// prune deletes what retention lets go.
func (b *backups) prune(ctx context.Context) error {
	objects, err := b.list(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	b.mu.Lock()
	obsolete := retention(b.options, objects, now).Obsolete(objects, b.verified, now)
	b.mu.Unlock()
	pruned, err := backup.Prune(ctx, b.store, obsolete)
	if pruned.Deleted > 0 {
		b.log.Info("pruned backups in the store", zap.Int("deleted", pruned.Deleted))
	}
	if chains := backup.Chains(objects); len(chains) > 0 {
		storeChain.Set(float64(len(chains[0].Deltas)))
	}
	return err
}

// retention keeps the newest full snapshots, as many as the options say and no older than they say, but at least one.
func retention(options Options, objects []backup.Object, now time.Time) backup.Retention {
	fulls := cmp.Or(options.Store.SnapshotRetention, options.SnapshotRetention)
	if age := options.Store.SnapshotRetentionAge; age > 0 {
		young := 0
		for _, object := range objects {
			if object.Kind == backup.Full && now.Sub(object.Taken) <= age {
				young++
			}
		}
		fulls = max(1, min(fulls, young))
	}
	return backup.Retention{Fulls: fulls, DeltasOf: min(wholeLogs, fulls), Grace: deltaGrace}
}
