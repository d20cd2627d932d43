package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

// Groups are where machines are asked for.
type Groups interface {
	// List returns the groups as they are now.
	List(ctx context.Context) ([]*nodegroup.Group, error)
	// Increase asks for more machines of a group.
	Increase(ctx context.Context, group *nodegroup.Group, delta int) error
	// Delete removes exactly these machines of a group.
	Delete(ctx context.Context, group *nodegroup.Group, machines ...string) error
}

// Autoscaler looks at a shoot again and again, and carries out what is decided.
type Autoscaler struct {
	options Options
	groups  Groups
	// look takes a snapshot of the shoot, without its groups.
	look func() (*Snapshot, error)
	// drain empties a node; it takes as long as its pods need.
	drain func(ctx context.Context, removal Removal) error
	// untaint lets pods onto a node again.
	untaint func(ctx context.Context, node string) error
	events  record.EventRecorder
	log     logr.Logger
	now     func() time.Time

	choose  chooser
	backoff *backoff
	since   unneededSince
	metrics *metrics
	// grown is when a group grew last.
	grown time.Time

	mu sync.Mutex
	// underway are the nodes that are being emptied; removed and failed are when that last ended well or badly.
	underway        map[string]Removal
	removed, failed time.Time
}

// takeBack frees nodes that an earlier process had begun to remove: it is decided anew about them.
func (a *Autoscaler) takeBack(ctx context.Context) {
	snapshot, err := a.look()
	if err != nil {
		a.log.Error(err, "Looking for nodes that were being removed failed")
		return
	}
	for _, node := range snapshot.Nodes {
		if leaving(node) && node.DeletionTimestamp == nil {
			if err := a.untaint(ctx, node.Name); err != nil {
				a.log.Error(err, "Freeing a node that was being removed failed", "node", node.Name)
			}
		}
	}
}

// RunOnce looks at the shoot once.
func (a *Autoscaler) RunOnce(ctx context.Context) error {
	snapshot, err := a.look()
	if err != nil {
		return err
	}
	if snapshot.Groups, err = a.groups.List(ctx); err != nil {
		return err
	}
	a.giveUp(ctx, snapshot)
	world := snapshot.world(&a.options)
	pending := remaining(world, snapshot.pending(a.options.NewPodScaleUpDelay))
	a.metrics.observe(snapshot.Groups, len(pending), a.options.EmitPerNodeGroupMetrics)
	grew, err := a.grow(ctx, snapshot, world, pending)
	a.shrink(ctx, snapshot, world, grew)
	return err
}

// giveUp removes machines that did not become nodes, down to the minimum, and lets their groups pause.
func (a *Autoscaler) giveUp(ctx context.Context, s *Snapshot) {
	for _, group := range s.Groups {
		names, why := s.hopeless(group)
		if len(names) == 0 {
			continue
		}
		a.backoff.fail(group.Name, why, s.Now)
		surplus := names[:max(0, min(len(names), group.Target-group.Minimum))]
		// Machines that replace others are wanted: with fewer of them, nodes with pods would go.
		if len(surplus) == 0 || group.Rolling {
			continue
		}
		a.log.Info("Removing machines that did not become nodes", "group", group.Name, "machines", surplus, "reason",
			why)
		if err := a.groups.Delete(ctx, group, surplus...); err != nil {
			a.log.Error(err, "Removing machines failed", "group", group.Name)
			continue
		}
		group.Target -= len(surplus)
		group.Machines = slices.DeleteFunc(group.Machines,
			func(m nodegroup.Machine) bool { return slices.Contains(surplus, m.Name) })
	}
}

// hopeless are the machines of a group that cannot be made, or took too long to become nodes, and why.
func (s *Snapshot) hopeless(group *nodegroup.Group) (names []string, why string) {
	for _, machine := range group.Machines {
		if s.node(machine.Node) != nil {
			continue
		}
		if machine.Problem != "" {
			names, why = append(names, machine.Name), machine.Problem
		} else if s.Now.Sub(machine.Created) > group.MaxNodeProvisionTime {
			names, why = append(names, machine.Name),
				fmt.Sprintf("machine %s did not become a node within %s", machine.Name, group.MaxNodeProvisionTime)
		}
	}
	return names, why
}

// grow asks for machines for the pending pods.
func (a *Autoscaler) grow(ctx context.Context, s *Snapshot, world *scheduling.Cluster,
	pending []*corev1.Pod) (bool, error) {
	if len(pending) == 0 {
		return false, nil
	}
	paused := func(group string) string { return a.backoff.reason(group, s.Now) }
	plan := s.planScaleUp(&a.options, world, pending, paused, a.choose, a.now)
	for pod, reasons := range plan.Unhelped {
		a.events.Eventf(pod, corev1.EventTypeNormal, "NotTriggerScaleUp", "pod didn't trigger scale-up: %s",
			explain(reasons))
	}
	var all error
	var changes []string
	for _, growth := range plan.Growths {
		if err := a.groups.Increase(ctx, growth.Group, growth.Delta); err != nil {
			a.backoff.fail(growth.Group.Name, err.Error(), s.Now)
			all = errors.Join(all, err)
			continue
		}
		a.metrics.scaledUp(growth.Delta)
		changes = append(changes, fmt.Sprintf("%s %d->%d (max: %d)", growth.Group.Name, growth.Group.Target,
			growth.Group.Target+growth.Delta, growth.Group.Maximum))
	}
	if len(changes) == 0 {
		return false, all
	}
	a.grown = s.Now
	a.log.Info("Growing", "groups", changes, "pods", len(plan.Helped))
	for _, pod := range plan.Helped {
		a.events.Eventf(pod, corev1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: %s",
			strings.Join(changes, ", "))
	}
	return true, all
}

func explain(reasons map[string]string) string {
	var texts []string
	for _, group := range slices.Sorted(maps.Keys(reasons)) {
		texts = append(texts, group+": "+reasons[group])
	}
	return strings.Join(texts, "; ")
}

// shrink removes nodes that have been unneeded for long enough.
func (a *Autoscaler) shrink(ctx context.Context, s *Snapshot, world *scheduling.Cluster, grew bool) {
	removals, kept := s.unneeded(&a.options, world)
	a.since.update(removals, s.Now)
	a.log.V(4).Info("Looked for unneeded nodes", "unneeded", slices.Sorted(maps.Keys(a.since)), "kept", kept)
	if grew || a.cooling(s.Now) {
		return
	}
	for _, removal := range a.since.due(&a.options, removals, a.ongoing(), s.Now) {
		a.begin(ctx, removal)
	}
}

// cooling says whether it is too early for removals.
func (a *Autoscaler) cooling(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Sub(a.grown) < a.options.ScaleDownDelayAfterAdd ||
		now.Sub(a.removed) < a.options.ScaleDownDelayAfterDelete ||
		now.Sub(a.failed) < a.options.ScaleDownDelayAfterFailure
}

func (a *Autoscaler) ongoing() []Removal {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.underway))
}

// begin removes a node meanwhile.
func (a *Autoscaler) begin(ctx context.Context, removal Removal) {
	name := removal.Node.Name
	a.mu.Lock()
	_, already := a.underway[name]
	a.underway[name] = removal
	a.mu.Unlock()
	if already {
		return
	}
	a.log.Info("Removing node", "node", name, "group", removal.Group.Name, "pods", len(removal.Pods))
	a.events.Event(removal.Node, corev1.EventTypeNormal, "ScaleDown", "node removed by cluster autoscaler")
	go func() {
		err := a.drain(ctx, removal)
		if err == nil {
			err = a.remove(ctx, removal)
		}
		a.end(removal, err)
	}()
}

// remove lets go of the machine of an empty node. If it has to stay, pods may come to it again.
func (a *Autoscaler) remove(ctx context.Context, removal Removal) error {
	if err := a.groups.Delete(ctx, removal.Group, removal.Machine); err != nil {
		return errors.Join(err, a.untaint(context.WithoutCancel(ctx), removal.Node.Name))
	}
	return nil
}

func (a *Autoscaler) end(removal Removal, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.underway, removal.Node.Name)
	if err != nil {
		a.failed = a.now()
		a.log.Error(err, "Removing node failed", "node", removal.Node.Name)
		a.events.Eventf(removal.Node, corev1.EventTypeWarning, "ScaleDownFailed", "failed to remove the node: %v", err)
		return
	}
	a.removed = a.now()
	a.metrics.scaledDown()
}
