package apiserverproxy

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "objects", Objects(Values{
		Image: "vpn:v1", Gateway: "api.member1.demo.local.trellis.garden:8443",
		Authority: "api.member1.demo.local.trellis.garden",
	})...)
}
