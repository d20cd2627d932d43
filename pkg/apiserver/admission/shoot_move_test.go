package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// gardenAfterALoss has the seed "one", which was lost, the seed "two", and all that is known of the shoot of one.
func gardenAfterALoss() map[string]runtime.Object {
	ready := func(s *gardencorev1beta1.Seed) {
		s.Spec.Backup = &gardencorev1beta1.Backup{Provider: "store"}
		s.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.SeedGardenletReady, Status: gardencorev1beta1.ConditionTrue},
		}
	}
	return map[string]runtime.Object{
		"seeds /one": aSeed(ready, func(s *gardencorev1beta1.Seed) {
			s.Name = "one"
			s.Annotations = map[string]string{gardencorev1beta1.AnnotationConfirmationSeedLost: "it burned"}
			s.Status.Conditions[0].Status = gardencorev1beta1.ConditionUnknown
		}),
		"seeds /two": aSeed(ready, func(s *gardencorev1beta1.Seed) { s.Name = "two" }),
		"shootstates garden-demo/member1": &gardencorev1beta1.ShootState{
			Spec: gardencorev1beta1.ShootStateSpec{Gardener: []gardencorev1beta1.GardenerResourceData{{Name: "ca"}}},
		},
		"backupentries garden-demo/shoot--demo--member1--uid": &gardencorev1beta1.BackupEntry{
			Spec: gardencorev1beta1.BackupEntrySpec{BucketName: "bucket-one"},
		},
		"backupbuckets /bucket-one": &gardencorev1beta1.BackupBucket{
			Spec: gardencorev1beta1.BackupBucketSpec{Provider: gardencorev1beta1.BackupBucketProvider{Type: "store"}},
		},
	}
}

// changed returns the object at a key, so that it can be changed.
func changed[T runtime.Object](garden map[string]runtime.Object, key string) T {
	return garden[key].(T)
}

// A control plane goes to another seed only when there cannot be two of it, and the other one has all that it needs.
func TestMoves(t *testing.T) {
	type (
		garden = map[string]runtime.Object
		shoot  = gardencorev1beta1.Shoot
	)
	seed := func(g garden, name string) *gardencorev1beta1.Seed {
		return changed[*gardencorev1beta1.Seed](g, "seeds /"+name)
	}
	const at = "spec.seedName "
	for what, test := range map[string]struct {
		change func(garden, *shoot)
		want   []string
	}{
		"a lost seed": {func(garden, *shoot) {}, nil},
		"a seed that is there": {
			func(g garden, _ *shoot) {
				seed(g, "one").Annotations = nil
			},
			[]string{at + "kubectl annotate seed one confirmation.gardener.cloud/seed-lost="},
		},
		"confirmed with nothing": {
			func(g garden, _ *shoot) {
				seed(g, "one").Annotations[gardencorev1beta1.AnnotationConfirmationSeedLost] = " "
			},
			[]string{at + "control planes stay on the seed"},
		},
		"a lost seed that reports": {
			func(g garden, _ *shoot) { seed(g, "one").Status.Conditions = seed(g, "two").Status.Conditions },
			[]string{at + "there would be two control planes"},
		},
		"a lost seed that reports problems": {
			func(g garden, _ *shoot) {
				seed(g, "one").Status.Conditions[0].Status = gardencorev1beta1.ConditionFalse
			},
			[]string{at + "there would be two control planes"},
		},
		"while another seed restores": {
			func(_ garden, s *shoot) {
				s.Status.BeginRestore("one", "one", metav1.Now())
				s.Status.SeedName = new("two")
			},
			[]string{at + "control planes stay on the seed on which they are, two"},
		},
		"before another seed restores": {
			func(g garden, s *shoot) {
				seed(g, "one").Annotations = nil
				s.Status.BeginRestore("two", "one", metav1.Now())
			}, nil,
		},
		"to a silent seed": {
			func(g garden, _ *shoot) { seed(g, "two").Status.Conditions = nil }, []string{at + "two is not ready"},
		},
		"to a lost seed": {
			func(g garden, _ *shoot) { seed(g, "two").Annotations = seed(g, "one").Annotations },
			[]string{at + "the seed is confirmed to be lost"},
		},
		"to a seed without backups": {
			func(g garden, _ *shoot) { seed(g, "two").Spec.Backup = nil }, []string{at + "has no spec.backup"},
		},
		"to a seed with another store": {
			func(g garden, _ *shoot) { seed(g, "two").Spec.Backup.Provider = "other" },
			[]string{at + "seed two uses those of other"},
		},
		"to a seed with another internal domain": {
			func(g garden, _ *shoot) { seed(g, "two").Spec.DNS.Internal.Domain = "x.example" },
			[]string{at + `another internal domain ("x.example")`},
		},
		"to a seed with other domains": {
			func(g garden, _ *shoot) { seed(g, "two").Spec.DNS.Defaults = nil },
			[]string{at + "member1.shoots.example"},
		},
		"without backups": {
			func(g garden, _ *shoot) { delete(g, "backupentries garden-demo/shoot--demo--member1--uid") },
			[]string{at + "has no BackupEntry shoot--demo--member1--uid"},
		},
		"without its bucket": {
			func(g garden, _ *shoot) { delete(g, "backupbuckets /bucket-one") }, []string{at + "bucket-one"},
		},
		"without its state": {
			func(g garden, _ *shoot) { delete(g, "shootstates garden-demo/member1") },
			[]string{at + "the keys of the cluster are not known"},
		},
		"with objects that are not kept": {
			func(g garden, _ *shoot) {
				changed[*gardencorev1beta1.ShootState](g, "shootstates garden-demo/member1").Spec.Extensions =
					[]gardencorev1beta1.ExtensionResourceState{{
						Kind: "Network", Resources: []gardencorev1beta1.NamedResourceReference{{Name: "keys"}},
					}}
			},
			[]string{at + "the extension of its Network needs objects, such as keys"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			old := aShoot(onSeed("one"), func(s *shoot) {
				s.UID, s.Status.TechnicalID, s.Status.SeedName = "uid", "shoot--demo--member1", new("one")
				s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("member1.shoots.example")}
			})
			g := gardenAfterALoss()
			test.change(g, old)
			bound := old.DeepCopy()
			bound.Spec.SeedName = new("two")
			plugin := newShootValidator()
			plugin.SetDependencies(&Dependencies{Reader: objects(g)})
			errs, err := plugin.validateMove(t.Context(), bound, old)
			if err != nil {
				t.Fatal(err)
			}
			assigned, err := plugin.validateSeed(t.Context(), bound, old)
			if err != nil {
				t.Fatal(err)
			}
			checkErrors(t, append(errs, assigned...), test.want...)
		})
	}
}
