// The karmada program compares decisions of pkg/federation/core with those of Karmada v1.12.0's scheduler, which it
// imports: whether they are the same where both are defined to agree (docs/federation-differences.md says where they
// aren't), and how long they take. It is a module of its own, so that the product needs nothing of it. `make bench
// AREAS=placement` runs it, or in this folder:
//
//	go run . differential [cases [seed]]
//	go run . benchmark
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"k8s.io/klog/v2"
)

func main() {
	silenceKlog()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "karmada:", err)
		os.Exit(1)
	}
}

// silenceKlog keeps the peer from spending time on messages.
func silenceKlog() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)
}

func run(args []string) error {
	const usage = "usage: karmada differential [cases [seed]] | benchmark"
	if len(args) == 0 {
		return fmt.Errorf(usage)
	}
	switch args[0] {
	case "differential":
		cases, seed := 100_000, 1
		for i, target := range []*int{&cases, &seed} {
			if len(args) > i+1 {
				n, err := strconv.Atoi(args[i+1])
				if err != nil {
					return fmt.Errorf("%q is no number; %s", args[i+1], usage)
				}
				*target = n
			}
		}
		return reportDifferences(os.Stdout, cases, int64(seed))
	case "benchmark":
		return benchmark(os.Stdout)
	case cellCommand:
		return measurePeerCell(args[1:], os.Stdout)
	}
	return fmt.Errorf("%q is no command; %s", args[0], usage)
}
