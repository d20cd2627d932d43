package shoot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Inputs)
	}{
		{"workers", func(*Inputs) {}},
		{"workerless", workerless},
		{"settings", allSettings},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputs()
			test.change(in)
			got, err := yaml.Marshal(plan(t, in))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "plan-"+test.name+".yaml", string(got))
		})
	}
}

func TestPlanIsTheSameForTheSameInputs(t *testing.T) {
	a, b := plan(t, inputs()), plan(t, inputs())
	if difference := cmp.Diff(a, b); difference != "" {
		t.Error(difference)
	}
}

func TestPlanRefusesMistakes(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Inputs)
		want   string
	}{
		{"no services network", func(in *Inputs) {
			in.Shoot.Spec.Networking.Services = nil
			in.Seed.Spec.Networks.ShootDefaults = nil
		}, "spec.networking.services is not set"},
		{"services not a network", func(in *Inputs) { in.Shoot.Spec.Networking.Services = ptr.To("10.4.0.0") }, "spec.networking.services"},
		{"nodes not a network", func(in *Inputs) { in.Shoot.Spec.Networking.Nodes = ptr.To("all") }, "spec.networking"},
		{"domain of nobody", func(in *Inputs) { in.Shoot.Spec.DNS.Domain = ptr.To("example.com") }, `spec.dns.domain "example.com"`},
		{"no name at all", func(in *Inputs) { in.Shoot.Spec.DNS, in.Seed.Spec.DNS.Internal = nil, nil }, "would have no name"},
		{"unknown extension", func(in *Inputs) {
			in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "nothere"}}
		}, `no ControllerRegistration offers an extension of type "nothere"`},
		{"image without version", func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Image.Version = nil }, "spec.provider.workers[0]: machine.image"},
		{"encryption that is not known", func(in *Inputs) {
			in.Shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{EncryptionConfig: &gardencorev1beta1.EncryptionConfig{
				Provider: gardencorev1beta1.EncryptionProvider{Type: ptr.To(gardencorev1beta1.EncryptionProviderType("rot13"))},
			}}
		}, `type "rot13" is not known`},
		{"audit policy that is none", func(in *Inputs) {
			allSettings(in)
			in.Files.AuditPolicy = []byte("rules: []")
		}, `spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name`},
		{"tokens of the cluster's own issuer", func(in *Inputs) {
			allSettings(in)
			in.Files.Authentication = bytes.ReplaceAll(in.Files.Authentication, []byte("accounts.example.com"), []byte("old.example.com"))
		}, `spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName`},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputs()
			test.change(in)
			_, err := NewPlan(in, gateway(), images())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			var known coded
			if !errors.As(err, &known) || known.ErrorCodes()[0] != gardencorev1beta1.ErrorConfigurationProblem {
				t.Errorf("error %v has no code for a mistake in the configuration", err)
			}
		})
	}
}

func TestPoolKeyChangesWithWhatNeedsNewMachines(t *testing.T) {
	key := func(change func(*Inputs)) string {
		in := inputs()
		change(in)
		return plan(t, in).Pools[0].SecretName
	}
	base := key(func(*Inputs) {})
	for name, test := range map[string]struct {
		change func(*Inputs)
		rolls  bool
	}{
		"patch version": {func(in *Inputs) { in.Shoot.Spec.Kubernetes.Version = "1.36.4" }, false},
		"minor version": {func(in *Inputs) { in.Shoot.Spec.Kubernetes.Version = "1.35.4" }, true},
		"labels":        {func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Labels = map[string]string{"a": "b"} }, false},
		"machine type":  {func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Type = "large" }, true},
		"image version": {func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("13.0.0") }, true},
		"reserved":      {func(in *Inputs) { in.Shoot.Spec.Kubernetes.Kubelet = reserved("2Gi") }, true},
		"maximum":       {func(in *Inputs) { in.Shoot.Spec.Provider.Workers[0].Maximum = 9 }, false},
		"volume size": {func(in *Inputs) {
			in.Shoot.Spec.Provider.Workers[0].Volume = &gardencorev1beta1.Volume{VolumeSize: "50Gi"}
		}, true},
		"rotation of CA": {func(in *Inputs) { in.Shoot.Status.Credentials = rotated() }, true},
		"rotation of CA, for other pools": {func(in *Inputs) {
			in.Shoot.Status.Credentials = rotated()
			in.Shoot.Status.Credentials.Rotation.CertificateAuthorities.PendingWorkersRollouts = []gardencorev1beta1.PendingWorkersRollout{{Name: in.Shoot.Spec.Provider.Workers[0].Name}}
		}, false},
	} {
		if got := key(test.change) != base; got != test.rolls {
			t.Errorf("%s: machines are replaced: %v, want %v", name, got, test.rolls)
		}
	}
}

func TestExternalDNS(t *testing.T) {
	for _, test := range []struct {
		name     string
		dns      *gardencorev1beta1.DNS
		external string
		unmanage bool
	}{
		{"none", nil, "", false},
		{"default domain", &gardencorev1beta1.DNS{Domain: ptr.To("member1.demo.local.trellis.garden")}, "api.member1.demo.local.trellis.garden", false},
		{"own provider", &gardencorev1beta1.DNS{Domain: ptr.To("example.com"), Providers: []gardencorev1beta1.DNSProvider{
			{Type: ptr.To("route"), Primary: ptr.To(true), SecretName: ptr.To("dns")},
		}}, "api.example.com", false},
		{"unmanaged", &gardencorev1beta1.DNS{Domain: ptr.To("example.com"), Providers: []gardencorev1beta1.DNSProvider{
			{Type: ptr.To(gardencorev1beta1.DNSUnmanaged)},
		}}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputs()
			in.Shoot.Spec.DNS = test.dns
			p := plan(t, in)
			got := ""
			if p.External != nil {
				got = p.External.Hostname
			}
			if got != test.external {
				t.Errorf("external record for %q, want %q", got, test.external)
			}
			last := p.Addresses[len(p.Addresses)-1]
			if unmanaged := last.Name == gardencorev1beta1.AdvertisedAddressUnmanaged; unmanaged != test.unmanage {
				t.Errorf("addresses are %v", p.Addresses)
			}
			if want := "https://" + p.Internal.Hostname; p.APIServer.ServiceAccounts.Issuer != want {
				t.Errorf("the issuer of tokens is %s, want %s whatever the user's domain is", p.APIServer.ServiceAccounts.Issuer, want)
			}
		})
	}
}

// inputs are those of a shoot with one worker pool in the local landscape.
func inputs() *Inputs {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return &Inputs{
		GardenIdentity: "garden", ProjectName: "demo",
		Credentials: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-demo", Name: "local"},
		Seed: &gardencorev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: "local"},
			Spec: gardencorev1beta1.SeedSpec{
				Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "local"},
				Networks: gardencorev1beta1.SeedNetworks{
					Nodes: ptr.To("172.18.0.0/24"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16",
					ShootDefaults: &gardencorev1beta1.ShootNetworks{Pods: ptr.To("10.3.0.0/16"), Services: ptr.To("10.4.0.0/16")},
				},
				DNS: gardencorev1beta1.SeedDNS{
					Internal: &gardencorev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.local.trellis.garden", CredentialsRef: credentials},
					Defaults: []gardencorev1beta1.SeedDNSProviderConfig{{Type: "local", Domain: "local.trellis.garden", CredentialsRef: credentials}},
				},
			},
		},
		CloudProfile: &gardencorev1beta1.CloudProfile{Spec: gardencorev1beta1.CloudProfileSpec{MachineTypes: []gardencorev1beta1.MachineType{
			{Name: "small", CPU: resource.MustParse("1"), Memory: resource.MustParse("2Gi")},
		}}},
		Shoot: &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1", UID: "b8a8d6a4-0000-4000-8000-000000000000", Generation: 1},
			Spec: gardencorev1beta1.ShootSpec{
				Region: "local", CredentialsBindingName: ptr.To("local"), SeedName: ptr.To("local"),
				DNS:        &gardencorev1beta1.DNS{Domain: ptr.To("member1.demo.local.trellis.garden")},
				Kubernetes: gardencorev1beta1.Kubernetes{Version: "1.36.3"},
				Networking: &gardencorev1beta1.Networking{
					Type: ptr.To("flannel"), Nodes: ptr.To("10.180.1.0/24"), Pods: ptr.To("10.3.0.0/16"), Services: ptr.To("10.4.0.0/16"),
				},
				Provider: gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
					Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"},
					Machine: gardencorev1beta1.Machine{Type: "small", Image: &gardencorev1beta1.ShootMachineImage{Name: "debian", Version: ptr.To("12.11.0")}},
				}}},
			},
		},
	}
}

// workerless makes the inputs those of a fleet.
func workerless(in *Inputs) {
	in.Credentials = nil
	in.Shoot.Name = "fleet"
	in.Shoot.Spec.DNS.Domain = ptr.To("fleet.demo.local.trellis.garden")
	in.Shoot.Spec.Networking, in.Shoot.Spec.CredentialsBindingName = nil, nil
	in.Shoot.Spec.Provider.Workers = nil
	in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "federation"}}
	in.Registrations = []gardencorev1beta1.ControllerRegistration{{Spec: gardencorev1beta1.ControllerRegistrationSpec{
		Resources: []gardencorev1beta1.ControllerResource{{Kind: "Extension", Type: "federation", WorkerlessSupported: ptr.To(true)}},
	}}}
}

func gateway() config.Gateway {
	return config.Gateway{Address: "172.18.0.2", TLSPort: 443, ProxyPort: 8443, WireGuardPort: 51820}
}

func images() imagevector.Vector {
	vector := imagevector.Vector{}
	for _, name := range append(allImages(), "kubelet") {
		source := imagevector.Source{Name: name, Repository: "registry.example/" + name}
		if !strings.HasPrefix(name, "kube") {
			source.Tag = "v1"
		}
		vector[name] = source
	}
	return vector
}

func plan(t *testing.T, in *Inputs) *Plan {
	t.Helper()
	p, err := NewPlan(in, gateway(), images())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func reserved(memory string) *gardencorev1beta1.KubeletConfig {
	return &gardencorev1beta1.KubeletConfig{KubeReserved: &gardencorev1beta1.KubeletConfigReserved{Memory: ptr.To(resource.MustParse(memory))}}
}

func rotated() *gardencorev1beta1.ShootCredentials {
	at := metav1.Unix(1700000000, 0)
	return &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &gardencorev1beta1.CARotation{LastInitiationTime: &at},
	}}
}

// compare compares a text with a file in testdata; UPDATE_GOLDEN=1 writes it.
func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with UPDATE_GOLDEN=1 to write it", err)
	}
	if difference := cmp.Diff(string(want), got); difference != "" {
		t.Errorf("%s differs (-want +got); run with UPDATE_GOLDEN=1 when that is meant:\n%s", path, difference)
	}
}
