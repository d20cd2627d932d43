package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Chain is what restores a revision: a full snapshot and the deltas that follow it, in order and without a gap.
type Chain struct {
	Full   Object
	Deltas []Object
}

// Last is the revision that the chain restores.
func (c Chain) Last() int64 { return c.Newest().Last }

// Newest is the object that the chain ends in.
func (c Chain) Newest() Object {
	if n := len(c.Deltas); n > 0 {
		return c.Deltas[n-1]
	}
	return c.Full
}

// continues tells whether an object's events follow those of what ends before it. A full snapshot stands beside its
// parent: what continues one continues the other.
func (o Object) continues(before Object) bool {
	return o.Kind == Delta && o.First == before.Last+1 &&
		(o.Parent == before.ID || (before.Kind == Full && o.Parent == before.Parent))
}

// Chains returns a chain for each full snapshot, the longest that there is, in the order in which they should be
// tried: those that restore the highest revision first, of these the one with the newest full snapshot.
func Chains(objects []Object) []Chain {
	followers := longest(objects)
	var chains []Chain
	for _, object := range objects {
		if object.Kind != Full {
			continue
		}
		chain := Chain{Full: object}
		for next, ok := followers[object.Name]; ok; next, ok = followers[next.Name] {
			chain.Deltas = append(chain.Deltas, next)
		}
		chains = append(chains, chain)
	}
	slices.SortFunc(chains, func(a, b Chain) int {
		return cmp.Or(-cmp.Compare(a.Last(), b.Last()), compareAge(a.Full, b.Full))
	})
	return chains
}

// compareAge sorts newer objects first. Revisions tell the age; clocks may be wrong.
func compareAge(a, b Object) int {
	return cmp.Or(-cmp.Compare(a.Last, b.Last), -a.Taken.Compare(b.Taken), strings.Compare(a.String(), b.String()))
}

// longest returns, for each object that a delta continues, the one that leads to the highest revision.
func longest(objects []Object) map[Name]Object {
	byParent := map[ID][]Object{}
	for _, object := range objects {
		if object.Kind == Delta {
			byParent[object.Parent] = append(byParent[object.Parent], object)
		}
	}
	// What continues an object begins after it, so it is looked at before.
	ordered := slices.Clone(objects)
	slices.SortFunc(ordered, func(a, b Object) int { return -cmp.Compare(a.Last, b.Last) })
	reach := map[Name]int64{}
	followers := map[Name]Object{}
	for _, object := range ordered {
		reach[object.Name] = object.Last
		candidates := byParent[object.ID]
		if object.Kind == Full && object.Parent != (ID{}) {
			candidates = slices.Concat(candidates, byParent[object.Parent])
		}
		for _, next := range candidates {
			if !next.continues(object) {
				continue
			}
			best, found := followers[object.Name]
			if !found || reach[next.Name] > reach[best.Name] ||
				(reach[next.Name] == reach[best.Name] && compareAge(next, best) < 0) {
				followers[object.Name] = next
				reach[object.Name] = reach[next.Name]
			}
		}
	}
	return followers
}

// Compaction says how much may have to be replayed on restoring, before a new full snapshot is due. A zero field sets
// no limit.
type Compaction struct {
	// Deltas is their number, Revisions that of the revisions in them, Bytes their size as they are stored.
	Deltas           int
	Revisions, Bytes int64
}

// Due tells whether the chain's deltas should be compacted into a new full snapshot.
func (c Compaction) Due(chain Chain) bool {
	var bytes int64
	for _, delta := range chain.Deltas {
		bytes += delta.Size
	}
	return c.Deltas > 0 && len(chain.Deltas) > c.Deltas ||
		c.Revisions > 0 && chain.Last()-chain.Full.Last > c.Revisions ||
		c.Bytes > 0 && bytes > c.Bytes
}

// ObjectError says which object of a chain could not be read.
type ObjectError struct {
	Object Object
	Err    error
}

func (e *ObjectError) Error() string { return fmt.Sprintf("reading %s: %v", e.Object, e.Err) }

// Unwrap returns why.
func (e *ObjectError) Unwrap() error { return e.Err }

// Lost tells whether the object itself is to blame, so that trying again helps as little as another key or store. A
// chain that does without it may be whole.
func (e *ObjectError) Lost() bool {
	return errors.Is(e.Err, ErrDamaged) || errors.Is(e.Err, ErrBroken) || errors.Is(e.Err, store.ErrNotFound)
}

// ErrBroken says that an object does not continue the one before it, although its name says so.
var ErrBroken = errors.New("the chain of backups is broken")

// Read opens the objects of a chain one after the other, hands each to use, and holds them to their digests and to
// their order. What use did is certain only when Read returns no error; errors are ObjectErrors. use may leave content
// unread.
func (c Chain) Read(ctx context.Context, s store.Store, keys *Keys, use func(*Reader) error) error {
	var before link
	for _, object := range slices.Concat([]Object{c.Full}, c.Deltas) {
		reader, err := Open(ctx, s, object.Name, keys)
		if err != nil {
			return &ObjectError{object, err}
		}
		if err = before.check(reader.Header); err == nil {
			err = use(reader)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, reader)
		}
		before = link{reader.Header, reader.Digest()}
		if err = errors.Join(err, reader.Close()); err != nil {
			return &ObjectError{object, err}
		}
	}
	return nil
}

// Verify reads all of a chain and returns what is wrong with it.
func (c Chain) Verify(ctx context.Context, s store.Store, keys *Keys) error {
	return c.Read(ctx, s, keys, func(r *Reader) error {
		if r.Header.Kind == Full {
			return nil
		}
		events := NewEventReader(r, r.Header.First, r.Header.Last)
		for {
			if _, err := events.Next(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
}

// link is what the next object of a chain must fit to.
type link struct {
	header Header
	digest Digest
}

func (l link) check(next Header) error {
	if l.header.Kind == "" {
		return nil
	}
	parent := next.ParentDigest
	if !(Object{Name: next.Name}).continues(Object{Name: l.header.Name}) ||
		(next.Parent == l.header.ID && parent != l.digest) ||
		(next.Parent != l.header.ID && parent != l.header.ParentDigest) {
		return fmt.Errorf("%w: it continues %s with digest %s, which is not that of %s", ErrBroken, next.Parent, parent,
			l.header)
	}
	return nil
}

// Position is where a log ends: what its next delta continues.
type Position struct {
	// ID and Digest of what the next delta continues.
	ID     ID
	Digest Digest
	// Revision that it begins after.
	Revision int64
}

// End reads the last object of a chain and returns where the log goes on. Its errors are ObjectErrors.
func (c Chain) End(ctx context.Context, s store.Store, keys *Keys) (Position, error) {
	last := c.Newest()
	reader, err := Open(ctx, s, last.Name, keys)
	if err != nil {
		return Position{}, &ObjectError{last, err}
	}
	_, err = io.Copy(io.Discard, reader)
	position := Position{ID: last.ID, Digest: reader.Digest(), Revision: last.Last}
	if err = errors.Join(err, reader.Close()); err != nil {
		return Position{}, &ObjectError{last, err}
	}
	if last.Kind == Full && last.Parent != (ID{}) {
		// The log goes on beside the full snapshot, so that older ones can use what follows.
		position.ID, position.Digest = last.Parent, reader.Header.ParentDigest
	}
	return position, nil
}
