package garden

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// losable is a seed with a shoot that has been created, and all that is kept of it in the garden.
func losable(t *testing.T, name string) tenant {
	t.Helper()
	ctx := context.Background()
	who := newTenant(t, name)
	patches := map[client.Object]string{
		&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}: fmt.Sprintf(
			`{"spec":{"backup":{"provider":"local","region":"seedauth","credentialsRef":{"apiVersion":"v1",`+
				`"kind":"Secret","namespace":"garden","name":"dns-%s"}}}}`, name),
		&gardencorev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: "shoot"}}: `{"spec":` +
			`{"gardener":[{"name":"ca","type":"secret","data":{"ca.key":"aw=="}}]}}`,
	}
	for object, patch := range patches {
		if err := env.Client.Patch(ctx, object, merge(patch)); err != nil {
			t.Fatal(err)
		}
	}
	id := gardencorev1beta1.TechnicalID(who.project, "shoot")
	shoot := shootOf(who)
	if err := env.Client.Status().Patch(ctx, shoot, merge(fmt.Sprintf(`{"status":{"seedName":%q,"technicalID":%q,`+
		`"lastOperation":{"type":"Create","state":"Succeeded","progress":100,"description":"done",`+
		`"lastUpdateTime":"2026-01-01T00:00:00Z"}}}`, name, id))); err != nil {
		t.Fatal(err)
	}
	if err := get(shoot); err != nil {
		t.Fatal(err)
	}
	create(t, &gardencorev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: who.namespace, Name: gardencorev1beta1.BackupEntryName(id, string(shoot.UID)),
		},
		Spec: gardencorev1beta1.BackupEntrySpec{BucketName: "bucket-" + name, SeedName: &name},
	})
	awaitRights(t, who)
	return who
}

func shootOf(who tenant) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: "shoot"}}
}

// hasShoot tells whether a gardenlet may do what it does for a shoot that it has.
func hasShoot(who, of tenant, want bool) error {
	ctx := context.Background()
	for what, err := range map[string]error{
		"reads the Shoot": who.gardenlet.Get(ctx, client.ObjectKeyFromObject(shootOf(of)), &gardencorev1beta1.Shoot{}),
		"reads its state": who.gardenlet.Get(ctx, client.ObjectKeyFromObject(shootOf(of)),
			&gardencorev1beta1.ShootState{}),
		"reads its credentials": who.gardenlet.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: "local"},
			&corev1.Secret{}),
		"changes its state": who.gardenlet.Patch(ctx, &gardencorev1beta1.ShootState{
			ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: "shoot"},
		}, merge(`{"spec":{}}`)),
		"changes its status": who.gardenlet.Status().Patch(ctx, shootOf(of), merge(`{"status":{"conditions":[]}}`)),
	} {
		if want && err != nil || !want && !apierrors.IsForbidden(err) {
			return fmt.Errorf("seed %s %s: %v, want success = %v", who.seed, what, err, want)
		}
	}
	return nil
}

// TestAttackLostSeed: whoever has the credential of any seed does not confirm that one is lost, does not bind shoots,
// and does not read their states. With the binding, in one write, the rights go from the seed before to the next one:
// the one that was lost has none when it comes back.
func TestAttackLostSeed(t *testing.T) {
	ctx := context.Background()
	attacker := twoTenants(t)[0]
	lost, next := losable(t, "lost-one"), losable(t, "lost-two")
	makeReady(t, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: next.seed}})
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: lost.seed}}
	confirmation := merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:"it burned"}}}`,
		gardencorev1beta1.AnnotationConfirmationSeedLost))
	binding := merge(fmt.Sprintf(`{"spec":{"seedName":%q}}`, next.seed))
	for _, who := range []tenant{attacker, lost, next} {
		mustRefuse(t, who.seed+" confirms", who.gardenlet.Patch(ctx, seed.DeepCopy(), confirmation))
		mustForbid(t, who.seed+" binds", who.gardenlet.SubResource("binding").Patch(ctx, shootOf(lost), binding))
		mustRefuse(t, who.seed+" binds by a change", who.gardenlet.Patch(ctx, shootOf(lost), binding))
	}
	for who, has := range map[*tenant]bool{&attacker: false, &lost: true, &next: false} {
		if err := hasShoot(*who, lost, has); err != nil {
			t.Errorf("before: %v", err)
		}
	}
	bind := func() error { return env.Client.SubResource("binding").Patch(ctx, shootOf(lost), binding) }
	if err := bind(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "kubectl annotate seed lost-one") {
		t.Errorf("bound without a confirmation: %v", err)
	}
	if err := env.Client.Patch(ctx, seed.DeepCopy(), confirmation); err != nil {
		t.Fatal(err)
	}
	makeReady(t, seed.DeepCopy())
	if err := bind(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "two control planes") {
		t.Errorf("bound while the seed reports: %v", err)
	}
	if err := env.Client.Status().Patch(ctx, seed.DeepCopy(), merge(`{"status":{"conditions":null}}`)); err != nil {
		t.Fatal(err)
	}
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	shoot := shootOf(lost)
	if err := get(shoot); err != nil || !gardencorev1beta1.IsRestoring(shoot) || shoot.Status.SeedName != nil {
		t.Fatalf("the shoot has the status %+v, %v", shoot.Status, err)
	}
	eventually(t, func() error {
		for who, has := range map[*tenant]bool{&attacker: false, &lost: false, &next: true} {
			if err := hasShoot(*who, lost, has); err != nil {
				return err
			}
		}
		return nil
	})
	entry := &gardencorev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{
		Namespace: lost.namespace,
		Name:      gardencorev1beta1.BackupEntryName(shoot.Status.TechnicalID, string(shoot.UID)),
	}}
	mustRefuse(t, "the next seed takes the entry",
		next.gardenlet.Patch(ctx, entry.DeepCopy(), merge(fmt.Sprintf(`{"spec":{"seedName":%q}}`, next.seed))))
	if err := env.Client.Patch(ctx, entry,
		merge(fmt.Sprintf(`{"spec":{"seedName":%q}}`, next.seed))); err != nil {
		t.Fatal(err)
	}
	// Now the backups are the next seed's too, in the bucket in which they are.
	eventually(t, func() error {
		if err := next.gardenlet.Get(ctx, client.ObjectKey{Name: "bucket-" + lost.seed},
			&gardencorev1beta1.BackupBucket{}); err != nil {
			return err
		}
		return next.gardenlet.Get(ctx, client.ObjectKey{Namespace: "garden", Name: "dns-" + lost.seed}, &corev1.Secret{})
	})
}
