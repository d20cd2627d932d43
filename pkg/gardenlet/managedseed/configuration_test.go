package managedseed

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenletconfig"
)

func aShoot() *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "base"},
		Spec: gardencorev1beta1.ShootSpec{
			Region: "here", DNS: &gardencorev1beta1.DNS{Domain: new("base.example")},
			Networking: &gardencorev1beta1.Networking{
				Nodes: new("10.180.10.0/24"), Pods: new("10.7.0.0/16"), Services: new("10.8.0.0/16"),
			},
			Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{
				{Zones: []string{"b", "a"}}, {Zones: []string{"a"}},
			}},
		},
	}
}

func aParent(t *testing.T) *config.Configuration {
	t.Helper()
	parent, err := config.Parse([]byte(`
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection: {kubeconfig: /parent, gardenClusterAddress: https://garden.example}
gateway: {address: 192.0.2.1}
exposureClassHandlers: [{name: internet, address: 192.0.2.2}]
controllers: {shoot: {concurrentSyncs: 7}, shootCare: {concurrentSyncs: 3}}
resources: {capacity: {shoots: 10000000}}
etcdConfig: {deltaSnapshotPeriod: 2m, verificationPeriod: 0s}
seedConfig:
  metadata: {name: parent, labels: {of: parent}}
  spec:
    provider: {type: local, region: there}
    taints: [{key: parent}]
    networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16, shootDefaults: {pods: 10.3.0.0/16}}
    dns: {internal: {type: local, domain: internal.example, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

func aManagedSeed(configuration string,
	change ...func(*seedmanagementv1alpha1.GardenletConfig)) *seedmanagementv1alpha1.ManagedSeed {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "child"},
	}
	managedSeed.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: []byte(configuration)}
	seedmanagementv1alpha1.SetDefaultsManagedSeed(managedSeed)
	for _, c := range change {
		c(&managedSeed.Spec.Gardenlet)
	}
	return managedSeed
}

func configured(t *testing.T, managedSeed *seedmanagementv1alpha1.ManagedSeed) *config.Configuration {
	t.Helper()
	fields, err := configuration(managedSeed, aShoot(), aParent(t))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(fields)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestConfigurationIsMergedWithTheParents(t *testing.T) {
	parsed := configured(t, aManagedSeed(`{"gateway":{"address":"192.0.2.9"},"controllers":{"shoot":{"concurrentSyncs":2}},
		"seedConfig":{"metadata":{"labels":{"stage":"one"}},"spec":{"provider":{"region":"elsewhere"}}}}`))
	if parsed.Controllers.Shoot.ConcurrentSyncs != 2 || parsed.Controllers.ShootCare.ConcurrentSyncs != 3 ||
		parsed.Resources.Capacity.Shoots != 10000000 {
		t.Errorf("controllers %+v, capacity %d", parsed.Controllers, parsed.Resources.Capacity.Shoots)
	}
	if backup := parsed.ETCDConfig; backup.DeltaSnapshotPeriod.Duration != 2*time.Minute ||
		backup.VerificationPeriod.Duration != 0 {
		t.Errorf("etcds are backed up as %+v says", backup)
	}
	seed := parsed.SeedConfig
	if seed.Name != "child" || len(seed.Labels) != 1 || len(seed.Spec.Taints) > 0 {
		t.Errorf("seed is %+v", seed)
	}
	if seed.Spec.Provider.Type != "local" || seed.Spec.Provider.Region != "elsewhere" ||
		strings.Join(seed.Spec.Provider.Zones, ",") != "a,b" {
		t.Errorf("provider is %+v", seed.Spec.Provider)
	}
	if seed.Spec.Networks.Pods != "10.7.0.0/16" || *seed.Spec.Networks.Nodes != "10.180.10.0/24" ||
		*seed.Spec.Networks.ShootDefaults.Pods != "10.3.0.0/16" {
		t.Errorf("networks are %+v", seed.Spec.Networks)
	}
	if seed.Spec.DNS.Internal.Domain != "internal.example" || seed.Spec.Ingress.Domain != "ingress.base.example" {
		t.Errorf("domains are %+v, %+v", seed.Spec.DNS, seed.Spec.Ingress)
	}
	connection := parsed.GardenClientConnection
	if parsed.Gateway.Address != "192.0.2.9" || connection.Kubeconfig != "" ||
		connection.BootstrapKubeconfig.Name != bootstrapSecretName ||
		connection.KubeconfigSecret.Name != kubeconfigSecretName {
		t.Errorf("gateway %+v, connection %+v", parsed.Gateway, connection)
	}
	if handlers := parsed.ExposureClassHandlers; len(handlers) > 0 {
		t.Errorf("the parent's addresses do not lead to the child: %+v", handlers)
	}
}

// A ManagedSeed need not say what the seed is like: its shoot does, and the parent.
func TestConfigurationWithoutASeed(t *testing.T) {
	nothing := aManagedSeed("")
	nothing.Spec.Gardenlet.Config = nil
	for name, managedSeed := range map[string]*seedmanagementv1alpha1.ManagedSeed{
		"no configuration": nothing,
		"no seedConfig":    aManagedSeed(`{"controllers":{"shoot":{"concurrentSyncs":2}}}`),
		"seedConfig null":  aManagedSeed(`{"seedConfig":null}`),
	} {
		fields, err := configuration(managedSeed, aShoot(), aParent(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fields["gateway"] = map[string]any{"address": "192.0.2.9"} // of the load balancer, which is known later
		parsed, err := parse(fields)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seed := parsed.SeedConfig
		if seed.Name != "child" || seed.Spec.Provider.Region != "here" || seed.Spec.Networks.Pods != "10.7.0.0/16" {
			t.Errorf("%s: seed is %+v", name, seed)
		}
		if seed.Spec.DNS.Internal.Domain != "internal.example" || seed.Spec.Ingress.Domain != "ingress.base.example" {
			t.Errorf("%s: domains are %+v, %+v", name, seed.Spec.DNS, seed.Spec.Ingress)
		}
	}
}

func TestConfigurationThatIsNotMerged(t *testing.T) {
	parsed := configured(t, aManagedSeed(`{"gateway":{"address":"192.0.2.9"},"seedConfig":{"spec":{}}}`,
		func(g *seedmanagementv1alpha1.GardenletConfig) {
			g.MergeWithParent = new(false)
		}))
	if parsed.Controllers.Shoot.ConcurrentSyncs != 20 || parsed.SeedConfig.Spec.DNS.Internal != nil ||
		parsed.SeedConfig.Spec.Networks.Pods != "10.7.0.0/16" {
		t.Errorf("configuration is %+v", parsed)
	}
}

func TestConfigurationWithoutBootstrap(t *testing.T) {
	parsed :=
		configured(t,
			aManagedSeed(`{"gateway":{"address":"g.example"},"gardenClientConnection":{"kubeconfig":"/mine"},"seedConfig":{"spec":{}}}`, func(g *seedmanagementv1alpha1.GardenletConfig) {
				g.Bootstrap = new(seedmanagementv1alpha1.BootstrapNone)
			}))
	if connection := parsed.GardenClientConnection; connection.Kubeconfig != "/mine" ||
		connection.BootstrapKubeconfig != nil {
		t.Errorf("connection is %+v", connection)
	}
}

func TestMistakesNameTheField(t *testing.T) {
	fields, err := configuration(aManagedSeed(`{"gatway":{},"seedConfig":{}}`), aShoot(), aParent(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(fields); err == nil || !strings.Contains(err.Error(), "spec.gardenlet.config") ||
		!strings.Contains(err.Error(), "gatway") {
		t.Errorf("error is %v", err)
	}
}

func TestTokens(t *testing.T) {
	now := time.Now()
	token, err := newToken("child", now)
	if err != nil {
		t.Fatal(err)
	}
	if token.Name != "bootstrap-token-"+string(token.Data["token-id"]) ||
		token.Labels["trellis.garden/seed"] != "child" || token.Type != corev1.SecretTypeBootstrapToken {
		t.Errorf("token is %+v", token)
	}
	if id, secret, _ := strings.Cut(tokenOf(token), "."); len(id) != 6 || len(secret) != 16 {
		t.Errorf("token has %d and %d characters, want 6 and 16", len(id), len(secret))
	}
	if !lasts(token, now) || lasts(token, now.Add(firstAccessLifetime-time.Minute)) || lasts(&corev1.Secret{}, now) {
		t.Error("the end of the token is read wrongly")
	}
}

func TestAddressOf(t *testing.T) {
	ingress := func(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
	}
	for want, service := range map[string]*corev1.Service{
		"": ingress(), "192.0.2.1": ingress(corev1.LoadBalancerIngress{IP: "192.0.2.1"}),
		"lb.example": ingress(corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{Hostname: "lb.example"}),
	} {
		if got := addressOf(service); got != want {
			t.Errorf("address = %q, want %q", got, want)
		}
	}
}

func TestInstallationsAreRemembered(t *testing.T) {
	now := time.Now()
	var installed installations
	if installed.upToDate("a", "1", now, time.Hour) || installed.settled("a", 1, now) {
		t.Error("nothing was installed yet")
	}
	installed.note("a", "1", now)
	installed.looked("a", 1, now)
	if !installed.upToDate("a", "1", now, time.Hour) || installed.upToDate("a", "2", now, time.Hour) ||
		installed.upToDate("a", "1", now.Add(time.Hour), time.Hour) {
		t.Error("what was installed is remembered wrongly")
	}
	if !installed.settled("a", 1, now) || installed.settled("a", 2, now) ||
		installed.settled("a", 1, now.Add(settledPeriod)) {
		t.Error("what was looked at is remembered wrongly")
	}
	installed.forget("a")
	if installed.upToDate("a", "1", now, time.Hour) {
		t.Error("what was forgotten is remembered")
	}
}

// Admission lets a managed seed be what garden-apiserver works out from the garden's objects: that has to be what its
// gardenlet is given.
func TestAdmissionExpectsTheSameSeed(t *testing.T) {
	parent := &gardencorev1beta1.Seed{Spec: aParent(t).SeedConfig.Spec}
	apart := func(g *seedmanagementv1alpha1.GardenletConfig) { g.MergeWithParent = new(false) }
	const gateway = `"gateway":{"address":"192.0.2.9"}`
	for _, managedSeed := range []*seedmanagementv1alpha1.ManagedSeed{
		aManagedSeed(`{"gateway":{"address":"192.0.2.9"},"seedConfig":{"metadata":{"labels":{"stage":"one"}},"spec":{"provider":{"region":"elsewhere"},"taints":[{"key":"a"}]}}}`),
		aManagedSeed(`{"gateway":{"address":"192.0.2.9"},"seedConfig":{"spec":{"dns":{"defaults":[{"type":"local","domain":"x"}]}}}}`),
		aManagedSeed(`{"gateway":{"address":"192.0.2.9"},"seedConfig":{"spec":{}}}`, apart),
		aManagedSeed("{" + gateway + "}"), aManagedSeed(`{"seedConfig":null,` + gateway + "}"),
		aManagedSeed("{"+gateway+"}", apart),
	} {
		given := configured(t, managedSeed).SeedConfig
		expected, err := gardenletconfig.SeedOfManagedSeed(managedSeed, aShoot(), parent)
		if err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(given.Spec, expected.Spec) ||
			!apiequality.Semantic.DeepEqual(given.Labels, expected.Labels) {
			t.Errorf("gardenlet is given\n%+v %v, admission expects\n%+v %v", given.Spec, given.Labels, expected.Spec,
				expected.Labels)
		}
	}
}
