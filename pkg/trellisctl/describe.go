package trellisctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/meanings"
)

// newestEvents is how many events of an object are shown.
const newestEvents = 20

func (c *cli) describeCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "describe",
		Short: "Tell all about a shoot, project or seed, and what it waits for",
		Long: `describe tells what something is, what is being done to it and what that waits for, how it is, and
what happened lately. Errors and conditions are explained.`,
		Example: `  trellisctl describe shoot
  trellisctl describe shoot member1 --project demo
  trellisctl describe project demo
  trellisctl describe seed local`,
	}
	command.AddCommand(
		c.describeKind(shootKind, "member1 --project demo", &c.flags.Shoot, (*Session).DescribeShoot),
		c.describeKind(projectKind, "demo", &c.flags.Project, (*Session).DescribeProject),
		c.describeKind(seedKind, "local", &c.flags.Seed, (*Session).DescribeSeed))
	return command
}

// describeKind is the command that describes an object by its name, or the one that is targeted.
func (c *cli) describeKind(k *gardenKind, example string, flag *string,
	describe func(*Session, context.Context, io.Writer, time.Time) error) *cobra.Command {
	return &cobra.Command{
		Use:               k.singular + " [NAME]",
		Aliases:           []string{k.plural, k.short},
		Short:             "Tell all about a " + k.singular + ", the targeted one if none is named",
		Example:           "  trellisctl describe " + k.singular + " " + example,
		Args:              optional(exactlyOne(k.singular)),
		ValidArgsFunction: onlyFirst(c.completeNames(k)),
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 1 {
				if err := takeName(k.singular, arguments[0], flag); err != nil {
					return withHelp(command, err)
				}
			}
			session, err := c.connect()
			if err != nil {
				return err
			}
			return describe(session, command.Context(), command.OutOrStdout(), time.Now())
		},
	}
}

// facts are names and values under each other.
type facts struct{ table }

func newFacts(out io.Writer) facts { return facts{table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}} }

// tell adds a fact, unless there is nothing to tell.
func (f facts) tell(name, value string) {
	if value != "" {
		f.row(name+":", value)
	}
}

// ago is how long something has been, or nothing if it never was.
func ago(at *metav1.Time, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return age(*at, now) + " ago"
}

// describeOperation tells the last operation on an object, and its tasks as far as the API knows them.
func describeOperation(out io.Writer, operation *gardencorev1beta1.LastOperation,
	failures []gardencorev1beta1.LastError, now time.Time) error {
	if operation == nil {
		return nil
	}
	operationLine(out, operation, now)
	running := runningTasks(operation)
	if len(running) == 0 && len(failures) == 0 && operation.Description != "" {
		fmt.Fprintf(out, "  %s\n", oneLine(operation.Description))
	}
	failed := "failed"
	if operation.State == gardencorev1beta1.LastOperationStateProcessing {
		failed = "failed before" // Errors are those of the last try, until it is told how this one ends.
	}
	tasks := newFacts(out)
	for _, task := range running {
		tasks.row("  running", task)
	}
	for _, failure := range failures {
		if task := ptr.Deref(failure.TaskID, ""); task != "" {
			tasks.row("  "+failed, task)
		}
	}
	if err := tasks.Flush(); err != nil {
		return err
	}
	describeErrors(out, failures, now)
	return nil
}

func operationLine(out io.Writer, operation *gardencorev1beta1.LastOperation, now time.Time) {
	fmt.Fprintf(out, "\nOperation: %s, %s\n", oneLine(lastOperation(operation)),
		orElse(ago(&operation.LastUpdateTime, now), "never updated"))
}

// runningTasks are those that gardenlet names while an operation runs: it joins them with commas (flow.Progress). At
// its begin it says a sentence instead.
func runningTasks(operation *gardencorev1beta1.LastOperation) []string {
	if operation == nil || operation.State != gardencorev1beta1.LastOperationStateProcessing ||
		operation.Description == "" || strings.HasSuffix(operation.Description, ".") {
		return nil
	}
	return strings.Split(operation.Description, ", ")
}

// describeErrors tells what failed, and what its codes mean.
func describeErrors(out io.Writer, failures []gardencorev1beta1.LastError, now time.Time) {
	if len(failures) == 0 {
		return
	}
	fmt.Fprintln(out, "\nErrors:")
	for _, failure := range failures {
		when := ago(failure.LastUpdateTime, now)
		if when != "" {
			when = " (" + when + ")"
		}
		fmt.Fprintf(out, "  %s%s\n", oneLine(failure.Description), when)
		explainCodes(out, failure.Codes)
	}
}

// codeMeaning tells what a code means, and what follows from it.
func codeMeaning(code gardencorev1beta1.ErrorCode) string {
	meaning := meanings.Code(code)
	switch {
	case meaning == "":
		return "not known to this version of trellisctl"
	case code.NeedsChange():
		return meaning + "; it is not tried again before somebody changes something"
	}
	return meaning + "; it is tried again by itself"
}

func explainCodes(out io.Writer, codes []gardencorev1beta1.ErrorCode) {
	for _, code := range codes {
		fmt.Fprintf(out, "    %s: %s\n", oneLine(string(code)), codeMeaning(code))
	}
}

// describeConditions tells how an object is: each condition with what it means, then why some do not hold.
func describeConditions(out io.Writer, title string, list []gardencorev1beta1.Condition, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, title, "STATUS", "SINCE", "MEANING")
	for _, condition := range list {
		t.row(string(condition.Type), string(condition.Status), sinceThen(condition.LastTransitionTime, now),
			meanings.Conditions[condition.Type])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, condition := range list {
		if !isWell(condition) {
			fmt.Fprintf(out, "  %s is %s (%s): %s\n", oneLine(string(condition.Type)),
				oneLine(string(condition.Status)), oneLine(condition.Reason), oneLine(condition.Message))
			explainCodes(out, condition.Codes)
		}
	}
	return nil
}

// isWell says that a condition needs no explanation. The emergency stop is the one that is bad when it is true.
func isWell(condition gardencorev1beta1.Condition) bool {
	return condition.Status == gardencorev1beta1.ConditionTrue &&
		condition.Type != gardencorev1beta1.SeedEmergencyStopShootReconciliations
}

func sinceThen(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return age(at, now)
}

// describeEvents tells what happened to an object lately, oldest first.
func (s *Session) describeEvents(ctx context.Context, out io.Writer, kind string, object client.Object,
	now time.Time) error {
	events, err := s.eventsAbout(ctx, kind, object.GetNamespace(), object.GetName())
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(out, "\nEvents: you may not read them in namespace %s\n",
			oneLine(eventNamespace(object.GetNamespace())))
		return nil
	}
	if err != nil {
		return err
	}
	events = newest(events, object)
	if len(events) == 0 {
		_, err := fmt.Fprintln(out, "\nEvents: none lately")
		return err
	}
	fmt.Fprintln(out)
	t := newTable(out, eventHeader...)
	for i := range events {
		t.row(eventCells(&events[i], now)...)
	}
	return t.Flush()
}

// newest are the last events of an object, and not of an earlier one of its name.
func newest(events []corev1.Event, object client.Object) []corev1.Event {
	events = slices.DeleteFunc(events, func(event corev1.Event) bool {
		uid := event.InvolvedObject.UID
		return uid != "" && object.GetUID() != "" && uid != object.GetUID()
	})
	return events[max(0, len(events)-newestEvents):]
}
