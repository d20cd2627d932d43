package kubeapiserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// What is highly available asks the sidecar for the cluster's networks, by its socket; what is not asks the one
// vpn-seed-server, and has no sidecar.
func TestPathsAreChosenInHighlyAvailableControlPlanesOnly(t *testing.T) {
	high := component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode}
	images := map[string]string{Name: "kube-apiserver:v1", "vpn": "vpn:v1"}
	for name, test := range map[string]struct {
		facts component.Facts
		want  bool
	}{
		"one path":        {component.Facts{Images: images}, false},
		"two paths":       {component.Facts{Images: images, Availability: high}, true},
		"without workers": {component.Facts{Images: images, Availability: high, IsWorkerless: true}, false},
	} {
		values := Decide(test.facts).withDefaults()
		pod := podSpec(values, mountedSecrets{})
		index := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == pathsName })
		cluster := egressSelector(values).EgressSelections[0].Connection.Transport
		usesSocket := cluster.UDS != nil && cluster.UDS.UDSName == pathsSocket
		if (index >= 0) != test.want || usesSocket != test.want || (cluster.TCP != nil) == test.want {
			t.Errorf("%s: the sidecar is container %d, kube-apiserver asks %+v", name, index, cluster)
		}
		if test.want && !slices.Contains(pod.InitContainers[index].Args,
			"--proxies=vpn-seed-server:9443,vpn-seed-server-1:9443") {
			t.Errorf("%s: the sidecar has arguments %q", name, pod.InitContainers[index].Args)
		}
	}
}

// The sidecar reads no key but the one for the VPN, and nobody in the pod can put another socket in the place of its
// own.
func TestAttackSocketOfPaths(t *testing.T) {
	values := pairValues().withDefaults()
	pod := podSpec(values, mountedSecrets{})
	writers := map[string]bool{}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, mount := range container.VolumeMounts {
			if mount.Name == pathsSocketName && !mount.ReadOnly {
				writers[container.Name] = true
			}
			if container.Name == pathsName && mount.Name != pathsName && mount.Name != pathsSocketName {
				t.Errorf("the sidecar mounts %s", mount.Name)
			}
		}
	}
	if len(writers) != 1 || !writers[pathsName] {
		t.Errorf("the socket may be replaced by %v", writers)
	}
	transport := egressSelector(values).EgressSelections[0].Connection.Transport
	if want := (apiserverv1beta1.UDSTransport{UDSName: "/run/vpn/paths.sock"}); *transport.UDS != want {
		t.Errorf("kube-apiserver asks %+v", *transport.UDS)
	}
}
