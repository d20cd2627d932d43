package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func readySeed(name string, change ...func(*gardencorev1beta1.Seed)) *gardencorev1beta1.Seed {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
	seed.Spec.Provider = gardencorev1beta1.SeedProvider{Type: "local", Region: "here"}
	seed.Spec.Networks = gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"}
	seed.Status.LastOperation = &gardencorev1beta1.LastOperation{}
	seed.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: gardencorev1beta1.SeedGardenletReady, Status: gardencorev1beta1.ConditionTrue},
	}
	for _, c := range change {
		c(seed)
	}
	return seed
}

func newShoot(change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	shoot.Spec.Region = "here"
	shoot.Spec.Provider = gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{Name: "pool"}}}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func room(shoots string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Status.Allocatable = corev1.ResourceList{gardencorev1beta1.ResourceShoots: resource.MustParse(shoots)}
	}
}

func ofProvider(name string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Type = name }
}

func inRegion(name string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Region = name }
}

func withZones(zones ...string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = zones }
}

func labelled(key, value string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Labels = map[string]string{key: value} }
}

func withTaint(key string, value *string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: key, Value: value}}
	}
}

func withBackup(condition *gardencorev1beta1.Condition) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Backup = &gardencorev1beta1.Backup{Provider: "local"}
		if condition != nil {
			condition.Type = gardencorev1beta1.SeedBackupBucketsReady
			s.Status.Conditions = append(s.Status.Conditions, *condition)
		}
	}
}

func wantsRegion(name string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.Region = name }
}

func workerless(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil }

func forTests(s *gardencorev1beta1.Shoot) {
	s.Spec.Purpose = new(gardencorev1beta1.ShootPurposeTesting)
}

func tolerating(kind gardencorev1beta1.FailureToleranceType) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{
			HighAvailability: &gardencorev1beta1.HighAvailability{
				FailureTolerance: gardencorev1beta1.FailureTolerance{Type: kind},
			},
		}
	}
}

func inZones(zones ...string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{Zones: zones} }
}

func selecting(key, value string, providers ...string) *gardencorev1beta1.SeedSelector {
	selector := &gardencorev1beta1.SeedSelector{ProviderTypes: providers}
	if key != "" {
		selector.LabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	return selector
}

func profileWith(selector *gardencorev1beta1.SeedSelector) *gardencorev1beta1.CloudProfileSpec {
	return &gardencorev1beta1.CloudProfileSpec{SeedSelector: selector}
}

func classWith(selector *gardencorev1beta1.SeedSelector,
	tolerations ...gardencorev1beta1.Toleration) *gardencorev1beta1.ExposureClass {
	return &gardencorev1beta1.ExposureClass{
		Scheduling: &gardencorev1beta1.ExposureClassScheduling{SeedSelector: selector, Tolerations: tolerations},
	}
}

func seeds(list ...*gardencorev1beta1.Seed) []*gardencorev1beta1.Seed { return list }

// decision is what is expected of Schedule: the seed, and of each rejected seed the reason and part of the message.
type decision struct {
	seed     string
	rejected map[string]Rejection
}

func TestSchedule(t *testing.T) {
	tests := map[string]struct {
		shoot    *gardencorev1beta1.Shoot
		snapshot Snapshot
		want     decision
	}{
		"the garden has no seed": {shoot: newShoot()},
		"one seed fits": {
			shoot: newShoot(), snapshot: Snapshot{Seeds: seeds(readySeed("a"))}, want: decision{seed: "a"},
		},
		"fewest shoots win": {
			shoot:    newShoot(),
			snapshot: Snapshot{Seeds: seeds(readySeed("a"), readySeed("b")), Used: map[string]int{"a": 1}},
			want:     decision{seed: "b"},
		},
		"of equals the first by name wins": {
			shoot: newShoot(), snapshot: Snapshot{Seeds: seeds(readySeed("b"), readySeed("a"))},
			want: decision{seed: "a"},
		},
		"a seed without room": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", room("1")), readySeed("b")), Used: map[string]int{"a": 1, "b": 5},
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{"a": {Reason: Full, Message: "is full: 1 of 1"}},
			},
		},
		"another provider": {
			shoot: newShoot(), snapshot: Snapshot{Seeds: seeds(readySeed("a", ofProvider("other")))},
			want: decision{
				rejected: map[string]Rejection{
					"a": {Reason: OtherProvider, Message: "has provider other, the shoot needs local"},
				},
			},
		},
		"a shoot without workers runs on any provider": {
			shoot: newShoot(workerless), snapshot: Snapshot{Seeds: seeds(readySeed("a", ofProvider("other")))},
			want: decision{seed: "a"},
		},
		"the profile accepts another provider": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", ofProvider("other"))), Profile: profileWith(selecting("", "", "other")),
			},
			want: decision{seed: "a"},
		},
		"the shoot accepts every provider": {
			shoot:    newShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("", "", "*") }),
			snapshot: Snapshot{Seeds: seeds(readySeed("a", ofProvider("other")))},
			want:     decision{seed: "a"},
		},
		"the shoot cannot accept more than the profile": {
			shoot: newShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("", "", "*") }),
			snapshot: Snapshot{
				Seeds:   seeds(readySeed("a"), readySeed("b", ofProvider("x"))),
				Profile: profileWith(selecting("", "", "x", "y")),
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{"a": {Reason: OtherProvider, Message: "needs x or y"}},
			},
		},
		"another region": {
			shoot: newShoot(wantsRegion("there")), snapshot: Snapshot{Seeds: seeds(readySeed("a"))},
			want: decision{
				rejected: map[string]Rejection{
					"a": {Reason: OtherRegion, Message: "is in region here, the shoot in there"},
				},
			},
		},
		"a shoot for tests runs in any region": {
			shoot: newShoot(wantsRegion("there"), forTests), snapshot: Snapshot{Seeds: seeds(readySeed("a"))},
			want: decision{seed: "a"},
		},
		"a shoot for tests goes where fewest are": {
			shoot: newShoot(forTests),
			snapshot: Snapshot{
				Strategy: MinimalDistance, Seeds: seeds(readySeed("a"), readySeed("b", inRegion("there"))),
				Used: map[string]int{"a": 1},
			},
			want: decision{seed: "b"},
		},
		"seeds that take nothing": {
			shoot: newShoot(),
			snapshot: Snapshot{Seeds: seeds(
				readySeed("deleted", func(s *gardencorev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{} }),
				readySeed("hidden", func(s *gardencorev1beta1.Seed) {
					s.Spec.Settings = &gardencorev1beta1.SeedSettings{
						Scheduling: &gardencorev1beta1.SeedSettingScheduling{},
					}
				}),
				readySeed("unprepared", func(s *gardencorev1beta1.Seed) { s.Status.LastOperation = nil }),
				readySeed("silent", func(s *gardencorev1beta1.Seed) {
					s.Status.Conditions[0].Status, s.Status.Conditions[0].Message = gardencorev1beta1.ConditionUnknown,
						"stopped reporting"
				}),
				readySeed("new", func(s *gardencorev1beta1.Seed) { s.Status.Conditions = nil }),
				readySeed("lost", func(s *gardencorev1beta1.Seed) {
					s.Annotations = map[string]string{gardencorev1beta1.AnnotationConfirmationSeedLost: "it burned"}
				}),
			)},
			want: decision{rejected: map[string]Rejection{
				"deleted":    {Reason: Deleted, Message: "is being deleted"},
				"hidden":     {Reason: Invisible, Message: "visible is false"},
				"unprepared": {Reason: NotReady, Message: "not been prepared"},
				"silent":     {Reason: NotReady, Message: "GardenletReady Unknown: stopped reporting"},
				"new":        {Reason: NotReady, Message: "has not reported yet"},
				"lost":       {Reason: NotReady, Message: "is confirmed to be lost"},
			}},
		},
		"a seed that is to back up can": {
			shoot: newShoot(),
			snapshot: Snapshot{Seeds: seeds(
				readySeed("a", withBackup(nil)),
				readySeed("b", withBackup(&gardencorev1beta1.Condition{
					Status: gardencorev1beta1.ConditionFalse, Message: "bucket is gone",
				})),
				readySeed("c", withBackup(&gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionTrue})),
			)},
			want: decision{seed: "c", rejected: map[string]Rejection{
				"a": {Reason: BackupNotReady, Message: "no condition BackupBucketsReady"},
				"b": {Reason: BackupNotReady, Message: "bucket is gone"},
			}},
		},
		"taints": {
			shoot: newShoot(func(s *gardencorev1beta1.Shoot) {
				s.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "quiet"}, {Key: "loud", Value: new("a bit")}}
			}),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", withTaint("loud", new("very"))),
					readySeed("b", withTaint("quiet", new("very")))),
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{"a": {Reason: Tainted, Message: "has taint loud=very"}},
			},
		},
		"the exposure class tolerates and selects": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a"),
					readySeed("b", withTaint("internet", nil), labelled("exposed", "true"))),
				ExposureClass: classWith(selecting("exposed", "true"), gardencorev1beta1.Toleration{Key: "internet"}),
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: NotSelected, Message: "the exposure class (exposed=true)"},
				},
			},
		},
		"the shoot selects": {
			shoot:    newShoot(func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selecting("size", "big") }),
			snapshot: Snapshot{Seeds: seeds(readySeed("a"), readySeed("b", labelled("size", "big")))},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: NotSelected, Message: "seedSelector of the shoot"},
				},
			},
		},
		"the profile selects": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds:   seeds(readySeed("a"), readySeed("b", labelled("size", "big"))),
				Profile: profileWith(selecting("size", "big")),
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: NotSelected, Message: "seedSelector of the cloud profile"},
				},
			},
		},
		"failure tolerance zone needs three zones": {
			shoot: newShoot(tolerating(gardencorev1beta1.FailureToleranceTypeZone)),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", withZones("1", "2")), readySeed("b", withZones("1", "2", "3"))),
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: MissingZones, Message: "has 2 zones, failure tolerance zone needs 3"},
				},
			},
		},
		"the control plane's zones": {
			shoot: newShoot(inZones("2")),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", withZones("1")), readySeed("b", withZones("1", "2")),
					readySeed("c", withZones("1"), func(s *gardencorev1beta1.Seed) {
						s.Spec.Settings = &gardencorev1beta1.SeedSettings{
							ZoneSelection: &gardencorev1beta1.SeedSettingZoneSelection{
								Mode: gardencorev1beta1.ZoneSelectionModePrefer,
							},
						}
					})), Used: map[string]int{"b": 1},
			},
			want: decision{seed: "c", rejected: map[string]Rejection{
				"a": {Reason: MissingZones, Message: "has no zone 2"},
				"b": {Reason: MissingZones, Message: "is in zone 1 as well"},
			}},
		},
		"the control plane's zones are all of the seed's": {
			shoot: newShoot(inZones("2", "1")),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", withZones("1", "2", "3")), readySeed("b", withZones("1", "2"))),
			},
			want: decision{seed: "b", rejected: map[string]Rejection{
				"a": {Reason: MissingZones, Message: "is in zone 3 as well"},
			}},
		},
		"access restrictions": {
			shoot: newShoot(func(s *gardencorev1beta1.Shoot) {
				s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
					{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu"}},
				}
			}),
			snapshot: Snapshot{Seeds: seeds(readySeed("a"), readySeed("b", func(s *gardencorev1beta1.Seed) {
				s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestriction{{Name: "us"}, {Name: "eu"}}
			}))},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: NoAccessRestriction, Message: "access restriction eu"},
				},
			},
		},
		"networks of a control plane may overlap": {
			shoot: newShoot(tolerating(gardencorev1beta1.FailureToleranceTypeNode), func(s *gardencorev1beta1.Shoot) {
				s.Spec.Networking = &gardencorev1beta1.Networking{Pods: new("10.1.0.0/16")}
			}),
			snapshot: Snapshot{Seeds: seeds(readySeed("a"))},
			want:     decision{seed: "a"},
		},
		"what waiting does not cure is said first": {
			shoot: newShoot(),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", inRegion("there"), room("0"),
					func(s *gardencorev1beta1.Seed) { s.Status = gardencorev1beta1.SeedStatus{} })),
			},
			want: decision{rejected: map[string]Rejection{"a": {Reason: OtherRegion, Message: "there"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seed, rejections := Schedule(test.snapshot, test.shoot)
			checkDecision(t, seed, rejections, test.want)
		})
	}
}

func TestScheduleByDistance(t *testing.T) {
	near, far := inRegion("eu-west-1"), inRegion("us-west-1")
	tests := map[string]struct {
		shoot    *gardencorev1beta1.Shoot
		snapshot Snapshot
		want     decision
	}{
		"the shoot's own region is nearest": {
			shoot:    newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{Seeds: seeds(readySeed("a", far), readySeed("b", near)), Used: map[string]int{"b": 3}},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: Farther, Message: "is in region us-west-1 at distance 4, others are at 0"},
				},
			},
		},
		"of the nearest the one with fewest shoots": {
			shoot:    newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{Seeds: seeds(readySeed("a", near), readySeed("b", near)), Used: map[string]int{"a": 1}},
			want:     decision{seed: "b"},
		},
		"a far seed is better than none": {
			shoot:    newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{Seeds: seeds(readySeed("a", far), readySeed("b", near, room("0")))},
			want:     decision{seed: "a", rejected: map[string]Rejection{"b": {Reason: Full, Message: "0 of 0"}}},
		},
		"another provider counts as distance": {
			shoot: newShoot(workerless, wantsRegion("eu-west-1")),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", near, ofProvider("other")), readySeed("b", inRegion("eu-1")),
					readySeed("c", near, ofProvider("other"))),
			},
			want: decision{
				seed: "a", rejected: map[string]Rejection{
					"b": {Reason: Farther, Message: "at distance 3, others are at 2"},
				},
			},
		},
		"configured distances come before names": {
			shoot: newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{
				Seeds:     seeds(readySeed("a", far), readySeed("b", inRegion("eu-west-2"))),
				Distances: map[string]int{"us-west-1": 10, "eu-west-2": 20},
			},
			want: decision{
				seed: "a", rejected: map[string]Rejection{
					"b": {Reason: Farther, Message: "at distance 20, others are at 10"},
				},
			},
		},
		"regions that nobody configured": {
			shoot: newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{
				Seeds:     seeds(readySeed("a", far), readySeed("b", inRegion("eu-west-2"))),
				Distances: map[string]int{"us-west-1": 10},
			},
			want: decision{
				seed: "a", rejected: map[string]Rejection{
					"b": {Reason: Farther, Message: "for which no distance is configured"},
				},
			},
		},
		"the own region is at distance 0": {
			shoot: newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{
				Seeds: seeds(readySeed("a", far), readySeed("b", near)), Distances: map[string]int{"us-west-1": 10},
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: Farther, Message: "at distance 10, others are at 0"},
				},
			},
		},
		"names decide where nothing is configured": {
			shoot: newShoot(wantsRegion("eu-west-1")),
			snapshot: Snapshot{
				Seeds:     seeds(readySeed("a", far), readySeed("b", inRegion("eu-west-2"))),
				Distances: map[string]int{"ap-east-1": 1},
			},
			want: decision{
				seed: "b", rejected: map[string]Rejection{
					"a": {Reason: Farther, Message: "at distance 4, others are at 2"},
				},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.snapshot.Strategy = MinimalDistance
			seed, rejections := Schedule(test.snapshot, test.shoot)
			checkDecision(t, seed, rejections, test.want)
		})
	}
}

func checkDecision(t *testing.T, seed string, rejections []Rejection, want decision) {
	t.Helper()
	if seed != want.seed {
		t.Errorf("seed = %q, want %q", seed, want.seed)
	}
	if len(rejections) != len(want.rejected) {
		t.Errorf("rejections = %v, want of %v", rejections, want.rejected)
	}
	for _, got := range rejections {
		expected, ok := want.rejected[got.Seed]
		if !ok || got.Reason != expected.Reason || !strings.Contains(got.Message, expected.Message) {
			t.Errorf("rejection of %s = %s, %q; want %s with %q", got.Seed, got.Reason, got.Message, expected.Reason,
				expected.Message)
		}
	}
}
