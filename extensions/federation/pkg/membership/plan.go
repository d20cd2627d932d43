// Package membership makes the shoots of a project members of the project's fleets: it keeps a Cluster and a Secret
// with short-lived credentials in the fleet for every shoot that has workers.
package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

const (
	// renewAnnotation, on a Secret, says when its credentials are to be renewed.
	renewAnnotation = clusterv1alpha1.RenewAnnotation
	// authoritiesAnnotation, on a Secret, says for which certificate authorities of the shoot its credentials are good.
	authoritiesAnnotation = "federation.trellis.garden/authorities"
)

// authoritiesOf names the certificate authorities that credentials of a shoot have to be good for: those of a rotation,
// from when its new ones are accepted, and from when the old ones are not. In between, what was there before goes on
// being good.
func authoritiesOf(shoot *gardencorev1beta1.Shoot, before string) string {
	credentials := shoot.Status.Credentials
	if credentials == nil || credentials.Rotation == nil || credentials.Rotation.CertificateAuthorities == nil {
		return ""
	}
	rotation := credentials.Rotation.CertificateAuthorities
	switch rotation.Phase {
	case gardencorev1beta1.RotationWaitingForWorkersRollout, gardencorev1beta1.RotationPrepared:
		return fmt.Sprintf("old and %d", rotation.LastInitiationTime.Unix())
	case gardencorev1beta1.RotationCompleted:
		return fmt.Sprint(rotation.LastInitiationTime.Unix())
	}
	return before
}

// wantsMembership tells whether a shoot belongs into its project's fleets.
func wantsMembership(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.DeletionTimestamp == nil && len(shoot.Spec.Provider.Workers) > 0 &&
		shoot.Labels[fleetv1alpha1.JoinLabel] != "false"
}

// isReachable tells whether the shoot's API has been up, so that it makes sense to ask for credentials.
func isReachable(shoot *gardencorev1beta1.Shoot) bool {
	if len(shoot.Status.AdvertisedAddresses) == 0 {
		return false
	}
	return slices.ContainsFunc(shoot.Status.Conditions, func(c gardencorev1beta1.Condition) bool {
		return c.Type == gardencorev1beta1.ShootAPIServerAvailable && c.Status == gardencorev1beta1.ConditionTrue
	})
}

// isAsleep tells whether a shoot sleeps, falls asleep or wakes up.
func isAsleep(shoot *gardencorev1beta1.Shoot) bool {
	return wantsSleep(shoot) || shoot.Status.IsHibernated
}

// annotationsFor tells the fleet not to expect answers of a shoot that rests.
func annotationsFor(rests bool) map[string]string {
	if !rests {
		return nil
	}
	return map[string]string{clusterv1alpha1.HibernatedAnnotation: "true"}
}

// clusterFor describes a shoot as a member. The fleet itself finds out its ID.
func clusterFor(shoot *gardencorev1beta1.Shoot, endpoint string, rests bool) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: shoot.Name, Labels: labelsFor(shoot), Annotations: annotationsFor(rests)},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode:    clusterv1alpha1.Push,
			APIEndpoint: endpoint,
			SecretRef: &clusterv1alpha1.LocalSecretReference{
				Namespace: clusterv1alpha1.CredentialsNamespace, Name: shoot.Name,
			},
			Provider: shoot.Spec.Provider.Type,
			Region:   shoot.Spec.Region,
			Zones:    zonesOf(shoot),
		},
	}
}

// labelsFor takes over the labels of the shoot, except those by which the garden keeps its own records. Those that tell
// of a shoot that a fleet has created stay.
func labelsFor(shoot *gardencorev1beta1.Shoot) map[string]string {
	labels := maps.Clone(shoot.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain == "gardener.cloud" || strings.HasSuffix(domain, ".gardener.cloud") ||
			strings.HasSuffix(domain, "trellis.garden")
	})
	labels[clusterv1alpha1.ShootLabel] = shoot.Name
	for _, key := range []string{fleetv1alpha1.GrownByLabel, fleetv1alpha1.GrownForLabel} {
		if value, found := shoot.Labels[key]; found {
			labels[key] = value
		}
	}
	return labels
}

func zonesOf(shoot *gardencorev1beta1.Shoot) []string {
	var zones []string
	for _, worker := range shoot.Spec.Provider.Workers {
		zones = append(zones, worker.Zones...)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// addressPreference is the order in which a shoot's addresses are tried, by the last part of their context's name.
var addressPreference = []string{
	gardencorev1beta1.AdvertisedAddressExternal, gardencorev1beta1.AdvertisedAddressUnmanaged,
	gardencorev1beta1.AdvertisedAddressInternal,
}

// reduce keeps of a shoot's kubeconfig the one address that members are reached by, and tells it.
func reduce(kubeconfig []byte) (endpoint string, reduced []byte, err error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig of the shoot: %w", err)
	}
	config.CurrentContext = preferredContext(config)
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return "", nil, fmt.Errorf("kubeconfig of the shoot: %w", err)
	}
	if reduced, err = clientcmd.Write(*config); err != nil {
		return "", nil, fmt.Errorf("kubeconfig of the shoot: %w", err)
	}
	for _, cluster := range config.Clusters {
		endpoint = cluster.Server
	}
	return endpoint, reduced, nil
}

func preferredContext(config *clientcmdapi.Config) string {
	for _, address := range addressPreference {
		for name := range config.Contexts {
			if strings.HasSuffix(name, "-"+address) {
				return name
			}
		}
	}
	return config.CurrentContext
}
