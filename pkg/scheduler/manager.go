package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Options are the settings of garden-scheduler.
type Options struct {
	// Strategy says which regions are good for a shoot. Default: SameRegion.
	Strategy Strategy
	// SchedulerName is the spec.schedulerName of the shoots to care for. Default: corev1beta1.DefaultSchedulerName.
	SchedulerName string
	// RetryPeriod is how often a waiting shoot is tried again although nothing seems to have changed. Default:
	// DefaultRetryPeriod.
	RetryPeriod time.Duration
	// LeaderElection lets one of several replicas work. With a single replica it only costs time.
	LeaderElection bool
	// HealthAddress and MetricsAddress are listened on; "0" switches off.
	HealthAddress, MetricsAddress string
}

// Run schedules shoots of the garden until the context ends.
func Run(ctx context.Context, garden *rest.Config, options Options) error {
	served := func(ctx context.Context) error { return registration.WaitUntilServed(ctx, garden) }
	if err := managers.Begin(ctx, options.HealthAddress, served); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(garden, managers.Patient(ctrl.Options{
		Scheme: apis.GardenScheme(),
		Cache:  cacheOptions(),
		// Schedulers of different names may run in one process.
		Controller:              ctrlconfig.Controller{SkipNameValidation: new(true)},
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        leaderElectionID(options),
		LeaderElectionNamespace: "garden",
		HealthProbeBindAddress:  options.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
	}))
	if err != nil {
		return fmt.Errorf("controller manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	reconciler := &Reconciler{
		Strategy: options.Strategy, SchedulerName: options.SchedulerName, RetryPeriod: options.RetryPeriod,
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("shoot-scheduler: %w", err)
	}
	return mgr.Start(ctx)
}

// cacheOptions keep the cache small: of ConfigMaps it holds distances between regions only.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{gardencorev1beta1.GardenNamespace: {}},
				Label:      labels.SelectorFromSet(labels.Set{LabelPurpose: PurposeRegionConfig}),
			},
		},
	}
}

// leaderElectionID is apart for schedulers of different names, which work side by side.
func leaderElectionID(options Options) string {
	if options.SchedulerName == "" || options.SchedulerName == gardencorev1beta1.DefaultSchedulerName {
		return "garden-scheduler"
	}
	return "garden-scheduler-" + options.SchedulerName
}
