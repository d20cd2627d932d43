package seedauthorizer

//lint:file-ignore SA1019 Shoots with older versions of Kubernetes use fields that newer ones must not.

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secretReference(namespace, name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

// shootOn returns a shoot that refers to one object of every kind.
func shootOn(namespace, name, seed string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-" + "x"},
		Spec: gardencorev1beta1.ShootSpec{
			SeedName: &seed,
			CloudProfile: &gardencorev1beta1.CloudProfileReference{
				Kind: "NamespacedCloudProfile", Name: "profile-" + name,
			}, ExposureClassName: new("exposure-" + name),
			CredentialsBindingName: new("binding-" + name), SecretBindingName: new("oldbinding-" + name),
			Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "pool"}}},
			DNS: &gardencorev1beta1.DNS{
				Providers: []gardencorev1beta1.DNSProvider{{SecretName: new("dns-" + name)}},
			},
			Resources: []gardencorev1beta1.NamedResourceReference{
				{
					Name: "a", ResourceRef: autoscalingv1.CrossVersionObjectReference{
						Kind: "Secret", Name: "resource-" + name,
					},
				},
				{
					Name: "b", ResourceRef: autoscalingv1.CrossVersionObjectReference{
						Kind: "ConfigMap", Name: "resource-" + name,
					},
				},
				{
					Name: "c", ResourceRef: autoscalingv1.CrossVersionObjectReference{
						Kind: "WorkloadIdentity", Name: "identity-" + name,
					},
				},
			},
			Kubernetes: gardencorev1beta1.Kubernetes{KubeAPIServer: &gardencorev1beta1.KubeAPIServerConfig{
				AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{
					{KubeconfigSecretName: new("plugin-" + name)},
				},
				AuditConfig: &gardencorev1beta1.AuditConfig{
					AuditPolicy: &gardencorev1beta1.AuditPolicy{
						ConfigMapRef: &corev1.ObjectReference{Name: "audit-" + name},
					},
				},
				StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{
					ConfigMapName: "authentication-" + name,
				},
				StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
					ConfigMapName: "authorization-" + name,
					Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
						{SecretName: "authorizer-" + name},
					},
				},
			}},
		},
		// The UID that gardenlets write opens nothing.
		Status: gardencorev1beta1.ShootStatus{TechnicalID: "shoot--p--" + name, UID: "stolen"},
	}
}

// state is what a garden with one object of every kind for one seed has.
func state(seed string) *Graph {
	g := NewGraph()
	namespace := "garden-" + seed
	shoot := shootOn(namespace, "s", seed)
	fleet := shootOn(namespace, "fleet", seed)
	fleet.Spec.Provider.Workers, fleet.Spec.Extensions = nil, []gardencorev1beta1.Extension{{Type: federationExtension}}
	add(g, seed, namespace, shoot, fleet)
	return g
}

// add brings the objects of a seed into a graph.
func add(g *Graph, seed, namespace string, shoots ...*gardencorev1beta1.Shoot) {
	for _, shoot := range shoots {
		g.Set(vertexOf(kindShoot, shoot), shootEdges(shoot))
	}
	credentials := secretReference(namespace, "infra")
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: meta(namespace, "binding-s"), CredentialsRef: credentials,
		Quotas: []corev1.ObjectReference{{Namespace: "garden", Name: "quota-" + seed}},
	}
	g.Set(vertexOf(kindCredentialsBinding, binding), credentialsBindingEdges(binding))
	for binding, credentials := range map[string]corev1.ObjectReference{
		"binding-identity": {Kind: "WorkloadIdentity", Namespace: namespace, Name: "infra"},
		"binding-internal": {Kind: "InternalSecret", Namespace: namespace, Name: "infra"},
	} {
		object := &securityv1alpha1.CredentialsBinding{
			ObjectMeta: meta(namespace, binding), CredentialsRef: credentials,
		}
		g.Set(vertexOf(kindCredentialsBinding, object), credentialsBindingEdges(object))
		user := &gardencorev1beta1.Shoot{
			ObjectMeta: meta(namespace, "with-"+binding),
			Spec:       gardencorev1beta1.ShootSpec{SeedName: &seed, CredentialsBindingName: &binding},
		}
		g.Set(vertexOf(kindShoot, user), shootEdges(user))
	}
	old := &gardencorev1beta1.SecretBinding{
		ObjectMeta: meta(namespace, "oldbinding-s"),
		SecretRef:  corev1.SecretReference{Namespace: namespace, Name: "oldinfra"},
	}
	g.Set(vertexOf(kindSecretBinding, old), secretBindingEdges(old))
	profile := &gardencorev1beta1.NamespacedCloudProfile{ObjectMeta: meta(namespace, "profile-s")}
	profile.Spec.Parent.Name = "parent-" + seed
	g.Set(vertexOf(kindNamespacedCloudProfile, profile), namespacedCloudProfileEdges(profile))
	project := &gardencorev1beta1.Project{
		ObjectMeta: meta("", "project-"+seed), Spec: gardencorev1beta1.ProjectSpec{Namespace: &namespace},
	}
	g.Set(vertexOf(kindProject, project), projectEdges(project))
	object := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed, UID: "uid-" + "y"}}
	backup, dns := secretReference("garden", "backup-"+seed), secretReference("garden", "dns-"+seed)
	object.Spec.Backup = &gardencorev1beta1.Backup{CredentialsRef: &backup}
	object.Spec.DNS = gardencorev1beta1.SeedDNS{
		Provider: &gardencorev1beta1.SeedDNSProvider{CredentialsRef: &dns},
		Internal: &gardencorev1beta1.SeedDNSProviderConfig{CredentialsRef: dns},
		Defaults: []gardencorev1beta1.SeedDNSProviderConfig{{CredentialsRef: dns}},
	}
	object.Spec.Resources = []gardencorev1beta1.NamedResourceReference{
		{ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: "Secret", Name: "extra-" + seed}},
	}
	g.Set(vertexOf(kindSeed, object), seedEdges(object))
	for _, secret := range []corev1.Secret{
		{ObjectMeta: meta("garden", "backup-"+seed)}, {ObjectMeta: meta("garden", "dns-"+seed)},
		{ObjectMeta: meta("garden", "extra-"+seed)},
	} {
		secret.Labels = map[string]string{gardencorev1beta1.LabelSeedReadableBy: seed}
		g.Set(vertexOf(kindSecret, &secret), consentEdges[*corev1.Secret](kindSecret, "Secret")(&secret))
	}
	bucket := &gardencorev1beta1.BackupBucket{
		ObjectMeta: meta("", "bucket-"+seed),
		Spec:       gardencorev1beta1.BackupBucketSpec{SeedName: &seed, CredentialsRef: &backup},
	}
	// Gardenlets write this; it opens nothing.
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "stolen-" + seed}
	g.Set(vertexOf(kindBackupBucket, bucket), backupBucketEdges(bucket))
	entry := &gardencorev1beta1.BackupEntry{
		ObjectMeta: meta(namespace, "entry-"+seed),
		Spec:       gardencorev1beta1.BackupEntrySpec{SeedName: &seed, BucketName: "foreign-bucket-" + seed},
	}
	g.Set(vertexOf(kindBackupEntry, entry), backupEntryEdges(entry))
	installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: meta("", "installation-"+seed)}
	installation.Spec = gardencorev1beta1.ControllerInstallationSpec{
		SeedRef:         &corev1.ObjectReference{Name: seed},
		RegistrationRef: corev1.ObjectReference{Name: "registration-" + seed},
		DeploymentRef:   &corev1.ObjectReference{Name: "deployment-" + seed},
	}
	g.Set(vertexOf(kindControllerInstallation, installation), controllerInstallationEdges(installation))
	managed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: meta(namespace, "managed-"+seed),
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "s"}},
	}
	g.Set(vertexOf(kindManagedSeed, managed), managedSeedEdges(managed))
	base := &gardencorev1beta1.Shoot{
		ObjectMeta: meta("garden", "base-"+seed), Spec: gardencorev1beta1.ShootSpec{SeedName: &seed},
	}
	g.Set(vertexOf(kindShoot, base), shootEdges(base))
	child := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: meta("garden", "child-"+seed),
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: base.Name}},
	}
	g.Set(vertexOf(kindManagedSeed, child), managedSeedEdges(child))
	self := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", seed)}
	self.Spec.Deployment.Helm.OCIRepository.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-" + seed}
	g.Set(vertexOf(kindGardenlet, self), gardenletEdges(self))
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: meta(namespace, "bastion"), Spec: operationsv1alpha1.BastionSpec{SeedName: &seed},
	}
	g.Set(vertexOf(kindBastion, bastion), bastionEdges(bastion))
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "csr-"+seed)}
	request.Spec.Username = gardencorev1beta1.SeedUserNamePrefix + seed
	g.Set(vertexOf(kindCertificateSigningRequest, request), certificateSigningRequestEdges(request))
}

func TestEdges(t *testing.T) {
	g := state("one")
	for _, v := range []Vertex{
		{kindShoot, "garden-one", "s"}, {kindShoot, "garden-one", "fleet"}, {kindNamespace, "", "garden-one"},
		{kindProject, "", "project-one"},
		{kindFleetNamespace, "", "garden-one"}, {kindNamespacedCloudProfile, "garden-one", "profile-s"},
		{kindCloudProfile, "", "parent-one"},
		{kindExposureClass, "", "exposure-s"}, {kindCredentialsBinding, "garden-one", "binding-s"},
		{kindSecretBinding, "garden-one", "oldbinding-s"},
		{kindSecret, "garden-one", "infra"}, {kindSecret, "garden-one", "oldinfra"}, {kindQuota, "garden", "quota-one"},
		{kindSecret, "garden-one", "dns-s"}, {kindSecret, "garden-one", "resource-s"},
		{kindSecret, "garden-one", "plugin-s"}, {kindSecret, "garden-one", "authorizer-s"},
		{kindConfigMap, "garden-one", "resource-s"}, {kindConfigMap, "garden-one", "audit-s"},
		{kindConfigMap, "garden-one", "authentication-s"}, {kindConfigMap, "garden-one", "authorization-s"},
		{kindSeed, "", "one"}, {kindSecret, "garden", "backup-one"}, {kindSecret, "garden", "dns-one"},
		{kindSecret, "garden", "extra-one"}, {kindSecret, "garden", "generated-bucket-bucket-one"},
		{kindBackupBucket, "", "bucket-one"}, {kindBackupBucket, "", "foreign-bucket-one"},
		{kindBackupBucket, "", "uid-y"},
		{kindBackupEntry, "garden-one", "entry-one"}, {kindBackupEntry, "garden-one", "shoot--p--s--uid-x"},
		{kindControllerInstallation, "", "installation-one"}, {kindControllerRegistration, "", "registration-one"},
		{kindControllerDeployment, "", "deployment-one"},
		{kindCertificateSigningRequest, "", "csr-one"}, {kindBastion, "garden-one", "bastion"},
		{kindManagedSeed, "garden-one", "managed-one"}, {kindSeed, "", "managed-one"},
	} {
		if !g.Reaches(v, "one") {
			t.Errorf("%v does not belong to the seed", v)
		}
		if g.Reaches(v, "two") {
			t.Errorf("%v belongs to another seed as well", v)
		}
	}
}

func TestEdgesLeadToLargerKinds(t *testing.T) {
	for object, edges := range state("one").stated {
		for _, edge := range edges {
			if edge.From.Kind >= edge.To.Kind {
				t.Errorf("%v states that %v leads to %v: there may be cycles", object, edge.From, edge.To)
			}
		}
	}
}

func TestNobodysObjects(t *testing.T) {
	unscheduled := shootOn("garden-x", "s", "one")
	unscheduled.Spec.SeedName = nil
	stranger := &certificatesv1.CertificateSigningRequest{
		Spec: certificatesv1.CertificateSigningRequestSpec{Username: "jane"},
	}
	for name, edges := range map[string][]Edge{
		"a shoot without a seed": shootEdges(unscheduled), "a user's request": certificateSigningRequestEdges(stranger),
		"an installation in a shoot":    controllerInstallationEdges(&gardencorev1beta1.ControllerInstallation{}),
		"a project without a namespace": projectEdges(&gardencorev1beta1.Project{}),
	} {
		if len(edges) > 0 {
			t.Errorf("%s states %v", name, edges)
		}
	}
}

func TestMovingShootBelongsToBothSeeds(t *testing.T) {
	shoot := shootOn("garden-x", "s", "new")
	shoot.Status.SeedName = new("old")
	g := NewGraph()
	g.Set(vertexOf(kindShoot, shoot), shootEdges(shoot))
	for _, seed := range []string{"new", "old"} {
		if !g.Reaches(Vertex{kindSecret, "garden-x", "dns-s"}, seed) {
			t.Errorf("seed %s does not reach the shoot's credentials", seed)
		}
	}
}

// A DNS provider has one set of credentials: whether its author may read a second one is asked by nobody.
func TestCredentialsReplaceTheDeprecatedSecret(t *testing.T) {
	shoot := shootOn("garden-x", "s", "one")
	shoot.Spec.DNS.Providers[0].CredentialsRef = &autoscalingv1.CrossVersionObjectReference{
		APIVersion: "v1", Kind: "Secret", Name: "used",
	}
	g := NewGraph()
	g.Set(vertexOf(kindShoot, shoot), shootEdges(shoot))
	for name, want := range map[string]bool{"used": true, "dns-s": false} {
		if got := g.Reaches(Vertex{kindSecret, "garden-x", name}, "one"); got != want {
			t.Errorf("Secret %s: readable = %v, want %v", name, got, want)
		}
	}
}

func TestFleetOnlyWithoutWorkers(t *testing.T) {
	shoot := shootOn("garden-x", "s", "one")
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: federationExtension}}
	if IsFleet(shoot) {
		t.Error("a shoot with workers is no fleet")
	}
	shoot.Spec.Provider.Workers = nil
	if !IsFleet(shoot) {
		t.Error("a shoot without workers and with the extension is a fleet")
	}
	shoot.Spec.Extensions[0].Disabled = new(true)
	if IsFleet(shoot) {
		t.Error("a disabled extension makes no fleet")
	}
}

// What a Seed names belongs to the seed only if the object says so, whoever wrote the Seed.
func TestSeedsReadWhatIsOfferedAndNamed(t *testing.T) {
	object := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	for _, kind := range []string{"Secret", "ConfigMap", "InternalSecret", "WorkloadIdentity", "Pod"} {
		object.Spec.Resources = append(object.Spec.Resources,
			gardencorev1beta1.NamedResourceReference{
				ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: "extra"},
			})
	}
	g := NewGraph()
	for _, test := range []struct {
		what, label string
		named, want bool
	}{
		{"neither named nor offered", "", false, false},
		{"named only", "", true, false},
		{"offered only", "one", false, false},
		{"offered to another", "two", true, false},
		{"offered to a seed whose name is longer", "one-more", true, false},
		{"both", "one", true, true},
		{"offered to several", "two_one", true, true},
		{"offered to all", "All", true, true},
		{"named, and not offered any more", "", true, false},
	} {
		named := &gardencorev1beta1.Seed{ObjectMeta: object.ObjectMeta}
		if test.named {
			named = object
		}
		g.Set(vertexOf(kindSeed, object), seedEdges(named))
		for name, kind := range credentialKinds {
			offered := &metav1.PartialObjectMetadata{ObjectMeta: meta("garden", "extra")}
			offered.Labels = map[string]string{gardencorev1beta1.LabelSeedReadableBy: test.label}
			g.Set(vertexOf(kind, offered), consentEdges[*metav1.PartialObjectMetadata](kind, name)(offered))
			if got := g.Reaches(Vertex{kind, "garden", "extra"}, "one"); got != test.want {
				t.Errorf("%s, %s: readable = %v, want %v", name, test.what, got, test.want)
			}
			if g.Reaches(Vertex{kind, "garden", "extra"}, "two") {
				t.Errorf("%s, %s: a seed that does not name it reads it", name, test.what)
			}
		}
	}
}

func TestRefusalsTeachTheLabel(t *testing.T) {
	g := NewGraph()
	object := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	object.Spec.DNS.Internal = &gardencorev1beta1.SeedDNSProviderConfig{
		CredentialsRef: secretReference("garden", "dns"),
	}
	g.Set(vertexOf(kindSeed, object), seedEdges(object))
	for request, want := range map[string]string{
		"get core/secrets garden/dns":    "gives it the label seed.trellis.garden/readable-by=one",
		"get core/secrets garden/other":  "does not belong to seed",
		"update core/secrets garden/dns": "does not belong to seed",
	} {
		if _, reason := Authorize(g, gardenlet, attributes(t, request)); !strings.Contains(reason, want) {
			t.Errorf("%s: the reason is %q, want %q", request, reason, want)
		}
	}
}
