// Package restore keeps, in the namespace of a control plane, which point in time its etcd-main was last asked to
// restore, and tells what came of it. That it is restored once is for etcd-steward to see to; that a request is one,
// however often its Shoot is read, is seen to here.
package restore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// Name is that of the ConfigMap.
const Name = "etcd-main-restore"

// Keys of the ConfigMap.
const (
	keyTo = "to"
	keyID = "request"
	// keyGeneration is the generation of the Shoot when the operation was taken out of its annotation; missing before.
	// A Shoot that still has the operation and no higher generation is an old one out of a cache: a new request raises
	// it.
	keyGeneration = "generation"
	// keyOutcome is what came of the request; missing before that is known.
	keyOutcome = "outcome"
)

// restored is the outcome of a request that was carried out.
const restored = "restored"

// Record of the last request.
type Record struct {
	// Seed has the control plane in Namespace.
	Seed      client.Client
	Namespace string
}

// Ask records that a Shoot of a generation asks for a time. It returns false for a request that was taken before.
func (r *Record) Ask(ctx context.Context, to time.Time, generation int64) (bool, error) {
	record, found, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	text := to.UTC().Format(time.RFC3339)
	taken, isTaken := record.Data[keyGeneration]
	if known, err := strconv.ParseInt(taken, 10, 64); isTaken && err == nil && generation <= known {
		return false, nil
	}
	if found && !isTaken && record.Data[keyTo] == text {
		return true, nil
	}
	record.Data = map[string]string{keyTo: text, keyID: string(uuid.NewUUID())}
	if found {
		return true, r.written(r.Seed.Update(ctx, record))
	}
	return true, r.written(r.Seed.Create(ctx, record))
}

// Take notes that the operation is out of the annotation of the Shoot, which has a generation now. Without a request
// that is not taken it does nothing.
func (r *Record) Take(ctx context.Context, generation int64) error {
	record, found, err := r.read(ctx)
	if _, isTaken := record.Data[keyGeneration]; err != nil || !found || isTaken {
		return err
	}
	return r.set(ctx, record, keyGeneration, strconv.FormatInt(generation, 10))
}

// Read returns the last request that was taken.
func (r *Record) Read(ctx context.Context) (plan.Restore, error) {
	record, _, err := r.read(ctx)
	if _, isTaken := record.Data[keyGeneration]; err != nil || !isTaken {
		return plan.Restore{}, err
	}
	_, settled := record.Data[keyOutcome]
	return plan.Restore{
		Restore: request.Restore{To: record.Data[keyTo], ID: record.Data[keyID]}, Settled: settled,
	}, nil
}

// Check looks what came of the request, once etcd-main serves. If it was refused, it fails with the reason, once: then
// somebody has to ask for another time, and the rest of the shoot need not wait for that.
func (r *Record) Check(ctx context.Context) error {
	record, found, err := r.read(ctx)
	if err != nil || !found {
		return err
	}
	pods := &corev1.PodList{}
	if err := r.Seed.List(ctx, pods, client.InNamespace(r.Namespace),
		client.MatchingLabels(etcdcomponent.Labels(etcdcomponent.Main))); err != nil {
		return fmt.Errorf("listing the pods of etcd-main in namespace %s: %w", r.Namespace, err)
	}
	reason, refused := refusal(pods.Items, request.Restore{To: record.Data[keyTo], ID: record.Data[keyID]})
	if !refused {
		return r.set(ctx, record, keyOutcome, restored)
	}
	if err := r.set(ctx, record, keyOutcome, reason); err != nil {
		return err
	}
	return &plan.ConfigurationError{
		Err: fmt.Errorf("%s (asked for was %s): ask for another time, or retry to go on with what is there", reason,
			record.Data[keyTo]),
	}
}

// refusal is what a container ended with that has refused a request, or that none was given it.
func refusal(pods []corev1.Pod, asked request.Restore) (string, bool) {
	for _, pod := range pods {
		if !isGiven(pod, asked) {
			return fmt.Sprintf("restore request %s was not carried out: an etcd without a store of backups is not "+
				"asked to restore", asked.ID), true
		}
		for _, container := range pod.Status.ContainerStatuses {
			ended := container.LastTerminationState.Terminated
			if ended == nil {
				continue
			}
			if reason, refused := asked.FindRefusal(ended.Message); refused {
				return reason, true
			}
		}
	}
	return "", false
}

// isGiven says whether the etcd of a pod is asked to restore.
func isGiven(pod corev1.Pod, asked request.Restore) bool {
	for _, container := range pod.Spec.Containers {
		if container.Name != etcdcomponent.ContainerName {
			continue
		}
		for _, argument := range asked.Arguments() {
			if !slices.Contains(container.Args, argument) {
				return false
			}
		}
	}
	return true
}

// read returns the ConfigMap, with its name only if it is not there.
func (r *Record) read(ctx context.Context) (*corev1.ConfigMap, bool, error) {
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: Name, Labels: component.WithControlPlaneRole(nil),
	}}
	err := r.Seed.Get(ctx, client.ObjectKeyFromObject(record), record)
	if apierrors.IsNotFound(err) {
		return record, false, nil
	}
	if err != nil {
		return record, false, fmt.Errorf("reading ConfigMap %s/%s: %w", r.Namespace, Name, err)
	}
	return record, true, nil
}

func (r *Record) set(ctx context.Context, record *corev1.ConfigMap, key, value string) error {
	record.Data[key] = value
	return r.written(r.Seed.Update(ctx, record))
}

func (r *Record) written(err error) error {
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", r.Namespace, Name, err)
	}
	return nil
}
