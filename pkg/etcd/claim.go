package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// claimPrefix begins the names of objects which say that an etcd has taken the backups over, elsewhere: its number
// follows. They are no backups, and stay as long as these.
const claimPrefix = "claim-"

// errTakenOver says that the backups are another etcd's.
var errTakenOver = errors.New("the backups in the store were taken over by this etcd elsewhere, on another seed: " +
	"this one must not go on")

func claimName(number int64) string { return fmt.Sprintf("%s%020d", claimPrefix, number) }

// newestClaim is the highest number among claims; 0 if there is none.
func newestClaim(listed []store.Object) int64 {
	var newest int64
	for _, object := range listed {
		text, isClaim := strings.CutPrefix(object.Name, claimPrefix)
		if number, err := strconv.ParseInt(text, 10, 64); isClaim && err == nil {
			newest = max(newest, number)
		}
	}
	return newest
}

// claim takes the backups over, before anything is restored of them. Who had them before finds that out.
func (b *backups) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	own := b.options.Store.Claim
	listed, err := b.store.List(ctx, claimPrefix)
	if err != nil {
		return fmt.Errorf("listing the claims in the store of backups: %w", err)
	}
	newest := newestClaim(listed)
	if newest > own {
		return errTakenOver
	}
	if newest == own {
		return nil
	}
	const content = "taken over\n"
	if err := b.store.Put(ctx, claimName(own), strings.NewReader(content), int64(len(content))); err != nil {
		return fmt.Errorf("taking over the backups in the store: %w", err)
	}
	return nil
}
