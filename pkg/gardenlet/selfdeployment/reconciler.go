// Package selfdeployment keeps a gardenlet as the Gardenlet object of its seed's name says: gardenlet installs its own
// chart anew in its seed, and the process that comes out of that goes on with it. The first installation is an
// operator's.
package selfdeployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/gardenlet/spread"
	"github.com/trellis-garden/trellis/pkg/helm"
)

const (
	// mistakePeriod is how often an object is looked at that cannot be deployed: what it names may have changed.
	mistakePeriod = time.Minute
	// rolloutPeriod is how often a Deployment is looked at whose pods are not ready.
	rolloutPeriod = 2 * time.Second
)

// Reasons of the condition GardenletReconciled.
const (
	reasonDeployed  = "GardenletDeployed"
	reasonDeploying = "GardenletDeploying"
	reasonRollout   = "GardenletNotRolledOut"
	reasonMistake   = "GardenletInvalid"
	reasonNoChart   = "ChartNotAvailable"
	reasonFailed    = "DeploymentFailed"
)

// Reconciler deploys the gardenlet that it is part of.
type Reconciler struct {
	// Garden reads the Gardenlet, and the Secrets that it names, and writes its status.
	Garden client.Client
	// Seed reads what is deployed, and Helm deploys.
	Seed client.Client
	Helm *helm.Client
	// Charts pulls charts.
	Charts *helm.Puller
	// Config is the configuration that this process runs with.
	Config *config.Configuration
}

// Reconcile handles the Gardenlet; requests are for that of this seed only.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	if err := r.Garden.Get(ctx, req.NamespacedName, gardenlet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// One that is deleted leaves gardenlet as it is: it goes with its seed, by its operator's hand.
	if gardenlet.DeletionTimestamp != nil || gardenlet.Name != r.Config.SeedConfig.Name {
		return ctrl.Result{}, nil
	}
	err := r.deploy(ctx, gardenlet)
	if err == nil {
		return r.reportRollout(ctx, gardenlet)
	}
	var mistake *ocichart.MistakeError
	var unavailable *ocichart.UnavailableError
	switch {
	case errors.As(err, &mistake):
		return ctrl.Result{RequeueAfter: mistakePeriod},
			r.report(ctx, gardenlet, gardencorev1beta1.ConditionFalse, reasonMistake, err.Error())
	case errors.As(err, &unavailable):
		return ctrl.Result{}, errors.Join(err,
			r.report(ctx, gardenlet, gardencorev1beta1.ConditionFalse, reasonNoChart, err.Error()))
	}
	return ctrl.Result{}, errors.Join(err,
		r.report(ctx, gardenlet, gardencorev1beta1.ConditionFalse, reasonFailed, err.Error()))
}

// deploy installs the chart. What changes is announced before: the process may not live to tell of it.
func (r *Reconciler) deploy(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	present := &appsv1.Deployment{}
	if err := r.Seed.Get(ctx, deploymentKey, present); err != nil {
		return fmt.Errorf("gardenlet deploys itself where its chart was installed as release %s before: %w",
			deploymentKey, err)
	}
	wanted, err := r.plan(ctx, gardenlet, present)
	if err != nil {
		return err
	}
	if present.Annotations[checksumAnnotation] != wanted.checksum {
		message := fmt.Sprintf("Chart %s is being installed. If this lasts, see the pods of Deployment %s in the seed.",
			gardenlet.Spec.Deployment.Helm.OCIRepository.URL(), deploymentKey)
		if err := r.report(ctx, gardenlet, gardencorev1beta1.ConditionProgressing, reasonDeploying,
			message); err != nil {
			return err
		}
	}
	// The end of this process is part of the installation: what is to be done after that should be done nevertheless.
	_, err = r.Helm.Install(context.WithoutCancel(ctx), wanted.release)
	return err
}

// reportRollout says whether the pods are those that were wanted.
func (r *Reconciler) reportRollout(ctx context.Context,
	gardenlet *seedmanagementv1alpha1.Gardenlet) (ctrl.Result, error) {
	present := &appsv1.Deployment{}
	if err := r.Seed.Get(ctx, deploymentKey, present); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading what was deployed: %w", err)
	}
	if unready := component.CheckDeployment(present); unready != nil {
		message := fmt.Sprintf("Deployment %s in the seed: %v", deploymentKey, unready)
		return ctrl.Result{RequeueAfter: rolloutPeriod},
			r.report(ctx, gardenlet, gardencorev1beta1.ConditionProgressing, reasonRollout, message)
	}
	again := spread.Period(gardenlet.UID, r.Config.Controllers.Gardenlet.SyncPeriod.Duration)
	return ctrl.Result{RequeueAfter: again},
		r.report(ctx, gardenlet, gardencorev1beta1.ConditionTrue, reasonDeployed,
			"Gardenlet is deployed as wanted, and runs.")
}

// report writes the condition and the generation it is about, if that changes anything.
func (r *Reconciler) report(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet,
	status gardencorev1beta1.ConditionStatus, reason, message string) error {
	before := gardenlet.DeepCopy()
	condition := conditions.New(seedmanagementv1alpha1.GardenletReconciled, status, reason, message)
	gardenlet.Status.Conditions = conditions.Set(gardenlet.Status.Conditions, condition, time.Now())
	gardenlet.Status.ObservedGeneration = gardenlet.Generation
	if apiequality.Semantic.DeepEqual(before.Status, gardenlet.Status) {
		return nil
	}
	if err := r.Garden.Status().Patch(ctx, gardenlet, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of Gardenlet %s: %w", client.ObjectKeyFromObject(gardenlet), err)
	}
	return nil
}
