package registration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// servedInterval is how often to look whether the API is there.
	servedInterval = 250 * time.Millisecond
	// sayAfter is how many attempts are made before the log tells what is missing.
	sayAfter = 20
)

// WaitUntilServed waits until the garden serves every API of garden-apiserver. Processes that start together with the
// garden call it before anything else: informers for kinds that are not served yet try again only every ten seconds.
func WaitUntilServed(ctx context.Context, garden *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(garden)
	if err != nil {
		return fmt.Errorf("client of the garden at %s: %w", garden.Host, err)
	}
	var missing error
	attempts := 0
	err = wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		if missing = firstMissing(client); missing == nil {
			return true, nil
		}
		if attempts++; attempts%sayAfter == 0 {
			klog.FromContext(ctx).Info("Waiting for the garden's API", "garden", garden.Host, "missing",
				missing.Error())
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the garden at %s does not serve its API: %w", garden.Host, missing)
	}
	return nil
}

func firstMissing(client discovery.DiscoveryInterface) error {
	for _, version := range groupVersions {
		if _, err := client.ServerResourcesForGroupVersion(version.String()); err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
	}
	return nil
}
