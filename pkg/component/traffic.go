package component

// TrafficDistribution returns the field of a Service; nil, the cluster's default, for an empty value.
func TrafficDistribution(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}
