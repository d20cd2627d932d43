package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// peerModule is a module of its own, so that the product needs nothing of the scheduler it is compared with.
	peerModule = "test/bench/karmada"
	// placementFile keeps the rows of the last run.
	placementFile = "test/bench/placement.json"
	// differentialCases are compared before anything is measured.
	differentialCases = "20000"
)

// placements are the measured decisions of this project and of Karmada v1.12.0 in one run.
type placements struct {
	Date    string         `json:"date"`
	Commit  string         `json:"commit"`
	Machine string         `json:"machine"`
	Rows    []placementRow `json:"rows"`
}

// placementRow is what the peer's module prints of one cell; see there.
type placementRow struct {
	Clusters  int    `json:"clusters"`
	Division  string `json:"division"`
	Spread    string `json:"spread"`
	Ours      cost   `json:"ours"`
	Core      cost   `json:"core"`
	Schedule  cost   `json:"schedule"`
	Algorithm cost   `json:"algorithm"`
	GaveUp    string `json:"gaveUp,omitempty"`
	Result    string `json:"result,omitempty"`
}

// cost of one decision.
type cost struct {
	Nanoseconds float64 `json:"ns"`
	Allocations float64 `json:"allocs"`
}

// measurePlacement compares decisions with those of Karmada's scheduler, first what they are, then what they cost.
func measurePlacement(ctx context.Context) ([]measurement, error) {
	folder, err := buildPeer(ctx, peerModule, ".")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "karmada")
	differential := exec.CommandContext(ctx, program, "differential", differentialCases)
	if out, err := differential.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("decisions differ: %w: %s", err, out)
	}
	command := exec.CommandContext(ctx, program, "benchmark")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("benchmark of %s: %w", peerModule, err)
	}
	rows, err := parsePlacements(&out)
	if err != nil {
		return nil, err
	}
	return nil, recordPlacements(rows)
}

// buildPeer builds packages of a module of others' code, and returns the folder of their programs. It builds with a
// copy of the module's go.mod, which the build may bring up to date when the product's requirements have changed.
func buildPeer(ctx context.Context, module string, packages ...string) (string, error) {
	folder, err := filepath.Abs(filepath.Join(".cache/bench", filepath.Base(module)))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(ctx, "go", append([]string{
		"-C", module, "build", "-mod=mod", "-modfile=" + filepath.Join(folder, "go.mod"),
		"-o", folder + string(filepath.Separator),
	}, packages...)...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", module, err, out)
	}
	return folder, nil
}

func parsePlacements(in io.Reader) ([]placementRow, error) {
	var rows []placementRow
	for decoder := json.NewDecoder(in); ; {
		var row placementRow
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("output of %s: %w", peerModule, err)
		}
		rows = append(rows, row)
	}
}

func recordPlacements(rows []placementRow) error {
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	p := placements{
		Date: time.Now().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)), Machine: machine(),
		Rows: rows,
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(placementFile, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return record(nil)
}

// renderPlacements is the section of the report; empty before the first run.
func renderPlacements() (string, error) {
	data, err := os.ReadFile(placementFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var p placements
	if err := json.Unmarshal(data, &p); err != nil {
		return "", fmt.Errorf("%s: %w", placementFile, err)
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, `
## Placement decisions, beside Karmada v1.12.0's

Both decide the same binding of 1,000 replicas over the same clusters in the same run, one goroutine each (GOMAXPROCS %d): CPU time with garbage collection,
the median of 3 to 11 batches after a warm-up. A decision as shipped: here with the translation of the binding, there `+"`Schedule`"+` with the snapshot it copies for each decision. The
algorithm alone: here `+"`core.Decide`"+`, there `+"`SelectClusters` and `AssignReplicas`"+`, without filters and scores. Before they are measured, decisions
are compared; the last column names the class of difference, which [federation-differences.md](federation-differences.md) explains. Where the peer's process took
more than its time or 8 GiB for a cell, it was given up: its search over regions grows exponentially. Measured %s at %s on %s.

| clusters | division | spread | as shipped | Karmada | ratio | allocations | Karmada | algorithm | Karmada | ratio | result |
|---|---|---|---|---|---|---|---|---|---|---|---|
`, runtime.GOMAXPROCS(0), p.Date, p.Commit, p.Machine)
	for _, r := range p.Rows {
		text.WriteString(r.line())
	}
	return text.String(), nil
}

func (r placementRow) line() string {
	if r.GaveUp != "" {
		return fmt.Sprintf("| %d | %s | %s | %s | %s | | %.0f | | %s | %s | | |\n", r.Clusters, r.Division, r.Spread,
			duration(r.Ours), r.GaveUp, r.Ours.Allocations, duration(r.Core), r.GaveUp)
	}
	return fmt.Sprintf("| %d | %s | %s | %s | %s | %s× | %.0f | %.0f | %s | %s | %s× | %s |\n", r.Clusters, r.Division,
		r.Spread,
		duration(r.Ours), duration(r.Schedule), number(r.Schedule.Nanoseconds/r.Ours.Nanoseconds), r.Ours.Allocations,
		r.Schedule.Allocations,
		duration(r.Core), duration(r.Algorithm), number(r.Algorithm.Nanoseconds/r.Core.Nanoseconds), r.Result)
}

func duration(c cost) string {
	switch {
	case c.Nanoseconds >= 1e9:
		return number(c.Nanoseconds/1e9) + " s"
	case c.Nanoseconds >= 1e6:
		return number(c.Nanoseconds/1e6) + " ms"
	}
	return number(c.Nanoseconds/1e3) + " µs"
}
