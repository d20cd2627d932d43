package trellisctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// tableType is how a server is asked for the columns that it would show to people.
const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// wanted is what is asked of each member.
type wanted struct {
	resource, name, namespace, selector string
	allNamespaces, wide                 bool
}

func (w *wanted) namespaceFlags(command *cobra.Command) {
	command.Flags().StringVarP(&w.namespace, "namespace", "n", "default", "namespace in the members")
	command.Flags().BoolVarP(&w.allNamespaces, "all-namespaces", "A", false, "all namespaces")
}

func (w *wanted) where() string {
	if w.allNamespaces {
		return ""
	}
	return w.namespace
}

func (c *cli) getCommand() *cobra.Command {
	var choice memberChoice
	var want wanted
	var output formatFlag
	command := &cobra.Command{
		Use:   "get TYPE [NAME]",
		Short: "List objects in the members of a fleet",
		Long: `get asks the members of a fleet through the fleet's API, as you, and prints rows as members answer. What you
may read in a member, that member decides. A member that does not answer is told, and the command then ends with status
1. Where some members have an object and others have not, that is no error.`,
		Example: "  trellisctl get pods -n shop --project demo --shoot fleet\n" +
			"  trellisctl get nodes --members member1,member2 --fleet-kubeconfig fleet.yaml",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) < 1 || len(arguments) > 2 {
				return errors.New("name one type, and one object if you like, for example `trellisctl get pods`")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			want.resource, want.wide = arguments[0], output.isWide()
			if len(arguments) == 2 {
				want.name = arguments[1]
			}
			if want.name != "" && want.allNamespaces {
				return errors.New("an object is in one namespace: leave out -A, or the name")
			}
			table := newMemberTable(command.OutOrStdout())
			err := c.askMembers(command, choice, func(ctx context.Context, member string, config *rest.Config) error {
				return getInto(ctx, table, member, config, want)
			})
			if err == nil && table.header == "" {
				tell(command)("No member has any")
			}
			return err
		},
	}
	choice.flags(c, command)
	want.namespaceFlags(command)
	command.Flags().StringVar(&want.selector, "selector", "", "labels of the objects")
	output.wideFlag(command, "columns that servers have for it")
	return command
}

// getInto prints what one member has of a type.
func getInto(ctx context.Context, table *memberTable, member string, config *rest.Config, want wanted) error {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	mapping, err := mappingOf(config, want.resource)
	if err != nil {
		return err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	request, err := memberRequest(config)
	if err != nil {
		return err
	}
	get := request.Get().AbsPath(apiPath(mapping.Resource.GroupVersion())).
		NamespaceIfScoped(want.where(), namespaced && want.where() != "").Resource(mapping.Resource.Resource).
		SetHeader("Accept", tableType)
	if want.name != "" {
		get = get.Name(want.name)
	}
	if want.selector != "" {
		get = get.Param("labelSelector", want.selector)
	}
	answer, err := answerOf(get.Do(ctx))
	if err != nil {
		return err
	}
	var shown metav1.Table
	if err := json.Unmarshal(answer, &shown); err != nil || shown.Kind != "Table" {
		return fmt.Errorf("it shows no table of %s: %w", want.resource, errors.Join(err, errNoTable))
	}
	header, rows, err := rowsOf(&shown, namespaced && want.allNamespaces, want.wide)
	if err != nil {
		return fmt.Errorf("its table of %s: %w", want.resource, err)
	}
	return table.add(member, header, rows)
}

// answerOf is what an API answers, or what it says why it does not.
func answerOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

var errNoTable = errors.New("its API answers with something else")

func memberRequest(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

func apiPath(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.String()
}

// mappingOf finds a type by its name, singular, plural, short, or with its group: members serve different ones.
func mappingOf(config *rest.Config, name string) (*meta.RESTMapping, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), client, func(string) {})
	full, group := schema.ParseResourceArg(name)
	var kind schema.GroupVersionKind
	if full != nil {
		kind, _ = mapper.KindFor(*full)
	}
	if kind.Empty() {
		if kind, err = mapper.KindFor(group.WithVersion("")); err != nil {
			return nil, fmt.Errorf("it serves no type %q: %w", name, err)
		}
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// rowsOf are the columns that a server shows; those of lower priority only if they are wanted. A row of all namespaces
// without its object is an error: nobody could tell whose it is.
func rowsOf(table *metav1.Table, namespaces, wide bool) (header []string, rows [][]string, err error) {
	var columns []int
	if namespaces {
		header = append(header, "NAMESPACE")
	}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 || wide {
			columns = append(columns, i)
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	for n, row := range table.Rows {
		var cells []string
		if namespaces {
			var about metav1.PartialObjectMetadata
			if err := json.Unmarshal(row.Object.Raw, &about); err != nil {
				return nil, nil, fmt.Errorf("row %d of its table has no object that can be read: %w", n+1, err)
			}
			cells = append(cells, about.Namespace)
		}
		for _, i := range columns {
			cell := ""
			if i < len(row.Cells) && row.Cells[i] != nil {
				cell = fmt.Sprint(row.Cells[i])
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return header, rows, nil
}

func (c *cli) topCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "top", Short: "Show what nodes and pods use in the members of a fleet",
		Example: "  trellisctl top nodes --project demo --shoot fleet",
	}
	command.AddCommand(c.topOf("nodes"), c.topOf("pods"))
	return command
}

func (c *cli) topOf(resource string) *cobra.Command {
	var choice memberChoice
	want := wanted{resource: resource}
	command := &cobra.Command{
		Use: resource, Short: "Show what " + resource + " use in the members of a fleet", Args: noArguments,
		Long:    "Members need a metrics-server for it.",
		Example: "  trellisctl top " + resource + " --project demo --shoot fleet",
		RunE: func(command *cobra.Command, _ []string) error {
			table := newMemberTable(command.OutOrStdout())
			return c.askMembers(command, choice, func(ctx context.Context, member string, config *rest.Config) error {
				return topInto(ctx, table, member, config, want)
			})
		},
	}
	choice.flags(c, command)
	if resource == "pods" {
		want.namespaceFlags(command)
	}
	return command
}

// metrics is a NodeMetricsList or a PodMetricsList.
type metrics struct {
	Items []struct {
		Metadata   metav1.ObjectMeta   `json:"metadata"`
		Usage      corev1.ResourceList `json:"usage"`
		Containers []struct {
			Usage corev1.ResourceList `json:"usage"`
		} `json:"containers"`
	} `json:"items"`
}

func topInto(ctx context.Context, table *memberTable, member string, config *rest.Config, want wanted) error {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	request, err := memberRequest(config)
	if err != nil {
		return err
	}
	answer, err := answerOf(request.Get().AbsPath("/apis/metrics.k8s.io/v1beta1").
		NamespaceIfScoped(want.where(), want.where() != "").Resource(want.resource).Do(ctx))
	if apierrors.IsNotFound(err) {
		return errors.New("it has no metrics, for which it needs a metrics-server")
	}
	if err != nil {
		return err
	}
	var used metrics
	if err := json.Unmarshal(answer, &used); err != nil {
		return err
	}
	header, pods := []string{"NAME", "CPU", "MEMORY"}, want.resource == "pods"
	if pods {
		header = append([]string{"NAMESPACE"}, header...)
	}
	var rows [][]string
	for _, item := range used.Items {
		cpu, memory := item.Usage.Cpu().DeepCopy(), item.Usage.Memory().DeepCopy()
		for _, container := range item.Containers {
			cpu.Add(*container.Usage.Cpu())
			memory.Add(*container.Usage.Memory())
		}
		cells := []string{item.Metadata.Name, fmt.Sprintf("%dm", cpu.MilliValue()), mebibytes(memory)}
		if pods {
			cells = append([]string{item.Metadata.Namespace}, cells...)
		}
		rows = append(rows, cells)
	}
	return table.add(member, header, rows)
}

func mebibytes(quantity resource.Quantity) string { return fmt.Sprintf("%dMi", quantity.Value()>>20) }

func (c *cli) eventsCommand() *cobra.Command {
	var choice memberChoice
	want := wanted{resource: "events"}
	command := &cobra.Command{
		Use: "events", Short: "List events in the members of a fleet, the newest last",
		Example: "  trellisctl events -n shop --project demo --shoot fleet", Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			table := newMemberTable(command.OutOrStdout())
			return c.askMembers(command, choice, func(ctx context.Context, member string, config *rest.Config) error {
				return eventsInto(ctx, table, member, config, want, time.Now())
			})
		},
	}
	choice.flags(c, command)
	want.namespaceFlags(command)
	return command
}

func eventsInto(ctx context.Context, table *memberTable, member string, config *rest.Config, want wanted,
	now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	request, err := memberRequest(config)
	if err != nil {
		return err
	}
	answer, err := answerOf(request.Get().AbsPath("/api/v1").NamespaceIfScoped(want.where(), want.where() != "").
		Resource("events").Do(ctx))
	if err != nil {
		return err
	}
	var events corev1.EventList
	if err := json.Unmarshal(answer, &events); err != nil {
		return err
	}
	sortEvents(events.Items)
	var rows [][]string
	for i := range events.Items {
		event := &events.Items[i]
		about := []string{event.Namespace, event.InvolvedObject.Kind + "/" + event.InvolvedObject.Name}
		rows = append(rows, append(about, eventCells(event, now)...))
	}
	return table.add(member, slices.Concat([]string{"NAMESPACE", "OBJECT"}, eventHeader), rows)
}
