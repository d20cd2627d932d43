package networkpolicies

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "shoot", Objects("shoot--demo--member1", Values{GatewayNetworks: []string{"172.18.0.0/24"}})...)
	golden.Check(t, "blocked", block("shoot--demo--member1", []string{"169.254.169.254/32", "fd00:ec2::254/128", "10.9.0.0/16"}))
	golden.Check(t, "workerless", Objects("shoot--demo--fleet", Values{IsWorkerless: true})...)
}
