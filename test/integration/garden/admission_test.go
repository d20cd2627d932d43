package garden

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// refused makes sure that an error is of a kind and says all of some parts.
func refused(t *testing.T, err error, is func(error) bool, says ...string) {
	t.Helper()
	if err == nil || !is(err) {
		t.Errorf("error = %v (reason %q), want another", err, apierrors.ReasonForError(err))
		return
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error = %v\nwant it to say %q", err, part)
		}
	}
}

func grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	create(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test:" + user}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test:" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test:" + user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	)
	c, err := env.ClientFor(user)
	if err != nil {
		t.Fatal(err)
	}
	// until the role is known
	eventually(t, func() error { return c.List(context.Background(), &gardencorev1beta1.ShootList{}) })
	return c
}

func allow(group string, resources string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Split(resources, ","), Verbs: verbs}
}

func TestWhatIsUsedStays(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "refs")
	create(t, newProfile("refs"), &gardencorev1beta1.ExposureClass{
		ObjectMeta: metav1.ObjectMeta{Name: "refs"}, Handler: "internet",
	})
	create(t, newShoot(namespace, "member1", "refs",
		func(s *gardencorev1beta1.Shoot) { s.Spec.ExposureClassName = new("refs") }))
	deployment := &gardencorev1beta1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "refs"}, Type: "helm"}
	deployment.ProviderConfig.Raw = []byte(`{"chart":"aGVsbG8="}`)
	create(t, deployment, &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "refs"},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{
			Resources: []gardencorev1beta1.ControllerResource{{Kind: "Network", Type: "refs"}},
			Deployment: &gardencorev1beta1.ControllerRegistrationDeployment{
				DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: "refs"}},
			},
		},
	})
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "refs"}}
	if err := get(project); err != nil {
		t.Fatal(err)
	}
	project.Annotations = map[string]string{gardencorev1beta1.ConfirmationDeletion: "true"}
	if err := env.Client.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	const user = "shoot garden-refs/member1"
	for _, test := range []struct {
		object client.Object
		user   string
	}{
		{
			&securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"}},
			user,
		},
		{&gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "refs"}}, user},
		{&gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "refs"}}, user},
		{project, user},
		{deployment, "controllerregistration refs"},
		{&gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "offered"}}, user},
	} {
		refused(t, env.Client.Delete(ctx, test.object), apierrors.IsForbidden, "still used by", test.user)
	}
	if err := env.Client.Delete(ctx,
		&gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "refs"}}); err != nil {
		t.Errorf("an extension that nobody uses: %v", err)
	}

	profile := newProfile("refs")
	if err := get(profile); err != nil {
		t.Fatal(err)
	}
	profile.Spec.Kubernetes.Versions = []gardencorev1beta1.ExpirableVersion{{Version: "1.35.4"}}
	profile.Spec.MachineImages[0].Versions = profile.Spec.MachineImages[0].Versions[:1]
	profile.Spec.Regions[0].Zones = []gardencorev1beta1.AvailabilityZone{{Name: "1"}}
	refused(t, env.Client.Update(ctx, profile), apierrors.IsInvalid,
		"spec.kubernetes.versions: Forbidden: 1.36.3 cannot be removed", user,
		"spec.machineImages: Forbidden: debian 12.12.0", "spec.regions: Forbidden: refs, zone 0", "expirationDate")
}

func TestReferencesAreThereAndMayBeRead(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "reads")
	create(t, newProfile("reads"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private"}})
	eve := grant(t, "reads-eve", allow("core.gardener.cloud", "shoots", "*"),
		allow("security.gardener.cloud", "credentialsbindings", "*"), allow("", "configmaps", "get"))
	refers := func(kind, name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "data"}}
			s.Spec.Resources[0].ResourceRef.APIVersion, s.Spec.Resources[0].ResourceRef.Kind,
				s.Spec.Resources[0].ResourceRef.Name = "v1", kind, name
		}
	}
	refused(t, env.Client.Create(ctx, newShoot(namespace, "missing", "reads", refers("Secret", "none"))),
		apierrors.IsInvalid, "spec.resources[0].resourceRef", "Not found", "garden-reads/none")
	refused(t, env.Client.Create(ctx,
		newShoot(namespace, "missing", "reads",
			func(s *gardencorev1beta1.Shoot) { s.Spec.ExposureClassName = new("none") })), apierrors.IsInvalid,
		"spec.exposureClassName", "Not found")
	refused(t, eve.Create(ctx, newShoot(namespace, "eve", "reads", refers("Secret", "private"))), apierrors.IsForbidden,
		"spec.resources[0].resourceRef", "may not get secret garden-reads/private")
	refused(t, eve.Create(ctx, newShoot(namespace, "eve", "reads", refers("ConfigMap", "none"))), apierrors.IsInvalid,
		"garden-reads/none")
	refused(t, eve.Create(ctx, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "eve"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "private"},
	}), apierrors.IsForbidden, "credentialsRef", "may not get secret")
	create(t, newShoot(namespace, "good", "reads", refers("Secret", "private")))
}

func TestQuotas(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "quotas")
	create(t, newProfile("quotas"), &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trial"},
		Spec: gardencorev1beta1.QuotaSpec{
			ClusterLifetimeDays: new(int32(7)),
			Metrics: corev1.ResourceList{
				"cpu": resource.MustParse("5"), "memory": resource.MustParse("100Gi"),
			},
			Scope: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"},
		},
	})
	create(t, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "trial"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local"},
		Quotas:         []corev1.ObjectReference{{Namespace: namespace, Name: "trial"}},
	})
	trial := func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName = new("trial") }
	first := newShoot(namespace, "first", "quotas", trial)
	create(t, first, newShoot(namespace, "second", "quotas", trial), newShoot(namespace, "free", "quotas"))
	expires, err := time.Parse(time.RFC3339, first.Annotations[gardencorev1beta1.ShootExpirationTimestamp])
	if err != nil || expires.Sub(first.CreationTimestamp.Time).Round(time.Minute) != 7*24*time.Hour {
		t.Errorf("expires %v, %v; want a week after its creation at %v", expires, err, first.CreationTimestamp)
	}
	refused(t, env.Client.Create(ctx, newShoot(namespace, "third", "quotas", trial)), apierrors.IsForbidden,
		"garden-quotas/trial", "cpu: used 4, requested 2, limit 5")
	first.Annotations[gardencorev1beta1.ShootExpirationTimestamp] = expires.Add(10 * 24 * time.Hour).
		Format(time.RFC3339)
	refused(t, env.Client.Update(ctx, first), apierrors.IsForbidden, gardencorev1beta1.ShootExpirationTimestamp,
		"7 days from now")
	refused(t, env.Client.Delete(ctx,
		&gardencorev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trial"}}),
		apierrors.IsForbidden, "credentialsbinding garden-quotas/trial")
}

func TestTwoPersonsDelete(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "dual")
	create(t, newProfile("dual"))
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dual"}}
	if err := get(project); err != nil {
		t.Fatal(err)
	}
	project.Spec.DualApprovalForDeletion = []gardencorev1beta1.DualApprovalForDeletion{{Resource: "shoots"}}
	if err := env.Client.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	shoot := newShoot(namespace, "member1", "dual")
	create(t, shoot)
	alice := grant(t, "dual-alice", allow("core.gardener.cloud", "shoots", "*"))
	bob := grant(t, "dual-bob", allow("core.gardener.cloud", "shoots", "*"))
	shoot.Annotations[gardencorev1beta1.ConfirmationDeletion] = "true"
	shoot.Annotations[gardencorev1beta1.DeletionConfirmedBy] = "dual-bob"
	if err := alice.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if got := shoot.Annotations[gardencorev1beta1.DeletionConfirmedBy]; got != "dual-alice" {
		t.Errorf("confirmed by %q, want dual-alice whatever she writes", got)
	}
	refused(t, alice.Delete(ctx, shoot), apierrors.IsForbidden, `"dual-alice" confirmed the deletion`)
	refused(t, alice.DeleteAllOf(ctx, &gardencorev1beta1.Shoot{}, client.InNamespace(namespace)), apierrors.IsForbidden,
		`"dual-alice" confirmed the deletion`)
	if err := bob.Delete(ctx, shoot); err != nil {
		t.Errorf("a second person cannot delete: %v", err)
	}
}

func TestCustomVerbsAndTolerations(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "verbs")
	create(t, newProfile("verbs"))
	admin := grant(t, "verbs-admin", allow("core.gardener.cloud", "projects,shoots", "get", "list", "create", "update"),
		allow("", "secrets", "get"))
	project := func() *gardencorev1beta1.Project {
		p := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "verbs"}}
		if err := get(p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tolerant := project()
	tolerant.Spec.Tolerations = &gardencorev1beta1.ProjectTolerations{
		Whitelist: []gardencorev1beta1.Toleration{{Key: "arm"}}, Defaults: []gardencorev1beta1.Toleration{{Key: "arm"}},
	}
	refused(t, admin.Update(ctx, tolerant), apierrors.IsForbidden, "spec.tolerations.whitelist",
		"modify-spec-tolerations-whitelist")
	if err := env.Client.Update(ctx, tolerant); err != nil {
		t.Fatal(err)
	}
	crowded := project()
	crowded.Spec.Members = append(crowded.Spec.Members, gardencorev1beta1.ProjectMember{
		Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "verbs-friend"},
		Role:    gardencorev1beta1.ProjectMemberAdmin,
	})
	refused(t, admin.Update(ctx, crowded), apierrors.IsForbidden, "spec.members", "manage-members")
	described := project()
	described.Spec.Description = new("what an admin may change")
	if err := admin.Update(ctx, described); err != nil {
		t.Errorf("a description: %v", err)
	}

	tolerating := func(key string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: key}} }
	}
	refused(t, admin.Create(ctx, newShoot(namespace, "member1", "verbs", tolerating("gpu"))), apierrors.IsInvalid,
		"spec.tolerations[0]", "arm")
	refused(t, admin.Create(ctx, newShoot(namespace, "member1", "verbs",
		func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("somewhere") })), apierrors.IsForbidden,
		"spec.seedName", "shoots/binding")
	shoot := newShoot(namespace, "member1", "verbs")
	if err := admin.Create(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if len(shoot.Spec.Tolerations) != 1 || shoot.Spec.Tolerations[0].Key != "arm" {
		t.Errorf("tolerations = %v, want the project's", shoot.Spec.Tolerations)
	}
	if got := shoot.Labels["networking.extensions.gardener.cloud/flannel"]; got != "true" {
		t.Errorf("labels = %v, want those of extensions", shoot.Labels)
	}
}

func TestFinalizersStay(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "final")
	create(t, newProfile("final"))
	shoot := newShoot(namespace, "member1", "final")
	create(t, shoot)
	shoot.Finalizers = []string{gardencorev1beta1.GardenerName, "example.com/mine"}
	if err := env.Client.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	alice := grant(t, "final-alice", allow("core.gardener.cloud", "shoots,shoots/status", "get", "list", "update"))
	for _, update := range []func(client.Client) error{
		func(c client.Client) error { return c.Update(ctx, shoot) },
		func(c client.Client) error { return c.Status().Update(ctx, shoot) },
	} {
		shoot.Finalizers = []string{"example.com/mine"}
		refused(t, update(alice), apierrors.IsForbidden, "metadata.finalizers: gardener", "remove-finalizers")
	}
	shoot.Finalizers = []string{gardencorev1beta1.GardenerName}
	if err := alice.Update(ctx, shoot); err != nil {
		t.Errorf("a finalizer of somebody else: %v", err)
	}
	shoot.Finalizers = nil
	if err := env.Client.Update(ctx, shoot); err != nil {
		t.Errorf("an operator cannot clean up: %v", err)
	}
}

func TestVersionsExpire(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "expiry")
	profile := newProfile("expiry")
	profile.Spec.Kubernetes.Versions = []gardencorev1beta1.ExpirableVersion{
		{Version: "1.36.3", Classification: new(gardencorev1beta1.ClassificationPreview)},
		{Version: "1.35.4"}, {Version: "1.35.3", Classification: new(gardencorev1beta1.ClassificationDeprecated)},
	}
	profile.Spec.MachineImages[0].Versions[1].Classification = new(gardencorev1beta1.ClassificationPreview)
	create(t, profile)
	version := func(wanted string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = wanted }
	}
	newest, partial, exact, old := newShoot(namespace, "newest", "expiry"),
		newShoot(namespace, "partial", "expiry", version("1.35")),
		newShoot(namespace, "exact", "expiry", version("1.36.3")),
		newShoot(namespace, "old", "expiry", version("1.35.3"))
	create(t, newest, partial, exact, old)
	for shoot, want := range map[*gardencorev1beta1.Shoot]string{
		newest: "1.35.4", partial: "1.35.4", exact: "1.36.3", old: "1.35.3",
	} {
		if got := shoot.Spec.Kubernetes.Version; got != want {
			t.Errorf("version of %s = %s, want %s", shoot.Name, got, want)
		}
	}
	if image := newest.Spec.Provider.Workers[0].Machine.Image; ptr.Deref(image.Version, "") != "12.11.0" {
		t.Errorf("image = %v, want the newest that is no preview, 12.11.0", ptr.Deref(image.Version, ""))
	}
	refused(t, env.Client.Create(ctx, newShoot(namespace, "preview", "expiry", version("1.36"))), apierrors.IsInvalid,
		"spec.kubernetes.version")

	if err := get(profile); err != nil {
		t.Fatal(err)
	}
	profile.Spec.Kubernetes.Versions[2].ExpirationDate = new(metav1.NewTime(time.Now().Add(-time.Hour)))
	if err := env.Client.Update(ctx, profile); err != nil {
		t.Fatal(err)
	}
	var err error
	eventually(t, func() error { // admission reads profiles that may be milliseconds old
		if err = env.Client.Create(ctx, newShoot(namespace, "late", "expiry", version("1.35.3")),
			client.DryRunAll); err == nil {
			return errNotYet
		}
		return nil
	})
	refused(t, err, apierrors.IsInvalid, "spec.kubernetes.version", "1.35.4")
	old.Spec.Purpose = new(gardencorev1beta1.ShootPurposeTesting)
	if err := env.Client.Update(ctx, old); err != nil {
		t.Errorf("a shoot with a version that has expired since: %v", err)
	}
}

func TestSeedsAndDomains(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "seeds")
	seed := newSeed("seeds", "seeds")
	seed.Spec.Provider.Zones = []string{"0", "1"}
	create(t, newProfile("seeds"), seed)
	seed.Status.Allocatable = corev1.ResourceList{gardencorev1beta1.ResourceShoots: resource.MustParse("1")}
	if err := env.Client.Status().Update(ctx, seed); err != nil {
		t.Fatal(err)
	}
	onSeed := func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("seeds") }
	domain := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: &name} }
	}
	first := newShoot(namespace, "first", "seeds", onSeed)
	create(t, first, newShoot(namespace, "own", "seeds", domain("own.seeds.example")))
	if got := ptr.Deref(first.Spec.DNS.Domain, ""); got != "first.seeds.shoots.example" {
		t.Errorf("domain = %q", got)
	}
	refused(t, env.Client.Create(ctx, newShoot(namespace, "second", "seeds", onSeed)), apierrors.IsInvalid,
		"spec.seedName", "is full: it hosts 1 shoots", "limit (status.allocatable.shoots) is 1")
	refused(t, env.Client.Create(ctx, newShoot(namespace, "third", "seeds", domain("sub.own.seeds.example"))),
		apierrors.IsInvalid, "spec.dns.domain", "another shoot")
	refused(t, env.Client.Create(ctx, newShoot(namespace, "fourth", "seeds", domain("first.shoots.example"))),
		apierrors.IsInvalid, "spec.dns.domain", "fourth.seeds.shoots.example")

	seed.Spec.Provider.Zones = []string{"0"}
	refused(t, env.Client.Update(ctx, seed), apierrors.IsInvalid, "spec.provider.zones", "shoot garden-seeds/first")

	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cli"}}
	bastion.Spec.ShootRef.Name = "own"
	bastion.Spec.SSHPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEaPgNTmy8tbqNHBuVsFnFPIsk9gsjGeb4AW7ofI5Sq5 me"
	bastion.Spec.Ingress = []operationsv1alpha1.BastionIngressPolicy{{}}
	bastion.Spec.Ingress[0].IPBlock.CIDR = "192.0.2.1/32"
	refused(t, env.Client.Create(ctx, bastion), apierrors.IsInvalid, "spec.shootRef.name",
		"not been assigned to a seed")
	bastion.Spec.ShootRef.Name = "first"
	create(t, bastion)
	if ptr.Deref(bastion.Spec.SeedName, "") != "seeds" || ptr.Deref(bastion.Spec.ProviderType, "") != "local" ||
		bastion.Annotations[gardencorev1beta1.GardenerCreatedBy] != "admin" {
		t.Errorf("bastion = %+v, annotations %v", bastion.Spec, bastion.Annotations)
	}
}

func TestExtensionsHaveToBeRegistered(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "exts")
	create(t, newProfile("exts"))
	refused(t, env.Client.Create(ctx,
		newShoot(namespace, "member1", "exts",
			func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Type = new("unheard-of") })),
		apierrors.IsInvalid, "spec.networking.type", "unheard-of", "flannel")
	refused(t, env.Client.Create(ctx, newShoot(namespace, "member1", "exts", func(s *gardencorev1beta1.Shoot) {
		s.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "unheard-of"}}
	})),
		apierrors.IsInvalid, "spec.extensions[0].type", "unheard-of")
	primary := func(name string) *gardencorev1beta1.ControllerRegistration {
		return &gardencorev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: gardencorev1beta1.ControllerRegistrationSpec{
				Resources: []gardencorev1beta1.ControllerResource{{Kind: "Network", Type: "exts"}},
			},
		}
	}
	create(t, primary("exts-1"))
	refused(t, env.Client.Create(ctx, primary("exts-2")), apierrors.IsInvalid, "spec.resources[0].primary", "exts-1")
}

func TestSeedsThatAreShoots(t *testing.T) {
	ctx := context.Background()
	create(t, newProfile("managed"))
	offerExtensions(t)
	ensureGardenProject(t)
	shoot := newShoot("garden", "managed", "managed", func(s *gardencorev1beta1.Shoot) {
		s.Annotations = map[string]string{gardencorev1beta1.ConfirmationDeletion: "true"}
	})
	create(t, shoot)
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed"}}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "nowhere"}
	managed.Spec.Gardenlet.Config = gardenletConfig(`{}`)
	refused(t, env.Client.Create(ctx, managed), apierrors.IsInvalid, "spec.shoot.name", "Not found")
	managed.Spec.Shoot.Name = "managed"
	create(t, managed)
	refused(t, env.Client.Delete(ctx, shoot), apierrors.IsForbidden, `it is the seed "managed"`,
		"managedseed garden/managed")
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	refused(t, env.Client.Update(ctx, shoot), apierrors.IsInvalid, "spec.hibernation.enabled", "cannot sleep")
	if err := env.Client.Delete(ctx, managed); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(ctx, shoot); err != nil {
		t.Errorf("a shoot that is no seed any more: %v", err)
	}
}

// ensureGardenProject creates what newShoot needs in the operators' project, which controllers of other tests may have
// created.
func ensureGardenProject(t *testing.T) {
	t.Helper()
	for _, object := range []client.Object{
		&gardencorev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "garden"},
			Spec:       gardencorev1beta1.ProjectSpec{Namespace: new("garden")},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local"}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local"},
			Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "local",
			},
		},
	} {
		if err := client.IgnoreAlreadyExists(env.Client.Create(context.Background(), object)); err != nil {
			t.Fatal(err)
		}
	}
}

// gardenletConfig is a configuration of a gardenlet whose Seed is specified as given.
func gardenletConfig(seedSpec string) *runtime.RawExtension {
	return &runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":{"spec":` + seedSpec + `}}`),
	}
}

// TestWebhooksOfUsers registers a webhook that changes shoots and one that refuses some, as people do for policies of
// their own. Objects are complete when a webhook sees them, and what it changes is checked.
func TestWebhooksOfUsers(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "hooks")
	create(t, newProfile("hooks"))
	server := httptest.NewTLSServer(http.HandlerFunc(policy))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(server.URL + path), CABundle: authority}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"v1beta1"}, Resources: []string{"shoots"},
		},
	}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{gardencorev1beta1.ProjectName: "hooks"}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "owner.hooks.example", ClientConfig: config("/mutate"), Rules: rules, NamespaceSelector: selector,
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "names.hooks.example", ClientConfig: config("/validate"), Rules: rules, NamespaceSelector: selector,
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
	create(t, mutating, validating)
	t.Cleanup(func() {
		for _, object := range []client.Object{mutating, validating} {
			if err := env.Client.Delete(ctx, object); err != nil {
				t.Error(err)
			}
		}
	})
	var err error
	eventually(t, func() error { // until garden-apiserver knows the webhooks
		err = env.Client.Create(ctx, newShoot(namespace, "forbidden", "hooks"), client.DryRunAll)
		if err == nil {
			return errNotYet
		}
		return nil
	})
	refused(t, err, apierrors.IsForbidden, "names.hooks.example", "a policy of ours: not this name")
	shoot := newShoot(namespace, "welcome", "hooks")
	eventually(t, func() error {
		dry := shoot.DeepCopy()
		if err := env.Client.Create(ctx, dry, client.DryRunAll); err != nil {
			return err
		}
		if dry.Labels["owner"] == "" {
			return errNotYet
		}
		return nil
	})
	create(t, shoot)
	if got := shoot.Labels["owner"]; got != "1.36.3" {
		t.Errorf("labels = %v, want the webhook's, made of the completed version", shoot.Labels)
	}
}

var errNotYet = errors.New("not yet")

// policy labels shoots with their version, and refuses the name "forbidden".
func policy(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	shoot := &gardencorev1beta1.Shoot{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, shoot); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	switch {
	case r.URL.Path == "/mutate":
		review.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		review.Response.Patch = []byte(`[{"op":"add","path":"/metadata/labels/owner","value":"` +
			shoot.Spec.Kubernetes.Version + `"}]`)
	case shoot.Name == "forbidden":
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: "a policy of ours: not this name",
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
