package managedseedset

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

const (
	// maxRetries is how often a failed shoot is tried again.
	maxRetries = 3
	// protectFromDeletion on a Shoot or ManagedSeed keeps the replica when the set shrinks.
	protectFromDeletion = "seedmanagement.gardener.cloud/protect-from-deletion"
	// revisionLabel on a Shoot or ManagedSeed is the revision of the templates that it follows.
	revisionLabel = "trellis.garden/revision"
)

// replica is a seed of a set: a shoot, and the managed seed that makes it one. Any part may be missing.
type replica struct {
	name        string
	ordinal     int
	shoot       *gardencorev1beta1.Shoot
	managedSeed *seedmanagementv1alpha1.ManagedSeed
	seed        *gardencorev1beta1.Seed
	// hosts is how many shoots the seed hosts.
	hosts int
}

// objects are those of its parts that follow the templates.
func (r replica) objects() []client.Object {
	var objects []client.Object
	if r.shoot != nil {
		objects = append(objects, r.shoot)
	}
	if r.managedSeed != nil {
		objects = append(objects, r.managedSeed)
	}
	return objects
}

// verb is what is to be done next.
type verb int

const (
	nothing verb = iota
	createShoot
	retryShoot
	deleteShoot
	createManagedSeed
	deleteManagedSeed
	updateShoot
	updateManagedSeed
)

// decision is one step towards what a set asks for.
type decision struct {
	verb verb
	// name of the replica to act on.
	name string
	// pending is why the replica is waited for; empty when all is well.
	pending seedmanagementv1alpha1.PendingReplicaReason
}

// decide returns the next step towards the templates of a revision. One replica is worked on at a time, so that a bad
// template spoils one seed only.
func decide(set *seedmanagementv1alpha1.ManagedSeedSet, replicas []replica, revision string) decision {
	target := int(ptr.Deref(set.Spec.Replicas, 1))
	if set.DeletionTimestamp != nil {
		target = 0
	}
	slices.SortFunc(replicas, func(a, b replica) int { return cmp.Compare(a.ordinal, b.ordinal) })
	if len(replicas) > target {
		return shrink(replicas)
	}
	for _, replica := range replicas {
		if decision := replica.advance(retriesOf(set, replica.name)); decision.pending != "" {
			return decision
		}
	}
	if len(replicas) < target {
		return decision{
			verb: createShoot, name: replicaName(set.Name, nextOrdinal(set, replicas)),
			pending: seedmanagementv1alpha1.ShootReconcilingReason,
		}
	}
	return roll(replicas, revision, partitionOf(set))
}

// partitionOf is the lowest ordinal that is updated.
func partitionOf(set *seedmanagementv1alpha1.ManagedSeedSet) int {
	if strategy := set.Spec.UpdateStrategy; strategy != nil && strategy.RollingUpdate != nil {
		return int(ptr.Deref(strategy.RollingUpdate.Partition, 0))
	}
	return 0
}

// roll returns the step that brings the highest replica that is not at the revision closer to it: first its shoot,
// then, when that is reconciled, its managed seed. The replicas can all be used, and are in the order of their
// ordinals.
func roll(replicas []replica, revision string, partition int) decision {
	for _, replica := range slices.Backward(replicas) {
		if replica.ordinal < partition {
			break
		}
		if !reconciled(replica.shoot) {
			return decision{name: replica.name, pending: seedmanagementv1alpha1.ShootReconcilingReason}
		}
		switch {
		case revisionOf(replica.shoot) != revision:
			return decision{
				verb: updateShoot, name: replica.name, pending: seedmanagementv1alpha1.ShootReconcilingReason,
			}
		case revisionOf(replica.managedSeed) != revision:
			return decision{
				verb: updateManagedSeed, name: replica.name, pending: seedmanagementv1alpha1.ManagedSeedPreparingReason,
			}
		}
	}
	return decision{}
}

// revisionOf is the revision of the templates that an object was made from or brought to.
func revisionOf(object metav1.Object) string { return object.GetLabels()[revisionLabel] }

func retriesOf(set *seedmanagementv1alpha1.ManagedSeedSet, name string) int32 {
	if pending := set.Status.PendingReplica; pending != nil && pending.Name == name {
		return ptr.Deref(pending.Retries, 0)
	}
	return 0
}

// advance returns the step that brings a replica closer to being a seed that can be used.
func (r replica) advance(retries int32) decision {
	step := decision{name: r.name, pending: r.state()}
	switch {
	case step.pending == seedmanagementv1alpha1.ShootReconcileFailedReason && retries < maxRetries:
		step.verb = retryShoot
	case step.pending == seedmanagementv1alpha1.ManagedSeedPreparingReason && r.managedSeed == nil:
		step.verb = createManagedSeed
	}
	return step
}

// state returns what a replica is waited for; nothing when it can be used.
func (r replica) state() seedmanagementv1alpha1.PendingReplicaReason {
	switch {
	case r.managedSeed != nil && r.managedSeed.DeletionTimestamp != nil:
		return seedmanagementv1alpha1.ManagedSeedDeletingReason
	case r.shoot == nil:
		return seedmanagementv1alpha1.ManagedSeedPreparingReason
	case r.shoot.DeletionTimestamp != nil && failed(r.shoot):
		return seedmanagementv1alpha1.ShootDeleteFailedReason
	case r.shoot.DeletionTimestamp != nil:
		return seedmanagementv1alpha1.ShootDeletingReason
	case failed(r.shoot):
		return seedmanagementv1alpha1.ShootReconcileFailedReason
	case r.managedSeed == nil && !reconciled(r.shoot):
		return seedmanagementv1alpha1.ShootReconcilingReason
	case r.managedSeed == nil || !registered(r.managedSeed):
		return seedmanagementv1alpha1.ManagedSeedPreparingReason
	case r.seed == nil || !conditions.IsTrue(r.seed.Status.Conditions, gardencorev1beta1.SeedGardenletReady):
		return seedmanagementv1alpha1.SeedNotReadyReason
	case conditions.OfShoot(r.shoot) == conditions.Unhealthy:
		return seedmanagementv1alpha1.ShootNotHealthyReason
	}
	return ""
}

// failed tells whether a shoot has been given up. One that was asked to try again has not.
func failed(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed &&
		shoot.Status.ObservedGeneration == shoot.Generation
}

func reconciled(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
		shoot.Status.ObservedGeneration == shoot.Generation
}

func registered(managedSeed *seedmanagementv1alpha1.ManagedSeed) bool {
	return managedSeed.Status.ObservedGeneration == managedSeed.Generation &&
		conditions.IsTrue(managedSeed.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered)
}

// shrink returns the step that takes a replica away: first the managed seed, then its shoot. Replicas that are on their
// way out come first, then those that are not seeds yet, then the newest. A seed that hosts shoots stays.
func shrink(replicas []replica) decision {
	victims := slices.DeleteFunc(slices.Clone(replicas), func(r replica) bool { return r.hosts > 0 || r.isProtected() })
	if len(victims) == 0 {
		return decision{}
	}
	victim := slices.MinFunc(victims, func(a, b replica) int {
		return cmp.Or(cmp.Compare(a.worth(), b.worth()), cmp.Compare(b.ordinal, a.ordinal))
	})
	step := decision{name: victim.name}
	switch {
	case victim.managedSeed != nil:
		step.pending = seedmanagementv1alpha1.ManagedSeedDeletingReason
		if victim.managedSeed.DeletionTimestamp == nil {
			step.verb = deleteManagedSeed
		}
	case victim.shoot.DeletionTimestamp == nil:
		step.verb, step.pending = deleteShoot, seedmanagementv1alpha1.ShootDeletingReason
	default:
		step.pending = victim.state()
	}
	return step
}

func (r replica) isProtected() bool {
	return r.shoot != nil && r.shoot.Annotations[protectFromDeletion] == "true" ||
		r.managedSeed != nil && r.managedSeed.Annotations[protectFromDeletion] == "true"
}

// worth orders replicas by how much is lost with them.
func (r replica) worth() int {
	switch {
	case r.shoot == nil || r.shoot.DeletionTimestamp != nil,
		r.managedSeed != nil && r.managedSeed.DeletionTimestamp != nil:
		return 0
	case r.managedSeed == nil:
		return 1
	case r.state() != "":
		return 2
	}
	return 3
}

func replicaName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// ordinalOf returns the number of a replica, and whether the name is that of a replica of the set.
func ordinalOf(set, name string) (int, bool) {
	text, ok := strings.CutPrefix(name, set+"-")
	ordinal, err := strconv.Atoi(text)
	return ordinal, ok && err == nil && ordinal >= 0 && replicaName(set, ordinal) == name
}

// nextOrdinal returns a number that no replica has had.
func nextOrdinal(set *seedmanagementv1alpha1.ManagedSeedSet, replicas []replica) int {
	next := int(set.Status.NextReplicaNumber)
	for _, replica := range replicas {
		next = max(next, replica.ordinal+1)
	}
	return next
}
