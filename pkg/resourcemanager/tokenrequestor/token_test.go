package tokenrequestor

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTokenIsRenewedAfterFourFifthsOfItsLife(t *testing.T) {
	secret := &corev1.Secret{}
	renew := renewTime(now, now.Add(10*time.Hour))
	if err := fill(secret, "abc", renew, "uid"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		at   time.Time
		want time.Duration
	}{
		{now, 8 * time.Hour},
		{now.Add(7 * time.Hour), time.Hour},
		{now.Add(8 * time.Hour), 0},
		{now.Add(20 * time.Hour), 0},
	} {
		if got := due(secret, test.at); got != test.want {
			t.Errorf("at %s: due in %s, want %s", test.at, got, test.want)
		}
	}
}

func TestTokenIsDueAtOnce(t *testing.T) {
	later := now.Add(time.Hour).Format(time.RFC3339)
	for name, secret := range map[string]*corev1.Secret{
		"no token": {
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{resourcesv1alpha1.ServiceAccountTokenRenewTimestamp: later},
			},
		},
		"no time": {Data: map[string][]byte{"token": []byte("abc")}},
		"time not legible": {
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{resourcesv1alpha1.ServiceAccountTokenRenewTimestamp: "soon"},
			}, Data: map[string][]byte{
				"token": []byte("abc"),
			},
		},
	} {
		if got := due(secret, now); got != 0 {
			t.Errorf("%s: due in %s", name, got)
		}
	}
}

func TestAccountOf(t *testing.T) {
	annotations := func(expiration string) map[string]string {
		result := map[string]string{
			resourcesv1alpha1.ServiceAccountName: "a", resourcesv1alpha1.ServiceAccountNamespace: "kube-system",
		}
		if expiration != "" {
			result[resourcesv1alpha1.ServiceAccountTokenExpirationDuration] = expiration
		}
		return result
	}
	for _, test := range []struct {
		name        string
		annotations map[string]string
		want        time.Duration
		err         string
	}{
		{"default", annotations(""), 12 * time.Hour, ""},
		{"own", annotations("24h"), 24 * time.Hour, ""},
		{"too short for kube-apiserver", annotations("1m"), 10 * time.Minute, ""},
		{"not a duration", annotations("long"), 0, "token-expiration-duration"},
		{"no account", nil, 0, "must name a service account"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := accountOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}})
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && got.expiration != test.want {
				t.Errorf("expiration %s, want %s", got.expiration, test.want)
			}
		})
	}
}

func TestTokenGoesIntoTheKubeconfig(t *testing.T) {
	const kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: " +
		"c, user: u}}]\nclusters: [{name: c, cluster: {server: https://x}}]\nusers: [{name: u, user: {}}]\n"
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}}
	if hasToken(secret) {
		t.Error("an empty kubeconfig has a token")
	}
	if err := fill(secret, "abc", now, "uid"); err != nil {
		t.Fatal(err)
	}
	if !hasToken(secret) || !strings.Contains(string(secret.Data["kubeconfig"]), "token: abc") {
		t.Errorf("kubeconfig is %s", secret.Data["kubeconfig"])
	}
	if _, found := secret.Data["token"]; found {
		t.Error("the token is also stored on its own")
	}
}
