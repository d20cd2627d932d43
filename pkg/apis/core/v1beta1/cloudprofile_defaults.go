package v1beta1

// SetDefaultsCloudProfile sets what a CloudProfile has when nothing is said.
func SetDefaultsCloudProfile(profile *CloudProfile) {
	withCapabilities := len(profile.Spec.MachineCapabilities) > 0
	setDefaultsMachineImages(profile.Spec.MachineImages, withCapabilities)
	setDefaultsMachineTypes(profile.Spec.MachineTypes, withCapabilities)
	setDefaultsVolumeTypes(profile.Spec.VolumeTypes)
}

// SetDefaultsNamespacedCloudProfile sets what a NamespacedCloudProfile has when nothing is said. Architectures are left
// to its parent.
func SetDefaultsNamespacedCloudProfile(profile *NamespacedCloudProfile) {
	setDefaultsMachineTypes(profile.Spec.MachineTypes, true)
	setDefaultsVolumeTypes(profile.Spec.VolumeTypes)
}

// setDefaultsMachineImages leaves architectures alone when capabilities name them.
func setDefaultsMachineImages(images []MachineImage, withCapabilities bool) {
	for i := range images {
		setDefault(&images[i].UpdateStrategy, UpdateStrategyMajor)
		for j := range images[i].Versions {
			version := &images[i].Versions[j]
			if len(version.CRI) == 0 {
				version.CRI = []CRI{{Name: CRINameContainerD}}
			}
			if len(version.Architectures) == 0 && !withCapabilities {
				version.Architectures = []string{defaultArchitecture}
			}
		}
	}
}

func setDefaultsMachineTypes(types []MachineType, withCapabilities bool) {
	for i := range types {
		setDefault(&types[i].Usable, true)
		if !withCapabilities {
			setDefault(&types[i].Architecture, defaultArchitecture)
		}
	}
}

func setDefaultsVolumeTypes(types []VolumeType) {
	for i := range types {
		setDefault(&types[i].Usable, true)
	}
}
