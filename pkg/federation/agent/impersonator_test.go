package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const ofAgent = "trellis-fleet-1a2b3c4d-agent"

// asked is a member that counts what it is asked for by the impersonator.
type asked struct {
	reads, tokens atomic.Int32
	// answer is what it says before it answers.
	mu     sync.Mutex
	answer func(context.Context) error
}

func (a *asked) says(answer func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *asked) say(ctx context.Context) error {
	a.mu.Lock()
	answer := a.answer
	a.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

// silent members answer nothing as long as somebody waits.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// impersonatorOf a member where the fleet's users keep their names. Its tokens are called by the order they come in.
func impersonatorOf(a *asked, objects ...client.Object) *impersonator {
	member := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			a.reads.Add(1)
			if err := a.say(ctx); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, _, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			n := a.tokens.Add(1)
			if err := a.say(ctx); err != nil {
				return err
			}
			request.(*authenticationv1.TokenRequest).Status = authenticationv1.TokenRequestStatus{
				Token: fmt.Sprint("token", n), ExpirationTimestamp: metav1.NewTime(time.Now().Add(impersonatorLifetime)),
			}
			return nil
		},
	}).Build()
	return &impersonator{member: member, namespace: ofAgent}
}

func impersonatorRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name:        registration.ImpersonatorName(ofAgent),
		Annotations: map[string]string{registration.NamesAnnotation: registration.NamesSame},
	}}
}

// Requests that come together ask the member once, and who gives up waits for nobody.
func TestImpersonatorAsksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, goOn := &asked{}, make(chan struct{})
		a.says(func(context.Context) error { <-goOn; return nil })
		i := impersonatorOf(a, impersonatorRole())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if token, called, err := i.access(t.Context()); err != nil || token != "token1" || !called.Same {
					t.Errorf("got %s, %v, %v", token, called, err)
				}
			})
		}
		synctest.Wait()
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := i.access(hurried); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(goOn)
		all.Wait()
		if a.reads.Load() != 1 || a.tokens.Load() != 1 {
			t.Errorf("%d reads, %d tokens", a.reads.Load(), a.tokens.Load())
		}
	})
}

// While the member does not answer, what is known is used as long as it is valid, and nobody waits.
func TestImpersonatorUsesWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{}
		i := impersonatorOf(a, impersonatorRole())
		if _, _, err := i.access(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.says(silent)
		time.Sleep(namesAge - time.Second)
		began := time.Now()
		for range 10 {
			if token, called, err := i.access(t.Context()); err != nil || token != "token1" || !called.Same {
				t.Errorf("got %s, %v, %v", token, called, err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("who asks waited for %s", took)
		}
		if synctest.Wait(); a.reads.Load() != 2 {
			t.Errorf("%d reads", a.reads.Load())
		}
		time.Sleep(2 * time.Minute)
		if token, _, err := i.access(t.Context()); err == nil {
			t.Errorf("names of the owner's of before are used: got %s", token)
		}
		a.says(nil)
		time.Sleep(impersonatorLifetime)
		if token, _, err := i.access(t.Context()); err != nil || token != "token2" {
			t.Errorf("after the token has expired: got %s, %v", token, err)
		}
	})
}

// A member that fails is asked again a second later, however many users ask meanwhile.
func TestImpersonatorRemembersFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		answer  func(context.Context) error
		want    string
	}{
		"the owner does not serve the API": {nil, nil, "--serve-api"},
		"the member fails": {
			[]client.Object{impersonatorRole()}, func(context.Context) error { return errors.New("out of order") },
			"out of order",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &asked{}
			a.says(tc.answer)
			i := impersonatorOf(a, tc.objects...)
			for round := range int32(3) {
				for range 10 {
					if _, _, err := i.access(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Errorf("%s: got %v", name, err)
					}
				}
				if got := a.reads.Load(); got != round+1 {
					t.Errorf("%s: %d reads in round %d", name, got, round)
				}
				time.Sleep(failureAge + time.Millisecond)
			}
		})
	}
}

// A user asks an API that the member aggregates, which refuses every token: others go on with what is known, and the
// member is asked for few tokens.
func TestAttackRefusalsOfAnAggregatedAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{}
		i := impersonatorOf(a, impersonatorRole())
		const seconds = 60
		for range seconds {
			for range 20 {
				token, _, err := i.access(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				i.refused(token)
			}
			time.Sleep(time.Second)
		}
		if got, most := a.tokens.Load(), int32(seconds/refusalAge.Seconds())+1; got < 2 || got > most {
			t.Errorf("%d tokens, want 2 to %d", got, most)
		}
		before := a.tokens.Load()
		a.says(silent)
		time.Sleep(refusalAge + time.Second)
		for range 20 {
			token, _, err := i.access(t.Context())
			if err != nil {
				t.Errorf("others are refused with it: %v", err)
			}
			i.refused(token)
		}
		if synctest.Wait(); a.tokens.Load() > before+1 {
			t.Errorf("%d tokens at once", a.tokens.Load()-before)
		}
		time.Sleep(time.Minute)
	})
}
