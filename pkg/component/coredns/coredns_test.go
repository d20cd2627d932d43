package coredns

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "objects", Objects(Values{Image: "coredns:v1", ClusterIP: "10.4.0.10"})...)
}
