package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// outcomePrefix begins the keys of etcd that tell what came of a request to restore a point in time; its ID follows.
// What became of the data is so a part of the data, whatever that is lost with or restored from. API servers have keys
// below /registry.
const outcomePrefix = "etcd-steward/restore/"

// outcome is what came of a request.
type outcome struct {
	// To is the time that was asked for.
	To string `json:"to"`
	// Taken is when the state was saved that was restored, Revision its last revision; without Refused.
	Taken    *time.Time `json:"taken,omitempty"`
	Revision int64      `json:"revision,omitempty"`
	// Replaces is the cluster, in hexadecimal, whose data had to make way; without Refused. Members that still have its
	// data give that up.
	Replaces string `json:"replaces,omitempty"`
	// Refused says why it was not done; nothing was changed then.
	Refused string `json:"refused,omitempty"`
	// At is when that was.
	At time.Time `json:"at"`
}

// replacedBy is the cluster that an outcome says was replaced; 0 if it says none.
func replacedBy(content []byte) uint64 {
	var o outcome
	if err := json.Unmarshal(content, &o); err != nil {
		return 0
	}
	replaced, err := strconv.ParseUint(o.Replaces, 16, 64)
	if err != nil {
		return 0
	}
	return replaced
}

// learnOutcomes reads what the etcd of a quorum has restored, where that makes a difference to data of this member.
func (j *joiner) learnOutcomes(ctx context.Context, found *quorum) error {
	isKnown := found.cluster.id == j.own.cluster && found.cluster.has(j.own.member)
	if j.held == dataNone || j.own.cluster == 0 || isKnown {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, j.memberPace.ask)
	defer cancel()
	response, err := found.client.Get(ctx, outcomePrefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("asking etcd for what it has restored: %w", err)
	}
	for _, kv := range response.Kvs {
		found.cluster.settled = found.cluster.settled || string(kv.Key) == outcomePrefix+j.options.Restore.ID
		if replaced := replacedBy(kv.Value); replaced != 0 {
			found.cluster.replaced = append(found.cluster.replaced, replaced)
		}
	}
	return nil
}

// has tells whether a member of an ID is one of the cluster.
func (c *cluster) has(id uint64) bool {
	for _, m := range c.members {
		if m.id == id {
			return true
		}
	}
	return false
}

// learnReplaced reads from the data of the only member of a cluster which others it has replaced, if others have data
// of another one.
func (j *joiner) learnReplaced(answers []peerAnswer) error {
	if j.held == dataNone || !j.own.alone || j.own.replaced != nil {
		return nil
	}
	for _, a := range answers {
		if a.own.cluster == 0 || a.own.cluster == j.own.cluster {
			continue
		}
		var err error
		j.own.replaced, err = readReplaced(dbPath(j.options.DataDir))
		return err
	}
	return nil
}

// readReplaced reads from the database of a stopped etcd which clusters its data has replaced. It reads all of it, as
// there is no index of keys.
func readReplaced(path string) (replaced []uint64, err error) {
	defer recoverFault(&err)()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	replaced = []uint64{}
	err = db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(schema.Key.Name())
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(_, value []byte) error {
			// Most keys are others, and need not be decoded.
			if !bytes.Contains(value, []byte(outcomePrefix)) {
				return nil
			}
			var kv mvccpb.KeyValue
			if err := kv.Unmarshal(value); err != nil || !bytes.HasPrefix(kv.Key, []byte(outcomePrefix)) {
				return err
			}
			if id := replacedBy(kv.Value); id != 0 {
				replaced = append(replaced, id)
			}
			return nil
		})
	})
	return replaced, err
}
