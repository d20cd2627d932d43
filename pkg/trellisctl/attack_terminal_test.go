package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// hostile clears a terminal, colours it, goes back to the begin of a line, and begins lines and columns of its own.
const hostile = "x\x1b[2J\x1b]0;title\x07\u009b31m\rFORGED\nFORGED\tFORGED\u2028FORGED"

// poison sets all texts of a value that there are.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(hostile)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	}
}

// expectHarmless finds what a terminal would obey, and lines that somebody else began.
func expectHarmless(t *testing.T, what, text string) {
	t.Helper()
	if !strings.Contains(text, "FORGED") {
		t.Errorf("%s: nothing hostile is shown:\n%s", what, text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 {
			t.Errorf("%s: a control character at %d of %q", what, i, line)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			t.Errorf("%s: a forged line %q", what, line)
		}
	}
}

// hostileShoot is one whose texts are all hostile, but for those by which it is found.
func hostileShoot(name string) *gardencorev1beta1.Shoot {
	s := working()
	s.Name = name
	poison(reflect.ValueOf(&s.Spec).Elem())
	poison(reflect.ValueOf(&s.Status).Elem())
	s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
	s.Labels = map[string]string{gardencorev1beta1.LabelShootStatus: hostile}
	return s
}

// Names, conditions, errors and events are texts of others: of members of a project, of what runs in their clusters, of
// a garden that somebody was talked into.
func TestAttackTextsOfAGarden(t *testing.T) {
	event := eventOf("one", "u1", "R", 0)
	event.Reason, event.Message, event.ReportingController = hostile, hostile, hostile
	demo := "garden-demo"
	evil := project("evil", &demo)
	evil.Spec.Members = []gardencorev1beta1.ProjectMember{{}}
	evil.Status.Conditions = []gardencorev1beta1.Condition{{}}
	poison(reflect.ValueOf(&evil.Spec.Members).Elem())
	poison(reflect.ValueOf(&evil.Status).Elem())
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}
	seed.Spec.Taints, seed.Spec.Provider.Zones = []gardencorev1beta1.SeedTaint{{}}, []string{""}
	seed.Status.LastOperation = &gardencorev1beta1.LastOperation{}
	seed.Status.Conditions = []gardencorev1beta1.Condition{{}}
	poison(reflect.ValueOf(&seed.Spec).Elem())
	poison(reflect.ValueOf(&seed.Status).Elem())
	s := session(t, Target{Project: "demo", Shoot: "one", Seed: "evil"}, interceptor.Funcs{}, hostileShoot("one"),
		hostileShoot(hostile), event, evil, seed)
	ctx := t.Context()
	for what, show := range map[string]func(io.Writer) error{
		"describe shoot": func(out io.Writer) error { return s.DescribeShoot(ctx, out, today) },
		"describe project": func(out io.Writer) error {
			another := *s
			another.Target = Target{Project: "evil"}
			return another.DescribeProject(ctx, out, today)
		},
		"describe seed":     func(out io.Writer) error { return s.DescribeSeed(ctx, out, today) },
		"ls shoots":         listsAs(t, s, shootKind, formatWide),
		"ls shoots -o name": listsAs(t, s, shootKind, formatName),
		"ls shoots -o yaml": listsAs(t, s, shootKind, formatYAML),
		"ls shoots -o json": listsAs(t, s, shootKind, formatJSON),
		"ls projects":       listsAs(t, s, projectKind, ""),
		"ls seeds":          listsAs(t, s, seedKind, formatWide),
	} {
		var out bytes.Buffer
		if err := show(Visible(&out)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		expectHarmless(t, what, out.String())
	}
}

func listsAs(t *testing.T, s *Session, k *gardenKind, format string) func(io.Writer) error {
	t.Helper()
	return func(out io.Writer) error {
		return listed(s, k, &listing{formatFlag: formatFlag{value: format}}, out).list(t.Context())
	}
}

// The same comes while a garden is watched, and instead of an error.
func TestAttackTextsOfAWatchedGarden(t *testing.T) {
	evil := hostileShoot(hostile)
	evil.ResourceVersion = "6"
	s := &playedWatches{
		lists:   []answer{listOf("5"), {err: errors.New(hostile)}},
		watches: []answer{{events: []watch.Event{changedTo(watch.Added, evil)}}, {err: expiredNow()}},
	}
	out, messages, err := followed(t, s, listing{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	for what, text := range map[string]string{
		"rows": strings.Join(out, "\n"), "messages": strings.TrimPrefix(messages, "Waiting for garden local: "),
	} {
		var shown bytes.Buffer
		if _, err := io.WriteString(Visible(&shown), text); err != nil {
			t.Fatal(err)
		}
		expectHarmless(t, what, shown.String())
	}
}
