// Package nodegroup offers the machines of a shoot as groups of equal nodes: a group is a MachineDeployment, which
// holds the machines of a worker pool in one zone. Groups are grown and shrunk by the replicas of the
// MachineDeployment; machine-controller-manager makes and deletes the machines.
package nodegroup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Limits are the bounds of a group. Written as <minimum>:<maximum>:<namespace>.<name of the MachineDeployment>.
type Limits struct {
	Name             string
	Minimum, Maximum int
}

// String returns the written form.
func (l Limits) String(namespace string) string {
	return fmt.Sprintf("%d:%d:%s.%s", l.Minimum, l.Maximum, namespace, l.Name)
}

// ParseLimits reads the written form.
func ParseLimits(text, namespace string) (Limits, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return Limits{}, fmt.Errorf("%q must be <minimum>:<maximum>:<namespace>.<name of a MachineDeployment>", text)
	}
	minimum, err := strconv.Atoi(parts[0])
	if err != nil {
		return Limits{}, fmt.Errorf("%q: the minimum must be a number", text)
	}
	maximum, err := strconv.Atoi(parts[1])
	if err != nil || minimum < 0 || maximum < minimum {
		return Limits{}, fmt.Errorf("%q: the maximum must be a number that is not below the minimum", text)
	}
	name, found := strings.CutPrefix(parts[2], namespace+".")
	if !found || name == "" {
		return Limits{}, fmt.Errorf("%q: the MachineDeployment must be in namespace %s", text, namespace)
	}
	return Limits{Name: name, Minimum: minimum, Maximum: maximum}, nil
}

// Options are settings that groups may have of their own.
type Options struct {
	// ScaleDownUtilizationThreshold and ScaleDownGPUUtilizationThreshold are shares of requested resources below which
	// a node is unneeded.
	ScaleDownUtilizationThreshold, ScaleDownGPUUtilizationThreshold float64
	// ScaleDownUnneededTime and ScaleDownUnreadyTime are how long a ready or unready node is unneeded before it is
	// removed.
	ScaleDownUnneededTime, ScaleDownUnreadyTime time.Duration
	// MaxNodeProvisionTime is how long a machine may take to become a node.
	MaxNodeProvisionTime time.Duration
}

// override returns the options with those of the annotations. What cannot be read is left as it is.
func (o Options) override(annotations map[string]string) Options {
	for key, target := range map[string]*float64{
		extensionsv1alpha1.ScaleDownUtilizationThresholdAnnotation:    &o.ScaleDownUtilizationThreshold,
		extensionsv1alpha1.ScaleDownGpuUtilizationThresholdAnnotation: &o.ScaleDownGPUUtilizationThreshold,
	} {
		if value, err := strconv.ParseFloat(annotations[key], 64); err == nil {
			*target = value
		}
	}
	for key, target := range map[string]*time.Duration{
		extensionsv1alpha1.ScaleDownUnneededTimeAnnotation: &o.ScaleDownUnneededTime,
		extensionsv1alpha1.ScaleDownUnreadyTimeAnnotation:  &o.ScaleDownUnreadyTime,
		extensionsv1alpha1.MaxNodeProvisionTimeAnnotation:  &o.MaxNodeProvisionTime,
	} {
		if value, err := time.ParseDuration(annotations[key]); err == nil {
			*target = value
		}
	}
	return o
}

// Group is a MachineDeployment as it is now.
type Group struct {
	Limits
	Options
	// Pool is the worker pool that the group is a zone of.
	Pool string
	// Target is how many machines there are to be.
	Target int
	// Rolling says whether machines are being replaced by others.
	Rolling bool
	// Machines that are there and stay; those that are being deleted are not among them.
	Machines []Machine
	// Template is a node of the group as it will look like; nil if nothing is known about it. It has no name.
	Template *corev1.Node
}

// Machine is a machine of a group.
type Machine struct {
	Name string
	// Node is the name of its node; empty until it is known.
	Node string
	// Created is when the machine was asked for.
	Created time.Time
	// Problem is why the infrastructure cannot make the machine; empty if it is on its way.
	Problem string
}

// MachineOf returns the machine of a node, or nil.
func (g *Group) MachineOf(node string) *Machine {
	for i := range g.Machines {
		if node != "" && g.Machines[i].Node == node {
			return &g.Machines[i]
		}
	}
	return nil
}
