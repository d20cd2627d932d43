package v1beta1

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNewSeed checks a Seed that is to be created.
func ValidateNewSeed(seed *Seed) field.ErrorList {
	errs := append(ValidateSeed(seed), validateSeedOperation(seed)...)
	return append(errs, notOfferedToSeeds(&seed.Spec, field.NewPath("spec"))...)
}

// ValidateSeed checks a Seed on its own.
func ValidateSeed(seed *Seed) field.ErrorList {
	errs := validateMeta(&seed.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	return append(errs, ValidateSeedSpec(&seed.Spec, field.NewPath("spec"))...)
}

// ValidateSeedUpdate checks a change of a Seed.
func ValidateSeedUpdate(seed, old *Seed) field.ErrorList {
	errs := validateMetaUpdate(&seed.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateSeedOperationUpdate(seed, old)...)
	errs = append(errs, validateSeedSpecUpdate(&seed.Spec, &old.Spec, field.NewPath("spec"))...)
	errs = append(errs, NewlyRefused(notOfferedToSeeds(&seed.Spec, field.NewPath("spec")),
		notOfferedToSeeds(&old.Spec, field.NewPath("spec")))...)
	return append(errs, ValidateSeed(seed)...)
}

var (
	// seedOperations are the operations that somebody carries out.
	seedOperations = []string{GardenerOperationReconcile}
	// idleSeedOperations are those of the published API that nobody would act on.
	idleSeedOperations = []string{
		GardenerOperationRenewKubeconfig, SeedOperationRenewGardenAccessSecrets,
		SeedOperationRenewWorkloadIdentityTokens,
	}
)

func validateSeedOperation(seed *Seed) field.ErrorList {
	operation, path := seed.Annotations[GardenerOperation],
		field.NewPath("metadata", "annotations").Key(GardenerOperation)
	switch {
	case operation == "":
		return nil
	case slices.Contains(idleSeedOperations, operation):
		return field.ErrorList{NotOffered(path, "gardenlet does not act on "+operation, "leave it out")}
	}
	return validateSupported(operation, seedOperations, path)
}

// validateSeedOperationUpdate keeps an operation until it has been carried out.
func validateSeedOperationUpdate(seed, old *Seed) field.ErrorList {
	before, after := old.Annotations[GardenerOperation], seed.Annotations[GardenerOperation]
	switch {
	case before == after:
		return nil
	case before == "":
		return validateSeedOperation(seed)
	case after == "":
		return nil
	}
	return field.ErrorList{
		field.Forbidden(field.NewPath("metadata", "annotations").Key(GardenerOperation),
			fmt.Sprintf("cannot be changed while %q is pending; wait until gardenlet has removed it", before)),
	}
}

// ValidateNewSeedSpec checks the specification of a Seed that is to be created, wherever it is written.
func ValidateNewSeedSpec(spec *SeedSpec, path *field.Path) field.ErrorList {
	return append(ValidateSeedSpec(spec, path), notOfferedToSeeds(spec, path)...)
}

// ValidateSeedSpec checks the specification of a Seed, wherever it is written.
func ValidateSeedSpec(spec *SeedSpec, path *field.Path) field.ErrorList {
	provider := path.Child("provider")
	errs := validateRequired(spec.Provider.Type, provider.Child("type"), "name the type of the infrastructure")
	errs = append(errs, validateRequired(spec.Provider.Region, provider.Child("region"),
		"name the region of the seed")...)
	errs = append(errs, validateNames(spec.Provider.Zones, provider.Child("zones"), "name a zone of the region")...)
	errs = append(errs, validateSeedVolume(spec.Volume, path.Child("volume"))...)
	errs = append(errs, validateSeedNetworks(&spec.Networks, path.Child("networks"))...)
	errs = append(errs, validateSeedDNS(&spec.DNS, path.Child("dns"))...)
	errs = append(errs, validateSeedIngress(spec, path)...)
	if spec.Backup != nil {
		errs = append(errs, validateSeedBackup(spec, path.Child("backup"))...)
	}
	for i, taint := range spec.Taints {
		errs = append(errs, validateRequired(taint.Key, path.Child("taints").Index(i).Child("key"),
			"name the key of the taint")...)
	}
	errs = append(errs, validateUnique(spec.Taints, func(t SeedTaint) string { return t.Key },
		path.Child("taints").Index)...)
	errs = append(errs, validateExtensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, validateResources(spec.Resources, path.Child("resources"))...)
	var restrictions []string
	for _, restriction := range spec.AccessRestrictions {
		restrictions = append(restrictions, restriction.Name)
	}
	errs = append(errs, validateAccessRestrictions(restrictions, path.Child("accessRestrictions"))...)
	return append(errs, validateSeedSettings(spec, path.Child("settings"))...)
}

func validateSeedNetworks(networks *SeedNetworks, path *field.Path) field.ErrorList {
	ranges := namedRanges{
		{path.Child("pods"), &networks.Pods}, {path.Child("services"), &networks.Services},
		{path.Child("nodes"), networks.Nodes},
	}
	errs := validateRequired(networks.Pods, path.Child("pods"), "give the range of pod addresses, such as 10.1.0.0/16")
	errs = append(errs, validateRequired(networks.Services, path.Child("services"),
		"give the range of service addresses, such as 10.2.0.0/16")...)
	errs = append(errs, ranges.validate()...)
	errs = append(errs, ranges.validateDisjoint()...)
	errs = append(errs, validateIPFamilies(networks.IPFamilies, path.Child("ipFamilies"))...)
	errs = append(errs, ranges.validateFamily(networks.IPFamilies)...)
	errs = append(errs, validateUniqueStrings(networks.BlockCIDRs, path.Child("blockCIDRs"))...)
	if defaults := networks.ShootDefaults; defaults != nil {
		at := path.Child("shootDefaults")
		shoot := namedRanges{{at.Child("pods"), defaults.Pods}, {at.Child("services"), defaults.Services}}
		errs = append(errs, shoot.validate()...)
		errs = append(errs, append(ranges, shoot...).validateDisjointFrom(len(ranges))...)
	}
	for i := range networks.BlockCIDRs {
		errs = append(errs, namedRanges{{path.Child("blockCIDRs").Index(i), &networks.BlockCIDRs[i]}}.validate()...)
	}
	return errs
}

func validateSeedDNS(dns *SeedDNS, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if dns.Provider != nil {
		errs = append(errs, validateRequired(dns.Provider.Type, path.Child("provider", "type"),
			"name the type of the DNS provider")...)
		if reference := dns.Provider.CredentialsRef; reference != nil {
			errs = append(errs, validateCredentialsRef(reference, credentialKinds,
				path.Child("provider", "credentialsRef"))...)
		}
	}
	if dns.Internal != nil {
		errs = append(errs, validateSeedDNSConfig(dns.Internal, path.Child("internal"))...)
	} else {
		errs = append(errs, field.Required(path.Child("internal"),
			"give the domain under which components reach the API servers of shoots"))
	}
	for i := range dns.Defaults {
		errs = append(errs, validateSeedDNSConfig(&dns.Defaults[i], path.Child("defaults").Index(i))...)
	}
	return append(errs, validateUnique(dns.Defaults, func(d SeedDNSProviderConfig) string { return d.Domain },
		func(i int) *field.Path { return path.Child("defaults").Index(i).Child("domain") })...)
}

func validateSeedDNSConfig(config *SeedDNSProviderConfig, path *field.Path) field.ErrorList {
	errs := validateRequired(config.Type, path.Child("type"), "name the type of the DNS provider")
	errs = append(errs, validateSubdomain(config.Domain, path.Child("domain"))...)
	return append(errs, validateCredentialsRef(&config.CredentialsRef, credentialKinds,
		path.Child("credentialsRef"))...)
}

func validateSeedIngress(spec *SeedSpec, path *field.Path) field.ErrorList {
	path = path.Child("ingress")
	if spec.Ingress == nil {
		return field.ErrorList{
			field.Required(path, "give the domain of the seed's own endpoints and the ingress controller, such as "+
				"{domain: ingress.example.com, controller: {kind: nginx}}"),
		}
	}
	errs := validateSubdomain(spec.Ingress.Domain, path.Child("domain"))
	return append(errs, validateSupported(spec.Ingress.Controller.Kind, []string{IngressKindNginx},
		path.Child("controller", "kind"))...)
}

func validateSeedBackup(spec *SeedSpec, path *field.Path) field.ErrorList {
	backup := spec.Backup
	errs := validateRequired(backup.Provider, path.Child("provider"), "name the type of the object store's provider")
	if backup.Provider != spec.Provider.Type && deref(backup.Region) == "" {
		errs = append(errs, field.Required(path.Child("region"),
			"needed because the object store is of another provider than the seed"))
	}
	if backup.CredentialsRef == nil {
		return append(errs, field.Required(path.Child("credentialsRef"),
			"refer to the credentials for the object store"))
	}
	return append(errs, validateCredentialsRef(backup.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

func validateSeedVolume(volume *SeedVolume, path *field.Path) field.ErrorList {
	if volume == nil {
		return nil
	}
	errs := validateOptionalQuantity(volume.MinimumSize, path.Child("minimumSize"))
	at := func(i int) *field.Path { return path.Child("providers").Index(i).Child("purpose") }
	errs = append(errs, validateUnique(volume.Providers, func(p SeedVolumeProvider) string { return p.Purpose }, at)...)
	for i, provider := range volume.Providers {
		errs = append(errs, validateRequired(provider.Purpose, at(i),
			"name the purpose of the volumes, such as etcd-main")...)
		errs = append(errs, validateRequired(provider.Name, path.Child("providers").Index(i).Child("name"),
			"name the provisioner")...)
	}
	return errs
}

func validateSeedSettings(spec *SeedSpec, path *field.Path) field.ErrorList {
	settings := spec.Settings
	if settings == nil {
		return nil
	}
	errs := validateExcessCapacity(settings.ExcessCapacityReservation, path.Child("excessCapacityReservation"))
	errs = append(errs, validateLoadBalancerServices(settings.LoadBalancerServices, spec.Provider.Zones,
		path.Child("loadBalancerServices"))...)
	if autoscaler := settings.VerticalPodAutoscaler; autoscaler != nil {
		errs = append(errs, validateResourceList(autoscaler.MaxAllowed, scaledResources,
			path.Child("verticalPodAutoscaler", "maxAllowed"))...)
	}
	if selection := settings.ZoneSelection; selection != nil {
		modes := []ZoneSelectionMode{ZoneSelectionModePrefer, ZoneSelectionModeEnforce}
		errs = append(errs, validateSupported(selection.Mode, modes, path.Child("zoneSelection", "mode"))...)
	}
	return errs
}

func validateExcessCapacity(reservation *SeedSettingExcessCapacityReservation, path *field.Path) field.ErrorList {
	if reservation == nil {
		return nil
	}
	var errs field.ErrorList
	for i, config := range reservation.Configs {
		at := path.Child("configs").Index(i)
		if len(config.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"),
				"say how much is kept free, such as {cpu: 2, memory: 6Gi}"))
		}
		errs = append(errs, validateResourceList(config.Resources, nil, at.Child("resources"))...)
		errs = append(errs, metav1validation.ValidateLabels(config.NodeSelector, at.Child("nodeSelector"))...)
	}
	return errs
}

func validateLoadBalancerServices(services *SeedSettingLoadBalancerServices, zones []string,
	path *field.Path) field.ErrorList {
	if services == nil {
		return nil
	}
	errs := apivalidation.ValidateAnnotations(services.Annotations, path.Child("annotations"))
	errs = append(errs, validateOptionalSupported(services.ExternalTrafficPolicy, trafficPolicies,
		path.Child("externalTrafficPolicy"))...)
	name := func(i int) *field.Path { return path.Child("zones").Index(i).Child("name") }
	errs = append(errs, validateUnique(services.Zones,
		func(z SeedSettingLoadBalancerServicesZones) string { return z.Name }, name)...)
	known := sets.New(zones...)
	for i, zone := range services.Zones {
		if !known.Has(zone.Name) {
			errs = append(errs, field.Invalid(name(i), zone.Name, "must be one of spec.provider.zones"))
		}
		at := path.Child("zones").Index(i)
		errs = append(errs, apivalidation.ValidateAnnotations(zone.Annotations, at.Child("annotations"))...)
		errs = append(errs, validateOptionalSupported(zone.ExternalTrafficPolicy, trafficPolicies,
			at.Child("externalTrafficPolicy"))...)
	}
	return errs
}

func validateSeedSpecUpdate(spec, old *SeedSpec, path *field.Path) field.ErrorList {
	networks := path.Child("networks")
	errs := validateImmutable(spec.Networks.Pods, old.Networks.Pods, networks.Child("pods"))
	errs = append(errs, validateImmutable(spec.Networks.Services, old.Networks.Services, networks.Child("services"))...)
	errs = append(errs, validateImmutableOnceSet(spec.Networks.Nodes, old.Networks.Nodes, networks.Child("nodes"))...)
	if old.Ingress != nil {
		if spec.Ingress == nil {
			errs = append(errs, field.Required(path.Child("ingress"), "cannot be removed"))
		} else {
			errs = append(errs, validateImmutable(spec.Ingress.Domain, old.Ingress.Domain,
				path.Child("ingress", "domain"))...)
		}
	}
	if old.Backup != nil {
		errs = append(errs, validateSeedBackupUpdate(spec.Backup, old.Backup, path.Child("backup"))...)
	}
	if len(old.DNS.Defaults) > 0 && len(spec.DNS.Defaults) == 0 {
		errs = append(errs, field.Required(path.Child("dns", "defaults"),
			"domains of shoots depend on them; at least one has to stay"))
	}
	return errs
}

func validateSeedBackupUpdate(backup, old *Backup, path *field.Path) field.ErrorList {
	if backup == nil {
		return field.ErrorList{field.Required(path, "cannot be removed: shoots have backups there")}
	}
	errs := validateImmutable(backup.Provider, old.Provider, path.Child("provider"))
	return append(errs, validateImmutable(backup.Region, old.Region, path.Child("region"))...)
}
