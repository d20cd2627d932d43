package kubeconfig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	defaultExpiration = time.Hour
	minExpiration     = 10 * time.Minute
)

// Sources reads what a kubeconfig is made of.
type Sources struct {
	// Shoots returns shoots of the request's namespace.
	Shoots rest.Getter
	// InternalSecrets returns internal secrets of the request's namespace.
	InternalSecrets rest.Getter
	// ConfigMap and Secret read from the garden's kube-apiserver.
	ConfigMap func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret    func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Level is what a kubeconfig lets its holder do.
type Level struct {
	// kind of the request.
	kind string
	// userPrefix comes before the caller's name in the certificate.
	userPrefix string
	// systemGroup is the group of callers who may do systemCheck; everybody else gets projectGroup.
	systemGroup, projectGroup string
	systemCheck               authorizer.AttributesRecord
	newRequest                func() runtime.Object
}

// Admin kubeconfigs may do everything in the shoot that its project's admins may.
var Admin = Level{
	kind:         "AdminKubeconfigRequest",
	userPrefix:   gardencorev1beta1.AdminUserNamePrefix,
	systemGroup:  gardencorev1beta1.ShootGroupSystemAdmins,
	projectGroup: gardencorev1beta1.ShootGroupProjectAdmins,
	// Who may list every Secret of the garden operates it.
	systemCheck: authorizer.AttributesRecord{
		Verb: "list", APIVersion: "v1", Resource: "secrets", ResourceRequest: true,
	},
	newRequest: func() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} },
}

// Viewer kubeconfigs may read in the shoot.
var Viewer = Level{
	kind:         "ViewerKubeconfigRequest",
	userPrefix:   gardencorev1beta1.ViewerUserNamePrefix,
	systemGroup:  gardencorev1beta1.ShootGroupSystemViewers,
	projectGroup: gardencorev1beta1.ShootGroupProjectViewers,
	systemCheck: authorizer.AttributesRecord{
		Verb: "list", APIGroup: gardencorev1beta1.SchemeGroupVersion.Group,
		APIVersion: gardencorev1beta1.SchemeGroupVersion.Version, Resource: "projects", ResourceRequest: true,
	},
	newRequest: func() runtime.Object { return &authenticationv1alpha1.ViewerKubeconfigRequest{} },
}

// REST serves one of the kubeconfig subresources of shoots.
type REST struct {
	Level         Level
	Sources       Sources
	Authorizer    authorizer.Authorizer
	Clock         clock.PassiveClock
	MaxExpiration time.Duration
}

var (
	_ rest.NamedCreater             = &REST{}
	_ rest.GroupVersionKindProvider = &REST{}
)

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.Level.newRequest() }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: requests are of another group than shoots.
func (r *REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1alpha1.SchemeGroupVersion.WithKind(r.Level.kind)
}

// Create answers a request with a kubeconfig for the shoot.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	now := r.Clock.Now()
	expiration, err := r.expiration(obj, name)
	if err != nil {
		return nil, err
	}
	end := now.Add(expiration)
	kubeconfig, err := r.issue(ctx, name, now, end)
	if err != nil {
		return nil, err
	}
	setStatus(obj, kubeconfig, metav1.NewTime(end))
	return obj, nil
}

func (r *REST) expiration(obj runtime.Object, name string) (time.Duration, error) {
	expiration := defaultExpiration
	if seconds := requestedSeconds(obj); seconds != nil {
		expiration = time.Duration(*seconds) * time.Second
	}
	if expiration < minExpiration {
		path := field.NewPath("spec", "expirationSeconds")
		return 0, apierrors.NewInvalid(r.GroupVersionKind(schema.GroupVersion{}).GroupKind(), name, field.ErrorList{
			field.Invalid(path, int64(expiration/time.Second),
				fmt.Sprintf("must be at least %d", int64(minExpiration/time.Second))),
		})
	}
	return min(expiration, r.MaxExpiration), nil
}

func (r *REST) issue(ctx context.Context, name string, now, end time.Time) ([]byte, error) {
	shoot, err := r.shoot(ctx, name)
	if err != nil {
		return nil, err
	}
	addresses := APIServerAddresses(shoot)
	if len(addresses) == 0 {
		path := field.NewPath("status", "advertisedAddresses")
		return nil, apierrors.NewInvalid(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(), name,
			field.ErrorList{
				field.Invalid(path, "", "the shoot has no kube-apiserver address yet: wait until its control plane "+
					"has "+
					"been created"),
			})
	}
	identity, err := r.identity(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	signer, err := r.clientCA(ctx, shoot)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	clusterCA, err := r.clusterCA(ctx, shoot)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	certificate, key, err := signer.ClientCertificate(identity, now, end)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return render(shoot, addresses, clusterCA, certificate, key)
}

func (r *REST) shoot(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	obj, err := r.Sources.Shoots.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	shoot, ok := obj.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("stored shoot %s is a %T", name, obj))
	}
	return shoot, nil
}

// identity decides which group of the shoot the caller belongs to.
func (r *REST) identity(ctx context.Context) (Identity, error) {
	caller, ok := apirequest.UserFrom(ctx)
	if !ok {
		return Identity{}, fmt.Errorf("request has no user")
	}
	group := r.Level.projectGroup
	if r.may(ctx, caller) {
		group = r.Level.systemGroup
	}
	return Identity{User: r.Level.userPrefix + caller.GetName(), Organization: group}, nil
}

func (r *REST) may(ctx context.Context, caller user.Info) bool {
	check := r.Level.systemCheck
	check.User = caller
	decision, _, err := r.Authorizer.Authorize(ctx, check)
	return err == nil && decision == authorizer.DecisionAllow
}

// clientCA reads the CA that the shoot's kube-apiserver trusts for client certificates.
func (r *REST) clientCA(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*Signer, error) {
	name := shoot.Name + "." + gardencorev1beta1.ShootProjectSecretSuffixCAClient
	data, err := r.clientCAData(ctx, shoot.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("client CA of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	signer, err := NewSigner(data[gardencorev1beta1.DataKeyCACert], data[gardencorev1beta1.DataKeyCAKey])
	if err != nil {
		return nil, fmt.Errorf("InternalSecret %s/%s: %w", shoot.Namespace, name, err)
	}
	return signer, nil
}

func (r *REST) clientCAData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	obj, err := r.Sources.InternalSecrets.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	secret, ok := obj.(*gardencorev1beta1.InternalSecret)
	if !ok {
		return nil, fmt.Errorf("stored internal secret %s/%s is a %T", namespace, name, obj)
	}
	return secret.Data, nil
}

// clusterCA reads the bundle with which the shoot's kube-apiserver is verified.
func (r *REST) clusterCA(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]byte, error) {
	name := shoot.Name + "." + gardencorev1beta1.ShootProjectConfigMapSuffixCACluster
	configMap, err := r.Sources.ConfigMap(ctx, shoot.Namespace, name)
	if err == nil && configMap.Data[gardencorev1beta1.DataKeyCACert] != "" {
		return []byte(configMap.Data[gardencorev1beta1.DataKeyCACert]), nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster CA of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	secret, err := r.Sources.Secret(ctx, shoot.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("cluster CA of shoot %s/%s: neither ConfigMap nor Secret %s has %s: %w", shoot.Namespace,
			shoot.Name, name, gardencorev1beta1.DataKeyCACert, err)
	}
	return secret.Data[gardencorev1beta1.DataKeyCACert], nil
}

func requestedSeconds(obj runtime.Object) *int64 {
	switch request := obj.(type) {
	case *authenticationv1alpha1.AdminKubeconfigRequest:
		return request.Spec.ExpirationSeconds
	case *authenticationv1alpha1.ViewerKubeconfigRequest:
		return request.Spec.ExpirationSeconds
	}
	return nil
}

func setStatus(obj runtime.Object, kubeconfig []byte, end metav1.Time) {
	switch request := obj.(type) {
	case *authenticationv1alpha1.AdminKubeconfigRequest:
		request.Status.Kubeconfig, request.Status.ExpirationTimestamp = kubeconfig, end
	case *authenticationv1alpha1.ViewerKubeconfigRequest:
		request.Status.Kubeconfig, request.Status.ExpirationTimestamp = kubeconfig, end
	}
}
