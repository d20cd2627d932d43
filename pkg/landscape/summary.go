package landscape

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// summary tells what runs now and what to type next.
func (l *Landscape) summary(took time.Duration, loopback string) string {
	program := func(name string) string { return l.fromHere(filepath.Join(l.BinDir(), name)) }
	garden := ""
	if l.Name != DefaultName {
		garden = "--config " + l.fromHere(l.TrellisctlConfig()) + " "
	}
	lines := []string{
		fmt.Sprintf("\nThe landscape %s is up (%s).", l.Name, seconds(took)),
		"",
		"  " + program("trellisctl") + " " + garden + "ls",
		fmt.Sprintf("  %s %skubeconfig --garden %s --project %s --shoot %s > m1.yaml", program("trellisctl"), garden,
			l.Name, demoProject, demoShoots[0]),
		"  " + program("kubectl") + " --kubeconfig m1.yaml get nodes -o wide",
		"  " + program("kubectl") + " --kubeconfig m1.yaml run web --image=nginx",
		fmt.Sprintf("  %s %skubeconfig --garden %s --project %s --shoot fleet > fleet.yaml", program("trellisctl"),
			garden, l.Name, demoProject),
		"  " + program("kubectl") + " --kubeconfig fleet.yaml apply -f " +
			l.fromHere(filepath.Join(l.Root, "landscape/local/examples/001-karmada-nginx-3docs.yaml")),
		"",
		"Kubeconfigs of administrators:",
		"  garden          " + l.fromHere(l.GardenKubeconfig()),
		"  runtime cluster " + l.fromHere(l.RuntimeKubeconfig()),
		"",
	}
	lines = append(append(lines, l.dashboardSummary(loopback)...), "",
		l.make("status")+" shows health, "+l.make("down")+" removes everything.")
	return strings.Join(lines, "\n") + "\n"
}

// make is what to type for targets of the Makefile to be about this landscape.
func (l *Landscape) make(targets string) string {
	if l.Name != DefaultName {
		targets += " NAME=" + l.Name
	}
	return "`make " + targets + "`"
}

// fromHere shortens a path for people who are in the repository.
func (l *Landscape) fromHere(path string) string {
	relative, err := filepath.Rel(l.Root, path)
	if err != nil {
		return path
	}
	return relative
}
