package trellisctl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

func TestPrintPlanWarnsByDocument(t *testing.T) {
	var out bytes.Buffer
	p := &plan.Plan{Warnings: []plan.Warning{{Document: "OverridePolicy shop/a", Message: "one"}, {Document: "OverridePolicy shop/a", Message: "two"}, {Document: "OverridePolicy shop/b", Message: "three"}}}
	if err := PrintPlan(&out, p, PlanOptions{Output: "text"}); err != nil {
		t.Fatal(err)
	}
	want := "\nOverridePolicy shop/a says what has no effect in this fleet\nWarning: one\nWarning: two\n" +
		"\nOverridePolicy shop/b says what has no effect in this fleet\nWarning: three\n\nNothing would change (0 objects looked at).\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPrintPlanTellsWhichPoliciesArePassedOver(t *testing.T) {
	p := &plan.Plan{PassedOver: []plan.PassedOver{{Policy: "PropagationPolicy shop/late", Reason: "the larger spec.priority goes first"}}}
	for i := range 12 {
		p.PassedOver[0].Objects = append(p.PassedOver[0].Objects, plan.KeptObject{
			Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web%02d", i), Policy: "PropagationPolicy shop/web",
		})
	}
	tests := map[string]struct {
		all    bool
		want   []string
		absent string
	}{
		"some": {false, []string{
			"PropagationPolicy shop/late would not have 12 objects that it selects\nWhy:     the larger spec.priority goes first\n",
			"Deployment shop/web09   PropagationPolicy shop/web\n  and 2 more (--all shows them)\n", "Nothing would change",
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
