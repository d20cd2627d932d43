package v1beta1

import "strings"

const (
	// LabelSeedReadableBy is set on a Secret, ConfigMap, InternalSecret or WorkloadIdentity by whoever may write it,
	// and says which seeds may read it when their Seed, or their BackupBucket, names it: names of seeds separated by
	// "_", or ReadableByAllSeeds. To be named alone gives nobody access.
	LabelSeedReadableBy = "seed.trellis.garden/readable-by"
	// ReadableByAllSeeds stands for every seed that names the object. No seed can be called so.
	ReadableByAllSeeds = "All"

	readableBySeparator = "_"
)

// SeedsAllowedToRead returns the names of seeds that an object's labels let read it, ReadableByAllSeeds among them.
func SeedsAllowedToRead(labels map[string]string) []string {
	value := labels[LabelSeedReadableBy]
	if value == "" {
		return nil
	}
	return strings.Split(value, readableBySeparator)
}
