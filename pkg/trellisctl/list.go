package trellisctl

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
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
	for i, text := range cells {
		cells[i] = cellText(text)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// cellText is what stands in a column: one line, and a dash for nothing.
func cellText(text string) string { return orElse(oneLine(text), "-") }

func age(created metav1.Time, now time.Time) string {
	return duration.HumanDuration(now.Sub(created.Time))
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

func clientFor(kubeconfig *clientcmdapi.Config) (client.Client, error) {
	restConfig, err := restConfigOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(restConfig, client.Options{})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
