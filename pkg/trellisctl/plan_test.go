package trellisctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

func TestPrintPlanWarnsByDocument(t *testing.T) {
	var out bytes.Buffer
	p := &plan.Plan{
		Warnings: []plan.Warning{
			{Document: "OverridePolicy shop/a", Message: "one"}, {Document: "OverridePolicy shop/a", Message: "two"},
			{Document: "OverridePolicy shop/b", Message: "three"},
		},
	}
	if err := PrintPlan(&out, p, PlanOptions{Output: "text"}); err != nil {
		t.Fatal(err)
	}
	want := "\nOverridePolicy shop/a says what has no effect in this fleet\nWarning: one\nWarning: two\n" +
		"\nOverridePolicy shop/b says what has no effect in this fleet\nWarning: three\n\nNothing would change (0 " +
		"objects looked at).\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPrintPlanTellsWhichPoliciesArePassedOver(t *testing.T) {
	p := &plan.Plan{
		PassedOver: []plan.PassedOver{
			{Policy: "PropagationPolicy shop/late", Reason: "the larger spec.priority goes first"},
		},
	}
	for i := range 12 {
		p.PassedOver[0].Objects = append(p.PassedOver[0].Objects, plan.KeptObject{
			Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web%02d", i),
			Policy: "PropagationPolicy shop/web",
		})
	}
	tests := map[string]struct {
		all    bool
		want   []string
		absent string
	}{
		"some": {false, []string{
			"PropagationPolicy shop/late would not have 12 objects that it selects\nWhy:     the larger " +
				"spec.priority goes first\n",
			"Deployment shop/web09   PropagationPolicy shop/web\n  and 2 more (--all shows them)\n",
			"Nothing would change",
		}, "web10"},
		"all": {true, []string{"Deployment shop/web11   PropagationPolicy shop/web\n"}, "more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := PrintPlan(&out, p, PlanOptions{Output: "text", All: tc.all}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), tc.absent) {
				t.Errorf("%q is in\n%s", tc.absent, out.String())
			}
		})
	}
}

func TestSummaryOfAPlan(t *testing.T) {
	for want, summary := range map[string]plan.Summary{
		"Nothing would change (1 object looked at).": {Examined: 1},
		"1 of 3 objects would change, 2 added to clusters, replicas +4 -0.": {
			Examined: 3, Changed: 1, Added: 2, ReplicasAdded: 4,
		},
		"2 of 2 objects would change, 1 removed, 1 given up and kept in members, without a policy then: 2, 1 would " +
			"be nowhere.": {
			Examined: 2, Changed: 2, Removed: 1, Kept: 1, LosePolicy: 2, Unplaced: 1,
		},
	} {
		if got := summaryOf(summary); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// somePlan moves a Deployment from one to two, scales it in three, and leaves four alone.
func somePlan() *plan.Plan {
	one, two, three := int32(1), int32(2), int32(3)
	return &plan.Plan{
		Documents: []plan.Document{{Action: "Change", Kind: "PropagationPolicy", Namespace: "shop", Name: "web"}},
		Objects: []plan.ObjectChange{{
			Kind: "Deployment", Namespace: "shop", Name: "web", PolicyNow: "PropagationPolicy shop/web",
			PolicyThen: "PropagationPolicy shop/other", Notes: []string{"it has room"},
			Clusters: []plan.ClusterChange{
				{Name: "one", Effect: plan.EffectRemoved, ReplicasNow: &one},
				{Name: "two", Effect: plan.EffectAdded, ReplicasThen: &two},
				{Name: "three", Effect: plan.EffectScaled, ReplicasNow: &one, ReplicasThen: &three},
				{Name: "four", Effect: plan.EffectUnchanged, ReplicasNow: &one, ReplicasThen: &one},
				{Name: "five", Effect: plan.EffectKept},
			},
			Fields: []plan.FieldChange{
				{Cluster: "three", Path: "/spec/image", Now: "a", Then: "b", SetBy: "OverridePolicy shop/image"},
				{Cluster: "three", Path: "/spec/x", Now: 1},
			},
		}},
		Held: []plan.Held{
			{Cluster: "one", Deletions: 9, Objects: 10, Allowance: 2}, {Deletions: 9, Objects: 20, Allowance: 4},
		},
		Summary: plan.Summary{Examined: 1, Changed: 1},
	}
}

func TestPrintPlanInFull(t *testing.T) {
	var out bytes.Buffer
	err := PrintPlan(&out, somePlan(), PlanOptions{Output: "text"})
	check(t, "plan", lines(t, &out, err), []string{
		"Change PropagationPolicy shop/web", "", "Deployment shop/web",
		"Policy: PropagationPolicy shop/web -> PropagationPolicy shop/other", "Note: it has room",
		"CLUSTER NOW THEN CHANGE", "one 1 - Removed", "two - 2 Added", "three 1 3 Scaled", "five yes - Kept",
		"unchanged in 1 cluster",
		"CLUSTER FIELD NOW THEN SET BY", "three /spec/image a b OverridePolicy shop/image",
		"three /spec/x 1 - the object itself",
		"", "The deletion budget would hold these until `trellisctl deletions confirm`:",
		"9 of 10 objects in member one; 2 are let through",
		"9 of 20 objects in the fleet as a whole; 4 are let through", "", "1 of 1 object would change.",
	})
	out.Reset()
	if err := PrintPlan(&out, somePlan(), PlanOptions{Output: "text", All: true}); err != nil ||
		!strings.Contains(out.String(), "four ") || strings.Contains(out.String(), "unchanged in") {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

// Scripts read the same plan in both forms.
func TestPrintPlanForPrograms(t *testing.T) {
	for output, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
	} {
		var out bytes.Buffer
		if err := PrintPlan(&out, somePlan(), PlanOptions{Output: output}); err != nil {
			t.Fatal(err)
		}
		got := &plan.Plan{}
		if err := read(out.Bytes(), got); err != nil || got.Summary != somePlan().Summary || len(got.Objects) != 1 ||
			len(got.Objects[0].Clusters) != 5 {
			t.Errorf("%s: got %+v, %v", output, got, err)
		}
	}
}

func TestPlanOptions(t *testing.T) {
	for want, options := range map[string]PlanOptions{
		"Add -f FILE": {Output: "text"},
		`--output "xml": must be text, json or yaml`: {Files: []string{"-"}, Output: "xml"},
	} {
		options.Settings = plan.DefaultSettings()
		if err := options.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	good := PlanOptions{Files: []string{"-"}, Output: "json", Settings: plan.DefaultSettings()}
	if err := good.validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

// A folder stands for its documents, in the order of their names, and for nothing else that lies there.
func TestFilesOfAPlan(t *testing.T) {
	dir := t.TempDir()
	const document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name),
			fmt.Appendf(nil, document, strings.TrimSuffix(name, filepath.Ext(name))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "deep.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths, err := filesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	if !slices.Equal(names, []string{"a.yml", "b.yaml", "c.json"}) {
		t.Errorf("got %v", names)
	}
	if err := os.Remove(filepath.Join(dir, "c.json")); err != nil {
		t.Fatal(err)
	}
	written, err := readPlanned([]string{dir, "-"}, strings.NewReader(fmt.Sprintf(document, "stdin")))
	if err != nil || len(written) != 3 {
		t.Errorf("got %d documents, %v", len(written), err)
	}
	if _, err := readPlanned([]string{"-"}, strings.NewReader("\n")); err == nil ||
		!strings.Contains(err.Error(), "the files hold no documents") {
		t.Errorf("got %v", err)
	}
	if _, err := readPlanned([]string{filepath.Join(dir, "none.yaml")}, nil); err == nil ||
		!strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}
