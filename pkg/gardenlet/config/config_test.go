package config

import (
	"strings"
	"testing"
	"time"
)

const minimal = `
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection:
  bootstrapKubeconfig: {namespace: garden, name: bootstrap}
gateway: {address: 172.18.0.2}
seedConfig:
  metadata: {name: local}
  spec:
    provider: {type: local, region: local}
    networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16}
    dns: {}
`

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if c.Controllers.Shoot.ConcurrentSyncs != 20 || c.Controllers.Shoot.SyncPeriod.Duration != time.Hour ||
		*c.Controllers.Seed.LeaseResyncSeconds != 2 || c.Resources.Capacity.Shoots != 250 ||
		c.Gateway.ProxyPort != 8443 || c.Controllers.Shoot.RespectSyncPeriodOverwrite ||
		c.Controllers.ManagedSeed.SyncJitterPeriod.Duration != 5*time.Minute ||
		c.ETCDConfig.DeltaSnapshotPeriod.Duration != time.Minute ||
		c.ETCDConfig.MaxBackupsLimitBasedGC != 12 || c.ETCDConfig.FullSnapshotRetentionPeriod.Duration != 0 ||
		c.ETCDConfig.VerificationPeriod.Duration != 24*time.Hour ||
		c.GardenClientConnection.KubeconfigSecret.Name != "gardenlet-kubeconfig" {
		t.Errorf("defaults are %+v", c)
	}
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"unknown field": {"gateway: {", "gatweay: {}\ngateway: {", "gatweay: Forbidden: there is no such field"},
		"no duration": {
			"seedConfig:", "etcdConfig: {deltaSnapshotPeriod: soon}\nseedConfig:",
			`etcdConfig.deltaSnapshotPeriod: Invalid value: "soon": time: invalid duration "soon"`,
		},
		"no number": {
			"seedConfig:", "controllers: {shoot: {concurrentSyncs: many}}\nseedConfig:",
			`controllers.shoot.concurrentSyncs: Invalid value: "many"`,
		},
		"unknown within": {
			"seedConfig:", "exposureClassHandlers: [{name: a}, {nmae: b}]\nseedConfig:",
			"exposureClassHandlers[1].nmae: Forbidden: there is no such field",
		},
		"of the seed": {
			"dns: {}", "dns: {provdier: {}}", "seedConfig.spec.dns.provdier: Forbidden",
		},
		"kind":       {"kind: GardenletConfiguration", "kind: Other", "apiVersion and kind"},
		"no seed":    {"metadata: {name: local}", "metadata: {}", "seedConfig.metadata.name"},
		"no gateway": {"{address: 172.18.0.2}", "{}", "gateway.address"},
		"no garden": {
			"  bootstrapKubeconfig: {namespace: garden, name: bootstrap}", "  {}", "bootstrapKubeconfig",
		},
		"egress": {
			"seedConfig:", "egress: {allowedNetworks: [10.9.0.0/16, 10.9.0.7]}\nseedConfig:",
			"egress.allowedNetworks[1]",
		},
		"handler's name": {
			"seedConfig:", "exposureClassHandlers: [{name: A_B}]\nseedConfig:", "exposureClassHandlers[0].name",
		},
		"handler twice": {
			"seedConfig:", "exposureClassHandlers: [{name: a}, {name: a}]\nseedConfig:",
			"exposureClassHandlers[1].name",
		},
		"handler's address": {
			"seedConfig:", "exposureClassHandlers: [{name: a, address: 1.2.3.4, loadBalancerService: {annotations: " +
				"{b: c}}}]\nseedConfig:",
			"exposureClassHandlers[0].loadBalancerService.annotations",
		},
		"reserved": {
			"seedConfig:", "resources: {capacity: {shoots: 1}, reserved: {shoots: 2}}\nseedConfig:",
			"resources.reserved",
		},
	} {
		_, err := Parse([]byte(strings.Replace(minimal, test.old, test.new, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// What is written reaches the settings, also the nothing that turns something off, and the bounds are part of them.
func TestSettingsOfBackups(t *testing.T) {
	for written, valid := range map[string]bool{
		"deltaSnapshotPeriod: 10s": true, "deltaSnapshotPeriod: 9s": false,
		"deltaSnapshotPeriod: 5m": true, "deltaSnapshotPeriod: 5m1s": false, "deltaSnapshotPeriod: 0s": false,
		"maxBackupsLimitBasedGC: 1": true, "maxBackupsLimitBasedGC: -1": false,
		"maxBackupsLimitBasedGC: 1000": true, "maxBackupsLimitBasedGC: 1001": false,
		"fullSnapshotRetentionPeriod: 0s": true, "fullSnapshotRetentionPeriod: 1h": true,
		"fullSnapshotRetentionPeriod: 59m": false, "fullSnapshotRetentionPeriod: -1h": false,
		"verificationPeriod: 0s": true, "verificationPeriod: 10m": true,
		"verificationPeriod: 9m": false, "verificationPeriod: -10m": false,
	} {
		c, err := Parse([]byte(minimal + "etcdConfig: {" + written + "}\n"))
		name, _, _ := strings.Cut(written, ":")
		if (err == nil) != valid || err != nil && !strings.HasPrefix(err.Error(), "etcdConfig."+name+" (") {
			t.Errorf("%s: error %v", written, err)
		}
		if written == "verificationPeriod: 0s" && c.ETCDConfig.VerificationPeriod.Duration != 0 {
			t.Errorf("it is turned off, and is every %s", c.ETCDConfig.VerificationPeriod.Duration)
		}
	}
}

func TestRecordType(t *testing.T) {
	for address, want := range map[string]string{"172.18.0.2": "A", "fd00::1": "AAAA", "gateway.example.com": "CNAME"} {
		if got := (Gateway{Address: address}).RecordType(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
