package trellisctl

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func (c *cli) membersCommand() *cobra.Command {
	var access fleetAccess
	var output formatFlag
	command := &cobra.Command{
		Use:   "members",
		Short: "List the members of a fleet and the room that they have",
		Long: `members lists the clusters of a fleet. NODES are ready/all. CPU and MEMORY are free/total: of what the nodes that take pods offer,
what is neither used nor asked for by waiting pods.

With -o wide, CPU and MEMORY are total / free / largest hole, which is what is free on the one node with the most room: a pod that
requests more than that fits nowhere, however much is free in sum.`,
		Example: "  trellisctl members --project demo --shoot fleet\n  trellisctl members -o wide " +
			"--fleet-kubeconfig fleet.yaml",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			return fleet.ListMembers(command.Context(), command.OutOrStdout(), time.Now(), output.isWide())
		},
	}
	access.flags(command)
	output.wideFlag(command, "the mode, taints, age, and largest hole")
	return command
}

// ListMembers prints the clusters of the fleet; wide has more columns than fit 80 characters.
func (f *Fleet) ListMembers(ctx context.Context, out io.Writer, now time.Time, wide bool) error {
	var list clusterv1alpha1.ClusterList
	if err := f.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the members of the fleet: %w", err)
	}
	header := []string{"MEMBER", "VERSION", "READY", "NODES", "CPU", "MEMORY"}
	room := freeOf
	if wide {
		header, room = append(header, "MODE", "TAINTS", "AGE"), roomOf
	}
	t := newTable(out, header...)
	for i := range list.Items {
		m := &list.Items[i]
		cells := []string{
			m.Name, m.Status.KubernetesVersion, readiness(m), nodesOf(m), room(m, corev1.ResourceCPU),
			room(m, corev1.ResourceMemory),
		}
		if wide {
			cells = append(cells, string(m.Spec.SyncMode), taintsOf(m), age(m.CreationTimestamp, now))
		}
		t.row(cells...)
	}
	return t.Flush()
}

// readiness tells also who is cordoned, or drained, which is more.
func readiness(m *clusterv1alpha1.Cluster) string {
	if slices.ContainsFunc(m.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintUnschedulable }) {
		return strings.TrimPrefix(answering(m)+",cordoned", ",")
	}
	return answering(m)
}

func answering(m *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case m.DeletionTimestamp != nil:
		return "leaving"
	case ready == nil:
		return ""
	case ready.Status == "True":
		return "yes"
	}
	return ready.Reason
}

func nodesOf(m *clusterv1alpha1.Cluster) string {
	if m.Status.NodeSummary == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", m.Status.NodeSummary.ReadyNum, m.Status.NodeSummary.TotalNum)
}

// freeOf is free/total of one resource.
func freeOf(m *clusterv1alpha1.Cluster, name corev1.ResourceName) string {
	summary := m.Status.ResourceSummary
	if summary == nil || len(summary.Allocatable) == 0 {
		return ""
	}
	unit, divisor := "", 1.0
	if name == corev1.ResourceMemory {
		unit, divisor = "Gi", 1<<30
	}
	rounded := func(list corev1.ResourceList) string {
		quantity, found := list[name]
		if !found {
			return "?"
		}
		return roundedDown(quantity.AsApproximateFloat64() / divisor)
	}
	return rounded(summary.Available) + "/" + rounded(summary.Allocatable) + unit
}

// roundedDown has three digits, or all before the point.
func roundedDown(amount float64) string {
	scale := 1.0
	for amount*scale < 100 && scale < 100 {
		scale *= 10
	}
	return strconv.FormatFloat(math.Floor(amount*scale+1e-6)/scale, 'f', -1, 64)
}

// roomOf is total / free / largest hole of one resource.
func roomOf(m *clusterv1alpha1.Cluster, name corev1.ResourceName) string {
	summary := m.Status.ResourceSummary
	if summary == nil || len(summary.Allocatable) == 0 {
		return ""
	}
	parts := []string{
		amount(summary.Allocatable, name), amount(summary.Available, name), amount(summary.Contiguous, name),
	}
	return strings.Join(parts, " / ")
}

func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity, found := list[name]
	if !found {
		return "?"
	}
	if name == corev1.ResourceMemory {
		return fmt.Sprintf("%.1fGi", float64(quantity.Value())/(1<<30))
	}
	return quantity.String()
}

func taintsOf(m *clusterv1alpha1.Cluster) string {
	var taints []string
	for _, t := range m.Spec.Taints {
		taints = append(taints, fmt.Sprintf("%s:%s", t.Key, t.Effect))
	}
	return strings.Join(taints, ",")
}

// explainMember says what to do about a member that cannot be read.
func explainMember(err error, name string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the fleet has no member %q; `trellisctl members` shows those that it has", name)
	}
	return fmt.Errorf("reading member %s: %w", name, err)
}
