package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/vpn"
)

// foundation are the tasks that all others rely on.
type foundation struct {
	namespace, credentials, references, secrets flow.TaskID
}

// addFoundation adds the namespace, credentials and certificates.
func (o *Operation) addFoundation(g *flow.Graph) foundation {
	var f foundation
	f.namespace = g.Add(flow.Task{Name: "Deploying namespace", Fn: retried(o.deployNamespace)})
	g.Add(flow.Task{Name: "Deploying network policies", Fn: retried(o.deployNetworkPolicies), Dependencies: []flow.TaskID{f.namespace}})
	f.credentials = g.Add(flow.Task{
		Name: "Deploying cloud provider secret", Fn: retried(o.deployCredentials), SkipIf: o.Plan.Workerless || o.Plan.Credentials == nil,
		Dependencies: []flow.TaskID{f.namespace},
	})
	f.references = g.Add(flow.Task{
		Name: "Deploying referenced resources", Fn: retried(o.deployReferences),
		Dependencies: []flow.TaskID{f.namespace},
	})
	f.secrets = g.Add(flow.Task{Name: "Initializing secrets management", Fn: retried(o.initializeSecrets), Dependencies: []flow.TaskID{f.namespace}})
	o.addSSHKeypair(g, f)
	return f
}

// addPublication adds what users get to know. While the authorities are being replaced, the API server is first.
func (o *Operation) addPublication(g *flow.Graph, after ...flow.TaskID) {
	g.Add(flow.Task{Name: "Publishing certificate authorities to the garden", Fn: retried(o.publishAuthorities), Dependencies: after})
}

// onceAuthoritiesReplaced returns what those wait for who would otherwise trust, or present, what the API server does not know yet.
func (o *Operation) onceAuthoritiesReplaced(c controlPlane) []flow.TaskID {
	if !o.Plan.Rotation.ReplacesAuthorities {
		return nil
	}
	return []flow.TaskID{c.apiServer}
}

// apply applies objects in the seed.
func (o *Operation) apply(ctx context.Context, objects ...client.Object) error {
	return component.Apply(ctx, o.Seed, objects...)
}

// deployNamespace applies the control plane's namespace.
func (o *Operation) deployNamespace(ctx context.Context) error {
	return o.apply(ctx, o.namespace())
}

// namespace is the control plane's namespace.
func (o *Operation) namespace() *corev1.Namespace {
	labels := map[string]string{
		gardencorev1beta1.GardenRole:         gardencorev1beta1.GardenRoleShoot,
		gardencorev1beta1.LabelShootProvider: o.Plan.ProviderType,
		gardencorev1beta1.LabelSeedProvider:  o.Inputs.Seed.Spec.Provider.Type,
		component.LabelPodSecurity:           o.podSecurity(),
	}
	if o.Plan.Networks.Type != "" {
		labels[gardencorev1beta1.LabelNetworkingProvider] = o.Plan.Networks.Type
	}
	for _, extension := range o.Plan.Extensions {
		labels[gardencorev1beta1.LabelExtensionPrefix+extension.Type] = "true"
	}
	annotations := map[string]string{
		gardencorev1beta1.AnnotationShootUID: o.Plan.UID,
		vpn.AnnotationHosts:                  strings.ToLower(strings.Join(o.Plan.APIServer.ExternalHostnames, ",")),
	}
	if digest := o.Plan.APIServer.Digest; digest != "" {
		annotations[annotationFiles] = digest
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Plan.Namespace, Labels: labels, Annotations: annotations}}
}

// podSecurity is the level that all pods of the namespace must keep. The machine driver of a provider may need more than the least.
func (o *Operation) podSecurity() string {
	if o.Plan.Workerless {
		return component.PodSecurityRestricted
	}
	return component.PodSecurityPrivileged
}

// deployNetworkPolicies lets pods of the namespace talk to those they need only.
func (o *Operation) deployNetworkPolicies(ctx context.Context) error {
	apiServer, err := networkpolicies.APIServer(ctx, o.Seed)
	if err != nil {
		return err
	}
	return networkpolicies.Apply(ctx, o.Seed, o.Plan.Namespace, networkpolicies.Objects(networkpolicies.Shoot, o.Plan.Namespace, networkpolicies.Values{
		Networks: o.Inputs.Seed.Spec.Networks, APIServer: apiServer, Exceptions: o.Inputs.EgressExceptions,
		IsWorkerless: o.Plan.Workerless,
	}))
}

// initializeSecrets makes the certificate authorities the kubeconfigs and the way out of the seed, and tells extensions about the latter two.
func (o *Operation) initializeSecrets(ctx context.Context) error {
	authority, err := egress.Authority(ctx, o.Seed)
	if err != nil {
		return err
	}
	manager, err := secrets.New(ctx, o.Seed, o.Plan.Namespace, secrets.Options{
		RotationInitiation: o.Plan.Rotation.Initiated, Authorities: map[string]*corev1.Secret{component.CAEgress: authority},
	})
	if err != nil {
		return err
	}
	if err := o.generateSSHKeypair(ctx, manager); err != nil {
		return err
	}
	var options []secrets.Option
	if o.Plan.Rotation.KeepOldAuthorities {
		options = append(options, secrets.KeepOld())
	}
	if err := component.GenerateCertificateAuthorities(ctx, manager, o.Plan.Workerless, options...); err != nil {
		return err
	}
	o.secrets = manager
	apiServer := o.kubeAPIServer()
	if err := apiServer.GenerateKubeconfigs(ctx); err != nil {
		return err
	}
	if o.Plan.Hibernation != Asleep {
		if err := o.markAsleep(ctx, false); err != nil {
			return err
		}
	}
	egressClient, err := manager.Generate(ctx, egress.ClientCertificate(o.Plan.Namespace))
	if err != nil {
		return err
	}
	return o.annotateCluster(ctx, apiServer.GenericTokenKubeconfigSecretName(), egressClient.Name)
}

// annotateCluster writes to the Cluster which Secrets extensions give to what they run for the control plane.
func (o *Operation) annotateCluster(ctx context.Context, genericKubeconfig, egressClient string) error {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := o.Seed.Get(ctx, client.ObjectKey{Name: o.Plan.Namespace}, cluster); err != nil {
		return fmt.Errorf("reading Cluster %s: %w", o.Plan.Namespace, err)
	}
	patch := client.MergeFrom(cluster.DeepCopy())
	cluster.Annotations = component.Merge(cluster.Annotations, map[string]string{
		gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: genericKubeconfig,
		gardencorev1beta1.AnnotationEgressClientSecretName:           egressClient,
	})
	return o.Seed.Patch(ctx, cluster, patch)
}

// publishAuthorities writes to the garden what users need to trust the API server, and what the garden needs to sign
// client certificates for them.
func (o *Operation) publishAuthorities(ctx context.Context) error {
	bundle, err := component.CABundle(o.secrets, component.CACluster)
	if err != nil {
		return err
	}
	signer, found := o.secrets.Get(component.CAClient)
	if !found {
		return fmt.Errorf("certificate authority %s is missing", component.CAClient)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: o.gardenMeta(gardencorev1beta1.ShootProjectConfigMapSuffixCACluster)}
	_, err = controllerutil.CreateOrPatch(ctx, o.Garden, configMap, func() error {
		configMap.Labels = component.Merge(configMap.Labels, o.gardenLabels("ca-cluster"))
		configMap.Data = map[string]string{gardencorev1beta1.DataKeyCACert: string(bundle.Data[secrets.DataKeyCertificateBundle])}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ConfigMap %s of the garden: %w", client.ObjectKeyFromObject(configMap), err)
	}
	internal := &gardencorev1beta1.InternalSecret{ObjectMeta: o.gardenMeta(gardencorev1beta1.ShootProjectSecretSuffixCAClient)}
	_, err = controllerutil.CreateOrPatch(ctx, o.Garden, internal, func() error {
		internal.Labels = component.Merge(internal.Labels, o.gardenLabels("ca-client"))
		internal.Data = map[string][]byte{
			gardencorev1beta1.DataKeyCACert: signer.Data[secrets.DataKeyCertificateCA], gardencorev1beta1.DataKeyCAKey: signer.Data[secrets.DataKeyPrivateKeyCA],
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("InternalSecret %s of the garden: %w", client.ObjectKeyFromObject(internal), err)
	}
	return nil
}

// gardenMeta is the metadata of an object that belongs to the shoot in the garden.
func (o *Operation) gardenMeta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Plan.ShootNamespace, Name: o.Plan.ShootName + "." + suffix}
}

// gardenLabels are the labels of such an object.
func (o *Operation) gardenLabels(role string) map[string]string {
	return map[string]string{gardencorev1beta1.GardenRole: role, gardencorev1beta1.LabelShootName: o.Plan.ShootName}
}

// removeFromGarden deletes what publishAuthorities wrote.
func (o *Operation) removeFromGarden(ctx context.Context) error {
	return component.Delete(ctx, o.Garden,
		&corev1.ConfigMap{ObjectMeta: o.gardenMeta(gardencorev1beta1.ShootProjectConfigMapSuffixCACluster)},
		&gardencorev1beta1.InternalSecret{ObjectMeta: o.gardenMeta(gardencorev1beta1.ShootProjectSecretSuffixCAClient)},
		&corev1.Secret{ObjectMeta: o.gardenMeta(sshKeypairName)}, &corev1.Secret{ObjectMeta: o.gardenMeta(oldSSHKeypairName)},
	)
}

// writeCluster gives extensions the objects of the garden. It must exist before the first extension object, and is written
// again whenever one of the objects changed.
func writeCluster(ctx context.Context, seed client.Client, namespace string, in *Inputs) error {
	profile, err := embed(in.CloudProfile, "CloudProfile")
	if err != nil {
		return err
	}
	seedObject, err := embed(in.Seed, "Seed")
	if err != nil {
		return err
	}
	shoot, err := embed(in.Shoot, "Shoot")
	if err != nil {
		return err
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err = controllerutil.CreateOrPatch(ctx, seed, cluster, func() error {
		cluster.Spec = extensionsv1alpha1.ClusterSpec{CloudProfile: *profile, Seed: seedObject, Shoot: *shoot}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing Cluster %s: %w", namespace, err)
	}
	return nil
}

// embed renders an object with its kind and without the notes of field managers.
func embed(object client.Object, kind string) (*runtime.RawExtension, error) {
	object = object.DeepCopyObject().(client.Object)
	object.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
	raw, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: raw}, err
}

// deleteCluster removes the Cluster.
func (o *Operation) deleteCluster(ctx context.Context) error {
	err := o.Seed.Delete(ctx, &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: o.Plan.Namespace}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// kubeAPIServer is the component; the secrets manager must be there.
func (o *Operation) kubeAPIServer() kubeapiserver.Interface {
	return kubeapiserver.New(o.Seed, o.Plan.Namespace, o.secrets, o.Plan.APIServer.Values)
}

// patchClusterShoot replaces the Shoot in a Cluster; without a Cluster there is nothing to do.
func patchClusterShoot(ctx context.Context, seed client.Client, namespace string, shoot *runtime.RawExtension) error {
	cluster := &extensionsv1alpha1.Cluster{}
	err := seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", namespace, err)
	}
	patch := client.MergeFrom(cluster.DeepCopy())
	cluster.Spec.Shoot = *shoot
	return client.IgnoreNotFound(seed.Patch(ctx, cluster, patch))
}
