package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DefaultPause after the first tunnel that could not be opened; it doubles up to longestPause.
	DefaultPause = time.Second
	longestPause = 30 * time.Second
	// longestSearch is between two tries to reach a replica to which there is no tunnel, where others answer.
	longestSearch = 10 * time.Second
	// steady is how long a tunnel lasts that was no failure.
	steady = time.Minute
	// attachTimeout bounds one try.
	attachTimeout = 15 * time.Second
	// maxRefusal bounds what is read of why a tunnel is refused.
	maxRefusal = 64 << 10
)

// Keeper keeps a tunnel to each replica of a fleet's federation, from within a member.
type Keeper struct {
	// Fleet connects to the fleet by HTTP/1.1, as the agent.
	Fleet http.RoundTripper
	// URL at which the agent attaches.
	URL string
	// Member answers what comes through tunnels.
	Member http.Handler
	// Pause after the first failure.
	Pause time.Duration
	// Say is told why there is no tunnel, and that there is one.
	Say func(text string, values ...any)

	mu     sync.Mutex
	held   map[string]struct{}
	wanted int
}

// errHeld: there is a tunnel already to the replica that has answered.
var errHeld = errors.New("the replica that answers has a tunnel")

// Run opens tunnels, again when one is lost, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.held, k.wanted = map[string]struct{}{}, 1
	var serving sync.WaitGroup
	defer serving.Wait()
	ended, pause := make(chan time.Duration), k.Pause
	next := time.After(0)
	for {
		select {
		case <-ctx.Done():
			return
		case lived := <-ended:
			if lived > steady {
				pause = k.Pause
			}
			next, pause = time.After(jittered(pause)), min(2*pause, longestPause)
			continue
		case <-next:
		}
		next = nil
		if !k.lacks() {
			continue
		}
		conn, replica, err := k.attach(ctx)
		switch {
		case err == nil:
			// Before the next try: a second tunnel to the same replica would end this one.
			k.hold(replica)
			serving.Go(func() {
				lived := k.serve(ctx, conn, replica)
				select {
				case ended <- lived:
				case <-ctx.Done():
				}
			})
			next = time.After(jittered(k.Pause))
		case errors.Is(err, errHeld):
			next, pause = time.After(jittered(pause)), min(2*pause, longestSearch)
		default:
			k.Say("No tunnel to the fleet: the member's API is not served there", "reason", err.Error())
			next, pause = time.After(jittered(pause)), min(2*pause, longestPause)
		}
	}
}

// jittered keeps the agents of a fleet from coming at once.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2+1) }

// lacks tells whether there are replicas without a tunnel.
func (k *Keeper) lacks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held) < k.wanted
}

func (k *Keeper) hold(replica string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[replica] = struct{}{}
}

// attach opens a connection to a replica.
func (k *Keeper) attach(ctx context.Context) (io.ReadWriteCloser, string, error) {
	bounded, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, http.MethodPost, k.URL, nil)
	if err != nil {
		return nil, "", err
	}
	k.mu.Lock()
	held := slices.Sorted(maps.Keys(k.held))
	k.mu.Unlock()
	request.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {Protocol}, heldHeader: {strings.Join(held, ",")},
		"User-Agent": {"trellis-federation-agent"},
	}
	response, err := k.Fleet.RoundTrip(request)
	if err != nil {
		return nil, "", err
	}
	replica := response.Header.Get(replicaHeader)
	k.want(response.Header.Get(replicasHeader))
	conn, isStream := response.Body.(io.ReadWriteCloser)
	switch {
	case response.StatusCode == http.StatusConflict && slices.Contains(held, replica):
		_ = response.Body.Close()
		return nil, "", errHeld
	case response.StatusCode != http.StatusSwitchingProtocols:
		return nil, "", refusal(response)
	case !isStream || !strings.EqualFold(response.Header.Get("Upgrade"), Protocol) || replica == "" ||
		slices.Contains(held, replica):
		_ = response.Body.Close()
		return nil, "", errors.New("what answers is no federation of Trellis")
	}
	return conn, replica, nil
}

// want as many tunnels as there are replicas.
func (k *Keeper) want(replicas string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, err := strconv.Atoi(replicas); err == nil {
		k.wanted = min(max(n, 1), maxReplicas)
	}
}

// refusal is what a fleet says why it opens no tunnel.
func refusal(response *http.Response) error {
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(bufio.NewReader(io.LimitReader(response.Body, maxRefusal)))
	status := &metav1.Status{}
	if json.Unmarshal(text, status) == nil && status.Message != "" {
		return fmt.Errorf("the fleet answers with %s: %s", response.Status, status.Message)
	}
	return fmt.Errorf("the fleet answers with %s", response.Status)
}

// serve a tunnel that is held until it ends, and tell how long that was.
func (k *Keeper) serve(ctx context.Context, conn io.ReadWriteCloser, replica string) time.Duration {
	began := time.Now()
	defer func() {
		k.mu.Lock()
		delete(k.held, replica)
		k.mu.Unlock()
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	k.Say("A tunnel to the fleet serves the member's API there")
	server := &http2.Server{
		// A little more than are asked for: streams end here later than there.
		MaxConcurrentStreams: maxStreams + maxStreams/4, MaxUploadBufferPerStream: streamBuffer,
		MaxUploadBufferPerConnection: streamBuffer * maxStreams, ReadIdleTimeout: pingAfter, PingTimeout: pingTimeout,
	}
	server.ServeConn(stream{conn}, &http2.ServeConnOpts{
		Context: ctx, Handler: k.Member,
		BaseConfig: &http.Server{MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0)},
	})
	return time.Since(began)
}
