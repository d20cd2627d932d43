package backup

import (
	"slices"
	"time"
)

// Taken is when the state that the chain restores was saved.
func (c Chain) Taken() time.Time { return c.Newest().Taken }

// Size of all its objects in bytes, as they are stored.
func (c Chain) Size() int64 {
	size := c.Full.Size
	for _, delta := range c.Deltas {
		size += delta.Size
	}
	return size
}

// At returns the chain that restores the newest state which was saved until a time, and whether there is any. Times are
// in whole seconds. Of what was saved twice, it is the chain with the newest full snapshot.
func At(objects []Object, to time.Time) (Chain, bool) {
	until := slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return o.Taken.After(to) })
	chains := Chains(until)
	if len(chains) == 0 {
		return Chain{}, false
	}
	return chains[0], true
}
