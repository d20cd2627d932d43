// Package cleanup empties a cluster before it is deleted, as long as its controllers run: whatever objects in it have
// made elsewhere, as load balancers and volumes, goes with them and is not orphaned. What belongs to the system stays;
// it goes with the control plane.
//
// A Cleaner's methods are single passes. Each deletes what is there and returns an error until nothing is left, so
// callers repeat them. Finalizers that nobody removes within a grace period are removed.
package cleanup

import (
	"fmt"
	"strconv"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Plan is what is to be cleaned up, and how patiently.
type Plan struct {
	// SkipExtendedAPIs leaves CustomResourceDefinitions and APIServices alone.
	SkipExtendedAPIs bool
	// Webhooks, ExtendedAPIs, Resources and Namespaces say how long finalizers of objects under deletion are respected.
	Webhooks, ExtendedAPIs, Resources, Namespaces Grace
}

// Grace is how long finalizers are respected.
type Grace struct {
	Period time.Duration
	// Explicit says that the user chose the period: then it goes also for finalizers that guard infrastructure.
	Explicit bool
}

// Periods unless the user says otherwise.
const (
	defaultGrace            = 5 * time.Minute
	defaultExtendedAPIGrace = time.Hour
)

// NewPlan reads the annotations of a Shoot. Its error names the annotation that is not a number of seconds.
func NewPlan(annotations map[string]string) (Plan, error) {
	p := Plan{SkipExtendedAPIs: annotations[gardencorev1beta1.ShootSkipCleanup] == "true"}
	for _, entry := range []struct {
		annotation string
		byDefault  time.Duration
		grace      *Grace
	}{
		{gardencorev1beta1.ShootCleanupWebhooksFinalizeGracePeriod, defaultGrace, &p.Webhooks},
		{gardencorev1beta1.ShootCleanupExtendedAPIsFinalizeGracePeriod, defaultExtendedAPIGrace, &p.ExtendedAPIs},
		{gardencorev1beta1.ShootCleanupKubernetesResourcesFinalizeGracePeriod, defaultGrace, &p.Resources},
		{gardencorev1beta1.ShootCleanupNamespacesFinalizeGracePeriod, defaultGrace, &p.Namespaces},
	} {
		grace, err := parseGrace(annotations[entry.annotation], entry.byDefault)
		if err != nil {
			return Plan{}, fmt.Errorf("metadata.annotations[%s]: %w", entry.annotation, err)
		}
		*entry.grace = grace
	}
	return p, nil
}

// parseGrace reads a number of seconds; empty is the default.
func parseGrace(text string, byDefault time.Duration) (Grace, error) {
	if text == "" {
		return Grace{Period: byDefault}, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return Grace{}, fmt.Errorf("%q is not a number of seconds", text)
	}
	return Grace{Period: time.Duration(seconds) * time.Second, Explicit: true}, nil
}
