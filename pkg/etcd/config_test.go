package etcd

import (
	"testing"

	"go.uber.org/zap"
)

func TestOrdinaryRequestsAreNotLoggedAsSlow(t *testing.T) {
	config, err := New(DefaultOptions(), zap.NewNop()).config()
	if err != nil {
		t.Fatal(err)
	}
	if config.WarningUnaryRequestDuration <= 0 || config.WarningApplyDuration <= 0 {
		t.Errorf("requests are slow after %s, applying after %s", config.WarningUnaryRequestDuration,
			config.WarningApplyDuration)
	}
}
