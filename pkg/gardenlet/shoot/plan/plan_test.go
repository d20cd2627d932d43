package plan_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*plan.Inputs)
	}{
		{"workers", func(*plan.Inputs) {}},
		{"workerless", plantest.Workerless},
		{"settings", plantest.AllSettings},
		{"hibernated", plantest.Hibernated(true)},
		{"highly-available", plantest.HighlyAvailable(gardencorev1beta1.FailureToleranceTypeZone)},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := plantest.Inputs()
			test.change(in)
			got, err := yaml.Marshal(plantest.Plan(t, in))
			if err != nil {
				t.Fatal(err)
			}
			golden.CheckText(t, test.name, string(got))
		})
	}
}

// What a seed's nodes are like is of no account where there are no replicas, and parts without replicas of their own
// are as ever.
func TestAvailabilityOfPlans(t *testing.T) {
	single := func(in *plan.Inputs) { in.IsSeedSingle = true }
	if difference := cmp.Diff(plantest.New(t), plantest.New(t, single)); difference != "" {
		t.Errorf("without replicas (-several nodes +one node):\n%s", difference)
	}
	high := plantest.HighlyAvailable(gardencorev1beta1.FailureToleranceTypeNode)
	for name, test := range map[string]struct {
		changes []func(*plan.Inputs)
		want    component.Availability
	}{
		"several nodes": {
			[]func(*plan.Inputs){high}, component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode},
		},
		"one node": {
			[]func(*plan.Inputs){high, single}, component.Availability{
				Tolerance: gardencorev1beta1.FailureToleranceTypeNode, IsSeedSingle: true,
			},
		},
	} {
		values := plantest.New(t, test.changes...).APIServer()
		if values.Availability != test.want || values.Replicas != component.Pair {
			t.Errorf("%s: %d replicas, %+v", name, values.Replicas, values.Availability)
		}
	}
}

// A highly available control plane has two paths into its shoot; others with workers have one. Each is one pod: two
// ends with one key would take the tunnel from each other.
func TestPathsOfPlans(t *testing.T) {
	high := plantest.HighlyAvailable(gardencorev1beta1.FailureToleranceTypeNode)
	for name, test := range map[string]struct {
		changes []func(*plan.Inputs)
		want    []string
	}{
		"one node may stop it": {nil, []string{"vpn-seed-server"}},
		"highly available":     {[]func(*plan.Inputs){high}, []string{"vpn-seed-server", "vpn-seed-server-1"}},
		"without workers":      {[]func(*plan.Inputs){high, plantest.Workerless}, nil},
	} {
		p := plantest.New(t, test.changes...)
		var got []string
		for _, component := range p.Components {
			if strings.HasPrefix(component, "vpn-seed-server") {
				got = append(got, component)
				if replicas := replicasOf(t, p, component); replicas != 1 {
					t.Errorf("%s: %s has %d replicas", name, component, replicas)
				}
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: paths %q, want %q", name, got, test.want)
		}
	}
}

func TestDeletionPlan(t *testing.T) {
	for name, change := range map[string]func(*plan.Inputs){
		"workers": func(*plan.Inputs) {}, "workerless": plantest.Workerless,
	} {
		in := plantest.Inputs()
		change(in)
		planned, err := plan.NewDeletion(in.ProjectName, in.Shoot)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(planned)
		if err != nil {
			t.Fatal(err)
		}
		golden.CheckText(t, "deletion-"+name, string(got))
	}
}

func TestPlanIsTheSameForTheSameInputs(t *testing.T) {
	a, b := plantest.Plan(t, plantest.Inputs()), plantest.Plan(t, plantest.Inputs())
	if difference := cmp.Diff(a, b); difference != "" {
		t.Error(difference)
	}
}

func TestPlanRefusesMistakes(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*plan.Inputs)
		want   string
	}{
		{"no services network", func(in *plan.Inputs) {
			in.Shoot.Spec.Networking.Services = nil
			in.Seed.Spec.Networks.ShootDefaults = nil
		}, "spec.networking.services is not set"},
		{
			"services not a network", func(in *plan.Inputs) { in.Shoot.Spec.Networking.Services = new("10.4.0.0") },
			"spec.networking.services",
		},
		{
			"nodes not a network", func(in *plan.Inputs) { in.Shoot.Spec.Networking.Nodes = new("all") },
			"spec.networking",
		},
		{
			"domain of nobody", func(in *plan.Inputs) { in.Shoot.Spec.DNS.Domain = new("example.com") },
			`spec.dns.domain "example.com"`,
		},
		{
			"no name at all", func(in *plan.Inputs) { in.Shoot.Spec.DNS, in.Seed.Spec.DNS.Internal = nil, nil },
			"would have no name",
		},
		{"unknown extension", func(in *plan.Inputs) {
			in.Shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "nothere"}}
		}, `no ControllerRegistration offers an extension of type "nothere"`},
		{
			"image without version", func(in *plan.Inputs) {
				in.Shoot.Spec.Provider.Workers[0].Machine.Image.Version = nil
			}, "spec.provider.workers[0]: machine.image",
		},
		{"encryption that is not known", func(in *plan.Inputs) {
			in.Shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
				EncryptionConfig: &gardencorev1beta1.EncryptionConfig{
					Provider: gardencorev1beta1.EncryptionProvider{
						Type: new(gardencorev1beta1.EncryptionProviderType("rot13")),
					},
				},
			}
		}, `type "rot13" is not known`},
		{"audit policy that is none", func(in *plan.Inputs) {
			plantest.AllSettings(in)
			in.Files.AuditPolicy = []byte("rules: []")
		}, `spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name`},
		{"tokens of the cluster's own issuer", func(in *plan.Inputs) {
			plantest.AllSettings(in)
			in.Files.Authentication = bytes.ReplaceAll(in.Files.Authentication, []byte("accounts.example.com"),
				[]byte("old.example.com"))
		}, `spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName`},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := plantest.Inputs()
			test.change(in)
			_, err := plan.New(in, plantest.Gateway(), plantest.Images())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			var known interface {
				ErrorCodes() []gardencorev1beta1.ErrorCode
			}
			if !errors.As(err, &known) || known.ErrorCodes()[0] != gardencorev1beta1.ErrorConfigurationProblem {
				t.Errorf("error %v has no code for a mistake in the configuration", err)
			}
		})
	}
}

func TestPoolKeyChangesWithWhatNeedsNewMachines(t *testing.T) {
	key := func(change func(*plan.Inputs)) string {
		in := plantest.Inputs()
		change(in)
		return plantest.Plan(t, in).Pools[0].SecretName
	}
	base := key(func(*plan.Inputs) {})
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		rolls  bool
	}{
		"patch version": {func(in *plan.Inputs) { in.Shoot.Spec.Kubernetes.Version = "1.36.4" }, false},
		"minor version": {func(in *plan.Inputs) { in.Shoot.Spec.Kubernetes.Version = "1.35.4" }, true},
		"labels": {
			func(in *plan.Inputs) { in.Shoot.Spec.Provider.Workers[0].Labels = map[string]string{"a": "b"} }, false,
		},
		"machine type": {func(in *plan.Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Type = "large" }, true},
		"image version": {
			func(in *plan.Inputs) { in.Shoot.Spec.Provider.Workers[0].Machine.Image.Version = new("13.0.0") }, true,
		},
		"reserved": {func(in *plan.Inputs) { in.Shoot.Spec.Kubernetes.Kubelet = reserved("2Gi") }, true},
		"maximum":  {func(in *plan.Inputs) { in.Shoot.Spec.Provider.Workers[0].Maximum = 9 }, false},
		"volume size": {func(in *plan.Inputs) {
			in.Shoot.Spec.Provider.Workers[0].Volume = &gardencorev1beta1.Volume{VolumeSize: "50Gi"}
		}, true},
		"rotation of CA": {func(in *plan.Inputs) { in.Shoot.Status.Credentials = rotated() }, true},
		"rotation of CA, for other pools": {func(in *plan.Inputs) {
			in.Shoot.Status.Credentials = rotated()
			in.Shoot.Status.Credentials.Rotation.CertificateAuthorities.PendingWorkersRollouts =
				[]gardencorev1beta1.PendingWorkersRollout{
					{Name: in.Shoot.Spec.Provider.Workers[0].Name},
				}
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
		{
			"default domain", &gardencorev1beta1.DNS{Domain: new("member1.demo.local.trellis.garden")},
			"api.member1.demo.local.trellis.garden", false,
		},
		{"own provider", &gardencorev1beta1.DNS{Domain: new("example.com"), Providers: []gardencorev1beta1.DNSProvider{
			{Type: new("route"), Primary: new(true), SecretName: new("dns")},
		}}, "api.example.com", false},
		{"unmanaged", &gardencorev1beta1.DNS{Domain: new("example.com"), Providers: []gardencorev1beta1.DNSProvider{
			{Type: new(gardencorev1beta1.DNSUnmanaged)},
		}}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := plantest.Inputs()
			in.Shoot.Spec.DNS = test.dns
			p := plantest.Plan(t, in)
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
			if want := "https://" + p.Internal.Hostname; p.APIServer().ServiceAccounts.Issuer != want {
				t.Errorf("the issuer of tokens is %s, want %s whatever the user's domain is",
					p.APIServer().ServiceAccounts.Issuer, want)
			}
		})
	}
}

func reserved(memory string) *gardencorev1beta1.KubeletConfig {
	return &gardencorev1beta1.KubeletConfig{
		KubeReserved: &gardencorev1beta1.KubeletConfigReserved{Memory: new(resource.MustParse(memory))},
	}
}

func rotated() *gardencorev1beta1.ShootCredentials {
	at := metav1.Unix(1700000000, 0)
	return &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &gardencorev1beta1.CARotation{LastInitiationTime: &at},
	}}
}
