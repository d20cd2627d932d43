package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const (
	// datasetPrefix begins all keys.
	datasetPrefix = "/registry/"
	// valueBytes is about the size of each value, which is one of a large object of Kubernetes.
	valueBytes = 10_000
	// chunk keys are written, by datasetClients at a time, before the size of the database is asked for.
	chunk, datasetClients = 500, 50
	// changedPart of the keys are changed after the full snapshot: one of so many.
	changedPart = 10
)

// dataset is what was written: keys from 0 on, each once, and those that were changed then once more, from 0 on, too.
type dataset struct{ keys, changed int }

func keyOf(number int) string { return fmt.Sprintf("%s%09d", datasetPrefix, number) }

// valueOf is the value of a key, and another one after each change. It can be compressed about as well as what API
// servers store: half of it is words that come again and again, the rest is random and takes four bytes for three.
func valueOf(number, change int) string {
	random := rand.New(rand.NewPCG(uint64(number), uint64(change)))
	raw := make([]byte, valueBytes/2/4*3)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	text := bytes.NewBuffer(make([]byte, 0, valueBytes+valueBytes/10))
	fmt.Fprintf(text, `{"kind":"ConfigMap","metadata":{"name":"bench-%d","generation":%d},"data":{"random":"%s"`,
		number, change, base64.StdEncoding.EncodeToString(raw))
	for line := 0; text.Len() < valueBytes; line++ {
		fmt.Fprintf(text, `,"line-%d":"the quick brown fox jumps over the lazy dog %d times"`, line, random.IntN(1000))
	}
	text.WriteString("}}")
	return text.String()
}

// current is the value that a key has in the end.
func (d dataset) current(number int) string {
	if number < d.changed {
		return valueOf(number, 1)
	}
	return valueOf(number, 0)
}

// write writes keys until the database has a size.
func (p *etcdProcess) write(ctx context.Context, size int64) (dataset, error) {
	for d := (dataset{}); ; d.keys += chunk {
		now, err := p.databaseSize(ctx)
		if err != nil || now >= size {
			return d, err
		}
		if d.keys%10_000 == 0 {
			fmt.Printf("  %d keys, %d MB of %d\n", d.keys, now/1e6, size/1e6)
		}
		if err := p.put(ctx, d.keys, chunk, 0); err != nil {
			return d, err
		}
	}
}

// change changes a part of the keys.
func (p *etcdProcess) change(ctx context.Context, d *dataset) error {
	d.changed = d.keys / changedPart
	return p.put(ctx, 0, d.changed, 1)
}

func (p *etcdProcess) put(ctx context.Context, first, count, change int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(datasetClients)
	for number := first; number < first+count; number++ {
		group.Go(func() error {
			_, err := p.client.Put(ctx, keyOf(number), valueOf(number, change))
			return err
		})
	}
	return group.Wait()
}

// countKeys says if there are not as many keys.
func (p *etcdProcess) countKeys(ctx context.Context, want int) error {
	response, err := p.client.Get(ctx, datasetPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && response.Count != int64(want) {
		err = fmt.Errorf("%d keys are there, want %d", response.Count, want)
	}
	return err
}

// check makes sure that keys have the values that they had in the end: the changed ones and others.
func (p *etcdProcess) check(ctx context.Context, d dataset) error {
	const looks = 1000
	for number := 0; number < d.keys; number += max(1, d.keys/looks) {
		response, err := p.client.Get(ctx, keyOf(number))
		if err != nil {
			return err
		}
		if len(response.Kvs) != 1 || string(response.Kvs[0].Value) != d.current(number) {
			return fmt.Errorf("%s has another value than was written", keyOf(number))
		}
	}
	return nil
}
