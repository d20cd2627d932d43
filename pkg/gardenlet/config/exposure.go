package config

// ExposureClassHandler is a way to the gateway of the seed, with an address of its own, that ExposureClasses name as
// their handler.
type ExposureClassHandler struct {
	// Name that ExposureClasses have as their handler.
	Name string `json:"name"`
	// LoadBalancerService is the Service that gardenlet makes before the gateway, to take its address.
	LoadBalancerService LoadBalancerService `json:"loadBalancerService,omitempty"`
	// Address is an IP address or host name that leads to the gateway already: then gardenlet makes no Service.
	Address string `json:"address,omitempty"`
}

// LoadBalancerService is a Service of type LoadBalancer.
type LoadBalancerService struct {
	// Annotations tell the infrastructure which load balancer it is to be.
	Annotations map[string]string `json:"annotations,omitempty"`
}
