package registry

import (
	"context"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func shoots() Served {
	return &Kind[*gardencorev1beta1.Shoot]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "shoots", Singular: "shoot", Namespaced: true,
		Categories: []string{"all"},
		New:        func() *gardencorev1beta1.Shoot { return &gardencorev1beta1.Shoot{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.ShootList{} },
		Spec:       func(s *gardencorev1beta1.Shoot) any { return s.Spec },
		CopySpec:   func(to, from *gardencorev1beta1.Shoot) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencorev1beta1.Shoot) { to.Status = from.Status },
		Columns:    shootColumns(),
		Fields: map[string]func(*gardencorev1beta1.Shoot) string{
			"spec.seedName": func(s *gardencorev1beta1.Shoot) string { return ptr.Deref(s.Spec.SeedName, "") },
			"status.seedName": func(s *gardencorev1beta1.Shoot) string {
				return ptr.Deref(s.Status.SeedName, "")
			},
			"spec.cloudProfileName": func(s *gardencorev1beta1.Shoot) string {
				return ptr.Deref(s.Spec.CloudProfileName, "")
			},
			"spec.cloudProfile.name": func(s *gardencorev1beta1.Shoot) string { return profileReference(s).Name },
			"spec.cloudProfile.kind": func(s *gardencorev1beta1.Shoot) string { return profileReference(s).Kind },
		},
		Index:                  "spec.seedName",
		PrepareForCreate:       func(_ context.Context, shoot *gardencorev1beta1.Shoot) { prepareShoot(shoot) },
		PrepareForUpdate:       func(_ context.Context, shoot, _ *gardencorev1beta1.Shoot) { prepareShoot(shoot) },
		PrepareForStatusUpdate: prepareShootStatus,
		NeedsNewGeneration:     shootNeedsNewGeneration,
		Canonicalize:           canonicalizeShoot,
		Validate:               gardencorev1beta1.ValidateNewShoot,
		ValidateUpdate:         gardencorev1beta1.ValidateShootUpdate,
		ValidateStatusUpdate:   gardencorev1beta1.ValidateShootStatusUpdate,
		Warnings: func(shoot *gardencorev1beta1.Shoot) []string {
			return gardencorev1beta1.ShootWarnings(shoot, time.Now())
		},
		Subresources: map[string]Subresource[*gardencorev1beta1.Shoot]{
			"binding": {Restrict: restrictToBinding, Validate: gardencorev1beta1.ValidateShootBindingUpdate},
		},
	}
}

func shootColumns() []Column[*gardencorev1beta1.Shoot] {
	condition := func(name gardencorev1beta1.ConditionType) func(*gardencorev1beta1.Shoot) any {
		return func(s *gardencorev1beta1.Shoot) any { return conditionCell(s.Status.Conditions, name) }
	}
	return []Column[*gardencorev1beta1.Shoot]{
		{Name: "CloudProfile", Description: "The cloud profile.", Cell: cloudProfileCell},
		{
			Name: "Provider", Description: "The provider of the workers.",
			Cell: func(s *gardencorev1beta1.Shoot) any { return s.Spec.Provider.Type },
		},
		{
			Name: "Region", Description: "The region.",
			Cell: func(s *gardencorev1beta1.Shoot) any { return s.Spec.Region },
		},
		{
			Name: "Seed", Description: "The seed that hosts the control plane.", Wide: true,
			Cell: func(s *gardencorev1beta1.Shoot) any { return orElse(s.Spec.SeedName, none) },
		},
		{
			Name: "K8S Version", Description: "The Kubernetes version.",
			Cell: func(s *gardencorev1beta1.Shoot) any { return s.Spec.Kubernetes.Version },
		},
		{Name: "Hibernation", Description: "Whether the cluster sleeps.", Cell: hibernationCell},
		{
			Name: "Last Operation", Description: "What is being done, or was done last.",
			Cell: func(s *gardencorev1beta1.Shoot) any { return operationCell(s.Status.LastOperation) },
		},
		{Name: "Status", Description: "The health of the cluster.", Cell: func(s *gardencorev1beta1.Shoot) any {
			return orElse(new(s.Labels[gardencorev1beta1.LabelShootStatus]), pending)
		}},
		{
			Name: "Purpose", Description: "The purpose.", Wide: true,
			Cell: func(s *gardencorev1beta1.Shoot) any { return string(ptr.Deref(s.Spec.Purpose, "")) },
		},
		{
			Name: "Gardener Version", Description: "The version of the gardenlet that reconciled the shoot last.",
			Wide: true, Cell: func(s *gardencorev1beta1.Shoot) any { return s.Status.Gardener.Version },
		},
		{
			Name: "APIServer", Description: "Whether the API server answers.", Wide: true,
			Cell: condition("APIServerAvailable"),
		},
		{
			Name: "Control", Description: "Whether the control plane is healthy.", Wide: true,
			Cell: condition("ControlPlaneHealthy"),
		},
		{
			Name: "Observability", Description: "Whether monitoring and logging are healthy.", Wide: true,
			Cell: condition("ObservabilityComponentsHealthy"),
		},
		{Name: "Nodes", Description: "Whether every node is ready.", Wide: true, Cell: condition("EveryNodeReady")},
		{
			Name: "System", Description: "Whether the system components are healthy.", Wide: true,
			Cell: condition("SystemComponentsHealthy"),
		},
	}
}

// profileReference returns the cloud profile of a shoot, in whichever form it is given.
func profileReference(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.CloudProfileReference {
	if shoot.Spec.CloudProfile != nil {
		return *shoot.Spec.CloudProfile
	}
	if shoot.Spec.CloudProfileName != nil {
		return gardencorev1beta1.CloudProfileReference{
			Kind: gardencorev1beta1.CloudProfileReferenceKindCloudProfile, Name: *shoot.Spec.CloudProfileName,
		}
	}
	return gardencorev1beta1.CloudProfileReference{}
}

func cloudProfileCell(shoot *gardencorev1beta1.Shoot) any {
	reference := profileReference(shoot)
	switch {
	case reference.Name == "":
		return none
	case reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile:
		return shoot.Namespace + "/" + reference.Name
	}
	return reference.Name
}

// prepareShoot tidies the requested operations and keeps deprecated fields equal to what replaces them.
func prepareShoot(shoot *gardencorev1beta1.Shoot) {
	for _, annotation := range []string{
		gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerMaintenanceOperation,
	} {
		if value, ok := shoot.Annotations[annotation]; ok {
			shoot.Annotations[annotation] = strings.Join(gardencorev1beta1.SplitOperations(value), ";")
		}
	}
	if shoot.Spec.DNS != nil {
		for i := range shoot.Spec.DNS.Providers {
			completeCredentialsRef(&shoot.Spec.DNS.Providers[i])
		}
	}
}

// completeCredentialsRef sets the reference that replaces the name of a Secret.
func completeCredentialsRef(provider *gardencorev1beta1.DNSProvider) {
	if provider.SecretName != nil && provider.CredentialsRef == nil {
		provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: *provider.SecretName,
		}
	}
}

// restrictToBinding keeps everything but the seed, and what is settled with it: the domain and the networks.
func restrictToBinding(shoot, old *gardencorev1beta1.Shoot) {
	wanted := shoot.Spec
	shoot.Spec = *old.Spec.DeepCopy()
	shoot.Status = *old.Status.DeepCopy()
	shoot.Spec.SeedName = wanted.SeedName
	settleDomain(&shoot.Spec, wanted.DNS)
	settleNetworks(&shoot.Spec, wanted.Networking)
	if last := old.Status.LastOperation; old.Spec.SeedName == nil && wanted.SeedName != nil && last != nil &&
		last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State == gardencorev1beta1.LastOperationStatePending {
		shoot.Status.LastOperation = nil
	}
	if from, to := ptr.Deref(old.Spec.SeedName, ""), ptr.Deref(wanted.SeedName, ""); from != "" && from != to {
		shoot.Status.BeginRestore(from, to, metav1.Now())
	}
}

// settleDomain takes a domain where there is none yet.
func settleDomain(spec *gardencorev1beta1.ShootSpec, wanted *gardencorev1beta1.DNS) {
	if wanted == nil || wanted.Domain == nil {
		return
	}
	if spec.DNS == nil {
		spec.DNS = &gardencorev1beta1.DNS{}
	}
	if spec.DNS.Domain == nil {
		spec.DNS.Domain = wanted.Domain
	}
}

// settleNetworks takes the networks of pods and services where there are none yet.
func settleNetworks(spec *gardencorev1beta1.ShootSpec, wanted *gardencorev1beta1.Networking) {
	if wanted == nil {
		return
	}
	if spec.Networking == nil {
		spec.Networking = &gardencorev1beta1.Networking{}
	}
	if spec.Networking.Pods == nil {
		spec.Networking.Pods = wanted.Pods
	}
	if spec.Networking.Services == nil {
		spec.Networking.Services = wanted.Services
	}
}

// canonicalizeShoot drops deprecated settings that do nothing, and keeps labels that follow from the shoot.
func canonicalizeShoot(shoot *gardencorev1beta1.Shoot) {
	dropIdleSettings(&shoot.Spec)
	wanted := map[string]bool{}
	for _, seed := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if seed != nil && *seed != "" {
			wanted[gardencorev1beta1.LabelPrefixSeedName+*seed] = true
		}
	}
	if gardencorev1beta1.IsSelfHosted(shoot) {
		wanted[gardencorev1beta1.LabelShootSelfHosted] = true
	}
	for label := range shoot.Labels {
		if (strings.HasPrefix(label, gardencorev1beta1.LabelPrefixSeedName) ||
			label == gardencorev1beta1.LabelShootSelfHosted) && !wanted[label] {
			delete(shoot.Labels, label)
		}
	}
	if len(wanted) > 0 && shoot.Labels == nil {
		shoot.Labels = map[string]string{}
	}
	for label := range wanted {
		shoot.Labels[label] = "true"
	}
}

// dropIdleSettings drops what older clients write although it changes nothing.
func dropIdleSettings(spec *gardencorev1beta1.ShootSpec) {
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		autoscaler.MaxEmptyBulkDelete = nil // maxScaleDownParallelism has its value
	}
	if apiServer := spec.Kubernetes.KubeAPIServer; apiServer != nil && apiServer.EnableAnonymousAuthentication != nil &&
		!*apiServer.EnableAnonymousAuthentication {
		apiServer.EnableAnonymousAuthentication = nil
	}
	if addons := spec.Addons; addons != nil && addons.NginxIngress == nil &&
		(addons.KubernetesDashboard == nil || !addons.KubernetesDashboard.Enabled) {
		spec.Addons = nil
	}
}
