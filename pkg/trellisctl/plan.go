package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

// ExitError ends the command with a status of its own and no message.
type ExitError struct{ Code int }

// Error implements error.
func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// exitChanges is the status of `trellisctl plan --exit-code` when something would change.
const exitChanges = 2

// PlanOptions of the command plan.
type PlanOptions struct {
	// Files to read; "-" is standard input.
	Files []string
	// Namespace of documents that name none.
	Namespace string
	// Delete has the documents deleted instead of applied.
	Delete bool
	// Output is text, json or yaml.
	Output string
	// All shows the clusters in which nothing changes as well, and all objects that a policy would not have.
	All bool
	// Settings of the fleet.
	Settings plan.Settings
}

func (c *cli) planCommand() *cobra.Command {
	var access fleetAccess
	var exitCode bool
	options := PlanOptions{Settings: plan.DefaultSettings()}
	command := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what a change of policies would move in a fleet, before it is applied",
		Long: `plan shows, for every object that a change concerns, which policy it has now and would have then, the clusters it would
leave and go to with how many replicas, and the fields that override policies would set in another way. Nothing is changed.

A file holds one or several documents: PropagationPolicies, ClusterPropagationPolicies, OverridePolicies, ClusterOverridePolicies,
FederatedResourceQuotas, WorkloadRebalancers, Clusters (their labels and taints), and objects that are propagated. The fleet's API
checks and completes each as if it were applied (a dry run). With --delete they are looked at as if they were deleted.

  NOW, THEN   replicas in that cluster; "yes" for objects without replicas, "-" where the object isn't
  CHANGE      Added, Removed, Scaled; Kept: the fleet gives the object up and the member keeps it

Objects that a policy of the documents selects but another one keeps or gets are listed with the reason and what to change.
Warnings tell of kinds, clusters and workloads that documents name and the fleet has not.

It is decided with the code of the fleet's scheduler, for the clusters as they are now. What is added while their room
changes may turn out differently. Objects that were divided by free room stay where they are unless their placement changes.
It also tells which deletions the fleet's deletion budget would hold; give the budget if the fleet's is not the default.

Exit status: 0 if the plan could be made, 1 if not; with --exit-code 2 if it would change anything.`,
		Example: `  trellisctl plan -f policy.yaml --project demo --shoot fleet
  trellisctl plan -f policies/ -n shop --fleet-kubeconfig fleet.yaml
  trellisctl plan -f policy.yaml --delete            # what would be removed?
  kubectl get pp web -o yaml | sed s/member1/member2/ | trellisctl plan -f -
  trellisctl plan -f policy.yaml -o json | jq .summary
  trellisctl plan -f policy.yaml --exit-code || echo "would change something"`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			documents, err := readPlanned(options.Files, command.InOrStdin())
			if err != nil {
				return err
			}
			fleet, err := c.fleet(command.Context(), access)
			if err != nil {
				return err
			}
			result, err := fleet.Plan(command.Context(), documents, options, time.Now())
			if err != nil {
				return err
			}
			if err := PrintPlan(command.OutOrStdout(), result, options); err != nil {
				return err
			}
			if exitCode && !result.Empty() {
				return ExitError{exitChanges}
			}
			return nil
		},
	}
	access.flags(command)
	flags := command.Flags()
	flags.StringSliceVarP(&options.Files, "filename", "f", nil,
		"file or folder with the documents, - for standard input; may be repeated")
	flags.StringVarP(&options.Namespace, "namespace", "n", "default", "namespace of documents that name none")
	flags.BoolVar(&options.Delete, "delete", false, "look at the documents as if they were deleted")
	flags.StringVarP(&options.Output, "output", "o", formatText, "text, json or yaml")
	flags.BoolVar(&options.All, "all", false,
		"show clusters in which nothing changes, and all objects that a policy would not have, as well")
	flags.BoolVar(&exitCode, "exit-code", false, "exit with 2 if anything would change")
	flags.StringVar(&options.Settings.SkippedNamespaces, "skipped-namespaces", options.Settings.SkippedNamespaces,
		"namespaces that the fleet never propagates from (regular expression)")
	flags.IntVar(&options.Settings.Budget.Percent, "deletion-budget-percent", options.Settings.Budget.Percent,
		"the fleet's deletion budget: percent of the objects")
	flags.IntVar(&options.Settings.Budget.AtLeast, "deletion-budget-at-least", options.Settings.Budget.AtLeast,
		"the fleet's deletion budget: objects in any case")
	return command
}

func (o *PlanOptions) validate() error {
	if len(o.Files) == 0 {
		return errors.New("which documents? Add -f FILE, or -f - for standard input")
	}
	if !slices.Contains([]string{formatText, formatJSON, formatYAML}, o.Output) {
		return fmt.Errorf("--output %q: must be text, json or yaml", o.Output)
	}
	return o.Settings.Budget.Validate()
}

// readPlanned reads the documents of all files, and of the YAML and JSON files of folders.
func readPlanned(files []string, stdin io.Reader) ([]plan.Written, error) {
	var result []plan.Written
	for _, name := range files {
		paths, err := filesOf(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			documents, err := parseFile(path, stdin)
			if err != nil {
				return nil, err
			}
			result = append(result, documents...)
		}
	}
	if len(result) == 0 {
		return nil, errors.New("the files hold no documents")
	}
	return result, nil
}

func parseFile(path string, stdin io.Reader) ([]plan.Written, error) {
	if path == "-" {
		return plan.Parse(stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return plan.Parse(file, path)
}

// filesOf gives the files of a folder, in the order of their names, or the name itself.
func filesOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if name == "-" || err == nil && !info.IsDir() {
		return []string{name}, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		for _, suffix := range []string{".yaml", ".yml", ".json"} {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), suffix) {
				paths = append(paths, name+string(os.PathSeparator)+entry.Name())
			}
		}
	}
	return paths, nil
}

// Plan predicts what applying, or deleting, the documents would change.
func (f *Fleet) Plan(ctx context.Context, documents []plan.Written, options PlanOptions,
	now time.Time) (*plan.Plan, error) {
	proposals, err := plan.Check(ctx, f.Client, documents, options.Namespace, options.Delete)
	if err != nil {
		return nil, err
	}
	input, err := plan.Read(ctx, f.Client, proposals, options.Settings, now)
	if err != nil {
		return nil, err
	}
	return plan.Predict(ctx, input), nil
}

// PrintPlan prints a plan in the form that the options ask for.
func PrintPlan(out io.Writer, p *plan.Plan, options PlanOptions) error {
	if format := (&formatFlag{value: options.Output}); format.isDocument() {
		return format.print(out, p)
	}
	return printPlan(out, p, options.All)
}

func printPlan(out io.Writer, p *plan.Plan, all bool) error {
	for _, d := range p.Documents {
		printLine(out, "%-9s %s", d.Action, d)
	}
	for i := range p.Objects {
		if err := printObject(out, &p.Objects[i], all); err != nil {
			return err
		}
	}
	printWarnings(out, p.Warnings)
	for i := range p.PassedOver {
		if err := printPassedOver(out, &p.PassedOver[i], all); err != nil {
			return err
		}
	}
	if len(p.Held) > 0 {
		fmt.Fprintln(out, "\nThe deletion budget would hold these until `trellisctl deletions confirm`:")
	}
	for _, h := range p.Held {
		where := "in member " + h.Cluster
		if h.Cluster == "" {
			where = "in the fleet as a whole"
		}
		printLine(out, "  %d of %d objects %s; %d are let through", h.Deletions, h.Objects, where, h.Allowance)
	}
	fmt.Fprintln(out)
	printLine(out, "%s", summaryOf(p.Summary))
	return nil
}

func nameIn(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func printObject(out io.Writer, o *plan.ObjectChange, all bool) error {
	fmt.Fprintln(out)
	printLine(out, "%s %s", o.Kind, nameIn(o.Namespace, o.Name))
	if o.PolicyNow == o.PolicyThen {
		printLine(out, "Policy:  %s", orElse(o.PolicyNow, "none"))
	} else {
		printLine(out, "Policy:  %s -> %s", orElse(o.PolicyNow, "none"), orElse(o.PolicyThen, "none"))
	}
	for _, note := range o.Notes {
		printLine(out, "Note:    %s", note)
	}
	if err := printClusters(out, o.Clusters, all); err != nil {
		return err
	}
	if len(o.Fields) == 0 {
		return nil
	}
	t := newTable(out, "  CLUSTER", "FIELD", "NOW", "THEN", "SET BY")
	for _, field := range o.Fields {
		t.row("  "+field.Cluster, field.Path, fieldValue(field.Now), fieldValue(field.Then),
			orElse(field.SetBy, "the object itself"))
	}
	return t.Flush()
}

func printClusters(out io.Writer, clusters []plan.ClusterChange, all bool) error {
	t := newTable(out, "  CLUSTER", "NOW", "THEN", "CHANGE")
	shown, unchanged := 0, 0
	for _, c := range clusters {
		if c.Effect == plan.EffectUnchanged && !all {
			unchanged++
			continue
		}
		shown++
		has, will := c.Effect != plan.EffectAdded, c.Effect != plan.EffectRemoved && c.Effect != plan.EffectKept
		t.row("  "+c.Name, presence(has, c.ReplicasNow), presence(will, c.ReplicasThen), string(c.Effect))
	}
	if shown > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if unchanged > 0 {
		printLine(out, "  unchanged in %s", counted(unchanged, "cluster"))
	}
	return nil
}

// printWarnings prints a paragraph for each document that has any.
func printWarnings(out io.Writer, warnings []plan.Warning) {
	for i, w := range warnings {
		if i == 0 || w.Document != warnings[i-1].Document {
			fmt.Fprintln(out)
			printLine(out, "%s says what has no effect in this fleet", w.Document)
		}
		printLine(out, "Warning: %s", w.Message)
	}
}

// shownPassedOver is how many objects are printed that a policy doesn't get, unless all are asked for.
const shownPassedOver = 10

func printPassedOver(out io.Writer, p *plan.PassedOver, all bool) error {
	fmt.Fprintln(out)
	printLine(out, "%s would not have %s that it selects", p.Policy, counted(len(p.Objects), "object"))
	printLine(out, "Why:     %s", p.Reason)
	objects := p.Objects
	if !all {
		objects = objects[:min(len(objects), shownPassedOver)]
	}
	t := newTable(out, "  OBJECT", "POLICY")
	for _, o := range objects {
		t.row("  "+o.Kind+" "+nameIn(o.Namespace, o.Name), o.Policy)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(p.Objects) - len(objects); more > 0 {
		printLine(out, "  and %d more (--all shows them)", more)
	}
	return nil
}

// presence is how many replicas there are in a cluster.
func presence(there bool, replicas *int32) string {
	switch {
	case !there:
		return ""
	case replicas == nil:
		return "yes"
	}
	return strconv.Itoa(int(*replicas))
}

func fieldValue(value any) string {
	if value == nil {
		return ""
	}
	return shortValue(value)
}

// summaryOf is the last line.
func summaryOf(s plan.Summary) string {
	if s.Changed == 0 {
		return fmt.Sprintf("Nothing would change (%s looked at).", counted(s.Examined, "object"))
	}
	parts := []string{fmt.Sprintf("%d of %s would change", s.Changed, counted(s.Examined, "object"))}
	for _, part := range []struct {
		count int
		text  string
	}{
		{s.Added, "%d added to clusters"}, {s.Removed, "%d removed"}, {s.Scaled, "%d scaled"},
		{s.Kept, "%d given up and kept in members"},
		{s.Fields, "fields changed: %d"}, {s.GetPolicy, "without a policy before: %d"},
		{s.LosePolicy, "without a policy then: %d"}, {s.Unplaced, "%d would be nowhere"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.count))
		}
	}
	if s.ReplicasAdded > 0 || s.ReplicasRemoved > 0 {
		parts = append(parts, fmt.Sprintf("replicas +%d -%d", s.ReplicasAdded, s.ReplicasRemoved))
	}
	return strings.Join(parts, ", ") + "."
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
