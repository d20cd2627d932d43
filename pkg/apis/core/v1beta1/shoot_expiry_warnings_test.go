package v1beta1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShootExpiryWarnings(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(days int) *metav1.Time { return new(metav1.NewTime(now.AddDate(0, 0, days))) }
	dated := func(days int) ExpirableVersion { return ExpirableVersion{Version: "1.35.4", ExpirationDate: in(days)} }
	staged := ExpirableVersion{Version: "1.35.4", Lifecycle: []LifecycleStage{
		{Classification: ClassificationSupported}, {Classification: ClassificationExpired, StartTime: in(10)},
	}}
	images := func(expires *metav1.Time) []MachineImage {
		return []MachineImage{
			{
				Name: "debian", Versions: []MachineImageVersion{
					{ExpirableVersion: ExpirableVersion{Version: "12.12.0", ExpirationDate: expires}},
				},
			},
		}
	}
	for name, test := range map[string]struct {
		version ExpirableVersion
		images  []MachineImage
		want    []string
	}{
		"no date":       {ExpirableVersion{Version: "1.35.4"}, images(nil), nil},
		"far away":      {dated(31), images(in(31)), nil},
		"soon":          {dated(30), nil, []string{"spec.kubernetes.version: 1.35.4 expires on 2026-12-21"}},
		"expired":       {dated(0), nil, []string{"spec.kubernetes.version: 1.35.4 has expired"}},
		"by its stages": {staged, nil, []string{"spec.kubernetes.version: 1.35.4 expires on 2026-12-01"}},
		"image": {
			dated(31), images(in(1)), []string{
				"spec.provider.workers[0].machine.image.version: 12.12.0 expires on 2026-11-22",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &Shoot{}
			shoot.Spec.Kubernetes.Version = "1.35.4"
			shoot.Spec.Provider.Workers = []Worker{
				{Machine: Machine{Image: &ShootMachineImage{Name: "debian", Version: new("12.12.0")}}},
			}
			profile := &CloudProfileSpec{
				Kubernetes: KubernetesSettings{Versions: []ExpirableVersion{test.version}}, MachineImages: test.images,
			}
			got := ShootExpiryWarnings(shoot, profile, now)
			if len(got) != len(test.want) {
				t.Fatalf("warnings = %v, want %v", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("warning = %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
	shoot := &Shoot{}
	shoot.Spec.Kubernetes.Version = "1.36.3"
	shoot.Spec.Provider.Workers = []Worker{{Kubernetes: &WorkerKubernetes{Version: new("1.35.4")}}}
	profile := &CloudProfileSpec{Kubernetes: KubernetesSettings{Versions: []ExpirableVersion{dated(1)}}}
	if got := ShootExpiryWarnings(shoot, profile, now); len(got) != 1 ||
		!strings.HasPrefix(got[0], "spec.provider.workers[0].kubernetes.version") {
		t.Errorf("an older pool: warnings = %v", got)
	}
}
