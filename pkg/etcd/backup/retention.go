package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Retention says which backups are kept. What one field keeps, no other gives up. The chain that restores the highest
// revision is always kept.
type Retention struct {
	// Fulls is how many of the newest full snapshots are kept.
	Fulls int
	// Age up to which all full snapshots are kept.
	Age time.Duration
	// Spaced thins out older ones.
	Spaced []Spacing
	// DeltasOf is for how many of the newest full snapshots all that follows them is kept; the others restore only
	// their own revision. More than one is for the case that the newest is damaged.
	DeltasOf int
	// Grace is the age up to which deltas are kept that belong to no chain. They may be those of a full snapshot that
	// a listing does not have yet, or of another writer.
	Grace time.Duration
}

// Spacing keeps the newest full snapshot of each interval of time, up to an age.
type Spacing struct {
	Every, UpTo time.Duration
}

// Obsolete returns what can be deleted, in an order that leaves whole chains if it is interrupted. verified are full
// snapshots that are known to restore: the newest of them, and what follows it, is kept too, whatever comes after.
func (r Retention) Obsolete(objects []Object, verified []ID, now time.Time) []Object {
	chains := Chains(objects)
	if len(chains) == 0 {
		return nil
	}
	keep := map[Name]bool{}
	whole := func(chain Chain) {
		keep[chain.Full.Name] = true
		for _, delta := range chain.Deltas {
			keep[delta.Name] = true
		}
	}
	whole(chains[0])
	slices.SortFunc(chains, func(a, b Chain) int { return compareAge(a.Full, b.Full) })
	for i, chain := range chains {
		if i < r.DeltasOf {
			whole(chain)
		}
		if i < r.Fulls || now.Sub(chain.Full.Taken) <= r.Age {
			keep[chain.Full.Name] = true
		}
	}
	if i := slices.IndexFunc(chains, func(c Chain) bool { return slices.Contains(verified, c.Full.ID) }); i >= 0 {
		whole(chains[i])
	}
	for _, spacing := range r.Spaced {
		spacing.keep(chains, keep, now)
	}
	return r.others(objects, keep, now)
}

func (s Spacing) keep(chains []Chain, keep map[Name]bool, now time.Time) {
	seen := map[time.Time]bool{}
	for _, chain := range chains {
		interval := chain.Full.Taken.Truncate(s.Every)
		if now.Sub(chain.Full.Taken) <= s.UpTo && !seen[interval] {
			seen[interval] = true
			keep[chain.Full.Name] = true
		}
	}
}

// others returns what is not kept: deltas first, from the end of their log, then full snapshots.
func (r Retention) others(objects []Object, keep map[Name]bool, now time.Time) []Object {
	var deltas, fulls []Object
	for _, object := range objects {
		switch {
		case keep[object.Name]:
		case object.Kind == Full:
			fulls = append(fulls, object)
		case now.Sub(object.Taken) > r.Grace:
			deltas = append(deltas, object)
		}
	}
	slices.SortFunc(deltas, compareAge)
	slices.SortFunc(fulls, compareAge)
	return slices.Concat(deltas, fulls)
}

// Pruned is what Prune did.
type Pruned struct {
	Deleted int
	// Protected were kept because the store does not allow yet to delete them.
	Protected int
}

// Prune deletes objects. That some are protected is no error; an error with one does not keep it from the others.
func Prune(ctx context.Context, s store.Store, obsolete []Object) (Pruned, error) {
	var pruned Pruned
	var all []error
	for _, object := range obsolete {
		err := s.Delete(ctx, object.String())
		switch {
		case err == nil:
			pruned.Deleted++
		case errors.Is(err, store.ErrImmutable):
			pruned.Protected++
		case ctx.Err() != nil:
			return pruned, errors.Join(append(all, ctx.Err())...)
		default:
			all = append(all, fmt.Errorf("pruning backups: %w", err))
		}
	}
	return pruned, errors.Join(all...)
}
