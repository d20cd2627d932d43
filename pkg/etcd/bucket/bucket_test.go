package bucket_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-garden/trellis/pkg/etcd/bucket"
	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// What a cloud tells of a bucket reaches etcd-steward by the Secret.
func TestTheSecretIsWhatEtcdReads(t *testing.T) {
	var access bucket.Access
	if err := json.Unmarshal([]byte(`{"endpoint": "https://172.18.0.2:9000", "region": "here", "accessKeyID": "id",
		"secretAccessKey": "secret", "ca": "authority"}`), &access); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for key, value := range access.SecretData() {
		if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	credentials, err := store.S3CredentialsIn(dir)()
	if err != nil || credentials != (store.S3Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}) {
		t.Errorf("credentials are %+v, %v", credentials, err)
	}
	options, err := store.S3OptionsIn(dir)
	if err != nil || options.Endpoint != "https://172.18.0.2:9000" || options.Region != "here" || !options.PathStyle ||
		string(options.CA) != "authority" {
		t.Errorf("options are %+v, %v", options, err)
	}
}

func TestWay(t *testing.T) {
	for store, want := range map[string]string{
		"172.18.0.2:9000": "172.18.0.2/32", "[::ffff:172.18.0.2]:9000": "172.18.0.2/32",
		"[fd00::2]:9000": "fd00::2/128",
	} {
		policy := bucket.Way("garden", netip.MustParseAddrPort(store))
		rule := policy.Spec.Egress[0]
		if policy.Namespace != "garden" || rule.To[0].IPBlock.CIDR != want || rule.Ports[0].Port.IntValue() != 9000 {
			t.Errorf("the way to %s is %+v", store, policy)
		}
	}
}
