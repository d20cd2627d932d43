package tokenrequestor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const (
	// checkPeriod is how often a service account is looked at between renewals: it may have been deleted.
	checkPeriod = 10 * time.Minute
	// retryNamespace is how soon a service account is tried again whose namespace does not exist yet.
	retryNamespace = 250 * time.Millisecond
)

// Reconciler keeps tokens valid.
type Reconciler struct {
	// Client writes Secrets.
	Client client.Client
	// Reader reads Secrets from the API server.
	Reader client.Reader
	// Targets leads to the shoots.
	Targets *target.Registry
	// Now is time.Now if nil.
	Now func() time.Time
}

// Reconcile renews the token of one Secret when it is due.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Reader.Get(ctx, req.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if secret.Labels[resourcesv1alpha1.ResourceManagerPurpose] != resourcesv1alpha1.LabelPurposeTokenRequest ||
		secret.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	want, err := accountOf(secret)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("secret %s: %w", req, err))
	}
	t, err := r.Targets.Shoot(ctx, secret.Namespace)
	if errors.Is(err, target.ErrNoTarget) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := t.Ready(ctx); err != nil {
		return ctrl.Result{RequeueAfter: t.RetryAfter()}, nil
	}
	return r.renew(ctx, t, secret, want)
}

// renew makes sure that the service account exists and requests a token if it is due.
func (r *Reconciler) renew(ctx context.Context, t *target.Target, secret *corev1.Secret,
	want account) (ctrl.Result, error) {
	serviceAccount, err := ensureServiceAccount(ctx, t, want, secret.Annotations[ServiceAccountLabels])
	if apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: retryNamespace}, nil
	}
	if err != nil {
		t.Suspect()
		return ctrl.Result{}, fmt.Errorf("service account %s/%s for Secret %s/%s: %w", want.namespace, want.name,
			secret.Namespace, secret.Name, err)
	}

	left := due(secret, r.now())
	if left > 0 && secret.Annotations[ServiceAccountUID] == string(serviceAccount.UID) {
		return ctrl.Result{RequeueAfter: min(left, checkPeriod)}, nil
	}

	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(want.expiration.Seconds()))},
	}
	if err := t.Client.SubResource("token").Create(ctx, serviceAccount, request); err != nil {
		return ctrl.Result{}, fmt.Errorf("requesting a token of service account %s/%s: %w", want.namespace, want.name,
			err)
	}
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	renew := renewTime(r.now(), request.Status.ExpirationTimestamp.Time)
	if err := fill(secret, request.Status.Token, renew, string(serviceAccount.UID)); err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name,
			err))
	}
	if err := r.Client.Patch(ctx, secret, patch); err != nil {
		return ctrl.Result{}, fmt.Errorf("storing the token in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return ctrl.Result{RequeueAfter: min(renew.Sub(r.now()), checkPeriod)}, nil
}

// ensureServiceAccount returns the service account in the shoot, created if need be; a NotFound error means that its
// namespace does not exist.
func ensureServiceAccount(ctx context.Context, t *target.Target, want account,
	labels string) (*corev1.ServiceAccount, error) {
	serviceAccount := &corev1.ServiceAccount{}
	err := t.Client.Get(ctx, client.ObjectKey{Namespace: want.namespace, Name: want.name}, serviceAccount)
	if !apierrors.IsNotFound(err) {
		return serviceAccount, err
	}
	serviceAccount = &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Namespace: want.namespace, Name: want.name},
		AutomountServiceAccountToken: new(false),
	}
	if labels != "" {
		if err := json.Unmarshal([]byte(labels), &serviceAccount.Labels); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", ServiceAccountLabels, err)
		}
	}
	return serviceAccount, t.Client.Create(ctx, serviceAccount)
}

func (r *Reconciler) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}
