// Package controllermanager is the process that looks after the garden itself: projects and their members, which
// extensions each seed needs, the heartbeats and certificates of gardenlets, credentials in use. What concerns one
// seed's control planes is done by that seed's gardenlet, not here.
package controllermanager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/pkg/controllermanager/binding"
	"github.com/trellis-garden/trellis/pkg/controllermanager/bootstrap"
	"github.com/trellis-garden/trellis/pkg/controllermanager/certificate"
	"github.com/trellis-garden/trellis/pkg/controllermanager/controllerinstallation"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
	"github.com/trellis-garden/trellis/pkg/controllermanager/seed"
)

// Options are the settings of garden-controller-manager.
type Options struct {
	// LeaderElection lets one of several replicas work. With a single replica it only costs time.
	LeaderElection bool
	// HealthAddress and MetricsAddress are listened on; "0" switches off.
	HealthAddress, MetricsAddress string
	// SeedGracePeriod is how long a gardenlet may be silent before its seed counts as unknown.
	SeedGracePeriod time.Duration
}

// reconciler is a controller that can be added to a manager.
type reconciler interface{ SetupWithManager(ctrl.Manager) error }

// Run looks after the garden until the context ends.
func Run(ctx context.Context, garden *rest.Config, options Options) error {
	if err := registration.WaitUntilServed(ctx, garden); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(garden, ctrl.Options{
		Scheme:                  apis.GardenScheme(),
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        "garden-controller-manager",
		LeaderElectionNamespace: "garden",
		HealthProbeBindAddress:  options.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: options.MetricsAddress},
		// Secrets and roles are read rarely; caching those of all projects would cost far more memory than it saves.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{},
		}}},
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
	uncached, err := client.New(garden, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		return fmt.Errorf("client of the garden: %w", err)
	}
	if err := mgr.Add(&bootstrap.Runnable{Client: uncached}); err != nil {
		return err
	}
	for _, controller := range controllers(options) {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("%T: %w", controller, err)
		}
	}
	return mgr.Start(ctx)
}

func controllers(options Options) []reconciler {
	return []reconciler{
		&project.Reconciler{},
		&controllerinstallation.Reconciler{},
		&seed.Reconciler{GracePeriod: options.SeedGracePeriod},
		&seed.NamespaceReconciler{},
		&certificate.Reconciler{},
		binding.SecretBindings(),
		binding.CredentialsBindings(),
	}
}
