package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// measurement is one figure and how it came about.
type measurement struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	How   string  `json:"how"`
	// Date, Commit and Machine are filled in when it is recorded.
	Date    string `json:"date"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
}

// target is what a figure should reach; less says that smaller is better. One without numbers is only to be known.
type target struct {
	name               string
	firstRelease, goal float64
	less               bool
}

// targets are in the order of the report.
var targets = []target{
	{"`make up` on a fresh machine, builds included", 25, 15, true},
	{"`make up` with everything built", 4, 2, true},
	{"`kubectl apply` of a Shoot → its API answers", 20, 6, true},
	{"`kubectl apply` of a Shoot → first node Ready", 60, 18, true},
	{"`kubectl apply` of a Shoot → first pod runs", 75, 22, true},
	{"memory of one shoot control plane", 600, 350, true},
	{"idle CPU of one shoot control plane", 6, 3, true},
	{"federation decisions, 100 members, in process", 20000, 100000, false},
	{fleetFigure(10, figureCeiling), 0, 0, false},
	{fleetFigure(10, figurePlaced), 300, 2000, false},
	{fleetFigure(10, figureReported), 0, 0, false},
	{fleetFigure(10, figureChanged), 0, 0, true},
	{fleetFigure(10, figureChangedP99), 2000, 500, true},
	{fleetFigure(100, figureCeiling), 0, 0, false},
	{fleetFigure(100, figurePlaced), 300, 2000, false},
	{fleetFigure(100, figureReported), 0, 0, false},
	{fleetFigure(100, figureChanged), 0, 0, true},
	{fleetFigure(100, figureChangedP99), 2000, 500, true},
	{fleetFigure(100, figureBindings), 0, 0, true},
	{figureCreate, 100, 400, false},
	{figureUpdate, 150, 600, false},
	{figureListAll, 5, 2, true},
	{figureListSelected, 50, 15, true},
	{figureLatency50, 50, 10, true},
	{figureLatency99, 500, 100, true},
	{figureMemory, 1500, 500, true},
	{figurePeak, 2500, 1000, true},
	{figureFirstLoad, 300, 0, true},
	{figureFirstRows, 0, 0, true},
	{figureAllRows, 1000, 0, true},
	{figureConnected, 0, 0, true},
	{figureShown50, 200, 0, true},
	{figureShown99, 200, 0, true},
	{figureWatches, 5, 0, true},
	{figureDashboardRest, 60, 0, true},
	{figureDashboardMemory, 0, 0, true},
	{figureDashboardPeak, 0, 0, true},
	{figureStrangers50, 0, 0, true},
	{figureStrangers99, 200, 50, true},
	{figureStrangersMemory, 960, 256, true},
	{figureRestore, 0, 0, true},
	{figureRestorePeer, 0, 0, true},
	{figureTrial, 0, 0, true},
	{figureKilled, 0, 0, true},
	{figureGrowth, 0, 0, true},
	{figureGrowthSilent, 0, 0, true},
	{figureWritesOfOne, 0, 0, false},
	{figureWritesOf3, 0, 0, false},
	{figureUpgrade, 0, 0, true},
	{figureUpgradeSilent, 0, 0, true},
	{figureUpgradeWorker, 0, 0, true},
	{figureDensity, 15, 0, false},
	{figureDensityMemory, 0, 0, true},
	{figureDensityCPU, 0, 0, true},
	{figureDensityFirst, 0, 0, true},
	{figureDensityLast, 0, 0, true},
}

const (
	resultsFile = "test/bench/results.json"
	reportFile  = "docs/benchmarks.md"
)

// record replaces the recorded figures of the same names and writes the report.
func record(fresh []measurement) error {
	results := map[string]measurement{}
	data, err := os.ReadFile(resultsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(data, &results); err != nil {
			return fmt.Errorf("%s: %w", resultsFile, err)
		}
	}
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	for _, m := range fresh {
		m.Date, m.Commit, m.Machine = time.Now().Format(time.DateOnly), strings.TrimSpace(string(commit)), machine()
		results[m.Name] = m
	}
	if data, err = json.MarshalIndent(results, "", "  "); err != nil {
		return err
	}
	if err := os.WriteFile(resultsFile, append(data, '\n'), 0o644); err != nil {
		return err
	}
	placements, err := renderPlacements()
	if err != nil {
		return err
	}
	return os.WriteFile(reportFile, []byte(render(results)+placements), 0o644)
}

func render(results map[string]measurement) string {
	text := &strings.Builder{}
	text.WriteString("# Benchmarks\n\nWritten by `make bench`, which starts a landscape of its own (`make bench " +
		"AREAS=fresh` measures a first start in a\nnew clone with empty caches). Each line says when, at which " +
		"commit and on what machine it was measured.\n\n")
	text.WriteString("| what | measured | first release | goal | date | commit |\n|---|---|---|---|---|---|\n")
	machines := []string{}
	for _, t := range targets {
		m, ok := results[t.name]
		if !ok {
			fmt.Fprintf(text, "| %s | not measured yet | %s | %s | | |\n", t.name, wanted(t.firstRelease),
				wanted(t.goal))
			continue
		}
		fmt.Fprintf(text, "| %s | %s %s%s | %s | %s | %s | %s |\n", t.name, number(m.Value), m.Unit, t.rating(m.Value),
			wanted(t.firstRelease), wanted(t.goal), m.Date, m.Commit)
		if !slices.Contains(machines, m.Machine) {
			machines = append(machines, m.Machine)
		}
	}
	text.WriteString("\nHow:\n\n")
	for _, t := range targets {
		if m, ok := results[t.name]; ok {
			fmt.Fprintf(text, "- %s: %s.\n", t.name, m.How)
		}
	}
	fmt.Fprintf(text, "\nMachine: %s.\n", strings.Join(machines, "; "))
	return text.String()
}

// rating says when a figure falls short.
func (t target) rating(value float64) string {
	if t.firstRelease == 0 || value == t.firstRelease || t.less == (value < t.firstRelease) {
		return ""
	}
	return " (**short**)"
}

// wanted number; 0 stands for none.
func wanted(value float64) string {
	if value == 0 {
		return ""
	}
	return number(value)
}

func number(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
}

// machine describes where it was measured.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, %s memory, Linux %s", field("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		field("/proc/meminfo", "MemTotal"), strings.TrimSpace(string(kernel)))
}

// field returns the first value of a name in a file of lines such as "name : value".
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
