package fleet

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
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

func deploymentOf(change func(*deploymentValues)) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: Name}}
	values := deploymentValues{
		kubeconfig: "generic-token-kubeconfig", egressClient: "egress-client", image: "federation:1",
	}
	change(&values)
	fillDeployment(deployment, values)
	return deployment
}

// highlyAvailable are the values of a fleet that outlasts the loss of a zone.
func highlyAvailable(v *deploymentValues) {
	v.availability = component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone}
	v.serves = true
	v.certificate = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certificateName}, Data: map[string][]byte{"tls.crt": []byte("certificate")},
	}
}

func TestDeployment(t *testing.T) {
	golden.Check(t, "deployment", deploymentOf(func(*deploymentValues) {}))
	golden.Check(t, "deployment-highly-available", deploymentOf(highlyAvailable))
}

// Another certificate rolls the replicas, which read it when they begin.
func TestAnotherCertificateRollsTheReplicas(t *testing.T) {
	other := deploymentOf(func(v *deploymentValues) {
		highlyAvailable(v)
		v.certificate.Data["tls.crt"] = []byte("another")
	})
	if apiequality.Semantic.DeepEqual(other.Spec.Template, deploymentOf(highlyAvailable).Spec.Template) {
		t.Error("pods are the same with another certificate")
	}
}

// One that is alone is asked as soon as it listens; of several, those that are ready.
func TestServiceLeadsToReplicasThatAreReady(t *testing.T) {
	for name, test := range map[string]struct {
		availability component.Availability
		want         bool
	}{
		"one": {component.Availability{}, true},
		"two": {component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode}, false},
	} {
		service := &corev1.Service{}
		fillService(service, test.availability)
		if got := service.Spec.PublishNotReadyAddresses; got != test.want {
			t.Errorf("%s: addresses that are not ready: %v", name, got)
		}
	}
}
