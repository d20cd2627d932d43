package garden

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// TestLimitsHoldAtOnce: requests that reach two replicas of garden-apiserver at the same time take no more than there
// is.
func TestLimitsHoldAtOnce(t *testing.T) {
	replicas := twoReplicas(t)
	create(t, newProfile("limits"), newSeed("limits", "limits"))
	namespace := newProject(t, "limits")
	create(t, &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cpus"},
		Spec: gardencorev1beta1.QuotaSpec{
			Scope:   corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"},
			Metrics: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("11")}, // a shoot takes two
		},
	})
	create(t, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "limited"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local"},
		Quotas:         []corev1.ObjectReference{{Namespace: namespace, Name: "cpus"}},
	})
	for _, test := range []struct {
		limit string
		fits  int
		make  func(i int) client.Object
	}{
		{"quota", 5, func(i int) client.Object {
			return newShoot(namespace, fmt.Sprint("quota", i), "limits",
				func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName = new("limited") })
		}},
		{"domain", 1, func(i int) client.Object {
			return newShoot(namespace, fmt.Sprint("domain", i), "limits", func(s *gardencorev1beta1.Shoot) {
				s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("limits.own.example")}
			})
		}},
		{"domain above another", 1, func(i int) client.Object {
			domain := "above.own.example"
			if i%2 == 1 {
				domain = "below." + domain
			}
			return newShoot(namespace, fmt.Sprint("above", i), "limits",
				func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: &domain} })
		}},
		{"namespace of a project", 1, func(i int) client.Object {
			return &gardencorev1beta1.Project{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("once", i)},
				Spec:       gardencorev1beta1.ProjectSpec{Namespace: new("garden-once")},
			}
		}},
	} {
		t.Run(test.limit, func(t *testing.T) {
			if got := createAtOnce(t, replicas, test.make); got != test.fits {
				t.Errorf("%d of 20 creations passed, want %d", got, test.fits)
			}
		})
	}
}

// twoReplicas returns clients of two garden-apiservers with one etcd.
func twoReplicas(t *testing.T) []client.Client {
	t.Helper()
	second, err := env.StartReplica(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var clients []client.Client
	for _, server := range []string{env.GardenAPIServerURL, second} {
		direct, err := env.DirectClient(server, "admin", "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, direct)
	}
	return clients
}

// createAtOnce makes 20 creations at the same time and returns how many passed.
func createAtOnce(t *testing.T, replicas []client.Client, object func(i int) client.Object) int {
	t.Helper()
	const creations = 20
	var passed atomic.Int64
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range creations {
		group.Go(func() {
			<-start
			err := replicas[i%len(replicas)].Create(context.Background(), object(i))
			switch {
			case err == nil:
				passed.Add(1)
			case client.IgnoreNotFound(err) == nil:
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	return int(passed.Load())
}
