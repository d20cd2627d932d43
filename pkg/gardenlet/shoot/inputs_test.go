package shoot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestETCDBackup(t *testing.T) {
	got := etcdBackup(config.ETCDConfig{
		DeltaSnapshotPeriod: &metav1.Duration{Duration: 1}, MaxBackupsLimitBasedGC: 2,
		FullSnapshotRetentionPeriod: metav1.Duration{Duration: 3}, VerificationPeriod: &metav1.Duration{Duration: 4},
	})
	want := component.ETCDBackup{
		DeltaSnapshotPeriod: 1, FullSnapshots: 2, FullSnapshotAge: 3, VerificationPeriod: 4,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestETCDBackupByDefault holds gardenlet's defaults to those of who has no such configuration.
func TestETCDBackupByDefault(t *testing.T) {
	defaults, err := config.Parse([]byte(`
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection: {bootstrapKubeconfig: {namespace: garden, name: bootstrap}}
gateway: {address: 172.18.0.2}
seedConfig:
  metadata: {name: local}
  spec:
    provider: {type: local, region: local}
    networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16}
    dns: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := etcdBackup(defaults.ETCDConfig), component.DefaultETCDBackup(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
