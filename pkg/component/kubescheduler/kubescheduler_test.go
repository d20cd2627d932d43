package kubescheduler

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestDeployment(t *testing.T) {
	golden.Check(t, "deployment", deployment("shoot--demo--member1", Values{Image: "scheduler:v1", Replicas: 1}, "kube-scheduler-11111111"))
}
