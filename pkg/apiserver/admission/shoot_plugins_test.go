package admission

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func tolerating(tolerations ...gardencorev1beta1.Toleration) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Tolerations = tolerations }
}

func toleration(described string) gardencorev1beta1.Toleration {
	key, value, hasValue := strings.Cut(described, "=")
	if !hasValue {
		return gardencorev1beta1.Toleration{Key: key}
	}
	return gardencorev1beta1.Toleration{Key: key, Value: &value}
}

func TestTolerationsOfAProject(t *testing.T) {
	project := aProject(func(p *gardencorev1beta1.Project) {
		p.Spec.Tolerations = &gardencorev1beta1.ProjectTolerations{
			Defaults:  []gardencorev1beta1.Toleration{toleration("team=demo")},
			Whitelist: []gardencorev1beta1.Toleration{toleration("arm"), toleration("size=small")},
		}
	})
	class := &gardencorev1beta1.ExposureClass{
		Scheduling: &gardencorev1beta1.ExposureClassScheduling{
			Tolerations: []gardencorev1beta1.Toleration{toleration("internet")},
		},
	}
	inGarden := func(shoot *gardencorev1beta1.Shoot) { shoot.Namespace = "garden" }
	tests := map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       []string
	}{
		"none":                   {aShoot(), nil, nil},
		"whitelisted, any value": {aShoot(tolerating(toleration("arm"), toleration("arm=v9"))), nil, nil},
		"whitelisted value":      {aShoot(tolerating(toleration("size=small"))), nil, nil},
		"another value": {
			aShoot(tolerating(toleration("size=large"))), nil,
			[]string{
				`spec.tolerations[0] size=large is not among what project "demo" may tolerate (arm, size=small, team=demo, internet)`,
			},
		},
		"all values": {
			aShoot(tolerating(toleration("size"))), nil, []string{"spec.tolerations[0] size is not"},
		},
		"the default":           {aShoot(tolerating(toleration("team=demo"))), nil, nil},
		"of the exposure class": {aShoot(tolerating(toleration("internet"))), nil, nil},
		"of the garden": {
			aShoot(inGarden, tolerating(toleration("seed.gardener.cloud/protected"))), nil, nil,
		},
		"of the garden, in a project": {
			aShoot(tolerating(toleration("seed.gardener.cloud/protected"))), nil,
			[]string{"spec.tolerations[0] protected"},
		},
		"had before": {
			aShoot(tolerating(toleration("old"))), aShoot(tolerating(toleration("old"))), nil,
		},
		"had before, and another more": {
			aShoot(tolerating(toleration("old"), toleration("new"))), aShoot(tolerating(toleration("old"))),
			[]string{"spec.tolerations[1] new"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, validateTolerations(test.shoot, test.old, project, class), test.want...)
		})
	}
	got := withTolerations([]gardencorev1beta1.Toleration{toleration("team=other")},
		[]gardencorev1beta1.Toleration{toleration("team=demo"), toleration("arm")})
	if want := "team=other, arm"; describeTolerations(got) != want {
		t.Errorf("with defaults: %s, want %s", describeTolerations(got), want)
	}
}

func TestMergeExposureClass(t *testing.T) {
	class := &gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"},
		Scheduling: &gardencorev1beta1.ExposureClassScheduling{
			SeedSelector: &gardencorev1beta1.SeedSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"net": "public"}},
				ProviderTypes: []string{"local"},
			},
			Tolerations: []gardencorev1beta1.Toleration{toleration("internet")},
		}}
	plain := aShoot()
	checkErrors(t, mergeExposureClass(plain, class))
	if plain.Spec.SeedSelector.MatchLabels["net"] != "public" || len(plain.Spec.Tolerations) != 1 {
		t.Errorf("selector %v, tolerations %v", plain.Spec.SeedSelector, plain.Spec.Tolerations)
	}
	checkErrors(t, mergeExposureClass(plain, class)) // merging again changes nothing
	if len(plain.Spec.Tolerations) != 1 || len(class.Scheduling.SeedSelector.MatchLabels) != 1 {
		t.Errorf("after merging twice: tolerations %v, class %v", plain.Spec.Tolerations, class.Scheduling)
	}
	own := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedSelector = &gardencorev1beta1.SeedSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"size": "big"}},
		}
	})
	checkErrors(t, mergeExposureClass(own, class))
	if len(own.Spec.SeedSelector.MatchLabels) != 2 ||
		!slices.Equal(own.Spec.SeedSelector.ProviderTypes, []string{"local"}) {
		t.Errorf("selector = %+v, want both labels and the class' providers", own.Spec.SeedSelector)
	}
	contrary := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedSelector = &gardencorev1beta1.SeedSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"net": "private"}},
		}
	})
	checkErrors(t, mergeExposureClass(contrary, class),
		`spec.seedSelector.matchLabels[net] exposure class "internet" selects seeds with the value "public"`)
	checkErrors(t, mergeExposureClass(aShoot(), nil))
}

func named(domain string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.DNS = &gardencorev1beta1.DNS{Domain: &domain} }
}

func TestDomains(t *testing.T) {
	shoot := aShoot()
	completeDomain(shoot, "demo", aSeed())
	if got := domainOf(shoot); got != "member1.demo.shoots.example" {
		t.Errorf("domain = %q", got)
	}
	completeDomain(shoot, "other",
		aSeed(func(s *gardencorev1beta1.Seed) { s.Spec.DNS.Defaults[0].Domain = "new.example" }))
	if got := domainOf(shoot); got != "member1.demo.shoots.example" {
		t.Errorf("domain = %q, want it to stay", got)
	}
	seeds := []*gardencorev1beta1.Seed{aSeed()}
	for domain, want := range map[string]string{
		"a.b.shoots.example": "shoots.example", "shoots.example": "", "myshoots.example": "", "own.example": "",
	} {
		if got := defaultDomainAbove(domain, seeds); got != want {
			t.Errorf("default domain above %s = %q, want %q", domain, got, want)
		}
	}
	checkErrors(t, validateDefaultDomain(aShoot(named("member1.demo.shoots.example")), "demo", "shoots.example"))
	checkErrors(t, validateDefaultDomain(aShoot(named("www.shoots.example")), "demo", "shoots.example"),
		"spec.dns.domain can only have member1.demo.shoots.example")
}

func TestDomainsAreUsedOnce(t *testing.T) {
	other := aShoot(named("team.own.example"), func(s *gardencorev1beta1.Shoot) { s.Name = "other" })
	nameless := aShoot(func(s *gardencorev1beta1.Shoot) { s.Name = "nameless" })
	for domain, want := range map[string][]string{
		"free.example":           nil,
		"xteam.own.example":      nil,
		"team.own.example":       {"spec.dns.domain domain of another shoot"},
		"sub.team.own.example":   {"spec.dns.domain domain of another shoot"},
		"own.example":            {"spec.dns.domain domain of another shoot"},
		"internal.example":       {"spec.dns.domain which the garden uses itself"},
		"x.ingress.seed.example": {"spec.dns.domain which the garden uses itself"},
		"example":                {"spec.dns.domain domain of another shoot"},
		"seed.example":           {"spec.dns.domain meets ingress.seed.example"},
		"shoots.example":         {"spec.dns.domain meets shoots.example"},
	} {
		t.Run(domain, func(t *testing.T) {
			shoot := aShoot(named(domain))
			taken := domainsOfOthers(shoot, []*gardencorev1beta1.Shoot{shoot, other, nameless})
			checkErrors(t, validateDomainIsFree(domain, taken, []*gardencorev1beta1.Seed{aSeed()}), want...)
		})
	}
}

func TestPrimaryProvider(t *testing.T) {
	with := func(domain string, primary ...*bool) *gardencorev1beta1.Shoot {
		return aShoot(named(domain), func(s *gardencorev1beta1.Shoot) {
			for _, p := range primary {
				s.Spec.DNS.Providers = append(s.Spec.DNS.Providers,
					gardencorev1beta1.DNSProvider{Type: new("local"), Primary: p})
			}
		})
	}
	primaries := func(shoot *gardencorev1beta1.Shoot) (set []int) {
		for i, provider := range shoot.Spec.DNS.Providers {
			if ptr.Deref(provider.Primary, false) {
				set = append(set, i)
			}
		}
		return set
	}
	for name, test := range map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  []int
	}{
		"own domain":             {with("own.example", nil, nil), []int{0}},
		"own domain, one chosen": {with("own.example", nil, new(true)), []int{1}},
		"default domain":         {with("member1.demo.shoots.example", nil), nil},
		"no provider":            {with("own.example"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			markPrimaryProvider(test.shoot, aSeed())
			if got := primaries(test.shoot); !slices.Equal(got, test.want) {
				t.Errorf("primary = %v, want %v", got, test.want)
			}
		})
	}
}

func TestSeedForShoot(t *testing.T) {
	highlyAvailable := func(tolerance gardencorev1beta1.FailureToleranceType) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{
				HighAvailability: &gardencorev1beta1.HighAvailability{
					FailureTolerance: gardencorev1beta1.FailureTolerance{Type: tolerance},
				},
			}
		}
	}
	networks := func(pods string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Pods = &pods }
	}
	pinned := func(zones ...string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{Zones: zones} }
	}
	inZones := func(zones ...string) func(*gardencorev1beta1.Seed) {
		return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = zones }
	}
	tainted := aSeed(func(s *gardencorev1beta1.Seed) {
		s.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: "team", Value: new("demo")}}
	})
	selecting := func(size string, types ...string) *gardencorev1beta1.SeedSelector {
		return &gardencorev1beta1.SeedSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"size": size}}, ProviderTypes: types,
		}
	}
	tests := map[string]struct {
		shoot   *gardencorev1beta1.Shoot
		seed    *gardencorev1beta1.Seed
		profile *gardencorev1beta1.CloudProfileSpec
		want    []string
	}{
		"fits": {aShoot(), aSeed(), nil, nil},
		"is being deleted": {
			aShoot(), aSeed(func(s *gardencorev1beta1.Seed) { s.DeletionTimestamp = new(metav1.Now()) }), nil,
			[]string{"spec.seedName being deleted"},
		},
		"is tainted": {aShoot(), tainted, nil, []string{"spec.seedName taint team=demo"}},
		"is tainted otherwise": {
			aShoot(tolerating(toleration("team=other"))), tainted, nil, []string{"spec.seedName taint team=demo"},
		},
		"taint is tolerated":    {aShoot(tolerating(toleration("team=demo"))), tainted, nil, nil},
		"taint's key tolerated": {aShoot(tolerating(toleration("team"))), tainted, nil, nil},
		"shoot selects it": {
			aShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("small", "local") }), aSeed(),
			nil, nil,
		},
		"shoot selects others": {
			aShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("big") }), aSeed(), nil,
			[]string{"spec.seedName spec.seedSelector"},
		},
		"shoot wants a provider": {
			aShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("small", "aws") }), aSeed(), nil,
			[]string{"spec.seedName spec.seedSelector"},
		},
		"profile selects others": {
			aShoot(), aSeed(), &gardencorev1beta1.CloudProfileSpec{SeedSelector: selecting("big")},
			[]string{"spec.seedName seedSelector of the cloud profile"},
		},
		"too few zones": {
			aShoot(highlyAvailable("zone")), aSeed(), nil,
			[]string{"spec.controlPlane.highAvailability.failureTolerance.type 3 zones"},
		},
		"zones do for nodes": {aShoot(highlyAvailable("node")), aSeed(), nil, nil},
		"enough zones": {
			aShoot(highlyAvailable("zone")),
			aSeed(func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = []string{"a", "b", "c"} }), nil, nil,
		},
		"zones of the seed": {aShoot(pinned("a")), aSeed(inZones("a")), nil, nil},
		"some zones of the seed": {
			aShoot(pinned("a")), aSeed(inZones("a", "b")), nil, []string{"spec.controlPlane.zones zone b as well"},
		},
		"other zones": {
			aShoot(pinned("c")), aSeed(inZones("a", "b")), nil, []string{"spec.controlPlane.zones no zone c"},
		},
		"restriction not offered": {aShoot(func(s *gardencorev1beta1.Shoot) {
			s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
				{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu"}},
			}
		}), aSeed(), nil, []string{"spec.accessRestrictions[0].name eu"}},
		"same network":           {aShoot(networks("10.1.128.0/17")), aSeed(), nil, nil},
		"same network, replicas": {aShoot(highlyAvailable("node"), networks("10.1.128.0/17")), aSeed(), nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, validateSeedFor(test.shoot, test.seed, test.profile, field.NewPath("spec", "seedName")),
				test.want...)
		})
	}
}

func TestReferencesOfShoot(t *testing.T) {
	shoot := aShoot(func(s *gardencorev1beta1.Shoot) {
		s.Spec.ExposureClassName = new("internet")
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "a"}, {Name: "b"}}
		s.Spec.Resources[0].ResourceRef.APIVersion, s.Spec.Resources[0].ResourceRef.Kind,
			s.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "one"
		s.Spec.Resources[1].ResourceRef.APIVersion, s.Spec.Resources[1].ResourceRef.Kind,
			s.Spec.Resources[1].ResourceRef.Name = "v1", "ConfigMap", "one"
		s.Spec.DNS = &gardencorev1beta1.DNS{
			Providers: []gardencorev1beta1.DNSProvider{{SecretName: new("one")}, {SecretName: new("dns")}},
		}
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
			AuditConfig: &gardencorev1beta1.AuditConfig{
				AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
			},
			StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "authn"},
			StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
				ConfigMapName: "authz", Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
					{SecretName: "webhook"},
				},
			},
			AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{
				{Name: "ImagePolicyWebhook", KubeconfigSecretName: new("policy")}, {Name: "PodSecurity"},
			},
		}
	})
	describe := func(references []reference) (all []string) {
		for _, to := range references {
			all = append(all, to.path.String()+" "+to.kind.Kind+" "+to.fullName())
		}
		return all
	}
	server := "spec.kubernetes.kubeAPIServer."
	want := []string{
		"spec.exposureClassName ExposureClass internet",
		"spec.resources[0].resourceRef Secret garden-demo/one",
		"spec.resources[1].resourceRef ConfigMap garden-demo/one",
		"spec.dns.providers[1].secretName Secret garden-demo/dns",
		server + "auditConfig.auditPolicy.configMapRef.name ConfigMap garden-demo/audit",
		server + "structuredAuthentication.configMapName ConfigMap garden-demo/authn",
		server + "structuredAuthorization.configMapName ConfigMap garden-demo/authz",
		server + "structuredAuthorization.kubeconfigs[0].secretName Secret garden-demo/webhook",
		server + "admissionPlugins[0].kubeconfigSecretName Secret garden-demo/policy",
	}
	if got := describe(addedReferences(referencesOfShoot(shoot), nil)); !slices.Equal(got, want) {
		t.Errorf("references =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	before := shoot.DeepCopy()
	before.Spec.Resources = nil
	before.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication = nil
	if got, want := describe(addedReferences(referencesOfShoot(shoot), before)),
		[]string{want[2], want[5]}; !slices.Equal(got, want) {
		t.Errorf("added = %v, want %v", got, want)
	}
}

func TestResourceReservation(t *testing.T) {
	profile := &gardencorev1beta1.CloudProfileSpec{MachineTypes: []gardencorev1beta1.MachineType{
		{Name: "tiny", CPU: resource.MustParse("500m"), Memory: resource.MustParse("512Mi")},
		{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")},
		{Name: "huge", CPU: resource.MustParse("64"), Memory: resource.MustParse("256Gi")},
	}}
	for name, want := range map[string][2]string{
		"tiny":  {"30m", "255Mi"},
		"small": {"70m", "1843Mi"}, // 60 + 10; 25 % of 4 Gi and 20 % of 4 Gi
		"huge":  {"230m", "12165Mi"},
	} {
		reserved := reservationOf(machineType(profile, name))
		if got := [2]string{reserved.CPU.String(), reserved.Memory.String()}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if machine := machineType(profile, name); reserved.Memory.Cmp(machine.Memory) >= 0 ||
			reserved.CPU.Cmp(machine.CPU) >= 0 {
			t.Errorf("%s: all of the machine is reserved: %s, %s", name, reserved.CPU, reserved.Memory)
		}
	}
	shoot := aShoot()
	reserveByFormula(shoot, profile)
	if kubelet := shoot.Spec.Provider.Workers[0].Kubernetes.Kubelet; kubelet.KubeReserved.CPU.String() != "70m" {
		t.Errorf("kubelet = %+v", kubelet)
	}
	static := aShoot()
	reserveStatically(static)
	if reserved := static.Spec.Kubernetes.Kubelet.KubeReserved; reserved.Memory.String() != "1Gi" ||
		reserved.CPU.String() != "80m" || reserved.PID.String() != "20k" {
		t.Errorf("reserved = %+v", reserved)
	}
	plugin, err :=
		newShootResourceReservation(strings.NewReader("useGKEFormula: true\nselector: {matchLabels: {formula: gke}}"))
	if err != nil || !plugin.config.UseGKEFormula || plugin.config.Selector.MatchLabels["formula"] != "gke" {
		t.Errorf("plugin = %+v, %v", plugin, err)
	}
	if _, err := newShootResourceReservation(strings.NewReader("useGkeFormula: 1")); err == nil {
		t.Error("a misspelt configuration is accepted")
	}
}

func TestMalformedReferences(t *testing.T) {
	for name, want := range map[string]bool{
		"one": false, "a.b-c": false, "../other": true, "..": true, "other/secrets/one": true, "a%2fb": true,
	} {
		for _, to := range []reference{{namespace: "garden-demo", name: name}, {namespace: name, name: "one"}} {
			if got := to.malformed() != ""; got != want {
				t.Errorf("%s: malformed = %v, want %v", to.fullName(), got, want)
			}
		}
	}
}
