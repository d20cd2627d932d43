package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// maxStreams bounds how many logs of one member are read at a time.
const maxStreams = 20

// podChoice says which pods of each member are meant.
type podChoice struct {
	namespace, name, selector, container string
	// found counts the pods of all members.
	found *atomic.Int64
}

func (p *podChoice) flags(command *cobra.Command) {
	p.found = &atomic.Int64{}
	command.Flags().StringVarP(&p.namespace, "namespace", "n", "default", "namespace in the members")
	command.Flags().StringVar(&p.selector, "selector", "", "labels of the pods, instead of a name")
	command.Flags().StringVarP(&p.container, "container", "c", "", "container (default: the pod's first)")
}

// in finds the pods of a member. A selector may find none.
func (p *podChoice) in(ctx context.Context, clients kubernetes.Interface) ([]corev1.Pod, error) {
	if p.name != "" {
		pod, err := clients.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		p.count(1)
		return []corev1.Pod{*pod}, nil
	}
	list, err := clients.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: p.selector})
	if err != nil {
		return nil, err
	}
	p.count(len(list.Items))
	return list.Items, nil
}

func (p *podChoice) count(pods int) {
	if p.found != nil {
		p.found.Add(int64(pods))
	}
}

// tellNone tells when no member had such a pod, and nothing went wrong.
func (p *podChoice) tellNone(command *cobra.Command, err error) error {
	if err == nil && p.found.Load() == 0 {
		tell(command)("No member has pods with labels %q in namespace %s", p.selector, p.namespace)
	}
	return err
}

// of is the container that is meant.
func (p *podChoice) of(pod *corev1.Pod) string {
	if p.container == "" && len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return p.container
}

// setName takes the pod's name where no labels are given.
func (p *podChoice) setName(arguments []string) error {
	switch {
	case len(arguments) == 1 && p.selector == "":
		p.name = arguments[0]
		return nil
	case len(arguments) == 0 && p.selector != "":
		return nil
	}
	return errors.New("name one pod, or say with --selector which labels pods have")
}

// setCalled takes the pod's name, where no labels are given, from before the dash, behind which something is to be run.
func (p *podChoice) setCalled(arguments []string, dash int) error {
	if dash < 0 || dash == len(arguments) {
		return errors.New("what to run comes behind --, for example `trellisctl exec web-0 -- date`")
	}
	return p.setName(arguments[:dash])
}

func (c *cli) logsCommand() *cobra.Command {
	var choice memberChoice
	var pods podChoice
	var follow bool
	tail := int64(100)
	command := &cobra.Command{
		Use:   "logs [POD]",
		Short: "Print logs of pods in the members of a fleet",
		Long: `logs prints lines of pods as they come, with the member and the pod before each line. Control characters are
shown as ^[ and the like where a terminal would obey them; files and pipes get what pods have written, byte by byte.`,
		Example: "  trellisctl logs --selector app=web -n shop -f --project demo --shoot fleet\n" +
			"  trellisctl logs web-0 -n shop --members member1 --project demo --shoot fleet",
		Args: func(command *cobra.Command, arguments []string) error {
			return c.unknownMemberFirst(command, choice, pods.setName(arguments))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			lines := &memberLines{out: dataTo(command.OutOrStdout())}
			err := c.askMembers(command, choice, func(ctx context.Context, member string, config *rest.Config) error {
				clients, err := kubernetes.NewForConfig(config)
				if err != nil {
					return err
				}
				options := &corev1.PodLogOptions{Follow: follow, TailLines: &tail}
				return logsInto(ctx, lines, member, clients, pods, options)
			})
			return pods.tellNone(command, err)
		},
	}
	choice.flags(c, command)
	pods.flags(command)
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on as lines are written; needs --parallel of all members")
	countVar(command.Flags(), &tail, "tail", 0, "how many lines that are there already")
	return command
}

// logsInto prints the logs of the pods of one member as they come.
func logsInto(ctx context.Context, lines *memberLines, member string, clients kubernetes.Interface, pods podChoice,
	options *corev1.PodLogOptions) error {
	found, err := pods.in(ctx, clients)
	if err != nil {
		return err
	}
	failed := make([]error, len(found))
	atATime(len(found), maxStreams, func(i int) {
		pod := &found[i]
		asked := options.DeepCopy()
		asked.Container = pods.of(pod)
		if err := logInto(ctx, lines, member, clients, pod, asked); err != nil {
			failed[i] = fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	})
	return errors.Join(failed...)
}

func logInto(ctx context.Context, lines *memberLines, member string, clients kubernetes.Interface, pod *corev1.Pod,
	options *corev1.PodLogOptions) error {
	stream, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	out := lines.of(member + " " + pod.Name)
	_, err = io.Copy(out, stream)
	return errors.Join(err, out.Close())
}

func (c *cli) execCommand() *cobra.Command {
	var choice memberChoice
	var pods podChoice
	command := &cobra.Command{
		Use:   "exec [POD] -- COMMAND…",
		Short: "Run a command in pods of the members of a fleet",
		Long: `exec runs a command in one pod of each member, or in all that --selector finds, and prints what it says with
the member before each line, as logs does. It has neither input nor a terminal: use kubectl with the member's kubeconfig
for that.`,
		Example: "  trellisctl exec web-0 -n shop --project demo --shoot fleet -- date",
		Args: func(command *cobra.Command, arguments []string) error {
			return c.unknownMemberFirst(command, choice, pods.setCalled(arguments, command.ArgsLenAtDash()))
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			run := arguments[command.ArgsLenAtDash():]
			out := &memberLines{out: dataTo(command.OutOrStdout())}
			told := &memberLines{out: dataTo(command.ErrOrStderr())}
			err := c.askMembers(command, choice, func(ctx context.Context, member string, config *rest.Config) error {
				return execInto(ctx, out, told, member, config, pods, run)
			})
			return pods.tellNone(command, err)
		},
	}
	choice.flags(c, command)
	pods.flags(command)
	return command
}

// execInto runs a command in the pods of one member, one after the other.
func execInto(ctx context.Context, out, told *memberLines, member string, config *rest.Config, pods podChoice,
	run []string) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	found, err := pods.in(ctx, clients)
	if err != nil {
		return err
	}
	var failed []error
	for i := range found {
		pod := &found[i]
		request := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
			SubResource("exec").VersionedParams(&corev1.PodExecOptions{
			Container: pods.of(pod), Command: run, Stdout: true, Stderr: true,
		}, clientgoscheme.ParameterCodec)
		executor, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
		if err != nil {
			return err
		}
		source := member + " " + pod.Name
		stdout, stderr := out.of(source), told.of(source)
		err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
		if err = errors.Join(err, stdout.Close(), stderr.Close()); err != nil {
			failed = append(failed, fmt.Errorf("pod %s: %w", pod.Name, err))
		}
	}
	return errors.Join(failed...)
}
