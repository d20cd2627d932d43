package vpnshoot

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "objects", Objects(Values{
		Image: "vpn:v1", Endpoint: "gateway.local.trellis.garden:51820", PrivateKey: []byte("private"),
		SeedPublicKey: []byte("public"),
	})...)
}
