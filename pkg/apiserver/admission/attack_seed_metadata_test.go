package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// TestAttackSeedMetadata has a seed write what makes others act: finalizers, owners, labels and annotations of garden
// kinds.
func TestAttackSeedMetadata(t *testing.T) {
	plugin := newSeedRestriction()
	plugin.SetDependencies(&Dependencies{Reader: shootsByName{"garden-demo/member1": aShoot(onSeed("one"))}})
	state := func(change func(*metav1.ObjectMeta)) runtime.Object {
		object := &gardencorev1beta1.ShootState{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		}
		change(&object.ObjectMeta)
		return object
	}
	secret := func(name string, change func(*gardencorev1beta1.InternalSecret)) runtime.Object {
		object := &gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: name}}
		change(object)
		return object
	}
	shoot := func(finalizers ...string) runtime.Object {
		return aShoot(onSeed("one"), func(s *gardencorev1beta1.Shoot) { s.Finalizers = finalizers })
	}
	owned := func(m *metav1.ObjectMeta) {
		m.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project", Name: "demo", UID: "1"},
		}
	}
	labelled := func(labels map[string]string) func(*gardencorev1beta1.InternalSecret) {
		return func(s *gardencorev1beta1.InternalSecret) { s.Labels = labels }
	}
	annotated := func(m *metav1.ObjectMeta) {
		m.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"}
	}
	finalized := func(m *metav1.ObjectMeta) { m.Finalizers = []string{"gardener"} }
	plain := func(*metav1.ObjectMeta) {}
	shoots, states, secrets := gardencorev1beta1.Resource("shoots"), gardencorev1beta1.Resource("shootstates"),
		gardencorev1beta1.Resource("internalsecrets")
	extension := "system:serviceaccount:seed-one:x"
	for name, test := range map[string]struct {
		write
		want string
	}{
		"its finalizer":               {write{shoots, "", shoot("gardener"), shoot(), ""}, ""},
		"its finalizer is taken away": {write{shoots, "", shoot("other"), shoot("gardener", "other"), ""}, ""},
		"another finalizer": {
			write{shoots, "", shoot("mine"), shoot(), ""}, "metadata.finalizers: mine",
		},
		"another's finalizer is taken away": {
			write{shoots, "", shoot(), shoot("other"), ""}, "metadata.finalizers: other",
		},
		"a finalizer through the status": {
			write{shoots, "status", shoot("mine"), shoot(), ""}, "metadata.finalizers: mine",
		},
		"a finalizer of a state": {
			write{states, "", state(finalized), nil, ""}, "metadata.finalizers: gardener",
		},
		"a finalizer of an extension": {
			write{states, "", state(finalized), state(plain), extension}, "metadata.finalizers: gardener",
		},
		"an owner":                     {write{states, "", state(owned), nil, ""}, "metadata.ownerReferences"},
		"an owner that is there stays": {write{states, "", state(owned), state(owned), ""}, ""},
		"an owner is taken away": {
			write{states, "", state(plain), state(owned), ""}, "metadata.ownerReferences",
		},
		"an annotation": {
			write{states, "", state(annotated), nil, ""}, "metadata.annotations[gardener.cloud/operation]",
		},
		"the confirmation of its deletion": {
			write{states, "", state(func(m *metav1.ObjectMeta) {
				m.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
			}), state(plain), ""}, "",
		},
		"an annotation that is there stays": {write{states, "", state(annotated), state(annotated), ""}, ""},
		"labels of a shoot's secret": {
			write{
				secrets, "", secret("member1.ca-client",
					labelled(map[string]string{
						"gardener.cloud/role": "ca-client", "shoot.gardener.cloud/name": "member1",
					})), nil, "",
			}, "",
		},
		"another role": {
			write{
				secrets, "", secret("member1.ca-client",
					labelled(map[string]string{"gardener.cloud/role": "default-domain"})), nil, "",
			}, "metadata.labels[gardener.cloud/role]",
		},
		"another label": {
			write{secrets, "", secret("member1.ca-client", labelled(map[string]string{"a": ""})), nil, ""},
			"metadata.labels[a]",
		},
		"a secret that is none of a shoot's": {
			write{secrets, "", secret("member1.mine", labelled(nil)), nil, ""}, `metadata.name: "mine"`,
		},
		"a secret of a type": {write{secrets, "",
			secret("member1.ca-client", func(s *gardencorev1beta1.InternalSecret) {
				s.Type = corev1.SecretTypeServiceAccountToken
			}), nil, ""}, "type: InternalSecrets"},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, plugin.Validate(t.Context(), test.attributes(), nil), test.want)
		})
	}
}
