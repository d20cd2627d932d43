package controllerinstallation

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

func registration(name string,
	resources ...gardencorev1beta1.ControllerResource) *gardencorev1beta1.ControllerRegistration {
	return &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{
			Resources: resources,
			Deployment: &gardencorev1beta1.ControllerRegistrationDeployment{
				DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: name}},
			},
		},
	}
}

func resource(kind, resourceType string) gardencorev1beta1.ControllerResource {
	return gardencorev1beta1.ControllerResource{Kind: kind, Type: resourceType}
}

func withPolicy(r *gardencorev1beta1.ControllerRegistration,
	policy gardencorev1beta1.ControllerDeploymentPolicy) *gardencorev1beta1.ControllerRegistration {
	r.Spec.Deployment.Policy = &policy
	return r
}

func workerShoot() *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Provider = gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{
		Machine: gardencorev1beta1.Machine{Image: &gardencorev1beta1.ShootMachineImage{Name: "debian"}},
		CRI:     &gardencorev1beta1.CRI{ContainerRuntimes: []gardencorev1beta1.ContainerRuntime{{Type: "gvisor"}}},
	}}}
	shoot.Spec.Networking = &gardencorev1beta1.Networking{Type: new("flannel")}
	return shoot
}

func fleet(change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Provider.Type = "local"
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "federation"}}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func TestRequired(t *testing.T) {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"size": "big"}}}
	seed.Spec.Provider.Type = "local"
	seed.Spec.DNS.Internal = &gardencorev1beta1.SeedDNSProviderConfig{Type: "local"}
	deleted := seed.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}

	flannel := registration("flannel", resource("Network", "flannel"))
	debian := registration("debian", resource("OperatingSystemConfig", "debian"))
	gvisor := registration("gvisor", resource("ContainerRuntime", "gvisor"))
	provider := registration("provider", resource("Infrastructure", "local"), resource("Worker", "local"))
	dns := registration("dns", resource("DNSRecord", "local"))
	federation := registration("federation", resource("Extension", "federation"))
	backup := registration("backup", resource("BackupBucket", "s3"))
	entries := registration("entries", resource("BackupEntry", "s3"))
	bastions := registration("bastions", resource("Bastion", "local"))
	automatic := registration("automatic", gardencorev1beta1.ControllerResource{
		Kind: "Extension", Type: "certs",
		AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeShoot},
	})
	onSeeds := registration("on-seeds", gardencorev1beta1.ControllerResource{
		Kind: "Extension", Type: "audit",
		AutoEnable: []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeSeed},
	})
	elsewhere := registration("elsewhere", resource("Network", "flannel"))
	elsewhere.Spec.Deployment.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"size": "small"}}
	leaving := registration("leaving", resource("Network", "flannel"))
	leaving.DeletionTimestamp = &metav1.Time{}
	undeployed := registration("undeployed", resource("Network", "flannel"))
	undeployed.Spec.Deployment = nil
	always := func(name string) *gardencorev1beta1.ControllerRegistration {
		return withPolicy(registration(name), gardencorev1beta1.ControllerDeploymentPolicyAlways)
	}
	exceptEmpty := func(name string) *gardencorev1beta1.ControllerRegistration {
		return withPolicy(registration(name), gardencorev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots)
	}

	tests := map[string]struct {
		situation Situation
		want      []string
	}{
		"an empty seed needs its provider, its DNS and what is for seeds": {
			Situation{
				Seed: seed, Registrations: []*gardencorev1beta1.ControllerRegistration{
					flannel, provider, dns, onSeeds, automatic, always("always"), exceptEmpty("except"),
				},
			},
			[]string{"always", "dns", "on-seeds", "provider"},
		},
		"a shoot with workers": {
			Situation{
				Seed: seed, Shoots: []*gardencorev1beta1.Shoot{workerShoot()},
				Registrations: []*gardencorev1beta1.ControllerRegistration{
					flannel, debian, gvisor, federation, automatic, exceptEmpty("except"),
				},
			},
			[]string{"automatic", "debian", "except", "flannel", "gvisor"},
		},
		"a fleet": {
			Situation{
				Seed: seed, Shoots: []*gardencorev1beta1.Shoot{fleet()},
				Registrations: []*gardencorev1beta1.ControllerRegistration{flannel, federation, automatic},
			},
			[]string{"federation"},
		},
		"an extension that the only shoot disables": {
			Situation{
				Seed: seed, Shoots: []*gardencorev1beta1.Shoot{
					fleet(func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[0].Disabled = new(true) }),
				}, Registrations: []*gardencorev1beta1.ControllerRegistration{
					federation,
				},
			},
			nil,
		},
		"backups": {
			Situation{
				Seed: seed, BackupBuckets: []*gardencorev1beta1.BackupBucket{
					{
						Spec: gardencorev1beta1.BackupBucketSpec{
							Provider: gardencorev1beta1.BackupBucketProvider{Type: "s3"},
						},
					},
				}, Registrations: []*gardencorev1beta1.ControllerRegistration{
					backup,
				},
			},
			[]string{"backup"},
		},
		"backups that lie in another seed's bucket": {
			Situation{
				Seed: deleted, BackupEntryProviders: sets.New("s3"),
				Registrations: []*gardencorev1beta1.ControllerRegistration{backup, entries},
			},
			[]string{"entries"},
		},
		"bastions of a shoot with workers": {
			Situation{
				Seed: seed, Shoots: []*gardencorev1beta1.Shoot{workerShoot()},
				Registrations: []*gardencorev1beta1.ControllerRegistration{bastions},
			},
			[]string{"bastions"},
		},
		"for other seeds, being deleted, without deployment": {
			Situation{
				Seed: seed, Shoots: []*gardencorev1beta1.Shoot{workerShoot()},
				Registrations: []*gardencorev1beta1.ControllerRegistration{elsewhere, leaving, undeployed},
			},
			nil,
		},
		"a seed in deletion needs nothing once it is empty": {
			Situation{
				Seed: deleted, Registrations: []*gardencorev1beta1.ControllerRegistration{provider, always("always")},
			},
			nil,
		},
		"a seed in deletion with shoots": {
			Situation{
				Seed: deleted, Shoots: []*gardencorev1beta1.Shoot{workerShoot()},
				Registrations: []*gardencorev1beta1.ControllerRegistration{flannel},
			},
			[]string{"flannel"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sets.List(Required(test.situation)); !slices.Equal(got, test.want) {
				t.Errorf("required = %v, want %v", got, test.want)
			}
		})
	}
}

func TestInstallationNamesDiffer(t *testing.T) {
	if InstallationName("a-b", "c") == InstallationName("a", "b-c") {
		t.Error("two installations have the same name")
	}
}

// What a seed needs is decided by what is on it, is leaving it, or backs up to a bucket that may be another seed's.
func TestSituation(t *testing.T) {
	shoot := func(name, wanted, actual string) *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: name},
			Spec:       gardencorev1beta1.ShootSpec{SeedName: &wanted},
			Status:     gardencorev1beta1.ShootStatus{SeedName: &actual},
		}
	}
	bucket := func(name, seed, provider string) *gardencorev1beta1.BackupBucket {
		return &gardencorev1beta1.BackupBucket{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: gardencorev1beta1.BackupBucketSpec{
				SeedName: &seed, Provider: gardencorev1beta1.BackupBucketProvider{Type: provider},
			},
		}
	}
	entry := func(name, seed, bucket string) *gardencorev1beta1.BackupEntry {
		return &gardencorev1beta1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: name},
			Spec:       gardencorev1beta1.BackupEntrySpec{SeedName: &seed, BucketName: bucket},
		}
	}
	r := &Reconciler{Client: indextest.NewClientBuilder().WithObjects(
		&gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		shoot("here", "a", "a"), shoot("leaving", "b", "a"), shoot("coming", "a", "b"), shoot("there", "b", "b"),
		bucket("ours", "a", "local"), bucket("theirs", "b", "s3"), bucket("unrelated", "b", "gcs"),
		entry("moved", "a", "theirs"), entry("lost", "a", "gone"), entry("another", "b", "unrelated"),
	).Build()}
	situation, err := r.situation(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var shoots, buckets []string
	for _, one := range situation.Shoots {
		shoots = append(shoots, one.Name)
	}
	for _, one := range situation.BackupBuckets {
		buckets = append(buckets, one.Name)
	}
	slices.Sort(shoots)
	if want := []string{"coming", "here", "leaving"}; !slices.Equal(shoots, want) {
		t.Errorf("shoots = %v, want %v", shoots, want)
	}
	if want := []string{"ours"}; !slices.Equal(buckets, want) {
		t.Errorf("buckets = %v, want %v", buckets, want)
	}
	if got, want := sets.List(situation.BackupEntryProviders), []string{"s3"}; !slices.Equal(got, want) {
		t.Errorf("providers of entries = %v, want %v", got, want)
	}
}
