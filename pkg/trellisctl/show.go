package trellisctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func (c *cli) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [COMPONENT]",
		Short: "Show where the components of a control plane run, and how they are",
		Long: `show tells what runs for the target. Of a shoot it is the control plane in its seed, with the shoot's
conditions; of a seed, what runs in its namespace garden and for its extensions; of a garden, what runs in the namespace
garden of its own cluster.

A component is a Deployment, StatefulSet or DaemonSet, such as kube-apiserver or etcd-main. show tells the nodes of its
pods, how they are and how often they were started again, and the addresses at which it is reached.

Seeds are for operators of the garden. How a shoot is, its project is told by "trellisctl describe shoot".`,
		Example: `  trellisctl show --project demo --shoot member1
  trellisctl show kube-apiserver --project demo --shoot member1
  trellisctl show gardenlet --seed local`,
		Args: optional(exactlyOne("component")), ValidArgsFunction: onlyFirst(c.completeComponents),
		RunE: func(command *cobra.Command, arguments []string) error {
			session, err := c.connect()
			if err != nil {
				return err
			}
			place, err := session.whereComponentsRun(command.Context())
			if err != nil {
				return err
			}
			if len(arguments) > 0 {
				return place.showComponent(command.Context(), command.OutOrStdout(), arguments[0], time.Now())
			}
			return place.show(command.Context(), command.OutOrStdout(), time.Now())
		},
	}
}

// completeComponents completes the components of the target.
func (c *cli) completeComponents(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	session, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	place, err := session.whereComponentsRun(command.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	workloads, err := place.workloads(command.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return namesOfWorkloads(workloads), cobra.ShellCompDirectiveNoFileComp
}

// place is where the components of a target run.
type place struct {
	cluster client.Client
	// of is what they belong to, and in what it runs in: both in words.
	of, in     string
	namespaces []string
	// shoot is nil where components are not those of one.
	shoot *gardencorev1beta1.Shoot
}

// whereComponentsRun finds the place of the target's components.
func (s *Session) whereComponentsRun(ctx context.Context) (*place, error) {
	switch {
	case s.Target.Shoot != "":
		shoot, err := s.Shoot(ctx)
		if err != nil {
			return nil, err
		}
		kubeconfig, err := s.controlPlaneKubeconfig(ctx, shoot)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("the control plane of shoot %s/%s is in a seed: %w; how the shoot is: trellisctl "+
				"describe shoot %s", shoot.Namespace, shoot.Name, err, s.inCommands(shoot))
		}
		return newPlace(kubeconfig, err, place{
			of: "shoot " + shoot.Namespace + "/" + shoot.Name, in: "seed " + deref(shoot.Spec.SeedName), shoot: shoot,
			namespaces: []string{shoot.Status.TechnicalID},
		})
	case s.Target.Seed != "":
		kubeconfig, err := s.SeedKubeconfig(ctx, s.Target.Seed)
		p, err := newPlace(kubeconfig, err, place{
			of: "seed " + s.Target.Seed, in: "its cluster", namespaces: []string{gardenNamespace},
		})
		if err != nil {
			return nil, err
		}
		return p, p.addExtensions(ctx)
	}
	kubeconfig, err := s.gardenKubeconfig(ctx)
	return newPlace(kubeconfig, err, place{
		of: "garden " + s.garden.Name, in: "the cluster of its API", namespaces: []string{gardenNamespace},
	})
}

func newPlace(kubeconfig *clientcmdapi.Config, err error, p place) (*place, error) {
	if err != nil {
		return nil, err
	}
	p.cluster, err = clientFor(kubeconfig)
	return &p, err
}

// addExtensions adds the namespaces of a seed's extensions.
func (p *place) addExtensions(ctx context.Context) error {
	namespaces := &corev1.NamespaceList{}
	if err := p.cluster.List(ctx, namespaces); err != nil {
		return fmt.Errorf("listing the namespaces of %s: %w", p.of, err)
	}
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; strings.HasPrefix(name, extensionNamespaces) {
			p.namespaces = append(p.namespaces, name)
		}
	}
	return nil
}

// show prints what runs: the pods of a shoot's control plane with its conditions, and the components of anything else.
func (p *place) show(ctx context.Context, out io.Writer, now time.Time) error {
	if p.shoot == nil {
		return p.showComponents(ctx, out, now)
	}
	pods, err := p.pods(ctx, p.namespaces[0])
	if err != nil {
		return err
	}
	printLine(out, "Shoot %s/%s: %s, %s on %s, namespace %s", p.shoot.Namespace, p.shoot.Name, wakefulness(p.shoot),
		lastOperation(p.shoot.Status.LastOperation), p.in, p.namespaces[0])
	fmt.Fprintln(out)
	if err := printPods(out, pods, now); err != nil {
		return err
	}
	return showConditions(out, p.shoot)
}

// showComponents prints a line for each component.
func (p *place) showComponents(ctx context.Context, out io.Writer, now time.Time) error {
	workloads, err := p.workloads(ctx)
	if err != nil {
		return err
	}
	if len(workloads) == 0 {
		return p.hasNone()
	}
	t := newTable(out, "COMPONENT", "NAMESPACE", "KIND", "READY", "AGE")
	for _, w := range workloads {
		t.row(w.GetName(), w.GetNamespace(), w.kind, w.readiness(), age(w.GetCreationTimestamp(), now))
	}
	return t.Flush()
}

// hasNone tells where there is nothing to show, and where else there may be.
func (p *place) hasNone() error {
	text := fmt.Sprintf("%s has no components in %s (namespace %s)", p.of, p.in, strings.Join(p.namespaces, ", "))
	if strings.HasPrefix(p.of, "garden ") {
		text += "; where the garden runs in the cluster of a seed, name that: --seed NAME"
	}
	return fmt.Errorf("%s", text)
}

// pods of a namespace, in the order of their names.
func (p *place) pods(ctx context.Context, namespace string, options ...client.ListOption) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := p.cluster.List(ctx, pods, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, p.cannotList("pods", namespace, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

// cannotList tells what cannot be seen, and who may.
func (p *place) cannotList(what, namespace string, err error) error {
	text := fmt.Sprintf("listing %s of %s in %s", what, namespace, p.in)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: only operators of that cluster may: %w", text, err)
	}
	return fmt.Errorf("%s: %w", text, err)
}

func printPods(out io.Writer, pods []corev1.Pod, now time.Time) error {
	t := newTable(out, "POD", "NODE", "READY", "STATUS", "RESTARTS", "AGE")
	for i := range pods {
		pod := &pods[i]
		ready, restarts := 0, int32(0)
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
			if status.Ready {
				ready++
			}
		}
		t.row(pod.Name, pod.Spec.NodeName, fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), podState(pod),
			fmt.Sprint(restarts), age(pod.CreationTimestamp, now))
	}
	return t.Flush()
}

func podState(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			return status.State.Waiting.Reason
		}
	}
	return string(pod.Status.Phase)
}

func showConditions(out io.Writer, shoot *gardencorev1beta1.Shoot) error {
	if len(shoot.Status.Conditions) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "CONDITION", "STATUS", "REASON", "MESSAGE")
	for _, condition := range shoot.Status.Conditions {
		t.row(string(condition.Type), string(condition.Status), condition.Reason, condition.Message)
	}
	return t.Flush()
}
