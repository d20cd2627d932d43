package tunnel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

const (
	// stayInterval is between two looks whether a member still is one.
	stayInterval = 5 * time.Second
	// reopens is how long requests wait for a tunnel, when it was lost so lately that the agent most likely opens
	// another: it tries after DefaultPause, and again after twice that.
	reopens = 5 * time.Second
	// Soon is after how long without a tunnel nobody expects one at once.
	Soon = 30 * time.Second
)

// Tunnels of one process of the federation: one for each member with an agent.
type Tunnels struct {
	replica  string
	replicas int
	began    time.Time
	// look is how often it is looked whether members stay.
	look time.Duration

	// waiting bounds the requests that wait for a tunnel.
	waiting places

	mu      sync.Mutex
	members map[string]*known
	closed  bool
	// changed is closed, and replaced by another, when a tunnel is opened, and when there will be none any more.
	changed chan struct{}
}

// known is what is known of a member: its tunnel, or since when it has none.
type known struct {
	uid    types.UID
	tunnel *Tunnel
	lost   time.Time
}

// New makes the tunnels of one of several replicas; agents keep one to each.
func New(replicas int) *Tunnels {
	return &Tunnels{
		replica: string(uuid.NewUUID()), replicas: max(replicas, 1), began: time.Now(), look: stayInterval,
		members: map[string]*known{}, changed: make(chan struct{}),
	}
}

// Attach makes the connection of a request a tunnel to a member, which is known by its UID, and returns when that has
// ended. It ends when the member does not stay. Errors are those of which nobody has been told.
func (t *Tunnels) Attach(w http.ResponseWriter, r *http.Request, member string, uid types.UID,
	stays func() bool) error {
	w.Header().Set(replicaHeader, t.replica)
	w.Header().Set(replicasHeader, strconv.Itoa(t.replicas))
	if !strings.EqualFold(upgradeOf(r.Header), Protocol) {
		return apierrors.NewBadRequest("agents attach by an upgrade to " + Protocol)
	}
	held := strings.Split(strings.Join(r.Header.Values(heldHeader), ","), ",")
	if slices.Contains(held, t.replica) {
		return apierrors.NewConflict(schema.GroupResource{}, member,
			fmt.Errorf("the agent has a tunnel to this process of the fleet"))
	}
	tunnel, err := t.open(w)
	if tunnel == nil {
		return err
	}
	if !t.put(member, uid, tunnel) {
		return nil
	}
	defer t.lose(member, tunnel)
	ticker := time.NewTicker(t.look)
	defer ticker.Stop()
	for {
		select {
		case <-tunnel.conn.closed:
			return nil
		case <-ticker.C:
			if !stays() {
				return nil
			}
		}
	}
}

// open takes the connection over. Without a tunnel and an error there is nobody any more who could be told.
func (t *Tunnels) open(w http.ResponseWriter) (*Tunnel, error) {
	taken, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, apierrors.NewBadRequest("agents attach by HTTP/1.1: " + err.Error())
	}
	conn := newClosing(read{taken, buffered.Reader})
	_ = taken.SetDeadline(time.Time{})
	_, _ = fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"+
		"%s: %s\r\n%s: %d\r\n\r\n", Protocol, replicaHeader, t.replica, replicasHeader, t.replicas)
	err = buffered.Flush()
	var tunnel *Tunnel
	if err == nil {
		tunnel, err = newTunnel(conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil
	}
	return tunnel, nil
}

// put a tunnel in the place of the one that was before: the agent knows best which of them leads to it.
func (t *Tunnels) put(member string, uid types.UID, tunnel *Tunnel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = tunnel.conn.Close()
		return false
	}
	if before := t.members[member]; before != nil && before.tunnel != nil {
		_ = before.tunnel.conn.Close()
	}
	t.members[member] = &known{uid: uid, tunnel: tunnel}
	t.tellWaiting()
	return true
}

func (t *Tunnels) lose(member string, tunnel *Tunnel) {
	_ = tunnel.conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.members[member]; now != nil && now.tunnel == tunnel {
		now.tunnel, now.lost = nil, time.Now()
	}
}

// tellWaiting has those that wait for a tunnel look again.
func (t *Tunnels) tellWaiting() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// To gives the tunnel to a member; without one, since when there is none.
func (t *Tunnels) To(member string, uid types.UID) (tunnel *Tunnel, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tunnel, since, _ = t.to(member, uid)
	return tunnel, since
}

// to tells also what will have changed when there is another tunnel.
func (t *Tunnels) to(member string, uid types.UID) (tunnel *Tunnel, since time.Time, changed <-chan struct{}) {
	found := t.members[member]
	if found == nil || found.uid != uid {
		return nil, t.began, t.changed
	}
	if found.tunnel != nil && !found.tunnel.lasts() {
		// Whoever serves it is about to take notice that it has ended.
		return nil, time.Now(), t.changed
	}
	return found.tunnel, found.lost, t.changed
}

// Await gives the tunnel to a member for a user. When it was lost just now, or the process has just begun, the user
// waits a moment for the agent to open another; for an agent that is away nobody waits. See [IsBusy] for errors.
func (t *Tunnels) Await(ctx context.Context, member string, uid types.UID,
	user string) (tunnel *Tunnel, since time.Time, err error) {
	bounded, cancel := context.WithTimeout(ctx, reopens)
	defer cancel()
	for {
		t.mu.Lock()
		tunnel, since, changed := t.to(member, uid)
		closed := t.closed
		t.mu.Unlock()
		if tunnel != nil || closed || time.Since(since) > Soon {
			return tunnel, since, nil
		}
		release, err := t.waiting.take(user)
		if err != nil {
			return nil, since, err
		}
		select {
		case <-changed:
			release()
		case <-bounded.Done():
			release()
			return nil, since, nil
		}
	}
}

// Close ends all tunnels; agents look for another process.
func (t *Tunnels) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.tellWaiting()
	for _, member := range t.members {
		if member.tunnel != nil {
			_ = member.tunnel.conn.Close()
		}
	}
}
