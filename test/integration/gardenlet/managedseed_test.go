package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bootstrap"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// startShootCluster runs the API server of the shoot that becomes a seed. Where control planes are played, this one is
// real.
func startShootCluster(t *testing.T) (*environment.Environment, client.Client) {
	t.Helper()
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := environment.Start(context.Background(), binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	shoot, err := client.New(cluster.Config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, shoot
}

// testManagedSeed makes a seed of the example's shoot, and a mere shoot of it again. What runs in the shoot is played:
// the load balancer of its cloud, the issuing of gardenlet's certificate, and gardenlet's pod, which is this process.
func testManagedSeed(t *testing.T) {
	cluster, inShoot := startShootCluster(t)
	shootCluster.Store(cluster.Config)
	create(t, &corev1.Secret{ObjectMeta: readable("dns-local")})
	objects := load(t, filepath.Join("..", "..", "..", "landscape", "local", "examples", "managedseed.yaml"))
	shoot, managedSeed := objects[1].(*gardencorev1beta1.Shoot), objects[2].(*seedmanagementv1alpha1.ManagedSeed)
	shoot.Annotations = map[string]string{gardencorev1beta1.ShootSkipReadiness: "true"}
	create(t, objects[0], shoot, managedSeed)
	succeeded(t, shoot)

	playLoadBalancer(t, managedSeed, inShoot)
	awaitReason(t, managedSeed, "SeedNotRegistered")
	if !conditions.IsTrue(managedSeed.Status.Conditions, seedmanagementv1alpha1.ManagedSeedShootReconciled) ||
		managedSeed.Status.ObservedGeneration != managedSeed.Generation {
		t.Errorf("status is %+v", managedSeed.Status)
	}
	parsed := checkInstallation(t, inShoot)
	checkToken(t, managedSeed, inShoot, parsed)

	stop := playGardenlet(t, cluster, inShoot, parsed)
	awaitReason(t, managedSeed, "SeedRegistered")
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: seedmanagementv1alpha1.BootstrapTokenSecretName(managedSeed.Name),
		},
	}
	renewKubeconfig(t, managedSeed, inShoot, token)

	playNamespaces(t, inShoot)
	if err := c.Delete(context.Background(), managedSeed); err != nil {
		t.Fatal(err)
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: managedSeed.Name}}
	eventually(t, func() error { return errors.Join(gone(c, seed), gone(c, managedSeed), gone(c, token)) })
	stop()
	for _, object := range append(component.SeedPriorityClasses(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}) {
		if err := gone(inShoot, object); err != nil {
			t.Error(err)
		}
	}
}

// playLoadBalancer gives the gateway its address, as the cloud of the shoot would.
func playLoadBalancer(t *testing.T, managedSeed *seedmanagementv1alpha1.ManagedSeed, inShoot client.Client) {
	t.Helper()
	awaitReason(t, managedSeed, "GatewayWithoutAddress")
	eventually(t, func() error {
		service := &corev1.Service{}
		if err := inShoot.Get(context.Background(), client.ObjectKey{Namespace: "garden", Name: "gateway"},
			service); err != nil {
			return err
		}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.180.10.2"}}
		return inShoot.Status().Update(context.Background(), service)
	})
}

// awaitReason waits until SeedRegistered has a reason.
func awaitReason(t *testing.T, managedSeed *seedmanagementv1alpha1.ManagedSeed, reason string) {
	t.Helper()
	eventually(t, func() error {
		if err := get(managedSeed); err != nil {
			return err
		}
		if found := conditions.Get(managedSeed.Status.Conditions,
			seedmanagementv1alpha1.ManagedSeedSeedRegistered); found == nil || found.Reason != reason {
			return fmt.Errorf("conditions are %+v, want reason %s", managedSeed.Status.Conditions, reason)
		}
		return nil
	})
}

// checkInstallation checks what lies in the shoot, and returns gardenlet's configuration.
func checkInstallation(t *testing.T, inShoot client.Client) *config.Configuration {
	t.Helper()
	deployment, configMap := &appsv1.Deployment{}, &corev1.ConfigMap{}
	for name, object := range map[string]client.Object{"gardenlet": deployment, "gardenlet-config": configMap} {
		if err := inShoot.Get(context.Background(), client.ObjectKey{Namespace: "garden", Name: name},
			object); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range component.SeedPriorityClasses() {
		if err := inShoot.Get(context.Background(), client.ObjectKeyFromObject(class), class); err != nil {
			t.Errorf("priority classes of the seed: %v", err)
		}
	}
	if deployment.Spec.Template.Labels["stage"] != "example" || *deployment.Spec.Replicas != 1 {
		t.Errorf("deployment is %+v", deployment.Spec)
	}
	parsed, err := config.Parse([]byte(configMap.Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	spec := parsed.SeedConfig.Spec
	if parsed.SeedConfig.Name != "example" || parsed.Gateway.Address != "10.180.10.2" ||
		spec.Networks.Pods != "10.7.0.0/16" || spec.Provider.Region != "local" ||
		spec.DNS.Internal.Domain != "internal.local.example" ||
		spec.Ingress.Domain != "ingress.example.garden.local.example" ||
		parsed.Controllers.Seed.ConditionsPeriod.Duration != time.Second {
		t.Errorf("configuration is %s", configMap.Data["config.yaml"])
	}
	return parsed
}

// checkToken asks for certificates with the bootstrap token: for the seed it is granted, for others it is not.
func checkToken(t *testing.T, managedSeed *seedmanagementv1alpha1.ManagedSeed, inShoot client.Client,
	parsed *config.Configuration) {
	t.Helper()
	secret := &corev1.Secret{}
	ref := parsed.GardenClientConnection.BootstrapKubeconfig
	if err := inShoot.Get(context.Background(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name},
		secret); err != nil {
		t.Fatal(err)
	}
	garden, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	for seed, want := range map[string]certificatesv1.RequestConditionType{
		managedSeed.Name: certificatesv1.CertificateApproved, "local": certificatesv1.CertificateDenied,
	} {
		if got := decisionAbout(t, garden, seed); got != want {
			t.Errorf("the token asks for the certificate of seed %s: %s, want %s", seed, got, want)
		}
	}
	kube, err := kubernetes.NewForConfig(garden)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Secrets("garden").List(context.Background(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets with the token: %v", err)
	}
}

// decisionAbout asks for a seed's certificate and returns what garden-controller-manager decides.
func decisionAbout(t *testing.T, garden *rest.Config, seed string) certificatesv1.RequestConditionType {
	t.Helper()
	request, err := bootstrap.NewRequest(seed)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(garden)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := kube.CertificatesV1().CertificateSigningRequests().Create(context.Background(), request,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var decision certificatesv1.RequestConditionType
	eventually(t, func() error {
		if csr, err = kube.CertificatesV1().CertificateSigningRequests().Get(context.Background(), csr.Name,
			metav1.GetOptions{}); err != nil {
			return err
		}
		if len(csr.Status.Conditions) == 0 {
			return fmt.Errorf("nothing was decided about %s", csr.Name)
		}
		decision = csr.Status.Conditions[0].Type
		return nil
	})
	return decision
}

// playGardenlet is the pod of gardenlet in the shoot, with the kubeconfig that it would have got.
func playGardenlet(t *testing.T, cluster *environment.Environment, inShoot client.Client,
	parsed *config.Configuration) (stop func()) {
	t.Helper()
	storeKubeconfig(t, inShoot, parsed.SeedConfig.Name)
	return start(t, "gardenlet of the managed seed", func(ctx context.Context) error {
		return gardenlet.Run(ctx, gardenlet.Options{
			Config: parsed, Seed: cluster.Config, HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true,
		})
	})
}

// storeKubeconfig writes the kubeconfig of a seed's gardenlet into the shoot.
func storeKubeconfig(t *testing.T, inShoot client.Client, seed string) {
	t.Helper()
	garden, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.SeedUserNamePrefix+seed,
		gardencorev1beta1.SeedsGroup)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := bootstrap.Kubeconfig(garden, seed,
		&bootstrap.Certificate{Certificate: garden.CertData, Key: garden.KeyData})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
	if err := inShoot.Create(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
}

// renewKubeconfig asks for a new certificate of the managed seed's gardenlet.
func renewKubeconfig(t *testing.T, managedSeed *seedmanagementv1alpha1.ManagedSeed, inShoot client.Client,
	token *corev1.Secret) {
	t.Helper()
	eventually(t, func() error {
		if err := get(managedSeed); err != nil {
			return err
		}
		managedSeed.Annotations = map[string]string{
			gardencorev1beta1.GardenerOperation: gardencorev1beta1.GardenerOperationRenewKubeconfig,
		}
		return c.Update(context.Background(), managedSeed)
	})
	eventually(t, func() error {
		return errors.Join(gone(inShoot,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig"}}),
			get(token))
	})
	eventually(t, func() error {
		if err := get(managedSeed); err != nil || len(managedSeed.Annotations) == 0 {
			return err
		}
		return fmt.Errorf("annotations are %v", managedSeed.Annotations)
	})
	storeKubeconfig(t, inShoot, managedSeed.Name)
}

// playNamespaces lets namespaces of the shoot go.
func playNamespaces(t *testing.T, inShoot client.Client) {
	start(t, "namespaces of the shoot", func(ctx context.Context) error {
		return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			namespaces := &corev1.NamespaceList{}
			_ = inShoot.List(ctx, namespaces)
			for _, namespace := range namespaces.Items {
				if namespace.DeletionTimestamp != nil {
					namespace.Spec.Finalizers = nil
					_ = inShoot.SubResource("finalize").Update(ctx, &namespace)
				}
			}
			return false, nil
		})
	})
}

// gone returns an error as long as an object exists.
func gone(from client.Client, object client.Object) error {
	err := from.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%T %s is still there", object, client.ObjectKeyFromObject(object))
	}
	return client.IgnoreNotFound(err)
}
