package v1beta1

// VersionsFor returns the versions of a machine image that machines of a type can boot and on which a kubelet of a
// version runs, each with its life cycle. It is empty when the profile does not have the image; a type that it does not
// have boots all versions.
func (s *CloudProfileSpec) VersionsFor(image, machineType, kubelet string) []ExpirableVersion {
	offered := s.machineImage(image)
	if offered == nil {
		return nil
	}
	return offered.versionsFor(s.machineType(machineType), kubelet)
}
