package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// table writes columns that line up.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
	t.row(header...)
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = oneLine(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// wideOutput is the flag of lists that have more columns than fit 80 characters.
type wideOutput bool

func (w *wideOutput) flag(command *cobra.Command, more string) {
	command.Flags().VarP(w, "output", "o", "wide: also "+more)
}

func (w *wideOutput) String() string {
	if *w {
		return "wide"
	}
	return ""
}

// Set takes what people give the flag.
func (w *wideOutput) Set(value string) error {
	if value != "wide" {
		return errors.New("must be wide, or left out")
	}
	*w = true
	return nil
}

// Type is what help calls the value.
func (w *wideOutput) Type() string { return "wide" }

func age(created metav1.Time, now time.Time) string {
	return duration.HumanDuration(now.Sub(created.Time))
}

// ListProjects prints the projects that the user may see.
func (s *Session) ListProjects(ctx context.Context, out io.Writer, now time.Time) error {
	projects := &gardencorev1beta1.ProjectList{}
	if err := s.client.List(ctx, projects); err != nil {
		return fmt.Errorf("listing projects: %w", err)
	}
	t := newTable(out, "PROJECT", "NAMESPACE", "STATUS", "OWNER", "AGE")
	for _, project := range projects.Items {
		owner := ""
		if project.Spec.Owner != nil {
			owner = project.Spec.Owner.Name
		}
		t.row(project.Name, deref(project.Spec.Namespace), string(project.Status.Phase), owner,
			age(project.CreationTimestamp, now))
	}
	return t.Flush()
}

// ListShoots prints the shoots of the targeted project, or of all.
func (s *Session) ListShoots(ctx context.Context, out io.Writer, now time.Time) error {
	namespace := ""
	if s.Target.Project != "" {
		var err error
		if namespace, err = s.projectNamespace(ctx, s.Target.Project); err != nil {
			return err
		}
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := s.client.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing shoots: %w", err)
	}
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return err
	}
	sort.Slice(shoots.Items, func(i, j int) bool {
		a, b := shoots.Items[i], shoots.Items[j]
		return a.Namespace < b.Namespace || (a.Namespace == b.Namespace && a.Name < b.Name)
	})
	t := newTable(out, "SHOOT", "PROJECT", "SEED", "PROVIDER", "VERSION", "NODES", "LAST OPERATION", "STATUS", "AGE")
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		project := projects[shoot.Namespace]
		if project == "" {
			project = shoot.Namespace
		}
		t.row(shoot.Name, project, deref(shoot.Spec.SeedName), shoot.Spec.Provider.Type, shoot.Spec.Kubernetes.Version,
			nodes(shoot), lastOperation(shoot.Status.LastOperation), shoot.Labels[gardencorev1beta1.LabelShootStatus],
			age(shoot.CreationTimestamp, now))
	}
	return t.Flush()
}

func (s *Session) projectsByNamespace(ctx context.Context) (map[string]string, error) {
	projects := &gardencorev1beta1.ProjectList{}
	if err := s.client.List(ctx, projects); err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	names := make(map[string]string, len(projects.Items))
	for _, project := range projects.Items {
		names[deref(project.Spec.Namespace)] = project.Name
	}
	return names, nil
}

// nodes is how many machines a shoot has, or why it has none now.
func nodes(shoot *gardencorev1beta1.Shoot) string {
	if state := wakefulness(shoot); state != "awake" {
		return state
	}
	return nodeRange(shoot)
}

// nodeRange is "2" or "1-3": the fewest and most machines of all pools; "fleet" and the like have none.
func nodeRange(shoot *gardencorev1beta1.Shoot) string {
	var minimum, maximum int32
	for _, worker := range shoot.Spec.Provider.Workers {
		minimum += worker.Minimum
		maximum += worker.Maximum
	}
	switch {
	case len(shoot.Spec.Provider.Workers) == 0:
		return "none"
	case minimum == maximum:
		return fmt.Sprint(minimum)
	}
	return fmt.Sprintf("%d-%d", minimum, maximum)
}

func lastOperation(operation *gardencorev1beta1.LastOperation) string {
	if operation == nil {
		return "waiting"
	}
	return fmt.Sprintf("%s %s (%d%%)", operation.Type, operation.State, operation.Progress)
}

// ListSeeds prints the seeds.
func (s *Session) ListSeeds(ctx context.Context, out io.Writer, now time.Time) error {
	seeds := &gardencorev1beta1.SeedList{}
	if err := s.client.List(ctx, seeds); err != nil {
		return fmt.Errorf("listing seeds: %w", err)
	}
	used, err := s.shootsBySeed(ctx)
	if err != nil {
		return err
	}
	t := newTable(out, "SEED", "PROVIDER", "REGION", "VERSION", "READY", "SHOOTS", "AGE")
	for i := range seeds.Items {
		seed := &seeds.Items[i]
		ready := "Unknown"
		for _, condition := range seed.Status.Conditions {
			if condition.Type == "GardenletReady" {
				ready = string(condition.Status)
			}
		}
		shoots := used(seed.Name)
		if capacity, ok := seed.Status.Allocatable["shoots"]; ok {
			shoots += "/" + capacity.String()
		}
		t.row(seed.Name, seed.Spec.Provider.Type, seed.Spec.Provider.Region, deref(seed.Status.KubernetesVersion),
			ready, shoots, age(seed.CreationTimestamp, now))
	}
	return t.Flush()
}

// shootsBySeed counts the shoots of each seed. Users who may not see all shoots see a question mark.
func (s *Session) shootsBySeed(ctx context.Context) (func(seed string) string, error) {
	shoots := &gardencorev1beta1.ShootList{}
	err := s.client.List(ctx, shoots)
	if apierrors.IsForbidden(err) {
		return func(string) string { return "?" }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("counting shoots: %w", err)
	}
	count := map[string]int{}
	for i := range shoots.Items {
		count[deref(shoots.Items[i].Spec.SeedName)]++
	}
	return func(seed string) string { return strconv.Itoa(count[seed]) }, nil
}

// Show prints the pods of the shoot's control plane as the seed sees them.
func (s *Session) Show(ctx context.Context, out io.Writer, now time.Time) error {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := s.controlPlaneKubeconfig(ctx, shoot)
	if err != nil {
		return err
	}
	seed, err := clientFor(kubeconfig)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := seed.List(ctx, pods, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
		return fmt.Errorf("listing pods of %s in seed %s: %w", shoot.Status.TechnicalID, deref(shoot.Spec.SeedName),
			err)
	}
	fmt.Fprintf(out, "Shoot %s/%s: %s, %s on seed %s, namespace %s\n\n", shoot.Namespace, shoot.Name,
		wakefulness(shoot), lastOperation(shoot.Status.LastOperation), deref(shoot.Spec.SeedName),
		shoot.Status.TechnicalID)
	t := newTable(out, "POD", "READY", "STATUS", "RESTARTS", "AGE")
	for i := range pods.Items {
		pod := &pods.Items[i]
		ready, restarts := 0, int32(0)
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
			if status.Ready {
				ready++
			}
		}
		t.row(pod.Name, fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), podState(pod), fmt.Sprint(restarts),
			age(pod.CreationTimestamp, now))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return showConditions(out, shoot)
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

func clientFor(kubeconfig *clientcmdapi.Config) (client.Client, error) {
	restConfig, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	restConfig.UserAgent, restConfig.Timeout = "trellisctl", 30*time.Second
	return client.New(restConfig, client.Options{})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
