package scheduler

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
)

// Options are the settings of garden-scheduler.
type Options struct {
	// LeaderElection lets one of several replicas work. With a single replica it only costs time.
	LeaderElection bool
	// HealthAddress and MetricsAddress are listened on; "0" switches off.
	HealthAddress, MetricsAddress string
}

// Run schedules shoots of the garden until the context ends.
func Run(ctx context.Context, garden *rest.Config, options Options) error {
	if err := registration.WaitUntilServed(ctx, garden); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(garden, ctrl.Options{
		Scheme:                  apis.GardenScheme(),
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        "garden-scheduler",
		LeaderElectionNamespace: "garden",
		HealthProbeBindAddress:  options.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
	})
	if err != nil {
		return fmt.Errorf("controller manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := (&Reconciler{}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("shoot-scheduler: %w", err)
	}
	return mgr.Start(ctx)
}
