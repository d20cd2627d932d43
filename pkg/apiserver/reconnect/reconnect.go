// Package reconnect has gRPC clients try more often to connect again than they would, for programs that import it: API
// servers have no option for how they come back to their etcd, and after some minutes without one they would wait for
// two minutes between attempts, in which etcd has long been back. images/kubernetes, a module of its own, has the same.
package reconnect

import (
	"time"

	"google.golang.org/grpc/backoff"
)

// longest is the longest time between attempts. Those are cheap: a Service without endpoints refuses them.
const longest = 5 * time.Second

// gRPC copies the default when its own packages are initialized. Of packages that are ready for that, the Go language
// initializes those first whose import path sorts first, and this one sorts before google.golang.org.
// https://go.dev/ref/spec#Program_initialization
func init() { backoff.DefaultConfig.MaxDelay = longest }
