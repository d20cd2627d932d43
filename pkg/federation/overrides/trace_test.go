package overrides

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func TestTraceNamesTheRuleThatSetEachField(t *testing.T) {
	object := parse(t, deployment)
	policies := []Policy{
		policy(t, "a", `{overrideRules: [
			{targetCluster: {clusterNames: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {tier: gold}}], plaintext: [{path: /spec/replicas, operator: replace, value: 7}]}},
			{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 9}]}}]}`),
		policy(t, "b",
			`{overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {"a/b": "1", tier: iron}}]}}]}`),
	}
	got, err := Trace(object, core.Cluster{Name: "m1"}, policies)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range got {
		lines = append(lines, fmt.Sprintf("%s=%v by %s %s", s.Path, s.Value, s.Policy, s.Rule))
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"/spec/replicas=7 by", "a spec.overrideRules[0]", "tier=iron by", "b spec.overrideRules[0]", "a~1b=1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "=9") || strings.Contains(text, "gold") {
		t.Errorf("a rule for another cluster, or one that was overridden, shows in\n%s", text)
	}
}
