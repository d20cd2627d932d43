// Package controllerinstallation installs extensions: for every ControllerInstallation of the seed it takes the chart
// of the ControllerDeployment and installs it with Helm into the namespace extension-<registration>.
package controllerinstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const (
	// Finalizer of ControllerInstallations.
	Finalizer = gardencorev1beta1.FinalizerControllerInstallation
	// checksumAnnotation on the extension's namespace says what is installed.
	checksumAnnotation = gardencorev1beta1.AnnotationInstalledChecksum
	installedAt        = "trellis.garden/installed-at"

	// reinstallAfter is when an unchanged chart is installed again, to undo changes by others.
	reinstallAfter  = time.Hour
	healthyPeriod   = 30 * time.Second
	unhealthyPeriod = time.Second
)

// Reconciler installs and removes extensions.
type Reconciler struct {
	// Garden and Seed are clients.
	Garden, Seed client.Client
	// Helm installs in the seed.
	Helm *helm.Client
	// Charts pulls charts that lie in registries.
	Charts *helm.Puller
	// Images resolves the image of an extension that is in the image vector under its registration's name.
	Images imagevector.Vector
	// Info is what extensions are told about the garden.
	Info Garden
	// SeedName is the name of the seed.
	SeedName string
}

// Reconcile handles one ControllerInstallation.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	installation := &gardencorev1beta1.ControllerInstallation{}
	if err := r.Garden.Get(ctx, req.NamespacedName, installation); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if installation.Spec.SeedRef == nil || installation.Spec.SeedRef.Name != r.SeedName {
		return ctrl.Result{}, nil
	}
	if installation.DeletionTimestamp != nil {
		return r.delete(ctx, installation)
	}
	if err := finalizer.Ensure(ctx, r.Garden, installation, Finalizer); err != nil {
		return ctrl.Result{}, err
	}
	return r.install(ctx, installation)
}

// access to the garden for extensions.
func (r *Reconciler) access() access {
	return access{garden: r.Garden, seed: r.Seed, info: r.Info, seedName: r.SeedName}
}

// install brings one extension up to date and reports.
func (r *Reconciler) install(ctx context.Context,
	installation *gardencorev1beta1.ControllerInstallation) (ctrl.Result, error) {
	wanted, err := r.wanted(ctx, installation)
	if err != nil {
		var mistake *ocichart.MistakeError
		var unavailable *ocichart.UnavailableError
		switch {
		case errors.As(err, &unavailable):
			return ctrl.Result{}, errors.Join(err, r.report(ctx, installation,
				conditions.New(gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionFalse,
					"ChartNotAvailable", err.Error())))
		case !errors.As(err, &mistake):
			return ctrl.Result{}, err
		}
		return after(healthyPeriod, r.report(ctx, installation,
			conditions.New(gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ConditionFalse,
				"DeploymentInvalid", err.Error())))
	}
	valid := conditions.New(gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ConditionTrue,
		"RegistrationValid", "Chart can be rendered successfully.")

	if err := r.ensureInstalled(ctx, installation, wanted); err != nil {
		installed := conditions.New(gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionFalse,
			"InstallationFailed", err.Error())
		return ctrl.Result{}, errors.Join(err, r.report(ctx, installation, valid, installed))
	}
	installed := conditions.New(gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionTrue,
		"InstallationSuccessful", "The chart is installed.")
	unhealthy, err := r.unhealthy(ctx, wanted.release.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	healthy, progressing := health(unhealthy)
	period := healthyPeriod
	if unhealthy != "" {
		period = unhealthyPeriod
	}
	return after(period, r.report(ctx, installation, valid, installed, healthy, progressing))
}

// after comes back in a while if nothing went wrong.
func after(period time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: period}, nil
}

// health returns the conditions Healthy and Progressing.
func health(unhealthy string) (healthy, progressing gardencorev1beta1.Condition) {
	if unhealthy == "" {
		return conditions.New(gardencorev1beta1.ControllerInstallationHealthy, gardencorev1beta1.ConditionTrue,
				"ControllerHealthy", "All workloads of the extension are healthy."),
			conditions.New(gardencorev1beta1.ControllerInstallationProgressing, gardencorev1beta1.ConditionFalse,
				"ControllerRolledOut", "All workloads of the extension are rolled out.")
	}
	return conditions.New(gardencorev1beta1.ControllerInstallationHealthy, gardencorev1beta1.ConditionFalse,
			"ControllerNotHealthy", unhealthy),
		conditions.New(gardencorev1beta1.ControllerInstallationProgressing, gardencorev1beta1.ConditionTrue,
			"ControllerNotRolledOut", unhealthy)
}

// wantedRelease is what is to be installed.
type wantedRelease struct {
	release  helm.Release
	checksum string
	// level is the level of PodSecurity that its pods must keep.
	level string
	// networks are those of the seed.
	networks gardencorev1beta1.SeedNetworks
}

// wanted reads registration, deployment and seed.
func (r *Reconciler) wanted(ctx context.Context,
	installation *gardencorev1beta1.ControllerInstallation) (wantedRelease, error) {
	if installation.Spec.DeploymentRef == nil {
		return wantedRelease{}, &ocichart.MistakeError{Err: errors.New("spec.deploymentRef is not set")}
	}
	deployment := &gardencorev1beta1.ControllerDeployment{}
	err := r.Garden.Get(ctx, client.ObjectKey{Name: installation.Spec.DeploymentRef.Name}, deployment)
	if apierrors.IsNotFound(err) {
		return wantedRelease{}, &ocichart.MistakeError{
			Err: fmt.Errorf("ControllerDeployment %q does not exist", installation.Spec.DeploymentRef.Name),
		}
	}
	if err != nil {
		return wantedRelease{}, err
	}
	seed := &gardencorev1beta1.Seed{}
	if err := r.Garden.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return wantedRelease{}, err
	}
	source, err := chartSource{garden: r.Garden, pull: r.Charts.Pull}.find(ctx, deployment)
	if err != nil {
		return wantedRelease{}, fmt.Errorf("ControllerDeployment %q: %w", deployment.Name, err)
	}
	registration := &gardencorev1beta1.ControllerRegistration{}
	if err := r.Garden.Get(ctx, client.ObjectKey{Name: installation.Spec.RegistrationRef.Name},
		registration); client.IgnoreNotFound(err) != nil {
		return wantedRelease{}, fmt.Errorf("reading ControllerRegistration %s: %w",
			installation.Spec.RegistrationRef.Name, err)
	}
	registration.Name = installation.Spec.RegistrationRef.Name
	return r.release(registration, deployment, source, seed)
}

// release builds the Helm release.
func (r *Reconciler) release(registration *gardencorev1beta1.ControllerRegistration,
	deployment *gardencorev1beta1.ControllerDeployment, source chartAndValues,
	seed *gardencorev1beta1.Seed) (wantedRelease, error) {
	chart, err := helm.LoadArchive(source.archive)
	if err != nil {
		return wantedRelease{}, &ocichart.MistakeError{
			Err: fmt.Errorf("ControllerDeployment %q: %w", deployment.Name, err),
		}
	}
	image := ""
	if found, err := r.Images.Find(registration.Name); err == nil {
		image = found.String()
	}
	values, err := valuesFor(source.values, image, r.Info, seed)
	if err != nil {
		return wantedRelease{}, err
	}
	injected := ptr.Deref(deployment.InjectGardenKubeconfig, false)
	sum, err := checksum(source.archive, values, injected, registration.Spec.Resources)
	if err != nil {
		return wantedRelease{}, err
	}
	return wantedRelease{checksum: sum, level: podSecurity(registration), networks: seed.Spec.Networks,
		release: helm.Release{
			Namespace: extensionrights.ExtensionNamespace(registration.Name), Name: registration.Name, Chart: chart,
			Values: values,
			Change: change(registration, injected),
		}}, nil
}

// change is what happens to the objects of a chart: ClusterRoles for shoots are made known, and workloads may get
// access to the garden.
func change(registration *gardencorev1beta1.ControllerRegistration,
	inject bool) func(*unstructured.Unstructured) error {
	accept := extensionrights.Accept(registration.Name, registration.Spec.Resources)
	return func(object *unstructured.Unstructured) error {
		if inject {
			if err := injectGardenKubeconfig(object); err != nil {
				return err
			}
		}
		return accept(object)
	}
}

// ensureInstalled runs Helm if what is installed differs from what is wanted.
func (r *Reconciler) ensureInstalled(ctx context.Context, installation *gardencorev1beta1.ControllerInstallation,
	wanted wantedRelease) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: wanted.release.Namespace}}
	_, err := controllerutil.CreateOrPatch(ctx, r.Seed, namespace, func() error {
		namespace.Labels = component.Merge(namespace.Labels, map[string]string{
			gardencorev1beta1.GardenRole:                      gardencorev1beta1.GardenRoleExtension,
			gardencorev1beta1.LabelControllerRegistrationName: installation.Spec.RegistrationRef.Name,
			component.LabelPodSecurity:                        wanted.level,
		})
		return nil
	})
	if err != nil {
		return fmt.Errorf("namespace of the extension: %w", err)
	}
	if err := r.restrictNetwork(ctx, namespace.Name, wanted.networks); err != nil {
		return err
	}
	if _, err := r.access().ensure(ctx, installation.Name, namespace.Name); err != nil {
		return err
	}
	if upToDate(namespace, wanted.checksum, time.Now()) {
		return nil
	}
	if _, err := r.Helm.Install(ctx, wanted.release); err != nil {
		return err
	}
	if err := extensionrights.Sync(ctx, r.Seed); err != nil {
		return err
	}
	patch := client.MergeFrom(namespace.DeepCopy())
	namespace.Annotations = component.Merge(namespace.Annotations, map[string]string{
		checksumAnnotation: wanted.checksum, installedAt: time.Now().UTC().Format(time.RFC3339),
	})
	return r.Seed.Patch(ctx, namespace, patch)
}

// podSecurity is the level that the pods of an extension must keep: what its registration says, else none.
func podSecurity(registration *gardencorev1beta1.ControllerRegistration) string {
	if level := registration.Annotations[gardencorev1beta1.AnnotationPodSecurityEnforce]; level != "" {
		return level
	}
	return component.PodSecurityPrivileged
}

// upToDate says whether the namespace holds what is wanted, installed not too long ago.
func upToDate(namespace *corev1.Namespace, checksum string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, namespace.Annotations[installedAt])
	return err == nil && namespace.Annotations[checksumAnnotation] == checksum && now.Sub(at) < reinstallAfter
}

// unhealthy names the first workload of the namespace that is not healthy; empty when all are.
func (r *Reconciler) unhealthy(ctx context.Context, namespace string) (string, error) {
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
	} {
		if err := r.Seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			object := item.(client.Object)
			if err := component.CheckHealth(object); err != nil {
				return fmt.Sprintf("%s: %v", apply.Describe(r.Seed.Scheme(), object), err), nil
			}
		}
	}
	return "", nil
}

// delete removes the extension from the seed, then the finalizer.
func (r *Reconciler) delete(ctx context.Context,
	installation *gardencorev1beta1.ControllerInstallation) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(installation, Finalizer) {
		return ctrl.Result{}, nil
	}
	registration := installation.Spec.RegistrationRef.Name
	if err := r.Helm.Uninstall(ctx, extensionrights.ExtensionNamespace(registration), registration); err != nil {
		return ctrl.Result{}, errors.Join(err, r.report(ctx, installation,
			conditions.New(gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionFalse,
				"DeletionFailed", err.Error())))
	}
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: extensionrights.ExtensionNamespace(registration)},
	}
	err := r.Seed.Delete(ctx, namespace)
	if err == nil {
		return ctrl.Result{RequeueAfter: unhealthyPeriod}, nil
	}
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("deleting the extension's namespace: %w", err)
	}
	if err := extensionrights.Sync(ctx, r.Seed); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.access().remove(ctx, installation.Name); err != nil {
		return ctrl.Result{}, fmt.Errorf("deleting the extension's service account in the garden: %w", err)
	}
	return ctrl.Result{}, finalizer.Remove(ctx, r.Garden, installation, Finalizer)
}

// report writes conditions if they changed.
func (r *Reconciler) report(ctx context.Context, installation *gardencorev1beta1.ControllerInstallation,
	set ...gardencorev1beta1.Condition) error {
	before := installation.DeepCopy()
	for _, condition := range set {
		installation.Status.Conditions = conditions.Set(installation.Status.Conditions, condition, time.Now())
	}
	if apiequality.Semantic.DeepEqual(before.Status, installation.Status) {
		return nil
	}
	return r.Garden.Status().Patch(ctx, installation, client.MergeFrom(before))
}
