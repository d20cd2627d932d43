package trellisctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// listing is how ls lists, and which objects.
type listing struct {
	formatFlag
	labels, fields string
	all, watch     bool
}

func (o *listing) flags(command *cobra.Command) {
	o.flag(command, formatWide, formatName, formatYAML, formatJSON)
	command.Flags().StringVarP(&o.labels, "selector", "l", "", "only objects with these labels, such as "+
		"shoot.gardener.cloud/status=unhealthy")
	command.Flags().StringVar(&o.fields, "field-selector", "", "only objects with these values: of shoots "+
		"metadata.name, spec.seedName, status.seedName, spec.cloudProfile.name or spec.cloudProfile.kind, of projects "+
		"spec.namespace")
	command.Flags().BoolVarP(&o.all, "all-projects", "A", false, "shoots of all projects, whatever is targeted")
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on with a line for each change, until ctrl-C")
}

func (c *cli) listCommand() *cobra.Command {
	var options listing
	command := &cobra.Command{
		Use:     "ls [projects|shoots|seeds|gardens]",
		Aliases: []string{"list"},
		Short:   "List projects, shoots and seeds",
		Long: `ls lists what you may see in the garden: projects, shoots and seeds, or those of one kind. Shoots are
those of the targeted project, if there is one. Kinds have the names project, shoot, seed and garden, too, and proj, sh,
sd and gd. Gardens are those of the configuration.

With --watch, the list is followed by a line for each change of what the columns show. An object that was deleted, or is
not selected any more, is shown once more, with "gone" in the last column. Numbers of shoots are those of the beginning.
When the connection is lost, ls waits for the garden and goes on where it was.`,
		Example: `  trellisctl ls
  trellisctl ls shoots --project demo -o wide
  trellisctl ls shoots -A -l shoot.gardener.cloud/status=unhealthy --watch
  trellisctl ls shoots -A --field-selector spec.seedName=local -o name
  trellisctl ls seed -o yaml`,
		Args:      optional(oneKind),
		ValidArgs: []string{"projects", "shoots", "seeds", "gardens"},
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := options.check(arguments); err != nil {
				return withHelp(command, err)
			}
			if len(arguments) == 1 && isGardens(arguments[0]) {
				return c.listGardens(command.OutOrStdout(), &options)
			}
			session, err := c.connect()
			if err != nil {
				return err
			}
			return session.listKinds(command, arguments, &options)
		},
	}
	options.flags(command)
	return command
}

func isGardens(word string) bool { return slices.Contains([]string{"gardens", "garden", "gd"}, word) }

// oneKind accepts a kind by any of its names.
func oneKind(command *cobra.Command, arguments []string) error {
	if len(arguments) == 1 && (isGardens(arguments[0]) || kindCalled(arguments[0]) != nil) {
		return nil
	}
	return oneOfValidArgs(command, arguments)
}

// kindCalled is the kind with this name, or nil.
func kindCalled(word string) *gardenKind {
	i := slices.IndexFunc(gardenKinds, func(k *gardenKind) bool { return k.isCalled(word) })
	if i < 0 {
		return nil
	}
	return gardenKinds[i]
}

// check finds flags that cannot be read, or that make no sense together.
func (o *listing) check(arguments []string) error {
	if _, err := labels.Parse(o.labels); err != nil {
		return fmt.Errorf("--selector %q: %w", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return fmt.Errorf("--field-selector %q: %w", o.fields, err)
	}
	narrowed := o.labels != "" || o.fields != "" || o.watch
	switch {
	case len(arguments) == 0 && (narrowed || o.isDocument()):
		return errors.New("selectors, --watch and -o yaml or json are for one kind: say which, for example " +
			"`trellisctl ls shoots`")
	case len(arguments) == 1 && isGardens(arguments[0]) && narrowed:
		return errors.New("gardens are those of the configuration: leave out selectors and --watch")
	}
	return nil
}

// listGardens prints the gardens of the configuration.
func (c *cli) listGardens(out io.Writer, options *listing) error {
	config, err := LoadConfig(c.configPath)
	if err != nil {
		return err
	}
	if options.isDocument() {
		return options.print(out, config)
	}
	shown := columns{out: out}
	rows := [][]string{{"GARDEN", "IDENTITY", "KUBECONFIG", "CONTEXT"}}
	for _, garden := range config.Gardens {
		if options.value == formatName {
			if _, err := fmt.Fprintf(out, "garden/%s\n", oneLine(garden.Name)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{garden.Name, garden.Identity, garden.Kubeconfig, garden.Context})
	}
	if options.value == formatName {
		return nil
	}
	return shown.print(rows...)
}

// listKinds lists one kind, and goes on if it is to be watched, or lists all.
func (s *Session) listKinds(command *cobra.Command, arguments []string, options *listing) error {
	out, ctx := command.OutOrStdout(), command.Context()
	if len(arguments) == 1 {
		l := s.lister(kindCalled(arguments[0]), options, out)
		if options.watch {
			return l.follow(ctx, command.ErrOrStderr())
		}
		return l.list(ctx)
	}
	for i, k := range gardenKinds {
		if i > 0 && options.value != formatName {
			fmt.Fprintln(out)
		}
		if err := s.lister(k, options, out).list(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lister prints objects of a kind: as rows, names or documents.
type lister struct {
	session *Session
	kind    *gardenKind
	options *listing
	columns columns
	now     func() time.Time
	// cells are of the latest read.
	cells cellsOf
}

func (s *Session) lister(k *gardenKind, options *listing, out io.Writer) *lister {
	return &lister{session: s, kind: k, options: options, columns: columns{out: out}, now: time.Now}
}

// selection says which objects are meant.
func (l *lister) selection(ctx context.Context) (*client.ListOptions, error) {
	options := &client.ListOptions{}
	var err error
	if l.kind.inProjects && l.session.Target.Project != "" && !l.options.all {
		if options.Namespace, err = l.session.projectNamespace(ctx, l.session.Target.Project); err != nil {
			return nil, err
		}
	}
	if l.options.labels != "" {
		if options.LabelSelector, err = labels.Parse(l.options.labels); err != nil {
			return nil, err
		}
	}
	if l.options.fields != "" {
		if options.FieldSelector, err = fields.ParseSelector(l.options.fields); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// read returns the objects, sorted, and the version of the list.
func (l *lister) read(ctx context.Context) ([]client.Object, string, error) {
	selection, err := l.selection(ctx)
	if err != nil {
		return nil, "", err
	}
	list := l.kind.newList()
	if err := l.session.client.List(ctx, list, selection); err != nil {
		return nil, "", fmt.Errorf("listing %s: %w", l.kind.plural, explainKinds(err))
	}
	if l.cells, err = l.kind.cells(ctx, l.session); err != nil {
		return nil, "", err
	}
	objects, err := objectsOf(list)
	return objects, list.GetResourceVersion(), err
}

// objectsOf returns the objects of a list by namespace and name.
func objectsOf(list client.ObjectList) ([]client.Object, error) {
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T has no metadata", item)
		}
		objects = append(objects, object)
		return nil
	})
	slices.SortFunc(objects, byName)
	return objects, err
}

func byName(a, b client.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (l *lister) list(ctx context.Context) error {
	objects, _, err := l.read(ctx)
	if err != nil {
		return err
	}
	if l.options.isDocument() {
		return l.printList(objects)
	}
	return l.printAll(objects)
}

// printList prints a document with all objects, as kubectl reads it.
func (l *lister) printList(objects []client.Object) error {
	for _, object := range objects {
		if err := l.complete(object); err != nil {
			return err
		}
	}
	if objects == nil {
		objects = []client.Object{}
	}
	return l.options.print(l.columns.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// complete gives an object its kind, which clients take away, and takes away what only servers read.
func (l *lister) complete(object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, l.session.client.Scheme())
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	object.SetManagedFields(nil)
	return nil
}

// printAll prints objects one by one, under a header if they are rows.
func (l *lister) printAll(objects []client.Object) error {
	if l.options.value != "" && l.options.value != formatWide {
		for _, object := range objects {
			if err := l.printOne(object, false); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{l.header()}
	for _, object := range objects {
		rows = append(rows, l.row(object, false))
	}
	return l.columns.print(rows...)
}

// printOne prints an object, or that it has gone.
func (l *lister) printOne(object client.Object, gone bool) error {
	switch l.options.value {
	case formatName:
		return l.printName(object, gone)
	case formatYAML, formatJSON:
		if err := l.complete(object); err != nil {
			return err
		}
		if l.options.value == formatYAML {
			fmt.Fprintln(l.columns.out, "---")
		}
		return l.options.print(l.columns.out, object)
	}
	return l.columns.print(l.row(object, gone))
}

// printName prints what kubectl takes for the object, such as shoot.core.gardener.cloud/member1.
func (l *lister) printName(object client.Object, gone bool) error {
	gvk, err := apiutil.GVKForObject(object, l.session.client.Scheme())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.columns.out, "%s.%s/%s%s\n", strings.ToLower(gvk.Kind), gvk.Group, oneLine(object.GetName()),
		map[bool]string{true: " gone"}[gone])
	return err
}

func (l *lister) header() []string {
	if l.options.value == formatWide {
		return slices.Concat(l.kind.header, l.kind.wide, []string{"AGE"})
	}
	return slices.Concat(l.kind.header, []string{"AGE"})
}

// shown are the cells of an object that are printed, but for its age.
func (l *lister) shown(object client.Object) []string {
	cells := l.cells(object)
	if l.options.value != formatWide && len(cells) > len(l.kind.header) {
		return cells[:len(l.kind.header)]
	}
	return cells
}

func (l *lister) row(object client.Object, gone bool) []string {
	last := age(object.GetCreationTimestamp(), l.now())
	if gone {
		last = "gone"
	}
	return append(slices.Clip(l.shown(object)), last)
}
