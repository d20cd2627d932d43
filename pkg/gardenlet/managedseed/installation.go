package managedseed

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/bootstrap"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/deployment"
	"github.com/trellis-garden/trellis/pkg/gardenlet/spread"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// settledPeriod is how often a managed seed is looked at in which nothing has changed.
const settledPeriod = time.Minute

// podLabels select the pods of gardenlet.
var podLabels = client.MatchingLabels{"app": "gardenlet", "role": "gardenlet"}

// target is a shoot that is, or is to be, a seed.
type target struct {
	config *rest.Config
	client client.Client
	helm   *helm.Client
}

// connect returns clients of a shoot.
func (r *Reconciler) connect(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*target, error) {
	config, err := r.ShootConfig(ctx, r.Seed, shoot.Status.TechnicalID)
	if err != nil {
		return nil, err
	}
	result := &target{config: config}
	if result.client, err = client.New(config, client.Options{Scheme: r.Seed.Scheme()}); err != nil {
		return nil, fmt.Errorf("connecting to shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	result.helm, err = helm.NewClient(config)
	return result, err
}

// install brings the gardenlet in a shoot up to date.
func (r *Reconciler) install(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed,
	shoot *gardencorev1beta1.Shoot) error {
	shootTarget, err := r.connect(ctx, shoot)
	if err != nil {
		return err
	}
	configuration, err := configuration(managedSeed, shoot, r.Config)
	if err != nil {
		return err
	}
	// Neither the gateway nor gardenlet waits for them.
	if err := component.Apply(ctx, shootTarget.client, component.SeedPriorityClasses()...); err != nil {
		return err
	}
	if configuration, err = r.withGateway(ctx, shootTarget, configuration); err != nil {
		return err
	}
	parsed, err := parse(configuration)
	if err != nil {
		return err
	}
	operation := managedSeed.Annotations[gardencorev1beta1.GardenerOperation]
	if operation == gardencorev1beta1.GardenerOperationRenewKubeconfig {
		if err := dropAccess(ctx, shootTarget, parsed); err != nil {
			return err
		}
	}
	kubeconfig, err := r.firstAccess(ctx, managedSeed, shootTarget, parsed)
	if err != nil {
		return err
	}
	values, err := r.values(managedSeed, configuration, kubeconfig)
	if err != nil {
		return err
	}
	if err := r.installChart(ctx, shootTarget, managedSeed.UID, values, operation != ""); err != nil {
		return err
	}
	return r.operationDone(ctx, managedSeed)
}

func (r *Reconciler) values(managedSeed *seedmanagementv1alpha1.ManagedSeed, configuration map[string]any,
	kubeconfig []byte) (map[string]any, error) {
	image, err := r.Images.Find(deployment.Name)
	if err != nil {
		return nil, err
	}
	return deployment.Values(deployment.Options{
		Deployment: managedSeed.Spec.Gardenlet.Deployment, Image: image, Config: configuration,
		BootstrapKubeconfig: kubeconfig, ImageVectorOverwrite: r.ImageVectorOverwrite,
	})
}

// installChart runs Helm unless the same was installed not long ago.
func (r *Reconciler) installChart(ctx context.Context, shootTarget *target, uid types.UID, values map[string]any,
	force bool) error {
	sum, err := checksum(values)
	if err != nil {
		return err
	}
	period := spread.Period(uid, r.Config.Controllers.ManagedSeed.SyncPeriod.Duration)
	if !force && r.installed.upToDate(uid, sum, time.Now(), period) {
		return nil
	}
	chart, err := helm.LoadFS(charts.FS, deployment.Name)
	if err != nil {
		return err
	}
	if _, err := shootTarget.helm.Install(ctx,
		helm.Release{
			Namespace: deployment.Namespace, Name: deployment.Name, Chart: chart, Values: values,
		}); err != nil {
		return err
	}
	r.installed.note(uid, sum, time.Now())
	return nil
}

// dropAccess has a gardenlet ask for a new certificate: its own kubeconfig goes, and its pods start again.
func dropAccess(ctx context.Context, shootTarget *target, parsed *config.Configuration) error {
	ref := parsed.GardenClientConnection.KubeconfigSecret
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = ref.Namespace, ref.Name
	if err := client.IgnoreNotFound(shootTarget.client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("deleting gardenlet's kubeconfig in the shoot: %w", err)
	}
	if err := shootTarget.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(deployment.Namespace),
		podLabels); err != nil {
		return fmt.Errorf("ending gardenlet in the shoot: %w", err)
	}
	return nil
}

// hasAccess says whether gardenlet has a kubeconfig of its own that it can use.
func hasAccess(ctx context.Context, shootTarget *target, parsed *config.Configuration) (bool, error) {
	usable, err := bootstrap.HasAccess(ctx, shootTarget.client, parsed.GardenClientConnection, parsed.SeedConfig.Name)
	if err != nil {
		return false, fmt.Errorf("in the shoot: %w", err)
	}
	return usable, nil
}

func checksum(values map[string]any) (string, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// installations remembers what was installed. After a restart everything is installed once more.
type installations struct {
	lock sync.Mutex
	all  map[types.UID]installation
	// begun is when gardenlet first looked at one that was a seed already.
	begun time.Time
}

// untilTurn says how long a seed waits that was one before gardenlet started, so that not all gardenlets below it
// start at once: each has its turn in a window from then on.
func (i *installations) untilTurn(uid types.UID, window time.Duration, now time.Time) time.Duration {
	i.lock.Lock()
	defer i.lock.Unlock()
	if _, known := i.all[uid]; known {
		return 0
	}
	if i.begun.IsZero() {
		i.begun = now
	}
	return max(0, i.begun.Add(spread.Within(uid, window)).Sub(now))
}

type installation struct {
	checksum string
	at       time.Time
	// lookedAt is when the seed was found to be as a generation of the ManagedSeed says.
	lookedAt   time.Time
	generation int64
}

// upToDate says whether the same was installed less than a period ago. After that it is installed again, to undo
// changes by others.
func (i *installations) upToDate(uid types.UID, checksum string, now time.Time, period time.Duration) bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	known, found := i.all[uid]
	return found && known.checksum == checksum && now.Sub(known.at) < period
}

func (i *installations) note(uid types.UID, checksum string, now time.Time) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if i.all == nil {
		i.all = map[types.UID]installation{}
	}
	i.all[uid] = installation{checksum: checksum, at: now}
}

// looked notes that a managed seed was found as its ManagedSeed says.
func (i *installations) looked(uid types.UID, generation int64, now time.Time) {
	i.lock.Lock()
	defer i.lock.Unlock()
	known := i.all[uid]
	known.generation, known.lookedAt = generation, now
	i.all[uid] = known
}

// settled says whether a managed seed was found as its ManagedSeed says just now.
func (i *installations) settled(uid types.UID, generation int64, now time.Time) bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	known, found := i.all[uid]
	return found && known.generation == generation && now.Sub(known.lookedAt) < settledPeriod
}

func (i *installations) forget(uid types.UID) {
	i.lock.Lock()
	defer i.lock.Unlock()
	delete(i.all, uid)
}
