package garden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/taskgraph"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

// The attacker of these tests has the certificate of a seed's gardenlet, and nothing else.

func mustForbid(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want it forbidden", what, err)
	}
}

// mustRefuse is mustForbid for what may be refused to others as well.
func mustRefuse(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		mustForbid(t, what, err)
	}
}

// TestAttackSeedNamesSecrets: a seed names what it wants to read in its Seed, wherever a Seed names credentials.
func TestAttackSeedNamesSecrets(t *testing.T) {
	ctx := context.Background()
	tenants := twoTenants(t)
	attacker, victim := tenants[0], tenants[1]
	create(t, &gardencorev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed.ca-client"},
	})
	private := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","namespace":%q,"name":"private"}`, victim.namespace)
	resource := func(apiVersion, kind, name string) string {
		return fmt.Sprintf(`{"spec":{"resources":[{"name":"loot","resourceRef":{"apiVersion":%q,"kind":%q,"name":%q}}]}}`, apiVersion, kind, name)
	}
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for what, attack := range map[string]struct {
		patch string
		loot  client.Object
	}{
		"DNS provider": {
			fmt.Sprintf(`{"spec":{"dns":{"provider":{"type":"local","credentialsRef":%s}}}}`, private),
			secret(victim.namespace, "private"),
		},
		"internal domain": {
			fmt.Sprintf(`{"spec":{"dns":{"internal":{"credentialsRef":%s}}}}`, private),
			secret(victim.namespace, "private"),
		},
		"default domain": {
			fmt.Sprintf(`{"spec":{"dns":{"defaults":[{"type":"local","domain":"shoots.example","credentialsRef":%s}]}}}`, private), secret(victim.namespace, "private"),
		},
		"backup": {
			fmt.Sprintf(`{"spec":{"backup":{"provider":"local","credentialsRef":%s}}}`, private),
			secret(victim.namespace, "private"),
		},
		"resource": {resource("v1", "Secret", "seedauth-other"), secret("garden", "seedauth-other")},
		"authority of a managed seed": {
			resource(gardencorev1beta1.SchemeGroupVersion.String(), "InternalSecret", "managed.ca-client"),
			&gardencorev1beta1.InternalSecret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed.ca-client"},
			},
		},
	} {
		mustRefuse(t, what, attacker.gardenlet.Patch(ctx,
			&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: attacker.seed}}, merge(attack.patch)))
		mustForbid(t, what+", read", attacker.gardenlet.Get(ctx, client.ObjectKeyFromObject(attack.loot), attack.loot))
	}
}

// TestAttackSeedReadsWhatIsNamed: the reference is there, by whose hand ever, and the object does not say that the seed
// may read it. When it does, the seed reads it, as long as it does.
func TestAttackSeedReadsWhatIsNamed(t *testing.T) {
	ctx := context.Background()
	tenants := twoTenants(t)
	seed := newSeed("auth-named", "seedauth")
	seed.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "loot"}}
	seed.Spec.Resources[0].ResourceRef.APIVersion, seed.Spec.Resources[0].ResourceRef.Kind,
		seed.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "auth-named"
	loot := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "auth-named"}}
	bucket := &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "auth-named"},
		Spec: gardencorev1beta1.BackupBucketSpec{
			SeedName: &seed.Name, Provider: gardencorev1beta1.BackupBucketProvider{Type: "local", Region: "seedauth"},
			CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: loot.Name,
			},
		}}
	create(t, loot, seed, bucket)
	who := tenant{seed: seed.Name}
	who.connect(t)
	reads := func() error { return who.gardenlet.Get(ctx, client.ObjectKeyFromObject(loot), &corev1.Secret{}) }
	eventually(t, func() error { // what belongs to the seed is known
		if err := who.gardenlet.Get(ctx, client.ObjectKeyFromObject(bucket),
			&gardencorev1beta1.BackupBucket{}); err != nil {
			return err
		}
		if err := reads(); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), gardencorev1beta1.LabelSeedReadableBy+"="+seed.Name) {
			return fmt.Errorf("the Secret does not say so, and the answer is: %v", err)
		}
		return nil
	})
	label := func(value string) {
		t.Helper()
		if err := env.Client.Patch(ctx, loot,
			merge(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, gardencorev1beta1.LabelSeedReadableBy,
				value))); err != nil {
			t.Fatal(err)
		}
	}
	label(`"auth-named_auth-two"`)
	eventually(t, reads)
	mustForbid(t, "a seed that may read it, and does not name it",
		tenants[1].gardenlet.Get(ctx, client.ObjectKeyFromObject(loot), &corev1.Secret{}))
	label("null")
	asker, err := env.ConfigFor(env.GardenAPIServerURL, gardencorev1beta1.GardenKubeAPIServerUser)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		allowed, err := postReview(asker, who,
			&authorizationv1.ResourceAttributes{
				Verb: "get", Resource: "secrets", Namespace: loot.Namespace, Name: loot.Name,
			})
		if err != nil || allowed {
			return fmt.Errorf("a Secret that does not say so any more: may be read = %v, %v", allowed, err)
		}
		return nil
	})
}

// TestAttackSeedDecidesAboutItself: a seed draws shoots and extensions to itself, and does what its operator did not
// give it.
func TestAttackSeedDecidesAboutItself(t *testing.T) {
	ctx := context.Background()
	attacker := twoTenants(t)[0]
	seed := func() *gardencorev1beta1.Seed {
		return &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: attacker.seed}}
	}
	for what, patch := range map[string]string{
		"labels":              `{"metadata":{"labels":{"seed.gardener.cloud/eu-access":"true"}}}`,
		"annotations":         `{"metadata":{"annotations":{"a":"b"}}}`,
		"owners":              `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"1"}]}}`,
		"taints":              `{"spec":{"taints":[{"key":"seed.gardener.cloud/protected"}]}}`,
		"region":              `{"spec":{"provider":{"region":"elsewhere"}}}`,
		"zones":               `{"spec":{"provider":{"zones":["0","1"]}}}`,
		"default domain":      `{"spec":{"dns":{"internal":{"domain":"other.example"}}}}`,
		"visibility":          `{"spec":{"settings":{"scheduling":{"visible":false}}}}`,
		"access restrictions": `{"spec":{"accessRestrictions":[{"name":"eu-access-only"}]}}`,
	} {
		mustForbid(t, what, attacker.gardenlet.Patch(ctx, seed(), merge(patch), client.DryRunAll))
		if strings.Contains(patch, "metadata") {
			mustForbid(t, what+", by the status",
				attacker.gardenlet.Status().Patch(ctx, seed(), merge(patch),
					&client.SubResourcePatchOptions{
						PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
					}))
		}
	}
	if err := attacker.gardenlet.Patch(ctx, seed(),
		merge(`{"spec":{"settings":{"excessCapacityReservation":{"enabled":false}}}}`)); err != nil {
		t.Errorf("how much a seed keeps free is its own business: %v", err)
	}
}

// TestAttackSeedPlaysItsOperator: a seed writes what the Gardenlet of its name says, and no more than that.
func TestAttackSeedPlaysItsOperator(t *testing.T) {
	ctx := context.Background()
	attacker := twoTenants(t)[0]
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: attacker.seed}}
	if err := get(seed); err != nil {
		t.Fatal(err)
	}
	template := &seedmanagementv1alpha1.SeedTemplate{Spec: *seed.Spec.DeepCopy()}
	template.Labels, template.Spec.Taints = map[string]string{"stage": "new"},
		[]gardencorev1beta1.SeedTaint{{Key: "new"}}
	gardenlet := newGardenlet(t, attacker.seed, template)
	create(t, gardenlet)
	t.Cleanup(func() { _ = env.Client.Delete(ctx, gardenlet) })
	writes := func(change func(*gardencorev1beta1.Seed)) error {
		wanted := seed.DeepCopy()
		change(wanted)
		return attacker.gardenlet.Patch(ctx, wanted, client.MergeFrom(seed), client.DryRunAll)
	}
	asSaid := func(s *gardencorev1beta1.Seed) {
		metav1.SetMetaDataLabel(&s.ObjectMeta, "stage", "new")
		s.Spec.Taints = template.Spec.Taints
	}
	if err := writes(asSaid); err != nil {
		t.Errorf("what its Gardenlet says: %v", err)
	}
	mustForbid(t, "more than its Gardenlet says", writes(func(s *gardencorev1beta1.Seed) {
		asSaid(s)
		s.Spec.Provider.Zones = append(s.Spec.Provider.Zones, "1")
	}))
	gardenlet.Spec.Config = nil
	mustForbid(t, "its Gardenlet", attacker.gardenlet.Update(ctx, gardenlet))
}

// TestAttackSeedMarksShoots: a seed lets its own fleet grow, asks for operations, and reports what its rights would
// follow from.
func TestAttackSeedMarksShoots(t *testing.T) {
	ctx := context.Background()
	tenants := twoTenants(t)
	attacker, victim := tenants[0], tenants[1]
	shoot := func() *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "shoot"}}
	}
	for what, patch := range map[string]string{
		"growth": fmt.Sprintf(`{"metadata":{"annotations":{%q:"pools,shoots"}}}`,
			fleetv1alpha1.AllowGrowthAnnotation),
		"operation":    `{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-credentials-start"}}}`,
		"confirmation": `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`,
		"labels":       `{"metadata":{"labels":{"federation.trellis.garden/join":"true"}}}`,
		"owners":       `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"1"}]}}`,
		"finalizers":   `{"metadata":{"finalizers":["attack.example/stay"]}}`,
	} {
		mustRefuse(t, what, attacker.gardenlet.Patch(ctx, shoot(), merge(patch)))
		mustForbid(t, what+", by the status", attacker.gardenlet.Status().Patch(ctx, shoot(), merge(patch)))
	}
	for what, patch := range map[string]string{
		"another seed":      fmt.Sprintf(`{"status":{"seedName":%q}}`, victim.seed),
		"another namespace": fmt.Sprintf(`{"status":{"technicalID":"shoot--%s--shoot"}}`, victim.project),
		"another UID":       `{"status":{"uid":"1"}}`,
	} {
		mustRefuse(t, what, attacker.gardenlet.Status().Patch(ctx, shoot(), merge(patch)))
	}
	bucket := &gardencorev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket-" + attacker.seed}}
	mustForbid(t, "credentials of its bucket",
		attacker.gardenlet.Patch(ctx, bucket,
			merge(fmt.Sprintf(`{"spec":{"credentialsRef":{"name":"dns-%s"}}}`, victim.seed))))
	mustForbid(t, "marks of its bucket",
		attacker.gardenlet.Patch(ctx, bucket, merge(`{"metadata":{"labels":{"a":"b"}}}`)))
}

// TestAttackSeedMakesEntries: a seed makes BackupEntries, each of which lets it read the bucket that it names.
func TestAttackSeedMakesEntries(t *testing.T) {
	ctx := context.Background()
	tenants := twoTenants(t)
	attacker, victim := tenants[0], tenants[1]
	seed := &gardencorev1beta1.Seed{}
	if err := env.Client.Get(ctx, client.ObjectKey{Name: attacker.seed}, seed); err != nil {
		t.Fatal(err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := env.Client.Get(ctx, client.ObjectKey{Namespace: attacker.namespace, Name: "shoot"}, shoot); err != nil {
		t.Fatal(err)
	}
	technicalID := gardencorev1beta1.TechnicalID(attacker.project, shoot.Name)
	status := fmt.Sprintf(`{"status":{"technicalID":%q}}`, technicalID)
	if err := env.Client.Status().Patch(ctx, shoot, merge(status)); err != nil {
		t.Fatal(err)
	}
	own := gardencorev1beta1.BackupEntryName(technicalID, string(shoot.UID))
	for what, entry := range map[string]struct{ namespace, name, bucket string }{
		"another's bucket":  {attacker.namespace, own, "bucket-" + victim.seed},
		"no shoot's entry":  {attacker.namespace, "shoot--x--y--uid", string(seed.UID)},
		"another's project": {victim.namespace, own, string(seed.UID)},
	} {
		mustForbid(t, what, attacker.gardenlet.Create(ctx, &gardencorev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: entry.namespace, Name: entry.name},
			Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: entry.bucket, SeedName: &attacker.seed},
		}))
	}
	allowed := &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: own},
		Spec:       gardencorev1beta1.BackupEntrySpec{BucketName: string(seed.UID), SeedName: &attacker.seed},
	}
	if err := attacker.gardenlet.Create(ctx, allowed); err != nil {
		t.Errorf("the entry of its own shoot: %v", err)
	}
	if err := env.Client.Delete(ctx, allowed); err != nil {
		t.Error(err)
	}
}

// TestAttackSeedTakesAnExtension: a seed changes what its extension is deployed from, and with.
func TestAttackSeedTakesAnExtension(t *testing.T) {
	ctx := context.Background()
	attacker := twoTenants(t)[0]
	installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "auth-extension"},
		Spec: gardencorev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "offered"},
			SeedRef:         &corev1.ObjectReference{Name: attacker.seed},
			DeploymentRef:   &corev1.ObjectReference{Name: "none"},
		}}
	create(t, installation)
	eventually(t, func() error {
		return attacker.gardenlet.Get(ctx, client.ObjectKeyFromObject(installation),
			&gardencorev1beta1.ControllerInstallation{})
	})
	for what, patch := range map[string]string{
		"resources":  `{"spec":{"resourceRefs":[{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"seedauth-other"}]}}`,
		"deployment": `{"spec":{"deploymentRef":{"name":"other"}}}`,
		"labels":     `{"metadata":{"labels":{"a":"b"}}}`,
	} {
		mustForbid(t, what, attacker.gardenlet.Patch(ctx, installation.DeepCopy(), merge(patch)))
	}
	if err := attacker.gardenlet.Patch(ctx, installation.DeepCopy(),
		merge(`{"metadata":{"finalizers":["core.gardener.cloud/controllerinstallation"]}}`),
		client.DryRunAll); err != nil {
		t.Errorf("gardenlet's own finalizer: %v", err)
	}
}

// newGardenlet returns the Gardenlet of a seed.
func newGardenlet(t *testing.T, name string,
	template *seedmanagementv1alpha1.SeedTemplate) *seedmanagementv1alpha1.Gardenlet {
	t.Helper()
	gardenlet := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	gardenlet.Spec.Deployment.Helm.OCIRepository.Ref = new("registry.example.com/charts/gardenlet:v1.0.0")
	gardenlet.Spec.Config = seedSaying(t, template)
	return gardenlet
}

func seedSaying(t *testing.T, template *seedmanagementv1alpha1.SeedTemplate) *runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": seedmanagementv1alpha1.GardenletConfigurationAPIVersion,
		"kind":       seedmanagementv1alpha1.GardenletConfigurationKind,
		"gardenClientConnection": map[string]any{
			"kubeconfigSecret": map[string]any{"namespace": "garden", "name": "gardenlet-kubeconfig"},
		},
		"seedConfig": template,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

// TestAttackOperationsOfOthers: with the stolen credential of one seed somebody tells lies about the operation on
// another seed's shoot, or does away with the truth. The victim's gardenlet tells of its own.
func TestAttackOperationsOfOthers(t *testing.T) {
	ctx := context.Background()
	tenants := twoTenants(t)
	attacker, victim := tenants[0], tenants[1]
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "shoot"}}
	if err := get(shoot); err != nil {
		t.Fatal(err)
	}
	lie := operationgraph.ConfigMap(shoot)
	mustForbid(t, "telling before the victim does", attacker.gardenlet.Create(ctx, lie.DeepCopy()))
	writer := &taskgraph.Writer{Garden: victim.gardenlet}
	writer.NotBegun(ctx, shoot, errors.New("the truth"))
	told := lie.DeepCopy()
	eventually(t, func() error { return get(told) })
	mustForbid(t, "reading", attacker.gardenlet.Get(ctx, client.ObjectKeyFromObject(told), lie))
	lie = told.DeepCopy()
	lie.Data = map[string]string{operationgraph.DataKey: "a lie"}
	mustForbid(t, "overwriting", attacker.gardenlet.Update(ctx, lie))
	mustForbid(t, "patching", attacker.gardenlet.Patch(ctx, lie, client.MergeFrom(told)))
	mustForbid(t, "deleting", attacker.gardenlet.Delete(ctx, told))
	mustForbid(t, "deleting all", attacker.gardenlet.DeleteAllOf(ctx, &corev1.ConfigMap{},
		client.InNamespace(victim.namespace)))
	if err := get(told); err != nil {
		t.Fatal(err)
	}
	g, err := operationgraph.Read(told, shoot)
	if err != nil || g.Error != "the truth" {
		t.Errorf("the victim's graph is %+v, %v", g, err)
	}
}

// TestAttackOperationsOfUsers: a project has a ConfigMap of its own with the name of what tells of the operation on its
// shoot. The seed's gardenlet leaves it alone.
func TestAttackOperationsOfUsers(t *testing.T) {
	ctx := context.Background()
	who := twoTenants(t)[0]
	own := newShoot(who.namespace, "own-notes", "seedauth",
		func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = &who.seed })
	notes := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: operationgraph.Name(own.Name)},
		Data:       map[string]string{"notes": "mine"},
	}
	create(t, own, notes)
	eventually(t, func() error {
		return who.gardenlet.Get(ctx, client.ObjectKeyFromObject(notes), &corev1.ConfigMap{})
	})
	writer := &taskgraph.Writer{Garden: who.gardenlet}
	writer.NotBegun(ctx, own, errors.New("broken"))
	eventually(t, func() error {
		if writer.IsIdle() {
			return nil
		}
		return errors.New("the writer has not given up")
	})
	now := notes.DeepCopy()
	if err := get(now); err != nil || now.ResourceVersion != notes.ResourceVersion {
		t.Errorf("the user's ConfigMap is %+v, %v", now, err)
	}
	if _, err := operationgraph.Read(now, own); !errors.Is(err, operationgraph.ErrForeign) {
		t.Errorf("reading it as a graph: %v", err)
	}
}
