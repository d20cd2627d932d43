package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shown"
)

// maxLine bounds a line of a member; longer ones are broken.
const maxLine = 64 << 10

// memberChoice are the flags of commands that ask members of a fleet.
type memberChoice struct {
	fleetAccess
	members  []string
	selector string
	parallel int
}

func (m *memberChoice) flags(c *cli, command *cobra.Command) {
	m.fleetAccess.flags(command)
	command.Flags().StringSliceVar(&m.members, "members", nil, "members to ask (default: all)")
	command.Flags().StringVarP(&m.selector, "member-selector", "l", "", "labels of the members to ask")
	command.Flags().IntVar(&m.parallel, "parallel", 8, "how many members to ask at a time")
	completeFlag(command, "members", c.completeMembers(&m.fleetAccess))
}

// askMembers asks the chosen members, several at a time. What one answers wrong is told and hides nothing of others;
// the command ends with status 1 then. What some have and others have not is not wrong.
func (c *cli) askMembers(command *cobra.Command, choice memberChoice,
	ask func(ctx context.Context, member string, config *rest.Config) error) error {
	fleet, err := c.fleet(command.Context(), choice.fleetAccess)
	if err != nil {
		return err
	}
	members, err := fleet.choose(command.Context(), choice.members, choice.selector)
	if err != nil {
		return err
	}
	return fleet.ask(command.Context(), members, choice.parallel, tell(command), ask)
}

// unknownMemberFirst has who named a member that the fleet has not told that before any other mistake in the arguments:
// what is mended then is of no use for it.
func (c *cli) unknownMemberFirst(command *cobra.Command, choice memberChoice, mistake error) error {
	if mistake == nil || len(choice.members) == 0 || command.Context() == nil {
		return mistake
	}
	fleet, err := c.fleet(command.Context(), choice.fleetAccess)
	if err != nil {
		return mistake // Which members the fleet has is not known, and the mistake is.
	}
	if _, err := fleet.choose(command.Context(), choice.members, choice.selector); err != nil {
		return fmt.Errorf("%w; also, %w", err, mistake)
	}
	return mistake
}

// choose returns the members with these names and labels, in order.
func (f *Fleet) choose(ctx context.Context, names []string, selector string) ([]clusterv1alpha1.Cluster, error) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--member-selector: %w", err)
	}
	list := &clusterv1alpha1.ClusterList{}
	if err := f.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: wanted}); err != nil {
		return nil, fmt.Errorf("listing the members of the fleet: %w", err)
	}
	members := slices.DeleteFunc(list.Items, func(m clusterv1alpha1.Cluster) bool {
		return len(names) > 0 && !slices.Contains(names, m.Name)
	})
	for _, name := range names {
		if !slices.ContainsFunc(members, func(m clusterv1alpha1.Cluster) bool { return m.Name == name }) {
			return nil, fmt.Errorf("the fleet has no member %q%s; `trellisctl members` shows those that it has", name,
				map[bool]string{true: " with labels " + selector}[selector != ""])
		}
	}
	if len(members) == 0 {
		return nil, errors.New("the fleet has no such members; `trellisctl members` shows those that it has")
	}
	slices.SortFunc(members, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return members, nil
}

func (f *Fleet) ask(ctx context.Context, members []clusterv1alpha1.Cluster, parallel int, tell func(string, ...any),
	ask func(ctx context.Context, member string, config *rest.Config) error) error {
	if parallel < 1 {
		return fmt.Errorf("--parallel %d: must be 1 or more", parallel)
	}
	var lock sync.Mutex
	var missing []string
	failed, answered := false, false
	atATime(len(members), parallel, func(i int) {
		member := members[i].Name
		err := ask(ctx, member, f.memberConfig(member))
		lock.Lock()
		defer lock.Unlock()
		switch {
		case err == nil:
			answered = true
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Sprintf("member %s: %s", member, oneLine(err.Error())))
		default:
			failed = true
			tellAll(tell, member, err)
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if !answered {
		slices.Sort(missing)
		for _, text := range missing {
			tell("%s", text)
		}
		failed = failed || len(missing) > 0
	}
	if failed {
		return ExitError{1}
	}
	return nil
}

// tellAll tells of errors of a member, with the member before each line: none looks like another member's, or ours.
func tellAll(tell func(string, ...any), member string, err error) {
	for line := range strings.Lines(err.Error()) {
		tell("member %s: %s", member, oneLine(strings.TrimSuffix(line, "\n")))
	}
}

// atATime does something for each of n, no more than limit at a time, and returns when all is done.
func atATime(n, limit int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}

// memberConfig leads to a member's API through that of the fleet.
func (f *Fleet) memberConfig(member string) *rest.Config {
	config := rest.CopyConfig(f.Config)
	config.Host = strings.TrimSuffix(config.Host, "/") + "/apis/" +
		clusterv1alpha1.KarmadaGroupVersion.String() + "/clusters/" + member + "/proxy"
	config.UserAgent = userAgent
	return config
}

// memberTable prints rows of several members as they come. Columns get wider when they must; the header comes again
// when a member has other columns.
type memberTable struct {
	lock    sync.Mutex
	columns columns
	header  string
}

func newMemberTable(out io.Writer) *memberTable { return &memberTable{columns: columns{out: out}} }

func (t *memberTable) add(member string, header []string, rows [][]string) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	var lines [][]string
	if joined := strings.Join(header, "\x00"); len(rows) > 0 && joined != t.header {
		t.header, t.columns.widths = joined, nil
		lines = append(lines, append([]string{"CLUSTER"}, header...))
	}
	for _, row := range rows {
		lines = append(lines, append([]string{member}, row...))
	}
	return t.columns.print(lines...)
}

// memberLines prints lines of several members as they come, whole, with whose they are before them.
type memberLines struct {
	lock sync.Mutex
	out  io.Writer
}

// of is the writer for what one source says; Close it for the last line. Names of sources are text for people, whatever
// is done with what they say.
func (l *memberLines) of(source string) io.WriteCloser {
	return &sourceLines{lines: l, source: shown.Text(source)}
}

type sourceLines struct {
	lines  *memberLines
	source string
	rest   []byte
}

// Write prints the lines that are whole.
func (s *sourceLines) Write(text []byte) (int, error) {
	s.rest = append(s.rest, text...)
	for {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 && len(s.rest) > maxLine {
			end = maxLine
			for end > maxLine-utf8.UTFMax && !utf8.RuneStart(s.rest[end]) {
				end-- // Half a character is none.
			}
		}
		if end < 0 {
			return len(text), nil
		}
		line := s.rest[:end]
		s.rest = bytes.TrimPrefix(s.rest[end:], []byte("\n"))
		if err := s.lines.print(s.source, line); err != nil {
			return 0, err
		}
	}
}

// Close prints a last line without an end.
func (s *sourceLines) Close() error {
	if len(s.rest) == 0 {
		return nil
	}
	line := s.rest
	s.rest = nil
	return s.lines.print(s.source, line)
}

func (l *memberLines) print(source string, line []byte) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	// What a member says is no command for the terminal; the color before it is.
	if terminal := colored(l.out); terminal != nil {
		if _, err := fmt.Fprintf(terminal, "\x1b[%dm", colorOf(source)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(l.out, source); err != nil {
			return err
		}
		if _, err := fmt.Fprint(terminal, "\x1b[0m"); err != nil {
			return err
		}
		source = ""
	}
	_, err := fmt.Fprintf(l.out, "%s  %s\n", source, bytes.TrimSuffix(line, []byte("\r")))
	return err
}

// colored is the terminal behind the output; nil if it is none, or none that is to have colors.
func colored(out io.Writer) io.Writer {
	if terminal := terminalOf(out); terminal != nil && os.Getenv("NO_COLOR") == "" {
		return terminal
	}
	return nil
}

// colorOf is the same for all that one source says: one of six that are read on light and dark.
func colorOf(source string) int {
	hash := fnv.New32a()
	hash.Write([]byte(source))
	return 31 + int(hash.Sum32()%6)
}

// memberTimeout bounds a question that is answered at once.
const memberTimeout = time.Minute
