package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/imagevector"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	adminUser    = "trellis:landscape:admin"
	mastersGroup = "system:masters"
	// gardenServer is the garden's API server as pods of the runtime cluster reach it.
	gardenServer = "https://kube-apiserver.garden.svc"
	// workloadIdentitySecret holds the key that signs tokens of WorkloadIdentities.
	workloadIdentitySecret = "garden-apiserver-workload-identity"
)

// The garden's etcd and kube-apiserver request more CPU than those of a shoot, as all wait for them. A node has not
// much more to give (TestRequestsFitTheNode).
const (
	gardenETCDCPU      = "40m"
	gardenAPIServerCPU = "60m"
)

// gardenAvailability is which failures the garden outlasts in a runtime cluster with so many nodes, each of which is a
// zone. Of two, one would have two of three members of an etcd. There are never fewer nodes than before, so no etcd has
// to shrink.
func gardenAvailability(nodes int) component.Availability {
	if nodes < 3 {
		return component.Availability{}
	}
	return component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone}
}

// requestCPU are the least requests of a component of the garden.
func requestCPU(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func (r *run) image(name string, options ...imagevector.FindOption) (string, error) {
	vector, err := r.imageVector()
	if err != nil {
		return "", err
	}
	image, err := vector.Find(name, options...)
	return image.String(), err
}

// installChart installs a chart of the runtime cluster and waits until its workloads are ready.
func (r *run) installChart(ctx context.Context, release helm.Release) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	r.Step("chart %s", release.Name)
	installed, err := c.helm.Install(ctx, release)
	if err != nil {
		return err
	}
	r.Step("waiting for %s", release.Name)
	return c.helm.WaitReady(ctx, installed)
}

// gardenRecords are the names of the garden, which machines, and seeds on them, reach through the gateway.
func gardenRecords() map[string]any {
	return map[string]any{gardenHost: nodeIP, discoveryHost: nodeIP, dashboardHost: nodeIP, issuerHost: nodeIP}
}

// gardenPhase deploys the garden as it was left by the last rotation of its encryption keys.
func gardenPhase(ctx context.Context, r *run) error {
	c, err := r.runtime()
	if err != nil {
		return err
	}
	rotation, err := loadRotation(ctx, c.client)
	if err != nil {
		return err
	}
	manager, err := gardenManager(ctx, c.client, rotation)
	if err != nil {
		return err
	}
	return r.deployGarden(ctx, c, manager, rotation.Stage)
}

// gardenManager returns what makes the Secrets of the garden's control plane.
func gardenManager(ctx context.Context, c client.Client, rotation encryption.Record) (secrets.Manager, error) {
	return secrets.New(ctx, c, gardenNS, secrets.Options{
		Identity: "landscape", RotationInitiation: rotation.Initiations(kubeapiserver.EncryptionKeyName,
			gardenEncryptionKey),
	})
}

// deployGarden deploys the control plane of the garden with the same components that shoots have, and its own
// processes. All start together and wait for each other, except for what would only fail without the API server.
func (r *run) deployGarden(ctx context.Context, c *cluster, manager secrets.Manager, stage encryption.Stage) error {
	if err := component.GenerateCertificateAuthorities(ctx, manager, kubeapiserver.Authorities()); err != nil {
		return err
	}
	if err := r.backUpGarden(ctx, c.client); err != nil {
		return err
	}
	first, second, err := r.gardenComponents(c.client, manager, stage)
	if err != nil {
		return err
	}
	if err := r.deploy(ctx, first...); err != nil {
		return err
	}
	if err := r.routeGarden(ctx, c); err != nil {
		return err
	}
	processes, err := r.installGardenProcesses(ctx, c, manager, stage)
	if err != nil {
		return err
	}
	issuer, err := r.installIssuer(ctx, c)
	if err != nil {
		return err
	}
	if err := r.awaitComponents(ctx, first...); err != nil {
		return err
	}
	if err := r.deploy(ctx, second...); err != nil {
		return err
	}
	if err := r.writeGardenKubeconfig(ctx, manager); err != nil {
		return err
	}
	if err := r.registerGardenAPI(ctx, processes.bundle); err != nil {
		return err
	}
	if err := r.awaitComponents(ctx, second...); err != nil {
		return err
	}
	r.Step("waiting for Trellis' own processes")
	if err := errors.Join(c.helm.WaitReady(ctx, processes.release), c.helm.WaitReady(ctx, issuer)); err != nil {
		return err
	}
	return r.letListProjects(ctx, c)
}

// letListProjects has garden-controller-manager let everybody list projects when no garden-apiserver of before is left.
// In a new garden it does so by itself, and may not have begun.
func (r *run) letListProjects(ctx context.Context, c *cluster) error {
	if err := awaitRolledOut(ctx, c.client, "garden-apiserver"); err != nil {
		return err
	}
	garden, err := r.garden()
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.ClusterRoleReadGlobalResources}}
	confirmed := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`,
		gardencorev1beta1.AnnotationProjectsAreFiltered)
	err = garden.client.Patch(ctx, role, client.RawPatch(types.MergePatchType, confirmed))
	return client.IgnoreNotFound(err)
}

func (r *run) deploy(ctx context.Context, parts ...namedComponent) error {
	for _, part := range parts {
		r.Step("deploying %s", part.name)
		if err := part.Deploy(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func (r *run) awaitComponents(ctx context.Context, parts ...namedComponent) error {
	for _, part := range parts {
		r.Step("waiting for %s", part.name)
		if err := part.Wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

type namedComponent struct {
	name string
	component.Component
}

// gardenComponents are the API server with its etcds, and then what needs it.
func (r *run) gardenComponents(c client.Client, manager secrets.Manager,
	stage encryption.Stage) (first, second []namedComponent, err error) {
	version := images.DefaultKubernetesVersion
	found := map[string]string{}
	for _, name := range []string{"etcd-steward", "kube-apiserver", "kube-controller-manager"} {
		image, err := r.image(name, imagevector.Version(version))
		if err != nil {
			return nil, nil, err
		}
		found[name] = image
	}
	first, second = gardenParts(c, manager, stage, version, found, gardenAvailability(r.state.nodes()))
	return first, second, nil
}

// gardenParts are the components of the garden with their images.
func gardenParts(c client.Client, manager secrets.Manager, stage encryption.Stage, version string,
	found map[string]string, availability component.Availability) (first, second []namedComponent) {
	etcd := func(role etcdcomponent.Role) component.Component {
		return etcdcomponent.New(c, gardenNS, manager, gardenEtcd(role, found["etcd-steward"], availability))
	}
	pair := availability.Replicas(component.Pair)
	// No pods run in the garden, so its service and pod networks are never used.
	services := []string{"100.64.0.0/16"}
	first = []namedComponent{
		{"etcd main", etcd(etcdcomponent.Main)}, {"etcd events", etcd(etcdcomponent.Events)},
		{"kube-apiserver", kubeapiserver.New(c, gardenNS, manager, kubeapiserver.Values{
			Version: version, Image: found["kube-apiserver"], Replicas: pair, Availability: availability,
			ServiceNetworks: services, ExternalHostnames: []string{gardenHost}, IsWorkerless: true,
			PriorityClass: component.PriorityGardenSystem500, MinAllowed: requestCPU(gardenAPIServerCPU),
			Encryption: kubeapiserver.EncryptionValues{Stage: stage}, AuthenticationConfigMap: authenticationConfigMap,
			// garden-apiserver knows what belongs to which seed.
			AuthorizationWebhook: &kubeapiserver.AuthorizationWebhook{
				Name: "seeds", Server: "https://" + registration.ServerName + seedauthorizer.Path,
				User: gardencorev1beta1.GardenKubeAPIServerUser, MatchConditions: seedauthorizer.MatchConditions(),
			},
			// Gardenlets join by bootstrap tokens.
			ExtraArgs: map[string]string{"enable-bootstrap-token-auth": "true"},
		})},
	}
	second = []namedComponent{{"kube-controller-manager",
		kubecontrollermanager.New(c, gardenNS, manager, kubecontrollermanager.Values{
			Version: version, Image: found["kube-controller-manager"], Replicas: pair, Availability: availability,
			ClusterName: "garden", ServiceNetworks: services, IsWorkerless: true,
			PriorityClass: component.PriorityGardenSystem300,
		})}}
	return first, second
}

// gardenEtcd are the values of one of the garden's etcds. The garden's objects are small: a seed's volumes are made for
// shoots. Events tell what others have as their status, and are kept for an hour: their etcd has no store, and begins
// empty when it has lost its data.
func gardenEtcd(role etcdcomponent.Role, image string, availability component.Availability) etcdcomponent.Values {
	values := etcdcomponent.Values{
		Role: role, Image: image, Availability: availability, Replicas: etcdcomponent.Members(availability),
		StorageCapacity: resource.MustParse("2Gi"), PriorityClass: component.PriorityGardenSystem500,
	}
	if role == etcdcomponent.Main {
		values.MinAllowed = requestCPU(gardenETCDCPU)
		values.Store = &etcdcomponent.Store{
			Prefix: gardenNS + "/" + etcdcomponent.Name(role), Backup: component.DefaultETCDBackup(),
		}
	}
	return values
}

// routeGarden lets the gateway lead the garden's host names to its API server, and to what it publishes.
func (r *run) routeGarden(ctx context.Context, c *cluster) error {
	for _, route := range []*unstructured.Unstructured{
		routeTo("garden", gardenHost, "kube-apiserver"),
		routeTo("garden-discovery", discoveryHost, registration.ServiceName),
	} {
		if err := c.applyPatiently(ctx, route); err != nil {
			return err
		}
	}
	return nil
}

// routeTo leads a host name to a Service of the garden.
func routeTo(name, host, service string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "TLSRoute",
		"metadata": map[string]any{"name": name, "namespace": gardenNS},
		"spec": map[string]any{
			"hostnames": []any{host},
			"rules": []any{
				map[string]any{"backendRefs": []any{map[string]any{"name": service, "port": int64(443)}}},
			},
		},
	}}
}

// writeGardenKubeconfig writes the administrator's kubeconfig, which goes through the landscape's loopback address.
func (r *run) writeGardenKubeconfig(ctx context.Context, manager secrets.Manager) error {
	secret, err := manager.Generate(ctx, secrets.CertificateConfig{
		Name: "landscape-admin", CommonName: adminUser, Organization: []string{mastersGroup},
		CertType: secrets.ClientCert, SigningCA: "ca-client",
	})
	if err != nil {
		return err
	}
	ca, found := manager.Get("ca", secrets.Bundle)
	if !found {
		return fmt.Errorf("the garden's certificate authority is not known")
	}
	data, err := adminKubeconfig("https://"+endpoint(r.state.Loopback, gatewayPort), gardenHost,
		ca.Data[secrets.DataKeyCertificateBundle], secret)
	if err != nil {
		return err
	}
	if err := replaceFile(r.GardenKubeconfig(), data, 0o600); err != nil {
		return err
	}
	if err := replaceFile(r.TrellisctlConfig(), []byte(r.trellisctlConfig()), 0o600); err != nil {
		return err
	}
	garden, err := r.garden()
	if err != nil {
		return err
	}
	r.Step("waiting for the garden's kube-apiserver")
	return awaitAPI(ctx, garden.config)
}

// trellisctlConfig tells trellisctl how the garden is reached, and bastions of its shoots. To these, all of the host
// comes from the nodes' network.
func (r *run) trellisctlConfig() string {
	return fmt.Sprintf(`gardens:
- name: %q
  identity: %s
  kubeconfig: %q
  endpoints:
  - domain: %s
    address: %q
    addresses: %d
  bastions:
    range: %s
    address: %q
    cidrs: [%s]
`, r.Name, identity, r.GardenKubeconfig(), domain, endpoint(r.state.Loopback, gatewayPort), gatewayAddresses,
		bastionRange, endpoint(r.state.Loopback, bastionPort),
		netip.PrefixFrom(netip.MustParseAddr(nodeIP), nodeBits).Masked())
}

// gardenProcesses is what was installed of Trellis' own.
type gardenProcesses struct {
	release *release.Release
	// bundle verifies garden-apiserver's certificate.
	bundle []byte
}

// installGardenProcesses installs garden-apiserver, garden-controller-manager and garden-scheduler.
func (r *run) installGardenProcesses(ctx context.Context, c *cluster, manager secrets.Manager,
	stage encryption.Stage) (gardenProcesses, error) {
	bundle, checksum, err := r.gardenSecrets(ctx, c.client, manager)
	if err != nil {
		return gardenProcesses{}, err
	}
	if err := r.dashboardSecrets(ctx, c.client, manager); err != nil {
		return gardenProcesses{}, err
	}
	encryptionChecksum, err := writeGardenEncryption(ctx, c.client, manager, stage)
	if err != nil {
		return gardenProcesses{}, err
	}
	chart, err := helm.LoadFS(charts.FS, "garden")
	if err != nil {
		return gardenProcesses{}, err
	}
	replicas := int64(gardenAvailability(r.state.nodes()).Replicas(component.Pair))
	values := map[string]any{"clusterIdentity": identity, "secretsChecksum": checksum}
	for key, name := range map[string]string{
		"apiserver": "garden-apiserver", "controllerManager": "garden-controller-manager",
		"scheduler": "garden-scheduler",
	} {
		image, err := r.image(name)
		if err != nil {
			return gardenProcesses{}, err
		}
		values[key] = map[string]any{"image": image, "replicas": replicas}
	}
	values["apiserver"].(map[string]any)["workloadIdentity"] = map[string]any{
		"issuer": tokenIssuer, "signingKeySecretName": workloadIdentitySecret,
	}
	values["encryption"] = map[string]any{"checksum": encryptionChecksum}
	image, err := r.image("dashboard")
	if err != nil {
		return gardenProcesses{}, err
	}
	terminalImage, err := r.image("terminal")
	if err != nil {
		return gardenProcesses{}, err
	}
	values["authentication"] = dashboardIssuers(bundle)
	values["dashboard"] = dashboardValues(image, terminalImage, replicas, bundle, r.state.Loopback)
	r.Step("chart garden")
	installed, err := c.helm.Install(ctx,
		helm.Release{Namespace: gardenNS, Name: "garden", Chart: chart, Values: values})
	return gardenProcesses{release: installed, bundle: bundle}, err
}

// registerGardenAPI lets the garden's API server pass requests on to garden-apiserver, and waits until it does.
func (r *run) registerGardenAPI(ctx context.Context, bundle []byte) error {
	garden, err := r.garden()
	if err != nil {
		return err
	}
	for _, object := range registration.Objects(registration.Target{CABundle: bundle}) {
		plain, err := apply.ToUnstructured(garden.client.Scheme(), object)
		if err != nil {
			return err
		}
		if err := garden.applyPatiently(ctx, plain); err != nil {
			return err
		}
	}
	r.Step("waiting for the garden's API")
	return registration.WaitUntilServed(ctx, garden.config)
}

// gardenSecrets makes the Secrets of the garden's processes under the names that their chart expects. It returns the
// bundle that verifies garden-apiserver, and a checksum of all: the processes read them once, when they start.
func (r *run) gardenSecrets(ctx context.Context, c client.Client,
	manager secrets.Manager) (bundle []byte, checksum string, err error) {
	client, err := manager.Generate(ctx,
		secrets.CertificateConfig{
			Name: "garden-apiserver-etcd-client", CommonName: "garden-apiserver", CertType: secrets.ClientCert,
			SigningCA: "ca-etcd",
		})
	if err != nil {
		return nil, "", err
	}
	server, err := manager.Generate(ctx, secrets.CertificateConfig{
		Name: "garden-apiserver-server", CommonName: "garden-apiserver", CertType: secrets.ServerCert, SigningCA: "ca",
		DNSNames: []string{
			registration.ServiceName, registration.ServerName, registration.ServerName + "." + clusterDomain,
			discoveryHost,
		},
	})
	if err != nil {
		return nil, "", err
	}
	signing, err := manager.Generate(ctx, secrets.KeyConfig{Name: "workload-identity-signing-key"})
	if err != nil {
		return nil, "", err
	}
	ca, caFound := manager.Get("ca", secrets.Bundle)
	etcdCA, etcdFound := manager.Get("ca-etcd", secrets.Bundle)
	if !caFound || !etcdFound {
		return nil, "", fmt.Errorf("the garden's certificate authorities are not known")
	}
	bundle = ca.Data[secrets.DataKeyCertificateBundle]
	data := map[string]map[string][]byte{
		"garden-apiserver-etcd": {
			"ca.crt": etcdCA.Data[secrets.DataKeyCertificateBundle], "tls.crt": client.Data["tls.crt"],
			"tls.key": client.Data["tls.key"],
		},
		"garden-apiserver-tls": {"tls.crt": server.Data["tls.crt"], "tls.key": server.Data["tls.key"]},
		workloadIdentitySecret: {"key.pem": signing.Data[secrets.DataKeyRSAPrivateKey]},
	}
	for name, user := range map[string]string{
		"garden-apiserver":          gardencorev1beta1.GardenAPIServerUser,
		"garden-controller-manager": gardencorev1beta1.GardenControllerManagerUser,
		"garden-scheduler":          gardencorev1beta1.GardenSchedulerUser,
	} {
		kubeconfig, err := manager.Generate(ctx,
			secrets.KubeconfigConfig{
				Name: "kubeconfig-" + name, Server: gardenServer, ServerCA: "ca", User: user, SigningCA: "ca-client",
			})
		if err != nil {
			return nil, "", err
		}
		data[name+"-kubeconfig"] = map[string][]byte{"kubeconfig": kubeconfig.Data["kubeconfig"]}
	}
	for name, content := range data {
		if err := writeSecret(ctx, c, gardenNS, name, content); err != nil {
			return nil, "", err
		}
	}
	return bundle, checksumOf(data), nil
}

// checksumOf identifies the contents of Secrets.
func checksumOf(secrets map[string]map[string][]byte) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for _, key := range slices.Sorted(maps.Keys(secrets[name])) {
			fmt.Fprintf(hash, "%s/%s:%d:", name, key, len(secrets[name][key]))
			hash.Write(secrets[name][key])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

func writeSecret(ctx context.Context, c client.Client, namespace, name string, data map[string][]byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	_, err := controllerutil.CreateOrPatch(ctx, c, secret, func() error {
		secret.Data = data
		return nil
	})
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
