package v1beta1

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateSeed checks a Seed on its own.
func ValidateSeed(seed *Seed) field.ErrorList {
	errs := validateMeta(&seed.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	return append(errs, ValidateSeedSpec(&seed.Spec, field.NewPath("spec"))...)
}

// ValidateSeedUpdate checks a change of a Seed.
func ValidateSeedUpdate(seed, old *Seed) field.ErrorList {
	errs := validateMetaUpdate(&seed.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateSeedSpecUpdate(&seed.Spec, &old.Spec, field.NewPath("spec"))...)
	return append(errs, ValidateSeed(seed)...)
}

// ValidateSeedStatusUpdate checks a change of the status of a Seed.
func ValidateSeedStatusUpdate(seed, old *Seed) field.ErrorList {
	return validateImmutableOnceSet(seed.Status.ClusterIdentity, old.Status.ClusterIdentity, field.NewPath("status", "clusterIdentity"))
}

// ValidateSeedSpec checks the specification of a Seed, wherever it is written.
func ValidateSeedSpec(spec *SeedSpec, path *field.Path) field.ErrorList {
	provider := path.Child("provider")
	errs := validateRequired(spec.Provider.Type, provider.Child("type"), "name the type of the infrastructure")
	errs = append(errs, validateRequired(spec.Provider.Region, provider.Child("region"), "name the region of the seed")...)
	errs = append(errs, validateUniqueStrings(spec.Provider.Zones, provider.Child("zones"))...)
	errs = append(errs, validateSeedNetworks(&spec.Networks, path.Child("networks"))...)
	errs = append(errs, validateSeedDNS(&spec.DNS, path.Child("dns"))...)
	errs = append(errs, validateSeedIngress(spec, path)...)
	if spec.Backup != nil {
		errs = append(errs, validateSeedBackup(spec, path.Child("backup"))...)
	}
	for i, taint := range spec.Taints {
		errs = append(errs, validateRequired(taint.Key, path.Child("taints").Index(i).Child("key"), "name the key of the taint")...)
	}
	errs = append(errs, validateUnique(spec.Taints, func(t SeedTaint) string { return t.Key }, path.Child("taints").Index)...)
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
		{path.Child("pods"), &networks.Pods}, {path.Child("services"), &networks.Services}, {path.Child("nodes"), networks.Nodes},
	}
	errs := validateRequired(networks.Pods, path.Child("pods"), "give the range of pod addresses, such as 10.1.0.0/16")
	errs = append(errs, validateRequired(networks.Services, path.Child("services"), "give the range of service addresses, such as 10.2.0.0/16")...)
	errs = append(errs, ranges.validate()...)
	errs = append(errs, ranges.validateDisjoint()...)
	errs = append(errs, validateIPFamilies(networks.IPFamilies, path.Child("ipFamilies"))...)
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
		errs = append(errs, validateRequired(dns.Provider.Type, path.Child("provider", "type"), "name the type of the DNS provider")...)
	}
	if dns.Internal != nil {
		errs = append(errs, validateSeedDNSConfig(dns.Internal, path.Child("internal"))...)
	} else {
		errs = append(errs, field.Required(path.Child("internal"), "give the domain under which components reach the API servers of shoots"))
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
	return append(errs, validateCredentialsRef(&config.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

func validateSeedIngress(spec *SeedSpec, path *field.Path) field.ErrorList {
	if spec.Ingress == nil {
		return nil
	}
	path = path.Child("ingress")
	errs := validateSubdomain(spec.Ingress.Domain, path.Child("domain"))
	return append(errs, validateSupported(spec.Ingress.Controller.Kind, []string{IngressKindNginx}, path.Child("controller", "kind"))...)
}

func validateSeedBackup(spec *SeedSpec, path *field.Path) field.ErrorList {
	backup := spec.Backup
	errs := validateRequired(backup.Provider, path.Child("provider"), "name the type of the object store's provider")
	if backup.Provider != spec.Provider.Type && deref(backup.Region) == "" {
		errs = append(errs, field.Required(path.Child("region"), "needed because the object store is of another provider than the seed"))
	}
	if backup.CredentialsRef == nil {
		return append(errs, field.Required(path.Child("credentialsRef"), "refer to the credentials for the object store"))
	}
	return append(errs, validateCredentialsRef(backup.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

func validateSeedSettings(spec *SeedSpec, path *field.Path) field.ErrorList {
	settings := spec.Settings
	if settings == nil {
		return nil
	}
	var errs field.ErrorList
	if services := settings.LoadBalancerServices; services != nil {
		for i, zone := range services.Zones {
			if !slices.Contains(spec.Provider.Zones, zone.Name) {
				errs = append(errs, field.NotSupported(path.Child("loadBalancerServices", "zones").Index(i).Child("name"), zone.Name, spec.Provider.Zones))
			}
		}
	}
	if selection := settings.ZoneSelection; selection != nil {
		modes := []ZoneSelectionMode{ZoneSelectionModePrefer, ZoneSelectionModeEnforce}
		errs = append(errs, validateSupported(selection.Mode, modes, path.Child("zoneSelection", "mode"))...)
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
			errs = append(errs, validateImmutable(spec.Ingress.Domain, old.Ingress.Domain, path.Child("ingress", "domain"))...)
		}
	}
	if old.Backup != nil {
		errs = append(errs, validateSeedBackupUpdate(spec.Backup, old.Backup, path.Child("backup"))...)
	}
	if len(old.DNS.Defaults) > 0 && len(spec.DNS.Defaults) == 0 {
		errs = append(errs, field.Required(path.Child("dns", "defaults"), "domains of shoots depend on them; at least one has to stay"))
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
