package workloadidentity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// Renewer replaces the tokens of the seed when they are due. When that is stands in the Secrets, so a gardenlet that
// starts goes on where another ended. It is no controller: gardenlet's manager watches the garden, and these Secrets
// are the seed's, where one list a period costs less than to keep them all in memory.
type Renewer struct {
	Tokens *Tokens
	// Period is the time between two looks at all Secrets with tokens.
	Period time.Duration
	Log    logr.Logger

	mu sync.Mutex
	// problems are why the tokens of Secrets could not be renewed.
	problems map[client.ObjectKey]error
}

// Start implements manager.Runnable.
func (r *Renewer) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if err := r.Renew(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error(err, "Tokens of workload identities are not renewed; trying again", "after", r.Period)
		}
	}, r.Period)
	return nil
}

// Renew replaces all tokens that are due. What goes wrong with one of them is told by Problem; the error is about all.
func (r *Renewer) Renew(ctx context.Context) error {
	list := &corev1.SecretList{}
	err := r.Tokens.Seed.List(ctx, list, client.MatchingLabels{
		securityv1alpha1.LabelPurpose: securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
	})
	if err != nil {
		return fmt.Errorf("listing Secrets with tokens of workload identities: %w", err)
	}
	problems := map[client.ObjectKey]error{}
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.DeletionTimestamp != nil || !due(secret, r.Tokens.Now()) {
			continue
		}
		// In a conflict somebody else has just written the Secret: the next look finds out about its token.
		if err := r.renew(ctx, secret); err != nil && !apierrors.IsConflict(err) {
			r.Log.Error(err, "The token of a workload identity is not renewed", "secret",
				client.ObjectKeyFromObject(secret))
			problems[client.ObjectKeyFromObject(secret)] = err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = problems
	return nil
}

func (r *Renewer) renew(ctx context.Context, secret *corev1.Secret) error {
	use, err := useOf(secret)
	if err != nil {
		return err
	}
	if err := r.Tokens.checkRightful(ctx, use); err != nil {
		return err
	}
	return r.Tokens.write(ctx, use, secret)
}

// Problem says which tokens in a namespace could not be renewed at the last look, and why; empty if there are none.
func (r *Renewer) Problem(namespace string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for key, err := range r.problems {
		if key.Namespace == namespace {
			found = append(found, fmt.Sprintf("Secret %s: %v", key.Name, err))
		}
	}
	slices.Sort(found)
	return strings.Join(found, "; ")
}
