package docs

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/component"
)

// withoutPriority are pods that are not Trellis' to rank, with the reason.
var withoutPriority = map[string]string{
	"pkg/federation/registration Deployment/agent": "clusters of others need not have our classes",
	"extensions/provider-local/pkg/controller/worker Pod/machine-controller-manager": "a part of a pod that the " +
		"library makes",
	"pkg/dashboard/terminal Job/terminal": "a pod of a user, in clusters that need not have our classes",
}

// besideTheGarden are charts of local landscapes that are there before there is a seed.
var besideTheGarden = []string{"local-cloud", "local-issuer"}

// Every pod that Trellis makes has a priority class that the cluster it runs in is given, or that every cluster has.
func TestPodsHavePriorities(t *testing.T) {
	known := []string{
		component.PriorityNodeCritical, component.PriorityClusterCritical, "reserve-excess-capacity", "local-machine",
	}
	for _, class := range slices.Concat(component.SeedPriorityClasses(), component.GardenPriorityClasses()) {
		known = append(known, class.GetName())
	}
	used, pods := map[string]bool{}, 0
	for source, templates := range podTemplates(t) {
		for _, template := range templates {
			pods++
			where := source + " " + template.name
			class := template.spec.PriorityClassName
			switch {
			case withoutPriority[where] != "" && class == "":
				used[where] = true
			case !slices.Contains(known, class):
				t.Errorf("%s has the priority class %q", where, class)
			case strings.HasPrefix(source, "extensions/") && strings.Contains(source, "/charts/") &&
				class != component.PrioritySeedSystem900 && !slices.Contains(besideTheGarden, path.Base(source)):
				t.Errorf("%s has the priority class %q; extensions have %s", where, class,
					component.PrioritySeedSystem900)
			}
		}
	}
	for where := range withoutPriority {
		if !used[where] {
			t.Errorf("%s needs no exception", where)
		}
	}
	if pods < 40 {
		t.Errorf("found only %d pods", pods)
	}
}
