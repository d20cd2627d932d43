package admission

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

var quotaProfile = &gardencorev1beta1.CloudProfileSpec{
	MachineTypes: []gardencorev1beta1.MachineType{
		{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"), GPU: resource.MustParse("0")},
		{Name: "gpu", CPU: resource.MustParse("8"), Memory: resource.MustParse("16Gi"), GPU: resource.MustParse("1"),
			Storage: &gardencorev1beta1.MachineTypeStorage{
				Class: "premium", StorageSize: new(resource.MustParse("100Gi")),
			}},
	},
	VolumeTypes: []gardencorev1beta1.VolumeType{
		{Name: "hdd", Class: "standard"}, {Name: "ssd", Class: "premium"}, {Name: "tape", Class: "archive"},
	},
}

func TestDemandOfShoot(t *testing.T) {
	volume := func(name, size string) *gardencorev1beta1.Volume {
		return &gardencorev1beta1.Volume{Type: &name, VolumeSize: size}
	}
	pool := func(change func(*gardencorev1beta1.Worker)) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { change(&s.Spec.Provider.Workers[0]) }
	}
	tests := map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  corev1.ResourceList
	}{
		"machines at their maximum": {aShoot(), resources("cpu", "4", "memory", "8Gi", "gpu", "0")},
		"no workers":                {aShoot(workerless), resources()},
		"a type that is gone": {
			aShoot(pool(func(w *gardencorev1beta1.Worker) { w.Machine.Type = "old" })), resources(),
		},
		"storage of the machine": {
			aShoot(pool(func(w *gardencorev1beta1.Worker) { w.Machine.Type = "gpu" })),
			resources("cpu", "16", "memory", "32Gi", "gpu", "2", "storage.premium", "200Gi"),
		},
		"volume instead of it": {
			aShoot(pool(func(w *gardencorev1beta1.Worker) { w.Machine.Type, w.Volume = "gpu", volume("hdd", "50Gi") })),
			resources("cpu", "16", "memory", "32Gi", "gpu", "2", "storage.standard", "100Gi"),
		},
		"a class that nobody counts": {
			aShoot(pool(func(w *gardencorev1beta1.Worker) { w.Volume = volume("tape", "50Gi") })),
			resources("cpu", "4", "memory", "8Gi", "gpu", "0"),
		},
		"data volumes": {aShoot(pool(func(w *gardencorev1beta1.Worker) {
			w.Volume = volume("hdd", "50Gi")
			w.DataVolumes = []gardencorev1beta1.DataVolume{
				{Type: new("ssd"), VolumeSize: "10Gi"}, {Type: new("hdd"), VolumeSize: "1Gi"},
			}
		})), resources("cpu", "4", "memory", "8Gi", "gpu", "0", "storage.standard", "102Gi", "storage.premium",
			"20Gi")},
		"load balancer": {aShoot(workerless, func(s *gardencorev1beta1.Shoot) {
			s.Spec.Addons = &gardencorev1beta1.Addons{
				NginxIngress: &gardencorev1beta1.NginxIngress{Addon: gardencorev1beta1.Addon{Enabled: true}},
			}
		}), resources("loadbalancer", "1")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := demandOf(test.shoot, quotaProfile)
			if len(got) != len(test.want) {
				t.Fatalf("demand = %v, want %v", got, test.want)
			}
			for name, want := range test.want {
				if quantity := got[name]; quantity.Cmp(want) != 0 {
					t.Errorf("%s = %s, want %s", name, &quantity, &want)
				}
			}
		})
	}
}

func TestQuotaMetrics(t *testing.T) {
	quota := &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "trial"},
		Spec:       gardencorev1beta1.QuotaSpec{Metrics: resources("cpu", "10", "memory", "20Gi")},
	}
	tests := map[string]struct {
		used, wanted, before corev1.ResourceList
		want                 string
	}{
		"fits exactly": {resources("cpu", "6"), resources("cpu", "4"), nil, ""},
		"too much": {
			resources("cpu", "6"), resources("cpu", "5"), nil,
			"quota garden/trial is exceeded (cpu: used 6, requested 5, limit 10)",
		},
		"too much of two": {
			resources("cpu", "6", "memory", "18Gi"), resources("cpu", "5", "memory", "4Gi"), nil,
			"cpu: used 6, requested 5, limit 10; memory: used 18Gi, requested 4Gi, limit 20Gi",
		},
		"not limited":       {resources("gpu", "6"), resources("gpu", "5"), nil, ""},
		"over, and stays":   {resources("cpu", "9"), resources("cpu", "4"), resources("cpu", "4"), ""},
		"over, and shrinks": {resources("cpu", "9"), resources("cpu", "3"), resources("cpu", "4"), ""},
		"over, and grows":   {resources("cpu", "9"), resources("cpu", "5"), resources("cpu", "4"), "limit 10"},
		"shrinks one, grows one": {
			resources("cpu", "9"), resources("cpu", "3", "memory", "2Gi"), resources("cpu", "4", "memory", "1Gi"), "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, checkMetrics(quota, test.used, test.wanted, test.before), test.want)
		})
	}
}

func TestClaimsOfQuotas(t *testing.T) {
	// A claim for a shoot that is stored already counts once, with what is larger.
	got := larger(resources("cpu", "4", "memory", "8Gi"), resources("cpu", "2", "memory", "16Gi", "gpu", "1"))
	for name, want := range resources("cpu", "4", "memory", "16Gi", "gpu", "1") {
		if quantity := got[name]; quantity.Cmp(want) != 0 {
			t.Errorf("%s = %s, want %s", name, &quantity, &want)
		}
	}
	if got := larger(nil, resources("cpu", "2")); len(got) != 1 {
		t.Errorf("the larger of nothing and two CPUs is %v", got)
	}
	quota := &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "trial"},
		Spec:       gardencorev1beta1.QuotaSpec{Scope: corev1.ObjectReference{Kind: "Project"}},
	}
	if got := quotaScope(quota, aShoot()); got != "quotas/garden/trial/garden-demo" {
		t.Errorf("scope of a quota of projects = %s", got)
	}
	quota.Spec.Scope.Kind = "Secret"
	if got := quotaScope(quota, aShoot()); got != "quotas/garden/trial" {
		t.Errorf("scope of a quota of credentials = %s", got)
	}
}

func TestLifetime(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	quota := func(days *int32) *gardencorev1beta1.Quota {
		return &gardencorev1beta1.Quota{Spec: gardencorev1beta1.QuotaSpec{ClusterLifetimeDays: days}}
	}
	if got := lifetimeOf([]*gardencorev1beta1.Quota{
		quota(new(int32(14))), quota(nil), quota(new(int32(7))),
	}); got != 7*24*time.Hour {
		t.Errorf("lifetime = %s, want the shortest, a week", got)
	}
	week := 7 * 24 * time.Hour
	expiring := func(value string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { setAnnotation(s, gardencorev1beta1.ShootExpirationTimestamp, value) }
	}
	born := func(s *gardencorev1beta1.Shoot) { s.CreationTimestamp = metav1.NewTime(now.Add(-48 * time.Hour)) }
	tests := map[string]struct {
		shoot    *gardencorev1beta1.Shoot
		lifetime time.Duration
		want     string
		refused  string
	}{
		"not limited":     {aShoot(), 0, "", ""},
		"new":             {aShoot(), week, "2026-11-28T12:00:00Z", ""},
		"older":           {aShoot(born), week, "2026-11-26T12:00:00Z", ""},
		"shortened":       {aShoot(expiring("2026-11-22T12:00:00Z")), week, "2026-11-22T12:00:00Z", ""},
		"extended as far": {aShoot(born, expiring("2026-11-28T12:00:00Z")), week, "2026-11-28T12:00:00Z", ""},
		"extended too far": {
			aShoot(born, expiring("2026-11-28T12:00:01Z")), week, "",
			"until 2026-11-28T12:00:00Z at most, 7 days from now",
		},
		"not a time": {
			aShoot(expiring("tomorrow")), week, "", `"tomorrow" is no time such as 2026-11-28T12:00:00Z`,
		},
		"unlimited, extend": {aShoot(expiring("2036-11-28T12:00:00Z")), 0, "2036-11-28T12:00:00Z", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := limitLifetime(test.shoot, test.lifetime, now)
			checkRefusal(t, err, test.refused)
			if got := test.shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp]; err == nil &&
				got != test.want {
				t.Errorf("expires %q, want %q", got, test.want)
			}
		})
	}
}
