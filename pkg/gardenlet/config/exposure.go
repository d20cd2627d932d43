package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

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

// validateHandlers names the first handler that is wrong.
func (c *Configuration) validateHandlers() error {
	known := map[string]bool{}
	for i, handler := range c.ExposureClassHandlers {
		path := fmt.Sprintf("exposureClassHandlers[%d]", i)
		switch problems := validation.IsDNS1123Label(handler.Name); {
		case len(problems) > 0:
			return fmt.Errorf("%s.name (%q): %s", path, handler.Name, problems[0])
		case known[handler.Name]:
			return fmt.Errorf("%s.name (%q) is there twice", path, handler.Name)
		case handler.Address != "" && len(handler.LoadBalancerService.Annotations) > 0:
			return fmt.Errorf("%s.loadBalancerService.annotations are for a Service, which is not made beside an "+
				"address", path)
		}
		known[handler.Name] = true
	}
	return nil
}
