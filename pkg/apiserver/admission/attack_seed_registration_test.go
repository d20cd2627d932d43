package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// TestAttackSeedRegistersOtherwise plays the holder of a bootstrap token, which is worth the credential of a seed: it
// registers the Seed as it likes, although the garden has a Gardenlet or ManagedSeed that says how it is to be.
func TestAttackSeedRegistersOtherwise(t *testing.T) {
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	gardenlet.Spec.Config = saying(`{"metadata":{"labels":{"stage":"new"}},"spec":` + wholeSeed + `}`)
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local"}}
	managed.Spec.Shoot, managed.Spec.Gardenlet.MergeWithParent = &seedmanagementv1alpha1.Shoot{Name: "base"}, new(false)
	managed.Spec.Gardenlet.Config = saying(`{"metadata":{"labels":{"stage":"new"}},"spec":` + wholeSeed + `}`)
	alone, written := objects{}, objects{"gardenlets garden/local": gardenlet}
	hosted := objects{
		"managedseeds garden/local": managed, "shoots garden/base": aShoot(onSeed("parent")), "seeds /parent": seedOf(),
	}
	asSaid := func(s *gardencorev1beta1.Seed) { tainted(s); s.Labels = map[string]string{"stage": "new"} }
	for name, test := range map[string]struct {
		garden objects
		change func(*gardencorev1beta1.Seed)
		want   string
	}{
		"nobody says anything":    {alone, func(*gardencorev1beta1.Seed) {}, ""},
		"as its Gardenlet says":   {written, asSaid, ""},
		"as its ManagedSeed says": {hosted, asSaid, ""},
		"its own business": {written, func(s *gardencorev1beta1.Seed) {
			asSaid(s)
			s.Spec.Volume = &gardencorev1beta1.SeedVolume{}
		}, ""},
		"without the taints of its Gardenlet": {
			written, func(s *gardencorev1beta1.Seed) { s.Labels = map[string]string{"stage": "new"} },
			"spec.taints: the Seed is registered",
		},
		"without the labels of its ManagedSeed": {
			hosted, tainted, "in spec.gardenlet.config.seedConfig of ManagedSeed garden/local",
		},
		"another region": {
			hosted, func(s *gardencorev1beta1.Seed) { asSaid(s); s.Spec.Provider.Region = "there" }, "spec.provider",
		},
		"another label": {
			written, func(s *gardencorev1beta1.Seed) { asSaid(s); s.Labels["mine"] = "true" }, "metadata.labels[mine]",
		},
		"another annotation": {
			written, func(s *gardencorev1beta1.Seed) { asSaid(s); s.Annotations = map[string]string{"a": "b"} },
			"metadata.annotations[a]",
		},
		"credentials": {written, func(s *gardencorev1beta1.Seed) {
			asSaid(s)
			s.Spec.DNS.Internal.CredentialsRef = corev1.ObjectReference{Kind: "Secret", Name: "x"}
		}, "spec.dns"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newSeedRestriction()
			plugin.SetDependencies(&Dependencies{Reader: test.garden})
			request := write{
				gardencorev1beta1.Resource("seeds"), "", seedOf(test.change), nil,
				gardencorev1beta1.SeedUserNamePrefix + "local",
			}
			checkRefusal(t, plugin.Validate(t.Context(), request.attributes(), nil), test.want)
		})
	}
}
