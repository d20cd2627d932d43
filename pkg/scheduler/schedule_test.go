package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func readySeed(name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	seed.Spec.Provider = corev1beta1.SeedProvider{Type: "local", Region: "here"}
	seed.Spec.Networks = corev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"}
	seed.Status.LastOperation = &corev1beta1.LastOperation{}
	seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
	for _, c := range change {
		c(seed)
	}
	return seed
}

func newShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Spec.Region = "here"
	shoot.Spec.Provider = corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Name: "pool"}}}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func onSeed(name string) *corev1beta1.Shoot {
	return newShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = &name })
}

func room(shoots string) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) {
		s.Status.Allocatable = corev1.ResourceList{corev1beta1.ResourceShoots: resource.MustParse(shoots)}
	}
}

func TestSchedule(t *testing.T) {
	workerless := func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil }
	otherProvider := func(s *corev1beta1.Seed) { s.Spec.Provider.Type = "other" }
	tests := map[string]struct {
		shoot    *corev1beta1.Shoot
		snapshot Snapshot
		want     string
		reasons  map[string]string // part of the reason, by seed
	}{
		"the garden has no seed": {shoot: newShoot()},
		"one seed fits":          {shoot: newShoot(), snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a")}}, want: "a"},
		"fewest shoots win": {
			shoot:    newShoot(),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a"), readySeed("b")}, Shoots: []*corev1beta1.Shoot{onSeed("a")}},
			want:     "b",
		},
		"of equals the first by name wins": {
			shoot: newShoot(), snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("b"), readySeed("a")}}, want: "a",
		},
		"promises count": {
			shoot:    newShoot(),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a", room("1")), readySeed("b")}, Promised: map[string]int{"a": 1, "b": 5}},
			want:     "b", reasons: map[string]string{"a": "is full: 1 of 1"},
		},
		"a shoot that moves counts on both seeds": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds: []*corev1beta1.Seed{readySeed("a"), readySeed("b"), readySeed("c")},
				Shoots: []*corev1beta1.Shoot{newShoot(func(s *corev1beta1.Shoot) {
					s.Spec.SeedName, s.Status.SeedName = ptr.To("a"), ptr.To("b")
				})},
			},
			want: "c",
		},
		"another provider": {
			shoot: newShoot(), snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a", otherProvider)}},
			reasons: map[string]string{"a": "has provider other, the shoot needs local"},
		},
		"a shoot without workers runs on any provider": {
			shoot: newShoot(workerless), snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a", otherProvider)}}, want: "a",
		},
		"the profile accepts another provider": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds:   []*corev1beta1.Seed{readySeed("a", otherProvider)},
				Profile: &corev1beta1.CloudProfileSpec{SeedSelector: &corev1beta1.SeedSelector{ProviderTypes: []string{"other"}}},
			},
			want: "a",
		},
		"another region": {
			shoot:    newShoot(func(s *corev1beta1.Shoot) { s.Spec.Region = "there" }),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a")}},
			reasons:  map[string]string{"a": "is in region here, the shoot in there"},
		},
		"seeds that take nothing": {
			shoot: newShoot(),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{
				readySeed("deleted", func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{} }),
				readySeed("hidden", func(s *corev1beta1.Seed) {
					s.Spec.Settings = &corev1beta1.SeedSettings{Scheduling: &corev1beta1.SeedSettingScheduling{}}
				}),
				readySeed("unprepared", func(s *corev1beta1.Seed) { s.Status.LastOperation = nil }),
				readySeed("silent", func(s *corev1beta1.Seed) {
					s.Status.Conditions[0].Status, s.Status.Conditions[0].Message = corev1beta1.ConditionUnknown, "stopped reporting"
				}),
				readySeed("new", func(s *corev1beta1.Seed) { s.Status.Conditions = nil }),
			}},
			reasons: map[string]string{
				"deleted": "is being deleted", "hidden": "visible is false", "unprepared": "not been prepared",
				"silent": "GardenletReady is Unknown: stopped reporting", "new": "has not reported yet",
			},
		},
		"taints": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.Tolerations = []corev1beta1.Toleration{{Key: "quiet"}} }),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{
				readySeed("a", func(s *corev1beta1.Seed) { s.Spec.Taints = []corev1beta1.SeedTaint{{Key: "loud"}} }),
				readySeed("b", func(s *corev1beta1.Seed) {
					s.Spec.Taints = []corev1beta1.SeedTaint{{Key: "quiet", Value: ptr.To("very")}}
				}),
			}},
			want: "b", reasons: map[string]string{"a": "has taint loud"},
		},
		"seed selector": {
			shoot: newShoot(func(s *corev1beta1.Shoot) {
				s.Spec.SeedSelector = &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"size": "big"}}}
			}),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{
				readySeed("a"), readySeed("b", func(s *corev1beta1.Seed) { s.Labels = map[string]string{"size": "big"} }),
			}},
			want: "b", reasons: map[string]string{"a": "seedSelector of the shoot"},
		},
		"zones and restrictions": {
			shoot: newShoot(func(s *corev1beta1.Shoot) {
				s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone}}}
				s.Spec.AccessRestrictions = []corev1beta1.AccessRestrictionWithOptions{{AccessRestriction: corev1beta1.AccessRestriction{Name: "eu"}}}
			}),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{
				readySeed("a"), readySeed("b", func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"1", "2", "3"} }),
			}},
			reasons: map[string]string{"a": "has 0 zones", "b": "access restriction eu"},
		},
		"networks of a highly available control plane": {
			shoot: newShoot(func(s *corev1beta1.Shoot) {
				s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeNode}}}
				s.Spec.Networking = &corev1beta1.Networking{Pods: ptr.To("10.1.128.0/17")}
			}),
			snapshot: Snapshot{Seeds: []*corev1beta1.Seed{readySeed("a")}},
			reasons:  map[string]string{"a": "its network for pods 10.1.0.0/16 overlaps the shoot's for pods"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, reasons := Schedule(test.shoot, test.snapshot)
			if got != test.want {
				t.Errorf("seed = %q, want %q; reasons: %s", got, test.want, reasons)
			}
			if len(reasons) != len(test.reasons) {
				if test.want == "" || len(test.reasons) > 0 {
					t.Errorf("reasons = %v, want %v", reasons, test.reasons)
				}
			}
			for seed, part := range test.reasons {
				if !strings.Contains(reasons[seed], part) {
					t.Errorf("reason of seed %s = %q, want it to contain %q", seed, reasons[seed], part)
				}
			}
		})
	}
}

func TestPromisesAreKeptUntilTheyShow(t *testing.T) {
	waiting, other := newShoot(), newShoot()
	waiting.UID, other.UID = "1", "2"
	var p promises
	p.add(waiting.UID, "a")
	p.add(other.UID, "a")
	other.Spec.SeedName = ptr.To("a")

	got := p.outstanding([]*corev1beta1.Shoot{waiting, other})
	if got["a"] != 1 {
		t.Errorf("outstanding = %v, want one on seed a", got)
	}
	if got := p.outstanding(nil); got["a"] != 0 {
		t.Errorf("outstanding = %v after the shoots are gone, want none", got)
	}
}
