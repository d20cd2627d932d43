package component

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// LabelOrigin marks the system components that Trellis runs in a cluster.
const LabelOrigin = "origin"

// OriginGardener is the value of LabelOrigin.
const OriginGardener = "gardener"

// SystemLabels are the labels of a system component in a shoot.
func SystemLabels(name string) map[string]string {
	return map[string]string{"k8s-app": name}
}

// SystemMeta returns the metadata of a system component's object in kube-system.
func SystemMeta(name, app string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: name,
		Labels: Merge(SystemLabels(app), map[string]string{
			LabelOrigin: OriginGardener, LabelGardenRole: gardencorev1beta1.GardenRoleSystemComponent,
		}),
	}
}

// TolerateEverything lets a pod run on every node, whatever its taints.
func TolerateEverything() []corev1.Toleration {
	return []corev1.Toleration{
		{Effect: corev1.TaintEffectNoSchedule, Operator: corev1.TolerationOpExists},
		{Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists},
	}
}

// UniqueConfigMap returns an immutable ConfigMap in kube-system whose name ends in a checksum of its data, so that a
// change rolls the pods that mount it.
func UniqueConfigMap(name, app string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: SystemMeta(name+"-"+checksum(data), app), Data: data, Immutable: new(true),
	}
}

// UniqueSecret is UniqueConfigMap for what is secret.
func UniqueSecret(name, app string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: SystemMeta(name+"-"+checksum(data), app), Data: data, Immutable: new(true),
		Type: corev1.SecretTypeOpaque,
	}
}

func checksum[T ~string | ~[]byte](data map[string]T) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(hash, "%s\x00%d\x00", key, len(data[key]))
		hash.Write([]byte(data[key]))
	}
	return hex.EncodeToString(hash.Sum(nil))[:8]
}
