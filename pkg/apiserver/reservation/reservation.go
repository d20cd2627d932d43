// Package reservation lets requests that run at the same time, in any replica of garden-apiserver, know what the others
// are about to store. Limits that span objects, such as a quota or that a domain is used once, hold with it however
// many requests come at once.
//
// A check of such a limit reads what is stored and decides; the object is stored only afterwards, so that two requests
// would both find room for one. Therefore a request first claims what it is about to store, in etcd, and counts the
// claims of others as if they were stored. Each scope, such as one quota, has a counter: a claim is made in a
// transaction that fails when the counter has moved since the claims were read; then the request reads and decides
// again. No lock is held, so nobody waits for somebody who is gone.
//
// A claim ends with its request, when the object is stored or has been refused. Claims of a replica that was killed
// expire.
package reservation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

const (
	// lifetime is how long a claim lives that nobody ends: longer than any request, which kube-apiserver ends after a
	// minute.
	lifetime = 3 * time.Minute
	// folder is where claims lie below the prefix of the server's objects. No API group has this name.
	folder = "/reservations.trellis.garden/"
	// dialTimeout bounds how long to wait for etcd before an error is reported.
	dialTimeout = 20 * time.Second
)

// Claim is what a request is about to store.
type Claim struct {
	// Owner names the object, with its namespace if it has one.
	Owner string
	// Value is what the scope limits: an amount, a name.
	Value string
}

// Decision tells whether a request may store what it wants to, given the claims of others. What it reads of stored
// objects has to be read when it is called, not before, and from etcd.
type Decision func(ctx context.Context, others []Claim) error

// Reservations keeps claims in etcd.
type Reservations struct {
	client *clientv3.Client
	folder string
}

// New returns the reservations that lie beside the objects of a server. It does not connect yet.
func New(config storagebackend.Config) (*Reservations, error) {
	settings := clientv3.Config{Endpoints: config.Transport.ServerList, DialTimeout: dialTimeout, Logger: zap.NewNop()}
	if config.Transport.TrustedCAFile != "" || config.Transport.CertFile != "" {
		files := transport.TLSInfo{
			CertFile: config.Transport.CertFile, KeyFile: config.Transport.KeyFile,
			TrustedCAFile: config.Transport.TrustedCAFile,
		}
		var err error
		if settings.TLS, err = files.ClientConfig(); err != nil {
			return nil, fmt.Errorf("certificates for etcd: %w", err)
		}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("client of etcd: %w", err)
	}
	return &Reservations{client: client, folder: strings.TrimSuffix(config.Prefix, "/") + folder}, nil
}

// Close ends the connections to etcd.
func (r *Reservations) Close() error { return r.client.Close() }

// Look decides without claiming anything, as dry runs do.
func (r *Reservations) Look(ctx context.Context, scope string, decide Decision) error {
	state, err := r.read(ctx, scope, "")
	if err != nil {
		return err
	}
	return decide(ctx, state.others)
}

// Reserve decides and, if the answer is yes, claims in one step. The claim lasts until the request ends in whose
// context this happens; see WithReservations.
func (r *Reservations) Reserve(ctx context.Context, scope string, claim Claim, decide Decision) error {
	request, ok := requestFrom(ctx)
	if !ok {
		return fmt.Errorf("claim of %s in %s: there is no request that would end it", claim.Owner, scope)
	}
	var lease clientv3.LeaseID
	for {
		state, err := r.read(ctx, scope, request.id)
		if err != nil {
			return err
		}
		if err := decide(ctx, state.others); err != nil {
			return err
		}
		if lease == clientv3.NoLease {
			granted, err := r.client.Grant(ctx, int64(lifetime.Seconds()))
			if err != nil {
				return fmt.Errorf("claim in %s: %w", scope, err)
			}
			lease = granted.ID
		}
		key := r.claimsPrefix(scope) + request.id + "/" + claim.Owner
		claimed, err := r.claim(ctx, scope, state.counter, clientv3.OpPut(key, claim.Value, clientv3.WithLease(lease)),
			lease)
		if err != nil {
			return err
		}
		if claimed {
			request.claimed(key)
			return nil
		}
	}
}

// state is what is claimed in a scope at one moment.
type state struct {
	// counter is the revision at which the scope was claimed in last.
	counter int64
	others  []Claim
}

func (r *Reservations) counterKey(scope string) string { return r.folder + "counters/" + scope }

func (r *Reservations) claimsPrefix(scope string) string { return r.folder + "claims/" + scope + "//" }

// read returns the claims of a scope but those of one request.
func (r *Reservations) read(ctx context.Context, scope, own string) (state, error) {
	prefix := r.claimsPrefix(scope)
	answer, err := r.client.Txn(ctx).Then(clientv3.OpGet(r.counterKey(scope)),
		clientv3.OpGet(prefix, clientv3.WithPrefix())).Commit()
	if err != nil {
		return state{}, fmt.Errorf("reading what is claimed in %s: %w", scope, err)
	}
	var read state
	if counters := answer.Responses[0].GetResponseRange().Kvs; len(counters) > 0 {
		read.counter = counters[0].ModRevision
	}
	for _, entry := range answer.Responses[1].GetResponseRange().Kvs {
		request, owner, _ := strings.Cut(strings.TrimPrefix(string(entry.Key), prefix), "/")
		if request != own {
			read.others = append(read.others, Claim{Owner: owner, Value: string(entry.Value)})
		}
	}
	return read, nil
}

// claim writes a claim unless somebody else has claimed in the scope since it was read. The counter expires with the
// claim: once nobody has claimed for so long, there is nothing that anybody could have missed.
func (r *Reservations) claim(ctx context.Context, scope string, counter int64, put clientv3.Op,
	lease clientv3.LeaseID) (bool, error) {
	answer, err := r.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(r.counterKey(scope)), "=", counter)).
		Then(clientv3.OpPut(r.counterKey(scope), "", clientv3.WithLease(lease)), put).
		Commit()
	if err != nil {
		return false, fmt.Errorf("claim in %s: %w", scope, err)
	}
	return answer.Succeeded, nil
}

// release ends claims.
func (r *Reservations) release(ctx context.Context, keys []string) error {
	var deletions []clientv3.Op
	for _, key := range keys {
		deletions = append(deletions, clientv3.OpDelete(key))
	}
	_, err := r.client.Txn(ctx).Then(deletions...).Commit()
	return err
}

func newID() string { return string(uuid.NewUUID()) }
