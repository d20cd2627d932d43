package seedauthorizer

//lint:file-ignore SA1019 Shoots with older versions of Kubernetes use fields that newer ones must not.

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// federationExtension is the type of the extension that makes a shoot without workers a fleet: the other shoots of its
// namespace become the fleet's members.
const federationExtension = "federation"

// credentialKinds are the kinds of objects that hold credentials, as references name them.
var credentialKinds = map[string]Kind{
	"Secret": kindSecret, "InternalSecret": kindInternalSecret, "WorkloadIdentity": kindWorkloadIdentity,
	"ConfigMap": kindConfigMap,
}

// builder collects the edges that lead to one object.
type builder struct {
	to    Vertex
	edges []Edge
}

func edgesTo(to Vertex) *builder { return &builder{to: to} }

// from adds an edge unless the name is empty.
func (b *builder) from(kind Kind, in, name string) *builder {
	if name != "" {
		b.edges = append(b.edges, Edge{From: Vertex{kind, in, name}, To: b.to})
	}
	return b
}

// reference adds an edge from an object with credentials. Kinds that hold none are left out.
func (b *builder) reference(kind, in, name string) *builder {
	if known, found := credentialKinds[kind]; found {
		return b.from(known, in, name)
	}
	return b
}

func (b *builder) object(reference *corev1.ObjectReference) *builder {
	if reference == nil {
		return b
	}
	return b.reference(reference.Kind, reference.Namespace, reference.Name)
}

// offered adds edges from an object with credentials that has to let the seed read it: who wrote the reference was not
// asked whether they may.
func (b *builder) offered(seedName, kind, in, name string) *builder {
	if _, found := credentialKinds[kind]; found && name != "" {
		b.from(kindOffer, in, offerName(kind, name, seedName)).from(kindOffer, in,
			offerName(kind, name, gardencorev1beta1.ReadableByAllSeeds))
	}
	return b
}

func (b *builder) offeredObject(seedName string, reference *corev1.ObjectReference) *builder {
	if reference == nil {
		return b
	}
	return b.offered(seedName, reference.Kind, reference.Namespace, reference.Name)
}

// offerName is the name of the vertex for an object that a seed reads.
func offerName(kind, name, seedName string) string { return kind + "/" + name + "/" + seedName }

func (b *builder) resources(in string, list []gardencorev1beta1.NamedResourceReference) *builder {
	for _, resource := range list {
		b.reference(resource.ResourceRef.Kind, in, resource.ResourceRef.Name)
	}
	return b
}

// agents adds edges from the object itself to those who care for it.
func (b *builder) agents(seedNames ...*string) *builder {
	var known []string
	for _, name := range seedNames {
		if name := ptr.Deref(name, ""); name != "" && !slices.Contains(known, name) {
			known = append(known, name)
			b.edges = append(b.edges, Edge{From: b.to, To: Vertex{Kind: kindAgent, Name: name}})
		}
	}
	return b
}

func vertexOf(kind Kind, object metav1.Object) Vertex {
	return Vertex{kind, object.GetNamespace(), object.GetName()}
}

// shootEdges: everything that a shoot refers to is needed by the seed that runs its control plane, and by the one it is
// leaving.
func shootEdges(object *gardencorev1beta1.Shoot) []Edge {
	b := edgesTo(vertexOf(kindShoot, object)).agents(object.Spec.SeedName, object.Status.SeedName)
	if len(b.edges) == 0 {
		return nil
	}
	in, spec := object.Namespace, &object.Spec
	b.from(kindNamespace, "", in).from(kindExposureClass, "", ptr.Deref(spec.ExposureClassName, ""))
	b.from(kindSecretBinding, in, ptr.Deref(spec.SecretBindingName, "")).from(kindCredentialsBinding, in,
		ptr.Deref(spec.CredentialsBindingName, ""))
	b.resources(in, spec.Resources)
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			// The deprecated name counts where it is used, and whoever wrote it was asked whether they may read the
			// Secret.
			if reference := provider.CredentialsRef; reference != nil {
				b.reference(reference.Kind, in, reference.Name)
			} else {
				b.from(kindSecret, in, ptr.Deref(provider.SecretName, ""))
			}
		}
	}
	if spec.Kubernetes.KubeAPIServer != nil {
		b.apiServer(in, spec.Kubernetes.KubeAPIServer)
	}
	b.profile(object)
	if id := object.Status.TechnicalID; id != "" {
		// Asked for before it is created. Gardenlets write the status, so the UID is that of the object.
		b.from(kindBackupEntry, in, fmt.Sprintf("%s--%s", id, object.UID))
	}
	if IsFleet(object) {
		b.from(kindFleetNamespace, "", in)
		if fleetv1alpha1.AllowsGrowth(object.Annotations[fleetv1alpha1.AllowGrowthAnnotation],
			fleetv1alpha1.GrowPools) {
			b.from(kindGrowthNamespace, "", in)
		}
	}
	return b.edges
}

func (b *builder) profile(object *gardencorev1beta1.Shoot) {
	reference := object.Spec.CloudProfile
	switch {
	case reference == nil:
		b.from(kindCloudProfile, "", ptr.Deref(object.Spec.CloudProfileName, ""))
	case reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile:
		b.from(kindNamespacedCloudProfile, object.Namespace, reference.Name)
	default:
		b.from(kindCloudProfile, "", reference.Name)
	}
}

func (b *builder) apiServer(in string, config *gardencorev1beta1.KubeAPIServerConfig) {
	for _, plugin := range config.AdmissionPlugins {
		b.from(kindSecret, in, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		b.from(kindConfigMap, in, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := config.StructuredAuthentication; authentication != nil {
		b.from(kindConfigMap, in, authentication.ConfigMapName)
	}
	if authorization := config.StructuredAuthorization; authorization != nil {
		b.from(kindConfigMap, in, authorization.ConfigMapName)
		for _, reference := range authorization.Kubeconfigs {
			b.from(kindSecret, in, reference.SecretName)
		}
	}
}

// IsFleet tells whether a shoot is a fleet.
func IsFleet(object *gardencorev1beta1.Shoot) bool {
	return len(object.Spec.Provider.Workers) == 0 &&
		slices.ContainsFunc(object.Spec.Extensions, func(e gardencorev1beta1.Extension) bool {
			return e.Type == federationExtension && !ptr.Deref(e.Disabled, false)
		})
}

// seedEdges: the credentials that a seed's configuration names belong to the seed, if they are offered to it, but not
// to a seed that hosts it as a shoot. The seed's gardenlet writes the configuration, so to be named is not enough.
func seedEdges(object *gardencorev1beta1.Seed) []Edge {
	self := vertexOf(kindSeed, object)
	b := edgesTo(Vertex{Kind: kindAgent, Name: object.Name}).from(kindSeed, "", self.Name)
	// The seed's bucket, asked for before it is created.
	b.from(kindBackupBucket, "", string(object.UID))
	spec := &object.Spec
	if spec.Backup != nil {
		b.offeredObject(object.Name, spec.Backup.CredentialsRef)
	}
	if spec.DNS.Provider != nil {
		b.offeredObject(object.Name, spec.DNS.Provider.CredentialsRef)
	}
	for _, domain := range append(slices.Clone(spec.DNS.Defaults),
		ptr.Deref(spec.DNS.Internal, gardencorev1beta1.SeedDNSProviderConfig{})) {
		b.offeredObject(object.Name, &domain.CredentialsRef)
	}
	for _, resource := range spec.Resources {
		b.offered(object.Name, resource.ResourceRef.Kind, gardencorev1beta1.GardenNamespace, resource.ResourceRef.Name)
	}
	return b.edges
}

// consentEdges: an object with credentials says itself which seeds may read it if they name it.
func consentEdges[T metav1.Object](kind Kind, name string) func(T) []Edge {
	return func(object T) []Edge {
		var edges []Edge
		self := vertexOf(kind, object)
		for _, seedName := range gardencorev1beta1.SeedsAllowedToRead(object.GetLabels()) {
			edges = append(edges, Edge{
				From: self, To: Vertex{kindOffer, self.Namespace, offerName(name, self.Name, seedName)},
			})
		}
		return edges
	}
}

func projectEdges(object *gardencorev1beta1.Project) []Edge {
	in := ptr.Deref(object.Spec.Namespace, "")
	if in == "" {
		return nil
	}
	return edgesTo(Vertex{Kind: kindNamespace, Name: in}).from(kindProject, "", object.Name).edges
}

func namespacedCloudProfileEdges(object *gardencorev1beta1.NamespacedCloudProfile) []Edge {
	return edgesTo(vertexOf(kindNamespacedCloudProfile, object)).from(kindCloudProfile, "",
		object.Spec.Parent.Name).edges
}

func secretBindingEdges(object *gardencorev1beta1.SecretBinding) []Edge {
	b := edgesTo(vertexOf(kindSecretBinding, object)).from(kindSecret, object.SecretRef.Namespace,
		object.SecretRef.Name)
	return b.quotas(object.Quotas).edges
}

func credentialsBindingEdges(object *securityv1alpha1.CredentialsBinding) []Edge {
	return edgesTo(vertexOf(kindCredentialsBinding, object)).object(&object.CredentialsRef).quotas(object.Quotas).edges
}

func (b *builder) quotas(references []corev1.ObjectReference) *builder {
	for _, reference := range references {
		b.from(kindQuota, reference.Namespace, reference.Name)
	}
	return b
}

func backupBucketEdges(object *gardencorev1beta1.BackupBucket) []Edge {
	b := edgesTo(vertexOf(kindBackupBucket, object)).agents(object.Spec.SeedName)
	b.offeredObject(ptr.Deref(object.Spec.SeedName, ""), object.Spec.CredentialsRef)
	// Gardenlets write the status, so what it refers to is not theirs for that.
	return b.from(kindSecret, gardencorev1beta1.GardenNamespace,
		gardencorev1beta1.GeneratedBackupBucketSecretPrefix+object.Name).edges
}

func backupEntryEdges(object *gardencorev1beta1.BackupEntry) []Edge {
	b := edgesTo(vertexOf(kindBackupEntry, object)).agents(object.Spec.SeedName, object.Status.SeedName)
	return b.from(kindBackupBucket, "", object.Spec.BucketName).edges
}

func controllerInstallationEdges(object *gardencorev1beta1.ControllerInstallation) []Edge {
	if object.Spec.SeedRef == nil {
		return nil
	}
	b := edgesTo(vertexOf(kindControllerInstallation, object)).agents(&object.Spec.SeedRef.Name)
	b.from(kindControllerRegistration, "", object.Spec.RegistrationRef.Name)
	if object.Spec.DeploymentRef != nil {
		b.from(kindControllerDeployment, "", object.Spec.DeploymentRef.Name)
	}
	for _, reference := range object.Spec.ResourceRefs {
		b.object(&reference)
	}
	return b.edges
}

// gardenletEdges: a gardenlet that deploys itself pulls its chart with the credentials that are named for it.
func gardenletEdges(object *seedmanagementv1alpha1.Gardenlet) []Edge {
	b := edgesTo(Vertex{Kind: kindAgent, Name: object.Name})
	repository := &object.Spec.Deployment.Helm.OCIRepository
	for _, reference := range []*corev1.LocalObjectReference{repository.PullSecretRef, repository.CABundleSecretRef} {
		if reference != nil {
			b.from(kindSecret, object.Namespace, reference.Name)
		}
	}
	return b.edges
}

func bastionEdges(object *operationsv1alpha1.Bastion) []Edge {
	return edgesTo(vertexOf(kindBastion, object)).agents(object.Spec.SeedName).edges
}

// managedSeedEdges: the seed that hosts the shoot sees that it is to become a seed, the bootstrap token that it makes
// for it, and the Seed that it has become.
func managedSeedEdges(object *seedmanagementv1alpha1.ManagedSeed) []Edge {
	if object.Spec.Shoot == nil {
		return nil
	}
	self := vertexOf(kindManagedSeed, object)
	b := edgesTo(self).from(kindSeed, "", object.Name)
	b.from(kindBootstrapToken, seedmanagementv1alpha1.BootstrapTokenNamespace,
		seedmanagementv1alpha1.BootstrapTokenSecretName(object.Name))
	return append(b.edges, Edge{From: self, To: Vertex{kindShoot, object.Namespace, object.Spec.Shoot.Name}})
}

// certificateSigningRequestEdges: a gardenlet sees its own requests.
func certificateSigningRequestEdges(object *certificatesv1.CertificateSigningRequest) []Edge {
	name, found := strings.CutPrefix(object.Spec.Username, gardencorev1beta1.SeedUserNamePrefix)
	if !found {
		return nil
	}
	return edgesTo(vertexOf(kindCertificateSigningRequest, object)).agents(&name).edges
}
