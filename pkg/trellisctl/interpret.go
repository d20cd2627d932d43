package trellisctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/script"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter/webhook"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// interpretation holds the flags of the command interpret.
type interpretation struct {
	rules, operation, desired, observed, statuses string
	replicas                                      int32
	check                                         bool
}

// question is what can be asked about an object.
type question struct {
	name      string
	operation configv1alpha1.InterpreterOperation
	needs     string
	ask       func(context.Context, *interpreter.Interpreter, *interpretation) (any, error)
}

var questions = []question{
	{"replicas", configv1alpha1.InterpreterOperationInterpretReplica, "--desired-file", askReplicas},
	{"components", configv1alpha1.InterpreterOperationInterpretComponent, "--desired-file", askComponents},
	{"revise", configv1alpha1.InterpreterOperationReviseReplica, "--desired-file and --desired-replica", askRevise},
	{"retain", configv1alpha1.InterpreterOperationRetain, "--desired-file and --observed-file", askRetain},
	{"status", configv1alpha1.InterpreterOperationInterpretStatus, "--observed-file", askStatus},
	{"aggregate", configv1alpha1.InterpreterOperationAggregateStatus, "--desired-file and --status-file", askAggregate},
	{"health", configv1alpha1.InterpreterOperationInterpretHealth, "--observed-file", askHealth},
	{"dependencies", configv1alpha1.InterpreterOperationInterpretDependency, "--desired-file", askDependencies},
}

func questionsTable() string {
	var b strings.Builder
	for _, q := range questions {
		fmt.Fprintf(&b, "  %-13s (%s) needs %s\n", q.name, q.operation, q.needs)
	}
	return b.String()
}

func (c *cli) interpretCommand() *cobra.Command {
	i := &interpretation{}
	command := &cobra.Command{
		Use:   "interpret",
		Short: "Try how a fleet understands an object, without a cluster",
		Long: `interpret asks what a fleet's controllers ask about objects, and prints the answer as YAML: how many replicas, what of the
status, healthy or not, and so on. It asks the same code, with the same limits.

Without -f, what is built in answers: the kinds of Kubernetes and well-known ones of others. With -f, the
ResourceInterpreterCustomizations and ResourceInterpreterWebhookConfigurations of the file go before. What scripts print
appears on standard error.

Operations, and the files that they are about:
` + questionsTable() + `
--desired-file is the object as it is in the fleet, --observed-file as it is in a member. --status-file has one document for
each member in the form of status.aggregatedStatus[] of a ResourceBinding:

  clusterName: member1
  status: {readyReplicas: 2}`,
		Example: `  trellisctl interpret --check -f gates.yaml
  trellisctl interpret -f gates.yaml --operation health \
    --observed-file gate.yaml
  trellisctl interpret -f gates.yaml --operation revise \
    --desired-file gate.yaml --desired-replica 2
  trellisctl interpret --operation dependencies --desired-file deployment.yaml`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return i.run(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&i.rules, "filename", "f", "", "file with customizations and configurations of webhooks")
	flags.StringVar(&i.operation, "operation", "", "what is asked, see above")
	flags.StringVar(&i.desired, "desired-file", "", "file with the object as it is in the fleet")
	flags.StringVar(&i.observed, "observed-file", "", "file with the object as it is in a member")
	flags.StringVar(&i.statuses, "status-file", "", "file with the statuses of the members")
	flags.Int32Var(&i.replicas, "desired-replica", 0, "number of replicas to write")
	flags.BoolVar(&i.check, "check", false, "only tell whether the scripts and webhooks of -f can be used")
	_ = command.RegisterFlagCompletionFunc("operation",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names := make([]string, len(questions))
			for n := range questions {
				names[n] = questions[n].name
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		})
	return command
}

func (i *interpretation) run(ctx context.Context, out, printed io.Writer) error {
	asked, err := i.teacher(ctx, printed)
	if err != nil {
		return err
	}
	if i.check {
		if i.rules == "" {
			return errors.New("--check needs a file with rules: -f")
		}
		fmt.Fprintf(out, "%s: the rules can be used\n", i.rules)
		return nil
	}
	index := slices.IndexFunc(questions, func(q question) bool {
		return strings.EqualFold(q.name, i.operation) || strings.EqualFold(string(q.operation), i.operation)
	})
	if index < 0 {
		return fmt.Errorf("--operation %q: must be one of\n%s", i.operation, questionsTable())
	}
	answer, err := questions[index].ask(ctx, asked, i)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// teacher gives an interpreter that knows the rules of the file. A rule that cannot be used is an error here.
func (i *interpretation) teacher(ctx context.Context, printed io.Writer) (*interpreter.Interpreter, error) {
	result := interpreter.New()
	if i.rules == "" {
		return result, nil
	}
	documents, err := readDocuments(i.rules)
	if err != nil {
		return nil, err
	}
	var customizations []configv1alpha1.ResourceInterpreterCustomization
	var configurations []configv1alpha1.ResourceInterpreterWebhookConfiguration
	for n, document := range documents {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", i.rules, n+1, err)
		}
		switch kind.Kind {
		case "ResourceInterpreterCustomization":
			customizations = append(customizations, configv1alpha1.ResourceInterpreterCustomization{})
			err = strictyaml.Unmarshal(document, &customizations[len(customizations)-1], nil)
		case "ResourceInterpreterWebhookConfiguration":
			configurations = append(configurations, configv1alpha1.ResourceInterpreterWebhookConfiguration{})
			err = strictyaml.Unmarshal(document, &configurations[len(configurations)-1], nil)
		default:
			err =
				fmt.Errorf("kind %q: must be ResourceInterpreterCustomization or "+
					"ResourceInterpreterWebhookConfiguration", kind.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", i.rules, n+1, err)
		}
	}
	compiler := script.Compiler{Output: printed}
	scripts, badScripts := compiler.Compile(ctx, customizations)
	var builder webhook.Builder
	hooks, badHooks := builder.Build(configurations)
	result.SetSources(scripts, hooks)
	var failures []error
	for _, c := range customizations {
		failures = append(failures, badScripts[c.Name])
	}
	for _, c := range configurations {
		if badHooks[c.Name] != nil {
			failures = append(failures, fmt.Errorf("configuration %s: %w", c.Name, badHooks[c.Name]))
		}
	}
	return result, errors.Join(failures...)
}

func readDocuments(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(bytes.TrimSpace(document)) > 0 && !onlyComments(document) {
			documents = append(documents, document)
		}
	}
}

func onlyComments(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// readObject reads the object of a flag.
func readObject(flag, path string) (*unstructured.Unstructured, error) {
	if path == "" {
		return nil, fmt.Errorf("--%s is needed for this operation", flag)
	}
	documents, err := readDocuments(path)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s: has %d documents; --%s takes one object", path, len(documents), flag)
	}
	text, err := yaml.YAMLToJSON(documents[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

func (i *interpretation) desiredObject() (*unstructured.Unstructured, error) {
	return readObject("desired-file", i.desired)
}

func (i *interpretation) observedObject() (*unstructured.Unstructured, error) {
	return readObject("observed-file", i.observed)
}

func (i *interpretation) items() ([]workv1alpha2.AggregatedStatusItem, error) {
	if i.statuses == "" {
		return nil, errors.New("--status-file is needed for this operation")
	}
	documents, err := readDocuments(i.statuses)
	if err != nil {
		return nil, err
	}
	items := make([]workv1alpha2.AggregatedStatusItem, len(documents))
	for n, document := range documents {
		if err := strictyaml.Unmarshal(document, &items[n], nil); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", i.statuses, n+1, err)
		}
	}
	return items, nil
}

func askReplicas(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	workload, err := asked.Workload(ctx, object)
	if err != nil || workload == nil {
		return map[string]any{"replicas": nil}, err
	}
	return map[string]any{"replicas": workload.Replicas, "replicaRequirements": workload.Requirements}, nil
}

func askComponents(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	components, err := asked.Components(ctx, object)
	return map[string]any{"components": components}, err
}

func askRevise(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	return fieldsOf(asked.Revise(ctx, object, i.replicas))
}

func fieldsOf(object *unstructured.Unstructured, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object.Object, nil
}

func askRetain(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	desired, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	observed, err := i.observedObject()
	if err != nil {
		return nil, err
	}
	return fieldsOf(asked.Retain(ctx, desired, observed))
}

func askStatus(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.observedObject()
	if err != nil {
		return nil, err
	}
	status, err := asked.Reflect(ctx, object, object.GetGeneration())
	return map[string]any{"status": status}, err
}

func askAggregate(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	items, err := i.items()
	if err != nil {
		return nil, err
	}
	status, known, err := asked.Aggregate(ctx, object, items, len(items))
	if err == nil && !known {
		return nil, fmt.Errorf("nobody knows how the statuses of a %s add up: its own stays as it is", object.GetKind())
	}
	return map[string]any{"status": status}, err
}

func askHealth(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.observedObject()
	if err != nil {
		return nil, err
	}
	health, err := asked.Health(ctx, object)
	return map[string]any{"health": health}, err
}

func askDependencies(ctx context.Context, asked *interpreter.Interpreter, i *interpretation) (any, error) {
	object, err := i.desiredObject()
	if err != nil {
		return nil, err
	}
	references, err := asked.Dependencies(ctx, object)
	return map[string]any{"dependencies": references}, err
}
