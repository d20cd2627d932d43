package registry

// Kinds returns the table of all kinds that the server stores.
func Kinds() []Served {
	return []Served{
		shoots(), seeds(), projects(),
		cloudProfiles(), namespacedCloudProfiles(),
		secretBindings(), quotas(), exposureClasses(), internalSecrets(), shootStates(),
		backupBuckets(), backupEntries(),
		controllerRegistrations(), controllerDeployments(), controllerInstallations(),
		credentialsBindings(), workloadIdentities(),
		managedSeeds(), managedSeedSets(), gardenlets(),
		bastions(),
	}
}
