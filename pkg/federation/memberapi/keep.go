package memberapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// publishRetry is after the registration could not be written, which keeps nobody from anything.
	publishRetry = 5 * time.Second
	// firstPause is after the kube-apiserver did not reach the server, or takes nothing back; it doubles up to
	// longestPause. During each try, which takes up to reachTimeout, the fleet's APIs are not all known: the deletion
	// of namespaces waits. (The subresource services/proxy, which would harm nobody, leads to pods of the fleet only.)
	firstPause   = 15 * time.Second
	longestPause = 16 * time.Minute
	// lookAfter is how often it is looked whether the kube-apiserver still reaches the server, which is longer than it
	// takes to find out.
	lookAfter = 10 * time.Second
	// lostAfter is how many looks in a row find that it does not, each but the first after it has been asked to try. It
	// is no time: a process or machine that stood still for long, and runs again, has lost nothing.
	lostAfter = 4
)

// errWithdrawn tells that somebody has removed the registration.
var errWithdrawn = errors.New("somebody has removed its registration")

// keepPublished has the kube-apiserver ask the server for as long as it reaches it, until ctx ends. When it does not,
// Clusters are given back to it for a while. Whoever removes the registration wants it gone: a cluster that is cleaned
// up, for example.
func (s *Server) keepPublished(ctx context.Context, p *publisher) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := p.publish(ctx)
		if err == nil {
			s.log.Info("Serving the API of members", "address", p.address.String())
			err = p.watch(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errWithdrawn) {
			s.log.Info("The API of members is not served until the next start", "reason", err.Error())
			return
		}
		wait := publishRetry
		var unreached *unreachedError
		var noWayBack *noWayBackError
		if errors.As(err, &unreached) || errors.As(err, &noWayBack) {
			if time.Since(began) > longestPause {
				pause = firstPause
			}
			wait, pause = pause, min(2*pause, longestPause)
		}
		s.log.Error(err, "The API of members is not served", "nextTry", wait.String())
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watch returns when the kube-apiserver has not reached the server for a while, with everything as it was before the
// registration, or when that was removed.
func (p *publisher) watch(ctx context.Context) error {
	for failed := 0; ; {
		sleep(ctx, lookAfter)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		reached, message, err := p.look(ctx, clusters)
		switch {
		case errors.Is(err, errWithdrawn):
			return err
		case err != nil:
			continue // It says nothing of the way back.
		case reached:
			failed = 0
			continue
		}
		if failed++; failed == lostAfter {
			return errors.Join(&unreachedError{p.address, message}, p.unpublish(ctx))
		}
		p.askToTry(ctx, clusters)
	}
}

// unreachedError says that the kube-apiserver found no way.
type unreachedError struct {
	address netip.AddrPort
	// last is what the kube-apiserver says.
	last string
}

func (e *unreachedError) Error() string {
	return fmt.Sprintf("the fleet's kube-apiserver does not reach %s, so it serves Clusters by itself, without "+
		"clusters/proxy: %s", e.address, e.last)
}

// look tells whether the kube-apiserver reaches the server where it asks it for a version, or what it says instead.
func (p *publisher) look(ctx context.Context, gv schema.GroupVersion) (reached bool, message string, err error) {
	registration := &apiregistrationv1.APIService{}
	err = p.client.Get(ctx, client.ObjectKey{Name: nameOf(gv)}, registration)
	if apierrors.IsNotFound(err) || err == nil && registration.Labels[managedByLabel] != managedBy {
		return false, "", errWithdrawn
	}
	for _, condition := range registration.Status.Conditions {
		if condition.Type == apiregistrationv1.Available {
			return condition.Status == apiregistrationv1.ConditionTrue && condition.Reason == reasonReached,
				condition.Message, err
		}
	}
	return false, "kube-apiserver has not looked at it", err
}
