package kubecontrollermanager

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func TestDeployment(t *testing.T) {
	files := []component.SecretFiles{
		{Secret: "kube-controller-manager-11111111", Files: map[string]string{"kubeconfig": "kubeconfig"}},
	}
	for name, values := range map[string]Values{
		"shoot": {
			Image: "kcm:v1", Replicas: 1, ClusterName: namespace, PodNetworks: []string{"10.3.0.0/16"},
			ServiceNetworks: []string{"10.4.0.0/16"},
		},
		"dual-stack": {
			Image: "kcm:v1", Replicas: 1, ClusterName: namespace, PodNetworks: []string{"10.3.0.0/16", "fd00::/48"},
			NodeCIDRMaskSize: 26, NodeCIDRMaskSizeIPv6: 80,
			FeatureGates: map[string]bool{"A": true}, ExtraArgs: map[string]string{"node-monitor-grace-period": "1m0s"},
		},
		"workerless": {
			Image: "kcm:v1", Replicas: 2, ClusterName: namespace, ServiceNetworks: []string{"10.4.0.0/16"},
			IsWorkerless: true,
		},
		"highly-available": Decide(component.Facts{
			Namespace: namespace, Images: map[string]string{Name: "kcm:v1"}, PodNetworks: []string{"10.3.0.0/16"},
			ServiceNetworks: []string{"10.4.0.0/16"},
			Availability:    component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode},
		}),
	} {
		t.Run(name, func(t *testing.T) {
			values.PriorityClass = component.PriorityControlPlane300
			golden.Check(t, name, deployment(namespace, values.withDefaults(), files))
		})
	}
}

func TestWorkerlessRunsNoWorkload(t *testing.T) {
	for _, controller := range []string{
		"deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "endpoint", "node", "pod",
	} {
		if slices.ContainsFunc(WorkerlessControllers(),
			func(name string) bool { return strings.HasPrefix(name, controller) }) {
			t.Errorf("a controller for %s is among %v", controller, WorkerlessControllers())
		}
	}
}

func TestDeployNeedsTheServiceAccountKey(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	manager, err := secrets.New(t.Context(), c, namespace, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager,
		[]string{component.CACluster, component.CAClient, component.CAKubelet}); err != nil {
		t.Fatal(err)
	}
	err = New(c, namespace, manager, Values{}).Deploy(t.Context())
	if err == nil || !strings.Contains(err.Error(), "service-account-key") {
		t.Errorf("got %v", err)
	}
}
