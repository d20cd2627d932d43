// Package certificate approves the client certificates with which gardenlets speak to the garden.
package certificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const (
	// bootstrapGroup is the group of users that authenticate with a bootstrap token.
	bootstrapGroup = "system:bootstrappers"
	// bootstrapUserPrefix, followed by a token's id, is the name of such a user.
	bootstrapUserPrefix = "system:bootstrap:"
	// tokenExpirationKey of such a Secret holds the token's end.
	tokenExpirationKey = "expiration"
	// tokenValidity is how long a bootstrap token may still be valid when it is used: the day for which tokens are
	// made, and some time in which clocks differ.
	tokenValidity = 25 * time.Hour
)

// allowedUsages are the only usages of a seed's client certificate.
var allowedUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
}

// Reconciler approves certificate signing requests of gardenlets. Requests that claim to be one but are not as they
// should be are denied with the reason; all others are left to somebody else.
type Reconciler struct {
	Client client.Client
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificate-approver").
		For(&certificatesv1.CertificateSigningRequest{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isPending))).
		Complete(r)
}

func isPending(obj client.Object) bool {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	return ok && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName &&
		len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0
}

// Reconcile decides about one request.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isPending(csr) {
		return reconcile.Result{}, nil
	}
	seed, err := SeedOf(csr)
	if seed == "" && err == nil {
		return reconcile.Result{}, nil
	}
	if id, isToken := strings.CutPrefix(csr.Spec.Username, bootstrapUserPrefix); isToken && err == nil {
		token, tokenErr := r.tokenSecret(ctx, id)
		if tokenErr != nil {
			return reconcile.Result{}, tokenErr
		}
		err = checkToken(token, seed, time.Now())
	}
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "AutoApproved", Message: "Client certificate of the gardenlet of seed " + seed,
		LastUpdateTime: metav1.Now(),
	}
	if err != nil {
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, "NotAcceptable",
			err.Error()
	}
	csr.Status.Conditions = append(csr.Status.Conditions, condition)
	if err := r.Client.SubResource("approval").Update(ctx, csr); err != nil {
		return reconcile.Result{}, fmt.Errorf("certificate signing request %s: %w", csr.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Decided about the certificate of a gardenlet", "decision", condition.Type, "message",
		condition.Message)
	return reconcile.Result{}, nil
}

// SeedOf returns the seed for whose gardenlet a certificate is requested: an empty name when the request is not about a
// seed at all, an error when it is but must not be granted.
func SeedOf(csr *certificatesv1.CertificateSigningRequest) (string, error) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return "", nil
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", nil //nolint:nilerr // what cannot be read is not about a seed
	}
	user := parsed.Subject.CommonName
	seed, isSeed := strings.CutPrefix(user, gardencorev1beta1.SeedUserNamePrefix)
	if !isSeed && !slices.Contains(parsed.Subject.Organization, gardencorev1beta1.SeedsGroup) {
		return "", nil
	}
	return seed, errors.Join(checkSubject(parsed, seed, isSeed), checkUsages(csr.Spec.Usages),
		checkRequester(csr, seed))
}

func checkSubject(request *x509.CertificateRequest, seed string, isSeed bool) error {
	switch {
	case !isSeed || seed == "":
		return fmt.Errorf("common name %q is not %s<seed>", request.Subject.CommonName,
			gardencorev1beta1.SeedUserNamePrefix)
	case !slices.Equal(request.Subject.Organization, []string{gardencorev1beta1.SeedsGroup}):
		return fmt.Errorf("organizations are %v, only %s is allowed", request.Subject.Organization,
			gardencorev1beta1.SeedsGroup)
	case len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0:
		return errors.New("subject alternative names are not allowed")
	}
	return request.CheckSignature()
}

func checkUsages(usages []certificatesv1.KeyUsage) error {
	for _, usage := range usages {
		if !slices.Contains(allowedUsages, usage) {
			return fmt.Errorf("usage %q is not allowed", usage)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("usage %q is missing", certificatesv1.UsageClientAuth)
	}
	return nil
}

// checkRequester lets a bootstrap token, or the service account that was made for the seed, ask for the first
// certificate, and a gardenlet for the next one of its own.
func checkRequester(csr *certificatesv1.CertificateSigningRequest, seed string) error {
	bootstrap := strings.HasPrefix(csr.Spec.Username, bootstrapUserPrefix) &&
		slices.Contains(csr.Spec.Groups, bootstrapGroup)
	account := serviceaccount.MakeUsername(gardencorev1beta1.GardenNamespace,
		seedmanagementv1alpha1.BootstrapServiceAccountName(seed))
	if user := gardencorev1beta1.SeedUserNamePrefix + seed; !bootstrap && csr.Spec.Username != user &&
		csr.Spec.Username != account {
		return fmt.Errorf("user %q may not request it: neither a bootstrap token nor %s nor %s", csr.Spec.Username,
			account, user)
	}
	return nil
}

// tokenSecret reads the Secret of a bootstrap token; nil when it is gone.
func (r *Reconciler) tokenSecret(ctx context.Context, id string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{
		Namespace: seedmanagementv1alpha1.BootstrapTokenNamespace,
		Name:      seedmanagementv1alpha1.BootstrapTokenSecretPrefix + id,
	}
	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	return secret, nil
}

// checkToken holds a bootstrap token to the one seed that its label names, and to an end that is near. One that is gone
// may have named another.
func checkToken(token *corev1.Secret, seed string, now time.Time) error {
	if token == nil {
		return errors.New("the bootstrap token does not exist any more")
	}
	end, err := time.Parse(time.RFC3339, string(token.Data[tokenExpirationKey]))
	if err != nil || end.After(now.Add(tokenValidity)) {
		return fmt.Errorf("the bootstrap token does not end within a day: make one with key %s in Secret %s/%s, a "+
			"time of the next 24 hours",
			tokenExpirationKey, token.Namespace, token.Name)
	}
	switch bound := token.Labels[seedmanagementv1alpha1.BootstrapSeedLabel]; bound {
	case "":
		return fmt.Errorf("the bootstrap token names no seed: label Secret %s/%s with %s=%s if it is for this one",
			token.Namespace, token.Name, seedmanagementv1alpha1.BootstrapSeedLabel, seed)
	case seed:
		return nil
	default:
		return fmt.Errorf("the bootstrap token is for the gardenlet of seed %q only", bound)
	}
}
