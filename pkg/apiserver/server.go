package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	gardenadmission "github.com/trellis-garden/trellis/pkg/apiserver/admission"
	"github.com/trellis-garden/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/apiserver/registry"
	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
	"github.com/trellis-garden/trellis/pkg/apiserver/workloadidentity"
)

// Server serves the garden's API.
type Server struct {
	GenericAPIServer *genericapiserver.GenericAPIServer

	reservations *reservation.Reservations
}

// Run serves until the context ends and the last requests are answered.
func (s *Server) Run(ctx context.Context) error {
	return errors.Join(s.GenericAPIServer.PrepareRun().RunWithContext(ctx), s.reservations.Close())
}

type serverSettings struct {
	seeds                             *seedAuthorization
	reservations                      *reservation.Reservations
	clusterIdentity                   string
	adminExpiration, viewerExpiration time.Duration
	// tokens issues tokens of workload identities; nil when the server has no key for it.
	tokens *workloadidentity.Issuer
	// publication tells verifiers about the issuer; nil without one.
	publication *workloadidentity.Publication
}

// newServer builds the storage of all kinds, completes the dependencies of admission with it, and installs the API.
func newServer(config *genericapiserver.RecommendedConfig, client kubernetes.Interface,
	dependencies *gardenadmission.Dependencies, settings serverSettings) (*Server, error) {
	kinds := registry.Kinds()
	for _, kind := range kinds {
		if err := kind.RegisterFieldLabels(Scheme); err != nil {
			return nil, err
		}
	}
	generic, err := config.Complete().New("garden-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	served, stores, err := registry.Build(Scheme, config.RESTOptionsGetter, config.Authorization.Authorizer, kinds)
	if err != nil {
		return nil, err
	}
	dependencies.Reader = stores
	dependencies.Authorizer = config.Authorization.Authorizer
	dependencies.Secret = secretsOf(client)
	dependencies.ConfigMap = configMapsOf(client)

	addKubeconfigs(served[gardencorev1beta1.SchemeGroupVersion], stores, client, config, settings)
	if err := addViews(served, stores, settings.tokens); err != nil {
		return nil, err
	}
	if err := install(generic, served); err != nil {
		return nil, err
	}
	if err := settings.seeds.start(generic, stores, client); err != nil {
		return nil, err
	}
	if settings.publication != nil {
		for _, path := range settings.publication.Paths() {
			generic.Handler.NonGoRestfulMux.Handle(path, settings.publication)
		}
	}
	err = generic.AddPostStartHook("publish-cluster-identity", func(hook genericapiserver.PostStartHookContext) error {
		go publishIdentity(hook.Context, client, settings.clusterIdentity)
		return nil
	})
	return &Server{GenericAPIServer: generic, reservations: settings.reservations}, err
}

// install serves every group version under /apis.
func install(server *genericapiserver.GenericAPIServer, served map[schema.GroupVersion]map[string]rest.Storage) error {
	groups := map[string]*genericapiserver.APIGroupInfo{}
	for version, storage := range served {
		if groups[version.Group] == nil {
			group := genericapiserver.NewDefaultAPIGroupInfo(version.Group, Scheme, ParameterCodec, Codecs)
			groups[version.Group] = &group
		}
		groups[version.Group].VersionedResourcesStorageMap[version.Version] = storage
	}
	return server.InstallAPIGroups(slices.Collect(maps.Values(groups))...)
}

// addKubeconfigs serves shoots/adminkubeconfig and shoots/viewerkubeconfig.
func addKubeconfigs(core map[string]rest.Storage, stores registry.Stores, client kubernetes.Interface,
	config *genericapiserver.RecommendedConfig, settings serverSettings) {
	sources := kubeconfig.Sources{
		Shoots:          stores[gardencorev1beta1.Resource("shoots")],
		InternalSecrets: stores[gardencorev1beta1.Resource("internalsecrets")],
		ConfigMap:       configMapsOf(client),
		Secret:          secretsOf(client),
	}
	subresource := func(level kubeconfig.Level, expiration time.Duration) *kubeconfig.REST {
		return &kubeconfig.REST{
			Level: level, Sources: sources, Authorizer: config.Authorization.Authorizer, Clock: clock.RealClock{},
			MaxExpiration: expiration,
		}
	}
	core["shoots/adminkubeconfig"] = subresource(kubeconfig.Admin, settings.adminExpiration)
	core["shoots/viewerkubeconfig"] = subresource(kubeconfig.Viewer, settings.viewerExpiration)
}

func secretsOf(client kubernetes.Interface) func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func configMapsOf(client kubernetes.Interface) func(ctx context.Context,
	namespace, name string) (*corev1.ConfigMap, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

// identityRetry is how long to wait before the identity is written again after an error.
const identityRetry = 5 * time.Second

// publishIdentity writes the garden's name where clients look for it, and tries until it is there.
func publishIdentity(ctx context.Context, client kubernetes.Interface, identity string) {
	_ = wait.PollUntilContextCancel(ctx, identityRetry, true, func(ctx context.Context) (bool, error) {
		if err := ensureIdentity(ctx, client, identity); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot publish the identity of the garden, trying again", "after",
				identityRetry)
			return false, nil
		}
		return true, nil
	})
}

func ensureIdentity(ctx context.Context, client kubernetes.Interface, identity string) error {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: gardencorev1beta1.ClusterIdentity},
		Data:       map[string]string{gardencorev1beta1.ClusterIdentity: identity, "origin": "gardener-apiserver"},
	}
	_, err := client.CoreV1().ConfigMaps(configMap.Namespace).Create(ctx, configMap, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	present, err := client.CoreV1().ConfigMaps(configMap.Namespace).Get(ctx, configMap.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if present.Data[gardencorev1beta1.ClusterIdentity] != identity {
		return fmt.Errorf("the garden is already called %q, --cluster-identity says %q: restore the flag, or delete "+
			"ConfigMap %s/%s", present.Data[gardencorev1beta1.ClusterIdentity], identity, configMap.Namespace,
			configMap.Name)
	}
	return nil
}
