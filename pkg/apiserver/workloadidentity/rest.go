package workloadidentity

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// Flags of garden-apiserver that messages name.
const (
	SigningKeyFlag = "workload-identity-signing-key-file"
	IssuerFlag     = "workload-identity-token-issuer"
)

// REST serves workloadidentities/token.
type REST struct {
	// Identities returns WorkloadIdentities of the request's namespace.
	Identities rest.Getter
	// Reader reads context objects.
	Reader Reader
	// Issuer signs. Nil: the server has no key, and says so.
	Issuer *Issuer
	Clock  clock.PassiveClock
}

var (
	_ rest.NamedCreater             = &REST{}
	_ rest.GroupVersionKindProvider = &REST{}
)

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &securityv1alpha1.TokenRequest{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest")
}

// Create answers a request with a token.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	wanted, ok := obj.(*securityv1alpha1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a TokenRequest", obj))
	}
	if r.Issuer == nil {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no tokens of workload identities are issued: "+
			"garden-apiserver runs without --%s and --%s", SigningKeyFlag, IssuerFlag))
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	errs := append(validateMeta(ctx, wanted, name), securityv1alpha1.ValidateTokenRequest(wanted)...)
	if len(errs) > 0 {
		return nil, r.invalid(name, errs...)
	}
	identity, err := r.identity(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.answer(ctx, wanted, identity)
}

// validateMeta refuses a request that names another identity than its path.
func validateMeta(ctx context.Context, wanted *securityv1alpha1.TokenRequest, name string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	if wanted.Name != "" && wanted.Name != name {
		errs = append(errs, field.Invalid(path.Child("name"), wanted.Name,
			"must be the name of the WorkloadIdentity: "+name))
	}
	if namespace := apirequest.NamespaceValue(ctx); wanted.Namespace != "" && wanted.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), wanted.Namespace,
			"must be the namespace of the WorkloadIdentity: "+namespace))
	}
	return errs
}

func (r *REST) identity(ctx context.Context, name string) (*securityv1alpha1.WorkloadIdentity, error) {
	obj, err := r.Identities.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	identity, ok := obj.(*securityv1alpha1.WorkloadIdentity)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("stored workload identity %s is a %T", name, obj))
	}
	return identity, nil
}

func (r *REST) answer(ctx context.Context, wanted *securityv1alpha1.TokenRequest,
	identity *securityv1alpha1.WorkloadIdentity) (runtime.Object, error) {
	claims := Claims{WorkloadIdentity: *referenceTo(identity)}
	if object := wanted.Spec.ContextObject; object != nil && fromGardenlet(ctx) {
		mistake, err := resolver{r.Reader}.resolve(ctx, object, &claims)
		if mistake != nil {
			return nil, r.invalid(identity.Name, mistake)
		}
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("context object %s %s: %w", object.Kind, object.Name,
				err))
		}
	}
	now := r.Clock.Now()
	token, expiry, err := r.Issuer.Issue(identity.Status.Sub, identity.Spec.Audiences, wanted.Spec.ExpirationSeconds,
		claims, now)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	answer := &securityv1alpha1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: identity.Namespace, Name: identity.Name, CreationTimestamp: metav1.NewTime(now),
		},
		Spec:   wanted.Spec,
		Status: securityv1alpha1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expiry)},
	}
	return answer, nil
}

// fromGardenlet tells whether a gardenlet asks. Only these say truly for whose sake they ask.
func fromGardenlet(ctx context.Context) bool {
	caller, ok := apirequest.UserFrom(ctx)
	return ok && slices.Contains(caller.GetGroups(), gardencorev1beta1.SeedsGroup)
}

func (r *REST) invalid(name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(r.GroupVersionKind(schema.GroupVersion{}).GroupKind(), name, errs)
}
