package etcd

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// PeerPort is the port of a pod for the other members.
	PeerPort int32 = 2380
	// memberCount is how many members there are, if there are several: one can be lost.
	memberCount int32 = 3

	peerVolume = "peer-pki"
	peerMount  = "/etc/etcd/peer-pki"

	membersFlag = "--members="
	// singleFlag says that there is only the first one of the members yet.
	singleFlag = "--single-member"

	nameVariable = "POD_NAME"
	// ownName is, in the arguments of a container, the name of its pod.
	ownName = "$(" + nameVariable + ")"
)

// Members returns how many members the etcds of a control plane have.
func Members(availability component.Availability) int32 { return availability.Replicas(memberCount) }

// PodNames returns the names of the pods of a role that has so many.
func PodNames(role Role, replicas int32) []string {
	var names []string
	for i := range replicas {
		names = append(names, fmt.Sprintf("%s-%d", Name(role), i))
	}
	return names
}

// hostOf is where the others reach the pod of a member.
func hostOf(namespace string, role Role, pod string) string {
	return fmt.Sprintf("%s.%s.%s.svc", pod, peerServiceName(role), namespace)
}

// peerCertificate is for all members, which are servers and clients of each other.
func peerCertificate(namespace string, role Role) secrets.CertificateConfig {
	config := secrets.CertificateConfig{
		Name: "etcd-peer-" + string(role), CommonName: "etcd-peer", CertType: secrets.ServerClientCert,
		SigningCA: component.CAETCDPeer,
	}
	for _, pod := range PodNames(role, memberCount) {
		config.DNSNames = append(config.DNSNames, hostOf(namespace, role, pod))
	}
	return config
}

// peerLabels let a pod find the others by their names.
var peerLabels = map[string]string{
	gardencorev1beta1.LabelNetworkPolicyToDNS: gardencorev1beta1.LabelNetworkPolicyAllowed,
}

// peerArguments are those of a member, be there others yet or not.
func (v Values) peerArguments(namespace string) []string {
	var members []string
	for _, pod := range PodNames(v.Role, memberCount) {
		members = append(members, fmt.Sprintf("%s=https://%s:%d", pod, hostOf(namespace, v.Role, pod), PeerPort))
	}
	arguments := []string{
		"--listen-peer-urls=https://0.0.0.0:" + strconv.Itoa(int(PeerPort)),
		membersFlag + strings.Join(members, ","),
		"--peer-cert-file=" + peerMount + "/tls.crt",
		"--peer-key-file=" + peerMount + "/tls.key",
		"--peer-trusted-ca-file=" + peerMount + "/ca.crt",
	}
	if !v.Availability.IsHigh() {
		arguments = append(arguments, singleFlag)
	}
	return arguments
}

// addPeers adds what a pod has to be found by other members, and away from them.
func (v Values) addPeers(spec *corev1.PodSpec, container *corev1.Container, names secretNames) {
	container.Env = append(container.Env, corev1.EnvVar{Name: nameVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
	}})
	container.Ports = append(container.Ports,
		corev1.ContainerPort{Name: "peer", ContainerPort: PeerPort, Protocol: corev1.ProtocolTCP})
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: peerVolume, MountPath: peerMount, ReadOnly: true})
	spec.Volumes = append(spec.Volumes, certificates(peerVolume, names.peerCA, names.peer))
	spec.TopologySpreadConstraints = v.Availability.Spread(Labels(v.Role), false)
}

// certificates is a volume with a certificate, its key, and the authorities that those of others are verified with.
func certificates(volume, ca, certificate string) corev1.Volume {
	return component.ProjectedSecrets(volume,
		component.SecretFiles{Secret: ca, Files: map[string]string{secrets.DataKeyCertificateBundle: "ca.crt"}},
		component.SecretFiles{Secret: certificate, Files: map[string]string{
			secrets.DataKeyCertificate: "tls.crt", secrets.DataKeyPrivateKey: "tls.key",
		}},
	)
}
