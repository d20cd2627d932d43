// Package foundation makes what all other parts of a shoot rely on: its namespace, network policies, credentials and
// secrets.
package foundation

import (
	"context"
	"crypto/rsa"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cluster"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/credentials"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/hibernation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// AnnotationFiles on a control plane's namespace identifies the ConfigMaps and Secrets of the garden that its
// kube-apiserver was last configured from.
const AnnotationFiles = "shoot.trellis.garden/kube-apiserver-files"

// Tasks are those that all others rely on.
type Tasks struct {
	Namespace, Credentials, References, Secrets flow.TaskID
}

// Keyring are the secrets of a control plane; it is empty before the task Secrets. Others hold it as a secrets.Manager.
type Keyring struct{ secrets.Manager }

// Foundation makes that of one shoot.
type Foundation struct {
	Plan *plan.Plan
	// Seed is the client, SeedSpec the specification of the seed.
	Seed     client.WithWatch
	SeedSpec *gardencorev1beta1.SeedSpec
	// Exceptions are what addresses of users may lead to although it is private or the seed's.
	Exceptions []egress.Allowance
	// Credentials copies those of the garden.
	Credentials *credentials.Copier
	// Restored are the authorities and keys that the control plane had on another seed; none but in a restore.
	Restored []*corev1.Secret
	// Keyring is filled.
	Keyring *Keyring
	// Generate makes secrets that must be there before the authorities.
	Generate func(context.Context, secrets.Manager) error
	// APIServer makes the kubeconfigs.
	APIServer func() kubeapiserver.Interface
	// RSAKey is for tests; see secrets.Options.
	RSAKey func(bits int) (*rsa.PrivateKey, error)
}

// Add adds the namespace, credentials and certificates.
func (f *Foundation) Add(g *flow.Graph) Tasks {
	var t Tasks
	t.Namespace = g.Add(flow.Task{Name: "Deploying namespace", Fn: tasks.Retried(f.deployNamespace)})
	g.Add(flow.Task{
		Name: "Deploying network policies", Fn: tasks.Retried(f.deployNetworkPolicies),
		Dependencies: []flow.TaskID{t.Namespace},
	})
	t.Credentials = g.Add(flow.Task{
		Name: "Deploying cloud provider secret", Fn: tasks.Retried(f.deployCredentials),
		SkipIf:       f.Plan.Workerless || f.Plan.Credentials == nil,
		Dependencies: []flow.TaskID{t.Namespace},
	})
	t.References = g.Add(flow.Task{
		Name: "Deploying referenced resources", Fn: tasks.Retried(f.deployReferences),
		Dependencies: []flow.TaskID{t.Namespace},
	})
	t.Secrets = g.Add(flow.Task{
		Name: "Initializing secrets management", Fn: tasks.Retried(f.initializeSecrets),
		Dependencies: []flow.TaskID{t.Namespace},
	})
	return t
}

// deployCredentials writes the credentials for the infrastructure.
func (f *Foundation) deployCredentials(ctx context.Context) error {
	return f.Credentials.DeployCloudProvider(ctx, *f.Plan.Credentials)
}

// deployReferences writes what the Shoot refers to.
func (f *Foundation) deployReferences(ctx context.Context) error {
	return f.Credentials.DeployReferences(ctx, f.Plan.References)
}

// deployNamespace applies the control plane's namespace.
func (f *Foundation) deployNamespace(ctx context.Context) error {
	return component.Apply(ctx, f.Seed, f.namespace())
}

// namespace is the control plane's namespace.
func (f *Foundation) namespace() *corev1.Namespace {
	labels := map[string]string{
		gardencorev1beta1.GardenRole:         gardencorev1beta1.GardenRoleShoot,
		gardencorev1beta1.LabelShootProvider: f.Plan.ProviderType,
		gardencorev1beta1.LabelSeedProvider:  f.SeedSpec.Provider.Type,
		component.LabelPodSecurity:           f.podSecurity(),
	}
	if f.Plan.Networks.Type != "" {
		labels[gardencorev1beta1.LabelNetworkingProvider] = f.Plan.Networks.Type
	}
	if backup := f.Plan.Seed.Backup; backup != nil {
		labels[gardencorev1beta1.LabelBackupProvider] = backup.Provider
	}
	for _, extension := range f.Plan.Extensions {
		labels[gardencorev1beta1.LabelExtensionPrefix+extension.Type] = "true"
	}
	annotations := map[string]string{
		gardencorev1beta1.AnnotationShootUID: f.Plan.UID,
		vpnv1alpha1.AnnotationHosts:          strings.ToLower(strings.Join(f.Plan.APIServer().ExternalHostnames, ",")),
	}
	if digest := f.Plan.FilesDigest; digest != "" {
		annotations[AnnotationFiles] = digest
	}
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: f.Plan.Namespace, Labels: labels, Annotations: annotations},
	}
}

// podSecurity is the level that all pods of the namespace must keep. The machine driver of a provider may need more
// than the least.
func (f *Foundation) podSecurity() string {
	if f.Plan.Workerless {
		return component.PodSecurityRestricted
	}
	return component.PodSecurityPrivileged
}

// deployNetworkPolicies lets pods of the namespace talk to those they need only.
func (f *Foundation) deployNetworkPolicies(ctx context.Context) error {
	apiServer, err := networkpolicies.APIServer(ctx, f.Seed)
	if err != nil {
		return err
	}
	etcds := components.ValuesOf[etcdcomponent.Values](f.Plan.Values, etcdcomponent.Name(etcdcomponent.Main))
	return networkpolicies.Apply(ctx, f.Seed, f.Plan.Namespace,
		networkpolicies.Objects(networkpolicies.Shoot, f.Plan.Namespace, networkpolicies.Values{
			Networks: f.SeedSpec.Networks, APIServer: apiServer, Exceptions: f.Exceptions,
			WithoutVPN: !f.Plan.Has(vpnseedserver.Name), BackedUp: f.Plan.Seed.Backup != nil,
			HighlyAvailable: etcds.Availability.IsHigh(),
		}))
}

// restoreSecrets puts in place what nothing may make anew. What is there is of an earlier try.
func (f *Foundation) restoreSecrets(ctx context.Context) error {
	for _, secret := range f.Restored {
		if err := f.Seed.Create(ctx, secret.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("restoring Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	return nil
}

// initializeSecrets makes the certificate authorities the kubeconfigs and the way out of the seed, and tells
// extensions about the latter two.
func (f *Foundation) initializeSecrets(ctx context.Context) error {
	if err := f.restoreSecrets(ctx); err != nil {
		return err
	}
	authority, err := egresscomponent.Authority(ctx, f.Seed)
	if err != nil {
		return err
	}
	manager, err := secrets.New(ctx, f.Seed, f.Plan.Namespace, secrets.Options{
		RotationInitiation: f.Plan.Rotation.Initiated,
		Authorities:        map[string]*corev1.Secret{component.CAEgress: authority},
		RSAKey:             f.RSAKey,
	})
	if err != nil {
		return err
	}
	if err := f.Generate(ctx, manager); err != nil {
		return err
	}
	var options []secrets.Option
	if f.Plan.Rotation.KeepOldAuthorities {
		options = append(options, secrets.KeepOld())
	}
	if err := component.GenerateCertificateAuthorities(ctx, manager, f.Plan.Authorities, options...); err != nil {
		return err
	}
	f.Keyring.Manager = manager
	apiServer := f.APIServer()
	if err := apiServer.GenerateKubeconfigs(ctx); err != nil {
		return err
	}
	if f.Plan.Hibernation != plan.Asleep {
		if err := hibernation.MarkAsleep(ctx, f.Seed, f.Plan.Identity, false); err != nil {
			return err
		}
	}
	egressClient, err := manager.Generate(ctx, egresscomponent.ClientCertificate(f.Plan.Namespace))
	if err != nil {
		return err
	}
	return cluster.Annotate(ctx, f.Seed, f.Plan.Namespace, apiServer.GenericTokenKubeconfigSecretName(),
		egressClient.Name)
}
