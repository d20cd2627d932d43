// Package controllermanager is the process that looks after the garden itself: projects and their members, which
// extensions each seed needs, the heartbeats and certificates of gardenlets, what is in use and must stay, what has
// expired and must go, the maintenance and the sleep of shoots. What concerns one seed's control planes is done by that
// seed's gardenlet, not here.
package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/controllermanager/bastion"
	"github.com/trellis-garden/trellis/pkg/controllermanager/binding"
	"github.com/trellis-garden/trellis/pkg/controllermanager/bootstrap"
	"github.com/trellis-garden/trellis/pkg/controllermanager/certificate"
	"github.com/trellis-garden/trellis/pkg/controllermanager/cloudprofile"
	"github.com/trellis-garden/trellis/pkg/controllermanager/controllerinstallation"
	"github.com/trellis-garden/trellis/pkg/controllermanager/event"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index"
	"github.com/trellis-garden/trellis/pkg/controllermanager/inuse"
	"github.com/trellis-garden/trellis/pkg/controllermanager/managedseedset"
	"github.com/trellis-garden/trellis/pkg/controllermanager/namespacedcloudprofile"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
	"github.com/trellis-garden/trellis/pkg/controllermanager/reference"
	"github.com/trellis-garden/trellis/pkg/controllermanager/seed"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/backupentry"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/hibernation"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/lifetime"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/maintenance"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/seedconditions"
	"github.com/trellis-garden/trellis/pkg/controllermanager/shoot/status"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Options are the settings of garden-controller-manager.
type Options struct {
	// LeaderElection lets one of several replicas work. With a single replica it only costs time.
	LeaderElection bool
	// HealthAddress and MetricsAddress are listened on; "0" switches off.
	HealthAddress, MetricsAddress string
	// SeedGracePeriod is how long a gardenlet may be silent before its seed counts as unknown, ShootGracePeriod before
	// its shoots do.
	SeedGracePeriod, ShootGracePeriod time.Duration
	// ProjectQuotas are the ResourceQuotas that projects get in their namespaces.
	ProjectQuotas []project.QuotaConfiguration
	// StaleProjects are the periods after which unused projects are deleted.
	StaleProjects project.StaleOptions
	// HibernationDeadline is how late a schedule of hibernation is still followed.
	HibernationDeadline time.Duration
	// LifetimeSyncPeriod is how often the quotas are looked at that bound the lifetime of a shoot.
	LifetimeSyncPeriod time.Duration
	// BastionMaxLifetime is how long a bastion lives at most.
	BastionMaxLifetime time.Duration
	// ManagedSeedSetSyncPeriod is how often a ManagedSeedSet is looked at although nothing seems to have changed.
	ManagedSeedSetSyncPeriod time.Duration
	// EventTTL is how long events are kept that are not about shoots.
	EventTTL time.Duration
	// SkipNameValidation lets several run in one process; for tests.
	SkipNameValidation bool
}

// DefaultOptions returns the settings that are taken when nothing else is asked for.
func DefaultOptions() Options {
	return Options{
		HealthAddress:            ":8081",
		MetricsAddress:           "0",
		SeedGracePeriod:          seed.DefaultGracePeriod,
		ShootGracePeriod:         seed.DefaultShootGracePeriod,
		ProjectQuotas:            project.DefaultQuotas(),
		StaleProjects:            project.DefaultStaleOptions(),
		HibernationDeadline:      hibernation.DefaultTriggerDeadline,
		LifetimeSyncPeriod:       lifetime.DefaultSyncPeriod,
		BastionMaxLifetime:       bastion.DefaultMaxLifetime,
		ManagedSeedSetSyncPeriod: managedseedset.DefaultSyncPeriod,
		EventTTL:                 event.DefaultTTL,
	}
}

// part is a controller, or something else, that can be added to a manager.
type part interface{ SetupWithManager(ctrl.Manager) error }

// Run looks after the garden until the context ends.
func Run(ctx context.Context, garden *rest.Config, options Options) error {
	served := func(ctx context.Context) error { return registration.WaitUntilServed(ctx, garden) }
	if err := managers.Begin(ctx, options.HealthAddress, served); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(garden, managers.Patient(ctrl.Options{
		Scheme:                  apis.GardenScheme(),
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        "garden-controller-manager",
		LeaderElectionNamespace: "garden",
		HealthProbeBindAddress:  options.HealthAddress,
		Controller:              ctrlconfig.Controller{SkipNameValidation: &options.SkipNameValidation},
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
		// Secrets and roles are read rarely; caching those of all projects would cost far more memory than it saves.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &gardencorev1beta1.InternalSecret{},
			&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}, &corev1.ResourceQuota{},
		}}},
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
	uncached, err := client.New(garden, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		return fmt.Errorf("client of the garden: %w", err)
	}
	if err := mgr.Add(&bootstrap.Runnable{Client: uncached}); err != nil {
		return err
	}
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, part := range parts(options) {
		if err := part.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("%T: %w", part, err)
		}
	}
	return mgr.Start(ctx)
}

func parts(options Options) []part {
	return slices.Concat(ofGarden(options), ofSeeds(options), ofShoots(options))
}

// ofGarden looks after what belongs to no seed and no shoot.
func ofGarden(options Options) []part {
	return []part{
		&project.Reconciler{Quotas: options.ProjectQuotas},
		&project.StaleReconciler{Options: options.StaleProjects},
		&project.ActivityReconciler{},
		&cloudprofile.Reconciler{},
		&namespacedcloudprofile.Reconciler{},
		binding.SecretBindings(),
		binding.CredentialsBindings(),
		inuse.Quotas(),
		inuse.CloudProfiles(),
		inuse.NamespacedCloudProfiles(),
		inuse.ExposureClasses(),
		&reference.Reconciler{},
		&event.Retention{TTL: options.EventTTL},
	}
}

// ofSeeds looks after seeds, as far as gardenlets do not.
func ofSeeds(options Options) []part {
	return []part{
		&controllerinstallation.Reconciler{},
		&seed.Reconciler{GracePeriod: options.SeedGracePeriod, ShootGracePeriod: options.ShootGracePeriod},
		&seed.NamespaceReconciler{},
		&seed.CareReconciler{},
		&seed.BucketReconciler{},
		&certificate.Reconciler{},
		&managedseedset.Reconciler{SyncPeriod: options.ManagedSeedSetSyncPeriod},
	}
}

// ofShoots looks after shoots, as far as gardenlets do not.
func ofShoots(options Options) []part {
	return []part{
		&lifetime.Reconciler{SyncPeriod: options.LifetimeSyncPeriod},
		&hibernation.Reconciler{TriggerDeadline: options.HibernationDeadline},
		&maintenance.Reconciler{},
		&backupentry.Reconciler{},
		&status.Reconciler{},
		&seedconditions.Reconciler{},
		&bastion.Reconciler{MaxLifetime: options.BastionMaxLifetime},
	}
}
