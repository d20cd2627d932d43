package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// measureFederation runs the Go benchmark of the placement core.
func measureFederation(ctx context.Context) ([]measurement, error) {
	decisions, err := goBenchmark(ctx, "./pkg/federation/core", "BenchmarkDecide", "decisions/s")
	if err != nil {
		return nil, err
	}
	return []measurement{
		{
			Name: "federation decisions, 100 members, in process", Value: decisions, Unit: "per s",
			How: "`BenchmarkDecide` of pkg/federation/core, one goroutine, the slowest of its divisions",
		},
	}, nil
}

// goBenchmark returns the lowest median of a metric over the sub-benchmarks of a benchmark.
func goBenchmark(ctx context.Context, pkg, name, metric string) (float64, error) {
	found, err := goBenchmarks(ctx, pkg, name, metric)
	if err != nil {
		return 0, err
	}
	return found[metric], nil
}

// goBenchmarks returns the lowest medians of metrics over the sub-benchmarks of a benchmark.
func goBenchmarks(ctx context.Context, pkg, name string, metrics ...string) (map[string]float64, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchtime", "5s",
		"-count", strconv.Itoa(rounds), pkg)
	out, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, out)
	}
	lowest := map[string]float64{}
	for _, metric := range metrics {
		values := parseBenchmark(string(out), metric)
		if len(values) == 0 {
			return nil, fmt.Errorf("%s reports no %s: %s", name, metric, out)
		}
		for _, v := range values {
			if m := median(v); lowest[metric] == 0 || m < lowest[metric] {
				lowest[metric] = m
			}
		}
	}
	return lowest, nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^(Benchmark\S+)\s+\d+\s+(.*)$`)

// parseBenchmark reads the values of a metric by sub-benchmark from the output of `go test -bench`.
func parseBenchmark(out, metric string) map[string][]float64 {
	values := map[string][]float64{}
	value := regexp.MustCompile(`([0-9.e+]+) ` + regexp.QuoteMeta(metric) + `(\s|$)`)
	for _, line := range benchmarkLine.FindAllStringSubmatch(out, -1) {
		if found := value.FindStringSubmatch(line[2]); found != nil {
			if v, err := strconv.ParseFloat(found[1], 64); err == nil {
				values[line[1]] = append(values[line[1]], v)
			}
		}
	}
	return values
}
