package certificate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// TestAttackTokensWithoutEnd plays the holder of a seed's credential who makes a bootstrap token for a managed seed of
// its own that is good for years, to come back with it when the seed's credential is long withdrawn.
func TestAttackTokensWithoutEnd(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		data   map[string][]byte
		accept bool
	}{
		"a day":      {map[string][]byte{"expiration": []byte(now.Add(24 * time.Hour).Format(time.RFC3339))}, true},
		"years":      {map[string][]byte{"expiration": []byte("2099-01-01T00:00:00Z")}, false},
		"two days":   {map[string][]byte{"expiration": []byte(now.Add(48 * time.Hour).Format(time.RFC3339))}, false},
		"no end":     {nil, false},
		"no time":    {map[string][]byte{"expiration": []byte("never")}, false},
		"no content": {map[string][]byte{"expiration": nil}, false},
	} {
		token := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{seedmanagementv1alpha1.BootstrapSeedLabel: "local"},
			}, Data: test.data,
		}
		if err := checkToken(token, "local", now); (err == nil) != test.accept {
			t.Errorf("%s: %v, accepted: want %v", name, err, test.accept)
		}
	}
}
