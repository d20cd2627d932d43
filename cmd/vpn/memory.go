package main

import (
	"os"
	"runtime/debug"
)

// tunnelMemory is a soft limit for a process with one tunnel. wireguard-go takes 64 KB for each packet in flight and
// gives it back to a pool; without a limit a single download leaves 100 MB behind that idle tunnels of other shoots
// could use.
const tunnelMemory = 64 << 20

// limitMemory sets the limit unless the environment has one.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(tunnelMemory)
	}
}
