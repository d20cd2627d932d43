package etcd

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func TestObjects(t *testing.T) {
	names := secretNames{
		ca: "ca-etcd-bundle-11111111", server: "etcd-server-22222222", peerCA: "ca-etcd-peer-bundle-33333333",
		peer: "etcd-peer-44444444",
	}
	store := &Store{
		Prefix: "shoot--demo--member1--uid/etcd-main", provider: "S3", bucket: "bucket",
		Backup: component.ETCDBackup{
			DeltaSnapshotPeriod: time.Minute, FullSnapshots: 12, FullSnapshotAge: 48 * time.Hour,
			VerificationPeriod: 24 * time.Hour,
		},
	}
	for name, values := range map[string]Values{
		"main": {
			Role: Main, Image: "etcd-steward:v1", Replicas: 1, StorageClass: new("default"),
			BackupDir: "/var/lib/backups",
		},
		"backed-up": {
			Role: Main, Image: "etcd-steward:v1", Replicas: 1,
			Store: store,
		},
		"events": {Role: Events, Image: "etcd-steward:v1", Replicas: 0, MinAllowed: corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("300M"), corev1.ResourceCPU: resource.MustParse("1m"),
		}},
		"members-main": {
			Role: Main, Image: "etcd-steward:v1", Replicas: 3, Availability: outlasts(zone),
			Store: store,
		},
		"members-events": {Role: Events, Image: "etcd-steward:v1", Replicas: 3, Availability: outlasts(node)},
	} {
		t.Run(name, func(t *testing.T) {
			values.PriorityClass = component.PriorityControlPlane500
			golden.Check(t, name, objects(namespace, values.withDefaults(), names)...)
		})
	}
}

func TestQuotaLeavesRoomOnTheVolume(t *testing.T) {
	for _, test := range []struct {
		role     Role
		capacity string
		want     string
	}{{Main, "25Gi", "8Gi"}, {Main, "900", "300"}, {Events, "25Gi", "2Gi"}} {
		quota := Values{Role: test.role, StorageCapacity: resource.MustParse(test.capacity)}.withDefaults().Quota
		if want := resource.MustParse(test.want); quota.Cmp(want) != 0 {
			t.Errorf("%s on %s: quota is %s, want %s", test.role, test.capacity, quota.String(), test.want)
		}
	}
}

func TestVolumesOfTheSeed(t *testing.T) {
	small := Values{Role: Main, MinimumCapacity: resource.MustParse("1Gi")}.withDefaults()
	large := Values{Role: Main, MinimumCapacity: resource.MustParse("25Gi")}.withDefaults()
	if small.StorageCapacity.String() != "2Gi" || large.StorageCapacity.String() != "25Gi" ||
		large.Quota.String() != "8Gi" {
		t.Errorf("volumes of %s and %s, quota %s", small.StorageCapacity.String(), large.StorageCapacity.String(),
			large.Quota.String())
	}
	present := statefulSet(namespace, small, secretNames{})
	if kept := large.withVolumeOf(present); kept.StorageCapacity.String() != "2Gi" ||
		kept.Quota.Value() != small.Quota.Value() {
		t.Errorf("beside a volume of 2Gi: %s, quota %s", kept.StorageCapacity.String(), kept.Quota.String())
	}
	small.Quota = resource.MustParse("1600Mi")
	if kept := large.withVolumeOf(statefulSet(namespace, small, secretNames{})); kept.Quota.Cmp(small.Quota) != 0 {
		t.Errorf("beside a database with a quota of %s: %s", small.Quota.String(), kept.Quota.String())
	}
}

func TestTrafficDistribution(t *testing.T) {
	if got := clientService(namespace, Values{Role: Main}).Spec.TrafficDistribution; got != nil {
		t.Errorf("got %q", *got)
	}
	if got := clientService(namespace,
		Values{Role: Main, TrafficDistribution: "PreferClose"}).Spec.TrafficDistribution; ptr.Deref(got,
		"") != "PreferClose" {
		t.Errorf("got %v", got)
	}
}

func TestDeployNeedsTheAuthority(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	manager, err := secrets.New(t.Context(), c, namespace, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = New(c, namespace, manager, Values{Role: Main}).Deploy(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"ca-etcd" has not been generated`) {
		t.Errorf("got %v", err)
	}
}
