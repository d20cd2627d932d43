package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// idlePeriod is how long control planes are left alone, and then watched for their idle CPU.
const idlePeriod = 30 * time.Second

// usage sums up all processes of the pods in namespaces of the seed when they are idle: their proportional set size in
// bytes, and their share of one core.
func (l landscape) usage(ctx context.Context, namespaces ...string) (memory int64, cpu float64, err error) {
	out, err := l.kubectl(ctx, l.runtimeKubeconfig(), "", "get", "pods", "--all-namespaces", "-o",
		`jsonpath={range .items[*]}{.metadata.namespace} {.metadata.uid}{"\n"}{end}`)
	if err != nil {
		return 0, 0, err
	}
	uids := uidsIn(out, namespaces)
	if len(uids) == 0 {
		return 0, 0, fmt.Errorf("there are no pods in %s", strings.Join(namespaces, ", "))
	}
	if err := pause(ctx, idlePeriod); err != nil {
		return 0, 0, err
	}
	before, err := l.sumOverProcesses(ctx, uids, "stat", ticksOfStat)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := pause(ctx, idlePeriod); err != nil {
		return 0, 0, err
	}
	after, err := l.sumOverProcesses(ctx, uids, "stat", ticksOfStat)
	if err != nil {
		return 0, 0, err
	}
	const ticksPerSecond = 100
	cpu = float64(after-before) / ticksPerSecond / time.Since(start).Seconds()
	kib, err := l.sumOverProcesses(ctx, uids, "smaps_rollup", pssOfRollup)
	return kib << 10, cpu, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// uidsIn picks the UIDs of the pods in some namespaces from lines of a namespace and a UID.
func uidsIn(lines string, namespaces []string) []string {
	var uids []string
	for line := range strings.Lines(lines) {
		namespace, uid, _ := strings.Cut(strings.TrimSpace(line), " ")
		if uid != "" && slices.Contains(namespaces, namespace) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// Programs for awk.
const (
	// printSum also prints sums that awk would by itself write with an exponent.
	printSum = ` END {printf "%.0f\n", sum}`
	// pssOfRollup adds up proportional set sizes, in KiB.
	pssOfRollup = `/^Pss:/ {sum += $2}` + printSum
	// ticksOfStat adds up user and system time, which come after the name in parentheses, which may hold anything.
	ticksOfStat = `{sub(/.*\) /, ""); sum += $12 + $13}` + printSum
)

// overProcesses runs a program for awk over a file of /proc of all processes in whose cgroups a UID is. One grep, cat
// and awk read all: programs for each process would take from what is measured.
const overProcesses = `cat $(echo "$0" | tr ' ' '\n' | grep -lsFf - /proc/[0-9]*/cgroup | sed "s|cgroup$|$1|") \
  2>/dev/null | awk "$2"`

// sumOverProcesses adds up what a program for awk finds in a file of /proc of all processes of pods.
func (l landscape) sumOverProcesses(ctx context.Context, uids []string, file, program string) (int64, error) {
	out, err := exec.CommandContext(ctx, "bin/landscape", "exec", "--name", l.name, "--", "sh", "-c", overProcesses,
		strings.Join(uids, " "), file, program).Output()
	if err != nil {
		return 0, fmt.Errorf("adding up %s of processes: %w", file, err)
	}
	sum, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("adding up %s of processes: %w", file, err)
	}
	return sum, nil
}
