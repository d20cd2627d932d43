package v1beta1

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a client is told about an object that is accepted all the same.

// credentialsRotationInterval is after how long credentials should be rotated.
const credentialsRotationInterval = 90 * 24 * time.Hour

// deprecatedField is a field that should be left out.
// +k8s:openapi-gen=false
type deprecatedField struct {
	path    *field.Path
	set     bool
	instead string
}

func (d deprecatedField) warning() string {
	return fmt.Sprintf("%s is deprecated: %s", d.path, d.instead)
}

// ShootWarnings tells the owner of a Shoot about deprecated fields and about credentials that should be rotated.
func ShootWarnings(shoot *Shoot, now time.Time) []string {
	var warnings []string
	for _, one := range deprecatedShootFields(&shoot.Spec, field.NewPath("spec")) {
		if one.set {
			warnings = append(warnings, one.warning())
		}
	}
	return append(warnings, rotationWarnings(shoot, now)...)
}

func deprecatedShootFields(spec *ShootSpec, path *field.Path) []deprecatedField {
	kubernetes := path.Child("kubernetes")
	var deprecated []deprecatedField
	for _, one := range append(removedFields(spec, path), removedKubernetesFields(&spec.Kubernetes, kubernetes)...) {
		instead := fmt.Sprintf("%s; Kubernetes 1.%d and later do without it", one.replacement, one.minor)
		deprecated = append(deprecated, deprecatedField{one.path, one.set, instead})
	}
	minor, _ := minorOf(spec.Kubernetes.Version)
	isIPVS := deref(deref(spec.Kubernetes.KubeProxy).Mode) == ProxyModeIPVS
	return append(deprecated,
		deprecatedField{
			path.Child("dns", "providers"), len(deref(spec.DNS).Providers) > 0,
			"use an extension for DNS, such as shoot-dns-service, for further providers",
		},
		deprecatedField{
			kubernetes.Child("clusterAutoscaler", "ignoreTaints"),
			len(deref(spec.Kubernetes.ClusterAutoscaler).IgnoreTaints) > 0, "use startupTaints or statusTaints",
		},
		deprecatedField{
			kubernetes.Child("kubeProxy", "mode"), isIPVS && minor >= 35,
			"value IPVS is deprecated since Kubernetes 1.35; use NFTables or IPTables",
		},
	)
}

// credential is one that should be rotated from time to time.
// +k8s:openapi-gen=false
type credential struct {
	what, operation string
	rotated         time.Time
	// automatic: maintenance rotates it.
	automatic bool
}

func rotationWarnings(shoot *Shoot, now time.Time) []string {
	if shoot.CreationTimestamp.IsZero() || shoot.DeletionTimestamp != nil {
		return nil
	}
	var warnings []string
	for _, one := range credentialsOf(shoot) {
		since := one.rotated
		if since.IsZero() {
			since = shoot.CreationTimestamp.Time
		}
		if !one.automatic && now.Sub(since) > credentialsRotationInterval {
			warnings = append(warnings, fmt.Sprintf("%s: last rotated on %s; rotate with annotation %s=%s", one.what,
				since.UTC().Format(time.DateOnly), GardenerOperation, one.operation))
		}
	}
	return warnings
}

func credentialsOf(shoot *Shoot) []credential {
	rotation := rotationOf(shoot)
	periods := deref(deref(deref(shoot.Spec.Maintenance).AutoRotation).Credentials)
	isAutomatic := func(config *MaintenanceRotationConfig) bool {
		return deref(deref(config).RotationPeriod).Duration > 0
	}
	credentials := []credential{
		{
			"certificate authorities", OperationRotateCAStart,
			deref(deref(rotation.CertificateAuthorities).LastInitiationTime).Time, false,
		},
		{
			"key for service account tokens", OperationRotateServiceAccountKeyStart,
			deref(deref(rotation.ServiceAccountKey).LastInitiationTime).Time, false,
		},
		{
			"key for encryption at rest", OperationRotateETCDEncryptionKey,
			deref(deref(rotation.ETCDEncryptionKey).LastInitiationTime).Time, isAutomatic(periods.ETCDEncryptionKey),
		},
	}
	if IsWorkerless(shoot) || !SSHAccessEnabled(&shoot.Spec) {
		return credentials
	}
	return append(credentials, credential{
		"SSH key", ShootOperationRotateSSHKeypair, deref(deref(rotation.SSHKeypair).LastInitiationTime).Time,
		isAutomatic(periods.SSHKeypair),
	})
}

// CloudProfileWarnings tells the owner of a CloudProfile about deprecated fields, each once.
func CloudProfileWarnings(profile *CloudProfile) []string {
	return offerWarnings(profile.Spec.Kubernetes.Versions, profile.Spec.MachineImages, field.NewPath("spec"))
}

// NamespacedCloudProfileWarnings tells the owner of a NamespacedCloudProfile about deprecated fields, each once.
func NamespacedCloudProfileWarnings(profile *NamespacedCloudProfile) []string {
	return offerWarnings(deref(profile.Spec.Kubernetes).Versions, profile.Spec.MachineImages, field.NewPath("spec"))
}

// offerWarnings warns once per field: profiles have many versions.
func offerWarnings(versions []ExpirableVersion, images []MachineImage, path *field.Path) []string {
	warnings := lifeWarnings(versions, path.Child("kubernetes", "versions"))
	for i := range images {
		lives := make([]ExpirableVersion, len(images[i].Versions))
		for j := range images[i].Versions {
			lives[j] = images[i].Versions[j].ExpirableVersion
		}
		if found := lifeWarnings(lives, path.Child("machineImages").Index(i).Child("versions")); len(found) > 0 {
			return append(warnings, found...)
		}
	}
	return warnings
}

func lifeWarnings(versions []ExpirableVersion, path *field.Path) []string {
	for i, version := range versions {
		for _, one := range []deprecatedField{
			{path.Index(i).Child("expirationDate"), version.ExpirationDate != nil, "use lifecycle"},
			{path.Index(i).Child("classification"), version.Classification != nil, "use lifecycle"},
		} {
			if one.set {
				return []string{one.warning()}
			}
		}
	}
	return nil
}

// SecretBindingWarnings tells that the kind is deprecated.
func SecretBindingWarnings(*SecretBinding) []string {
	return []string{
		"SecretBinding is deprecated: create a CredentialsBinding (security.gardener.cloud/v1alpha1) and name it in " +
			"spec.credentialsBindingName of Shoots, which need it from Kubernetes 1.34 on",
	}
}
