package membership

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

func shoot(change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{}
	s.Name, s.Namespace, s.UID = "member1", "garden-demo", "uid"
	s.Spec.Region = "local"
	s.Spec.Provider.Type = "local"
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Zones: []string{"b", "a"}}, {Zones: []string{"a"}}}
	for _, f := range change {
		f(s)
	}
	return s
}

func TestWantsMembership(t *testing.T) {
	tests := map[string]struct {
		shoot *gardencorev1beta1.Shoot
		want  bool
	}{
		"with workers": {shoot(), true},
		"without":      {shoot(func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil }), false},
		"deleted":      {shoot(func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{} }), false},
		"kept out": {
			shoot(func(s *gardencorev1beta1.Shoot) {
				s.Labels = map[string]string{fleetv1alpha1.JoinLabel: "false"}
			}), false,
		},
	}
	for name, tc := range tests {
		if got := wantsMembership(tc.shoot); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestClusterFor(t *testing.T) {
	c := clusterFor(shoot(func(s *gardencorev1beta1.Shoot) {
		s.Labels = map[string]string{
			"failuredomain.kubernetes.io/region": "dc1", "shoot.gardener.cloud/status": "healthy",
			"gardener.cloud/role": "x", "team": "a",
		}
	}), "https://api", false)
	if diff := cmp.Diff(map[string]string{
		"failuredomain.kubernetes.io/region": "dc1", "team": "a", clusterv1alpha1.ShootLabel: "member1",
	}, c.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.Spec.Zones); diff != "" {
		t.Error(diff)
	}
	if c.Spec.APIEndpoint != "https://api" || c.Spec.Region != "local" || c.Spec.Provider != "local" ||
		c.Spec.ID != "" {
		t.Errorf("got %+v", c.Spec)
	}
}

func TestReducePrefersTheExternalAddress(t *testing.T) {
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"p--s-internal": {Server: "https://internal"}, "p--s-external": {Server: "https://external"},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"p--s": {Token: "t"}},
		Contexts: map[string]*clientcmdapi.Context{
			"p--s-internal": {Cluster: "p--s-internal", AuthInfo: "p--s"},
			"p--s-external": {Cluster: "p--s-external", AuthInfo: "p--s"},
		},
		CurrentContext: "p--s-internal",
	}
	written, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, reduced, err := reduce(written)
	if err != nil || endpoint != "https://external" {
		t.Fatalf("got %s, %v", endpoint, err)
	}
	rest, err := clientcmd.RESTConfigFromKubeConfig(reduced)
	if err != nil || rest.Host != "https://external" || rest.BearerToken != "t" {
		t.Errorf("got %v, %v", rest, err)
	}
}

// Credentials are renewed when the new authorities are accepted, and when the old ones are not any more.
func TestAuthoritiesOf(t *testing.T) {
	initiated := metav1.Unix(1_800_000_000, 0)
	for phase, want := range map[gardencorev1beta1.CredentialsRotationPhase]string{
		gardencorev1beta1.RotationPreparing:                      "before",
		gardencorev1beta1.RotationPreparingWithoutWorkersRollout: "before",
		gardencorev1beta1.RotationWaitingForWorkersRollout:       "old and 1800000000",
		gardencorev1beta1.RotationPrepared:                       "old and 1800000000",
		gardencorev1beta1.RotationCompleting:                     "before",
		gardencorev1beta1.RotationCompleted:                      "1800000000",
	} {
		got := authoritiesOf(shoot(func(s *gardencorev1beta1.Shoot) {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{
				Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &initiated},
				},
			}
		}), "before")
		if got != want {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
	if got := authoritiesOf(shoot(), ""); got != "" {
		t.Errorf("never rotated: %q", got)
	}
}

// Labels by which the garden and the fleet keep records stay behind, but for those that tell of a shoot that a fleet
// has created.
func TestLabelsFor(t *testing.T) {
	got := labelsFor(shoot(func(s *gardencorev1beta1.Shoot) {
		s.Labels = map[string]string{
			"tier": "burst", "shoot.gardener.cloud/status": "healthy", fleetv1alpha1.JoinLabel: "true",
			fleetv1alpha1.GrownByLabel: "fleet", fleetv1alpha1.GrownForLabel: "standard",
		}
	}))
	want := map[string]string{
		"tier": "burst", clusterv1alpha1.ShootLabel: "member1", fleetv1alpha1.GrownByLabel: "fleet",
		fleetv1alpha1.GrownForLabel: "standard",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
