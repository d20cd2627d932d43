package fleet

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

// The kube-apiserver of a shoot with workers looks for aggregated APIs behind the tunnel.
func TestMembersAreServedWhereTheAPIServerReachesThePod(t *testing.T) {
	for name, tc := range map[string]struct {
		workers []gardencorev1beta1.Worker
		want    bool
	}{
		"without workers": {nil, true},
		"with workers":    {[]gardencorev1beta1.Worker{{Name: "a"}}, false},
	} {
		shoot := &gardencorev1beta1.Shoot{}
		shoot.Spec.Provider.Workers = tc.workers
		if got := reachesSeed(&cluster.Cluster{Shoot: shoot}); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	container := corev1.Container{Args: []string{"--kubeconfig=x"}}
	serveMembers(&container)
	if !slices.Equal(container.Args,
		[]string{"--kubeconfig=x", "--member-api-address=:8443", "--member-api-ip=240.0.0.2"}) {
		t.Errorf("got %+v", container)
	}
}

func TestDeployment(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--fleet", Name: Name}}
	fillDeployment(deployment, "generic-token-kubeconfig", "egress-client", "federation:1", apis.FleetConfig{})
	golden.Check(t, "deployment", deployment)
}
