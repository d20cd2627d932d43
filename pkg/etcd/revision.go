package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// revisionBump is added to a revision that is ahead of the clock.
const revisionBump = 1_000_000_000

// revisionBeyond returns the revision with which data goes on whose last one is known, after a part of it is lost. It
// comes after all that clients may have seen: their caches then start over instead of believing that nothing happened.
// It is the time in microseconds: no etcd writes so often, so a later restore, of whatever is left then, has a later
// revision too. Below 2^53, all clients can count.
func revisionBeyond(known int64, now time.Time) int64 {
	if micros := now.UnixMicro(); micros > known {
		return micros
	}
	return known + revisionBump
}

func currentRevision(ctx context.Context, client *clientv3.Client) (int64, error) {
	response, err := client.Get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}
