package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const (
	// impersonatorLifetime is what tokens of the impersonator are asked to have.
	impersonatorLifetime = time.Hour
	// namesAge is how soon the owner's word about names is followed: what is older is not used.
	namesAge = time.Minute
	// failureAge is how long the member is not asked again after it could not be.
	failureAge = time.Second
	// refusalAge is how old a token must be for a refusal to have another be asked for. An API that the member
	// aggregates can refuse what the member accepts, as often as a user asks it.
	refusalAge = 10 * time.Second
)

// impersonator of the fleet's users in the member. Its token leaves the agent for the member's API only.
type impersonator struct {
	member    client.Client
	namespace string
	// asking has many requests of users be one to the member.
	asking singleflight.Group

	mu       sync.Mutex
	known    access
	failure  error
	failedAt time.Time
}

// access is by which token users are asked for, and what they are called.
type access struct {
	token                   string
	gotAt, renewAt, expires time.Time
	called                  acting.Names
	readAt                  time.Time
}

func (a access) tokenDue(now time.Time) bool { return !now.Before(a.renewAt) }
func (a access) namesDue(now time.Time) bool { return now.Sub(a.readAt) > namesAge/2 }

// usable tells whether requests may go on while something better is asked for.
func (a access) usable(now time.Time) bool {
	return now.Before(a.expires) && now.Sub(a.readAt) <= namesAge
}

// access gives a token, and what the fleet's users are called in the member. Nobody waits for the member while what is
// known may be used, and who waits does so as long as ctx says.
func (i *impersonator) access(ctx context.Context) (string, acting.Names, error) {
	now := time.Now()
	i.mu.Lock()
	known, failure := i.known, i.failure
	if now.Sub(i.failedAt) > failureAge {
		failure = nil
	}
	i.mu.Unlock()
	usable := known.usable(now)
	if failure != nil && !usable {
		return "", acting.Names{}, failure
	}
	if failure == nil && (known.tokenDue(now) || known.namesDue(now)) {
		asked := i.asking.DoChan("", func() (any, error) { return i.refresh(context.WithoutCancel(ctx)) })
		if !usable {
			return await(ctx, asked)
		}
	}
	return known.token, known.called, nil
}

func await(ctx context.Context, asked <-chan singleflight.Result) (string, acting.Names, error) {
	select {
	case <-ctx.Done():
		return "", acting.Names{}, ctx.Err()
	case result := <-asked:
		got := result.Val.(access)
		return got.token, got.called, result.Err
	}
}

// refresh what is due, and remember it, or why that could not be.
func (i *impersonator) refresh(ctx context.Context) (access, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	i.mu.Lock()
	got := i.known
	i.mu.Unlock()
	err := i.ask(ctx, &got)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure = err; err != nil {
		i.failedAt = time.Now()
		return access{}, err
	}
	i.known = got
	return got, nil
}

// ask the member for what is due.
func (i *impersonator) ask(ctx context.Context, got *access) error {
	now := time.Now()
	if got.namesDue(now) {
		role := &rbacv1.ClusterRole{}
		name := registration.ImpersonatorName(i.namespace)
		err := i.member.Get(ctx, client.ObjectKey{Name: name}, role)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the member's owner does not serve its API in the fleet: there is no ClusterRole %s, "+
				"which the manifest of `trellisctl register` has, where that is bounded with --serve-api", name)
		}
		if err != nil {
			return fmt.Errorf("reading ClusterRole %s in the member: %w", name, err)
		}
		got.called = acting.NamesBy(registration.AgentNamePrefix(i.namespace),
			role.Annotations[registration.NamesAnnotation])
		got.readAt = now
	}
	if got.tokenDue(now) {
		token, err := registration.RequestToken(ctx, i.member,
			types.NamespacedName{Namespace: i.namespace, Name: registration.ImpersonatorAccount}, impersonatorLifetime)
		if err != nil {
			return err
		}
		got.token, got.gotAt, got.expires = token.Token, now, token.ExpirationTimestamp.Time
		got.renewAt = now.Add(got.expires.Sub(now) / 2)
	}
	return nil
}

// refused has another token be asked for, unless that was done just now. Until there is one, the old one is used: it
// may not be the member that has refused it.
func (i *impersonator) refused(token string) {
	now := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known.token == token && now.Sub(i.known.gotAt) > refusalAge {
		i.known.renewAt = now
	}
}
