package admission

import (
	"encoding/json"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

// An extension changes limits of pools with a record, creates and deletes shoots with the label of a fleet, and nothing
// else.
func TestExtensionsGrowFleets(t *testing.T) {
	named := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Name = name }
	}
	fleet := func(seed, allowed string) *gardencorev1beta1.Shoot {
		return aShoot(onSeed(seed), workerless, func(s *gardencorev1beta1.Shoot) {
			s.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "federation"}}
			s.Annotations = map[string]string{
				fleetv1alpha1.AllowGrowthAnnotation: allowed, fleetv1alpha1.GrowthCredentialsAnnotation: "given, local",
			}
		})
	}
	plugin := newSeedRestriction()
	plugin.SetDependencies(&Dependencies{Reader: shootsByName{
		"garden-demo/fleet": fleet("one", "pools, shoots"), "garden-demo/pools-only": fleet("one", "pools"),
		"garden-demo/foreign": fleet("two", "pools,shoots"),
		"garden-demo/shut":    fleet("one", ""),
		"garden-demo/no-fleet": aShoot(onSeed("one"), func(s *gardencorev1beta1.Shoot) {
			s.Annotations = map[string]string{fleetv1alpha1.AllowGrowthAnnotation: "pools,shoots"}
		}),
	}})
	pool := func(minimum, maximum int32) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].Minimum, s.Spec.Provider.Workers[0].Maximum = minimum, maximum
		}
	}
	record := func(of string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			text, err := json.Marshal(map[string]fleetv1alpha1.PoolRecord{
				s.Spec.Provider.Workers[0].Name: {Fleet: of, Growth: "g"},
			})
			if err != nil {
				t.Fatal(err)
			}
			setAnnotation(s, fleetv1alpha1.GrownPoolsAnnotation, string(text))
		}
	}
	grown := func(by string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Labels = map[string]string{fleetv1alpha1.GrownByLabel: by} }
	}
	binding := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName, s.Spec.SecretBindingName = &name, nil }
	}
	secretBinding := func(name string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName, s.Spec.SecretBindingName = nil, &name }
	}
	confirmed := func(s *gardencorev1beta1.Shoot) {
		setAnnotation(s, gardencorev1beta1.ConfirmationDeletion, "true")
		setAnnotation(s, gardencorev1beta1.DeletionConfirmedBy, "x")
	}
	// The shoots are on another seed than the fleet: that does not matter.
	m := func(changes ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		return aShoot(append([]func(*gardencorev1beta1.Shoot){onSeed("two"), named("m"), pool(1, 3)}, changes...)...)
	}
	fresh := func(changes ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		return m(append(changes, func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = nil })...)
	}
	for name, test := range map[string]struct {
		object, old *gardencorev1beta1.Shoot
		want        string
	}{
		"enlarges":                       {m(pool(4, 4), record("fleet")), m(), ""},
		"gives back":                     {m(), m(pool(4, 4), record("fleet")), ""},
		"leaves a pool":                  {m(pool(4, 4)), m(pool(4, 4), record("fleet")), ""},
		"by a fleet that may pools only": {m(pool(4, 4), record("pools-only")), m(), ""},
		"without a record":               {m(pool(4, 4)), m(), "without a record"},
		"for a fleet elsewhere": {
			m(pool(4, 4), record("foreign")), m(), `spec.seedName of shoot garden-demo/foreign is "two"`,
		},
		"for a fleet that must not": {m(pool(4, 4), record("shut")), m(), "is no fleet whose annotation"},
		"for what is no fleet":      {m(pool(4, 4), record("no-fleet")), m(), "is no fleet whose annotation"},
		"for nobody":                {m(pool(4, 4), record("nobody")), m(), "there is no fleet"},
		"takes another fleet's record": {
			m(pool(4, 4), record("fleet")), m(pool(3, 3), record("foreign")), "garden-demo/foreign",
		},
		"with records that cannot be read": {
			m(pool(4, 4), func(s *gardencorev1beta1.Shoot) {
				setAnnotation(s, fleetv1alpha1.GrownPoolsAnnotation, "[")
			}), m(), "unexpected end",
		},
		"and the machine type": {
			m(pool(4, 4), record("fleet"),
				func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "huge" }), m(),
			"spec of shoots is not changed",
		},
		"and another pool": {m(record("fleet"), func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, s.Spec.Provider.Workers[0])
		}), m(), "spec of shoots is not changed"},
		"and a label": {m(pool(4, 4), record("fleet"), grown("fleet")), m(), "labels of shoots"},
		"and an annotation": {
			m(pool(4, 4), record("fleet"),
				func(s *gardencorev1beta1.Shoot) { setAnnotation(s, gardencorev1beta1.GardenerOperation, "x") }), m(),
			"annotations of shoots",
		},
		"and a finalizer": {
			m(pool(4, 4), record("fleet"), func(s *gardencorev1beta1.Shoot) { s.Finalizers = []string{"x"} }), m(),
			"finalizers",
		},
		"creates": {fresh(grown("fleet")), nil, ""},
		"creates with other credentials": {
			fresh(grown("fleet"), binding("others")), nil, `spec.credentialsBindingName: annotation`,
		},
		"creates with other secrets": {
			fresh(grown("fleet"), secretBinding("others")), nil, `spec.secretBindingName: annotation`,
		},
		"creates with given credentials": {fresh(grown("fleet"), binding("given")), nil, ""},
		"creates what may give credentials": {fresh(grown("fleet"), func(s *gardencorev1beta1.Shoot) {
			setAnnotation(s, fleetv1alpha1.GrowthCredentialsAnnotation, "others")
		}), nil, "is for people of the project to say"},
		"creates without a label":       {fresh(), nil, "without the label"},
		"creates where only pools are":  {fresh(grown("pools-only")), nil, `has "shoots"`},
		"creates for a fleet elsewhere": {fresh(grown("foreign")), nil, `is "two"`},
		"creates on a seed":             {m(grown("fleet")), nil, "spec.seedName"},
		"creates with access to the project": {
			fresh(grown("fleet"), func(s *gardencorev1beta1.Shoot) { s.Spec.Resources = secrets() }), nil,
			"spec.resources",
		},
		"confirms":                {m(grown("fleet"), confirmed), m(grown("fleet")), ""},
		"confirms another's":      {m(confirmed), m(), "without the label"},
		"deletes":                 {nil, m(grown("fleet")), ""},
		"deletes another's":       {nil, m(), "without the label"},
		"deletes another fleet's": {nil, m(grown("foreign")), `is "two"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := write{
				resource: gardencorev1beta1.Resource("shoots"),
				user:     "system:serviceaccount:seed-one:extension-federation",
			}
			if test.object != nil {
				w.object = test.object
			}
			if test.old != nil {
				w.old = test.old
			}
			checkRefusal(t, plugin.Validate(t.Context(), w.attributes(), nil), test.want)
			w.user = ""
			if err := plugin.Validate(t.Context(), w.attributes(), nil); err == nil {
				t.Error("a gardenlet may do it")
			}
		})
	}
}

func secrets() []gardencorev1beta1.NamedResourceReference {
	return []gardencorev1beta1.NamedResourceReference{
		{
			Name: "s", ResourceRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret", Name: "s",
			},
		},
	}
}
