// Package members owns the connections to the member clusters of a fleet: one client per member, and watches of the
// objects that the fleet manages there. Whoever wants to know about changes in members subscribes here. A member also
// tells its version, its APIs, the room that it has, and what its pods use.
package members

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// Changed is called with a member and an object that changed in it. A nil object stands for all of them: the
// connection was made anew.
type Changed func(cluster string, object client.Object)

// Pool holds a connection to every member whose credentials it was shown.
type Pool struct {
	mu      sync.Mutex
	members map[string]*Member
	changed Changed
	dial    outside.Dial
	// stale says why the certificate authority of a member could not be read again, where it could not.
	stale map[string]string
}

// NewPool reports changes in members to changed, which must not block, and connects to them by dial.
func NewPool(changed Changed, dial outside.Dial) *Pool {
	return &Pool{members: map[string]*Member{}, stale: map[string]string{}, changed: changed, dial: dial}
}

// Get gives the connection to a member; false as long as there is none.
func (p *Pool) Get(cluster string) (*Member, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	member, found := p.members[cluster]
	return member, found
}

// Refresh connects to a cluster, or connects anew when its endpoint or credentials have changed. The connection
// lasts until ctx ends or Remove is called.
func (p *Pool) Refresh(ctx context.Context, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*Member, error) {
	config, err := RESTConfig(cluster, secret)
	if err != nil {
		return nil, err
	}
	header := ProxyHeader(cluster)
	fingerprint := fingerprintOf(config, cluster.Spec.ProxyURL, header)
	if member, found := p.Get(cluster.Name); found && member.fingerprint == fingerprint {
		return member, nil
	}
	return p.connect(ctx, cluster.Name, config, header, fingerprint)
}

// Use connects to a cluster by a configuration of the caller's own, or connects anew when the file with its certificate
// authority has changed. A connection that is there stays while that file cannot be read; the log says so.
func (p *Pool) Use(ctx context.Context, cluster string, config *rest.Config) (*Member, error) {
	old, found := p.Get(cluster)
	config = withLimits(rest.CopyConfig(config))
	err := readAuthority(config)
	if err != nil && !found {
		return nil, fmt.Errorf("connecting to member %s: %w", cluster, err)
	}
	p.noteStale(ctx, cluster, err)
	if err != nil {
		return old, nil
	}
	fingerprint := fingerprintOf(config, "", nil)
	if found && old.fingerprint == fingerprint {
		return old, nil
	}
	return p.connect(ctx, cluster, config, nil, fingerprint)
}

// noteStale logs why the authority of a member cannot be read again, once per reason.
func (p *Pool) noteStale(ctx context.Context, cluster string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.stale, cluster)
		return
	}
	if p.stale[cluster] != err.Error() {
		p.stale[cluster] = err.Error()
		log.FromContext(ctx).Error(err, "Cannot read the certificate authority of a member again; "+
			"its connection stays as it is", "member", cluster)
	}
}

// readAuthority of a file that may change, as those of service accounts do.
func readAuthority(config *rest.Config) (err error) {
	if config.CAFile != "" && len(config.CAData) == 0 {
		config.CAData, err = os.ReadFile(config.CAFile)
	}
	return err
}

func (p *Pool) connect(ctx context.Context, cluster string, config *rest.Config, proxyHeader http.Header,
	fingerprint string) (*Member, error) {
	member, err := connect(ctx, cluster, config, proxyHeader, fingerprint, p.dial, p.changed)
	if err != nil {
		return nil, fmt.Errorf("connecting to member %s: %w", cluster, err)
	}
	p.replace(cluster, member)
	p.changed(cluster, nil)
	return member, nil
}

// Remove closes the connection to a cluster.
func (p *Pool) Remove(cluster string) { p.replace(cluster, nil) }

func (p *Pool) replace(cluster string, member *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, found := p.members[cluster]; found {
		old.close()
	}
	delete(p.stale, cluster)
	if member == nil {
		delete(p.members, cluster)
		return
	}
	p.members[cluster] = member
}

// requestTimeout bounds single requests to a member, so that one that hangs doesn't hold up the others.
const requestTimeout = 10 * time.Second

// limits of requests per second to one member.
func withLimits(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 400, 800
	return config
}
