package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// labelName on a Machine names its MachineDeployment, labelPool the worker pool.
	labelName = "name"
	labelPool = gardencorev1beta1.LabelWorkerPool
)

// Machines are the groups of a shoot, in the namespace of its control plane.
type Machines struct {
	// Client reads and writes machine.sapcloud.io/v1alpha1; it may read from a cache.
	Client    client.Client
	Namespace string
	// Limits of the groups; other MachineDeployments are left alone.
	Limits []Limits
	// Defaults for groups without options of their own.
	Defaults Options
	// Now is the clock.
	Now func() time.Time
}

// List returns the groups in the order of Limits. A group whose MachineDeployment is not there is left out.
func (m *Machines) List(ctx context.Context) ([]*Group, error) {
	var machines machinev1alpha1.MachineList
	if err := m.Client.List(ctx, &machines, client.InNamespace(m.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	var groups []*Group
	for _, limits := range m.Limits {
		group, err := m.group(ctx, limits, machines.Items)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func (m *Machines) group(ctx context.Context, limits Limits, machines []machinev1alpha1.Machine) (*Group, error) {
	deployment, err := m.get(ctx, limits.Name)
	if err != nil {
		return nil, err
	}
	class := &machinev1alpha1.MachineClass{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: deployment.Spec.Template.Spec.Class.Name}
	if err := m.Client.Get(ctx, key, class); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("MachineClass %s: %w", key, err)
	}
	return &Group{
		Limits: limits, Options: m.Defaults.override(deployment.Annotations), Pool: deployment.Labels[labelPool],
		Target: int(deployment.Spec.Replicas), Rolling: deployment.Status.UpdatedReplicas < deployment.Status.Replicas,
		Machines: machinesOf(deployment, machines), Template: template(deployment, class),
	}, nil
}

// get reads a MachineDeployment; the error is apierrors.IsNotFound when it is missing.
func (m *Machines) get(ctx context.Context, name string) (*machinev1alpha1.MachineDeployment, error) {
	deployment := &machinev1alpha1.MachineDeployment{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: name}
	if err := m.Client.Get(ctx, key, deployment); err != nil {
		return nil, fmt.Errorf("MachineDeployment %s: %w", key, err)
	}
	return deployment, nil
}

// machinesOf are those of a MachineDeployment that are neither being deleted nor about to be.
func machinesOf(deployment *machinev1alpha1.MachineDeployment, all []machinev1alpha1.Machine) []Machine {
	leaving := triggered(deployment)
	var result []Machine
	for _, machine := range all {
		if machine.Labels[labelName] != deployment.Name || machine.DeletionTimestamp != nil ||
			leaving[machine.Name] != "" {
			continue
		}
		found := Machine{
			Name: machine.Name, Node: machine.Labels[machinev1alpha1.NodeLabelKey],
			Created: machine.CreationTimestamp.Time,
		}
		if operation := machine.Status.LastOperation; operation.Type == machinev1alpha1.MachineOperationCreate &&
			operation.State == machinev1alpha1.MachineStateFailed {
			found.Problem = operation.Description
		}
		result = append(result, found)
	}
	slices.SortFunc(result, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return result
}

// Increase asks for more machines. What others changed since the group was read counts: the maximum is never exceeded.
func (m *Machines) Increase(ctx context.Context, group *Group, delta int) error {
	if delta < 1 {
		return fmt.Errorf("%s: cannot grow by %d", group.Name, delta)
	}
	return m.change(ctx, group.Name, func(deployment *machinev1alpha1.MachineDeployment) error {
		wanted := int(deployment.Spec.Replicas) + delta
		if wanted > group.Maximum {
			return fmt.Errorf("%s: %d machines are over its maximum of %d", group.Name, wanted, group.Maximum)
		}
		deployment.Spec.Replicas = int32(wanted)
		return nil
	})
}

// Delete removes exactly these machines, and lowers the number of machines by as many; never below the minimum.
// Machines that are being removed already do not count twice.
func (m *Machines) Delete(ctx context.Context, group *Group, machines ...string) error {
	return m.change(ctx, group.Name, func(deployment *machinev1alpha1.MachineDeployment) error {
		leaving := triggered(deployment)
		now := m.Now().UTC().Format(time.RFC3339)
		added := 0
		for _, machine := range machines {
			if leaving[machine] == "" {
				leaving[machine] = now
				added++
			}
		}
		wanted := int(deployment.Spec.Replicas) - added
		if wanted < group.Minimum {
			return fmt.Errorf("%s: %d machines are below its minimum of %d", group.Name, wanted, group.Minimum)
		}
		deployment.Spec.Replicas = int32(wanted)
		mark(deployment, leaving, now)
		return nil
	})
}

// afterConflict is long enough for a cache to hear of what somebody else wrote.
var afterConflict = wait.Backoff{Steps: 5, Duration: 100 * time.Millisecond}

// change writes a MachineDeployment as it was read: if somebody else wrote it meanwhile it is read again.
func (m *Machines) change(ctx context.Context, name string, edit func(*machinev1alpha1.MachineDeployment) error) error {
	return retry.RetryOnConflict(afterConflict, func() error {
		deployment, err := m.get(ctx, name)
		if err != nil {
			return err
		}
		before := deployment.DeepCopy()
		if err := edit(deployment); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := m.Client.Patch(ctx, deployment, patch); err != nil {
			return fmt.Errorf("MachineDeployment %s/%s: %w", m.Namespace, name, err)
		}
		return nil
	})
}

// triggered are the machines whose deletion has been asked for, with the times of that.
func triggered(deployment *machinev1alpha1.MachineDeployment) map[string]string {
	result := map[string]string{}
	for _, entry := range strings.Split(deployment.Annotations[machineutils.TriggerDeletionByMCM], ",") {
		if name, since, found := strings.Cut(entry, "~"); found {
			result[name] = since
		}
	}
	return result
}

// mark names the machines that are to go. machine-controller-manager takes them first when it lowers the number of
// machines.
func mark(deployment *machinev1alpha1.MachineDeployment, leaving map[string]string, now string) {
	var entries []string
	for name, since := range leaving {
		entries = append(entries, name+"~"+since)
	}
	slices.Sort(entries)
	if deployment.Annotations == nil {
		deployment.Annotations = map[string]string{}
	}
	deployment.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(entries, ",")
	deployment.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime] = now
}
