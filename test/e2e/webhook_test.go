//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// webhookManifest is a pod whose nginx answers admission reviews: it finds the request's UID in the body and refuses
// what it is asked about.
const webhookManifest = `
apiVersion: v1
kind: Secret
metadata: {name: gatekeeper, namespace: default, labels: {test: webhook}}
data: {tls.crt: CERTIFICATE, tls.key: KEY}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gatekeeper, namespace: default, labels: {test: webhook}}
data:
  nginx.conf: |
    pid /tmp/nginx.pid;
    events {}
    http {
      client_body_buffer_size 1m;
      map $request_body $uid { "~\"uid\":\"(?<found>[0-9a-f-]+)\"" $found; }
      server {
        listen 8443 ssl;
        ssl_certificate /etc/gatekeeper/tls.crt;
        ssl_certificate_key /etc/gatekeeper/tls.key;
        location / {
          proxy_set_header X-Uid $uid;
          proxy_pass http://127.0.0.1:8081;
        }
      }
      server {
        listen 127.0.0.1:8081;
        default_type application/json;
        location / {
          return 200 '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$http_x_uid","allowed":false,"status":{"message":"the gatekeeper in the shoot says no"}}}';
        }
      }
    }
---
apiVersion: v1
kind: Pod
metadata: {name: gatekeeper, namespace: default, labels: {test: webhook, app: gatekeeper}}
spec:
  containers:
  - name: nginx
    image: nginx
    args: ["-c", "/etc/gatekeeper-config/nginx.conf"]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts:
    - {name: keys, mountPath: /etc/gatekeeper}
    - {name: config, mountPath: /etc/gatekeeper-config}
  volumes:
  - {name: keys, secret: {secretName: gatekeeper}}
  - {name: config, configMap: {name: gatekeeper}}
---
apiVersion: v1
kind: Service
metadata: {name: gatekeeper, namespace: default, labels: {test: webhook}}
spec:
  selector: {app: gatekeeper}
  ports: [{port: 443, targetPort: 8443}]
`

const webhookConfiguration = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gatekeeper, labels: {test: webhook}}
webhooks:
- name: gatekeeper.default.svc
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  objectSelector: {matchLabels: {gatekeeper: ask}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  clientConfig:
    caBundle: CERTIFICATE
    service: {namespace: default, name: gatekeeper}
`

// The API server of a shoot, in the seed, asks a webhook that a pod in the shoot serves.
func webhookInShoot(t *testing.T) {
	l := open(t)
	m1 := l.shoot(t, "member1")
	certificate, key := selfSigned(t, "gatekeeper.default.svc")
	fill := strings.NewReplacer("CERTIFICATE", certificate, "KEY", key)
	t.Cleanup(func() {
		_, _ = m1.try(context.Background(), "", "delete", "validatingwebhookconfiguration,pod,service,configmap,secret",
			"-l", "test=webhook", "--now")
	})
	m1.apply(t, fill.Replace(webhookManifest))
	m1.run(t, "wait", "--for=condition=Ready", "pod/gatekeeper", "--timeout=90s")
	m1.apply(t, fill.Replace(webhookConfiguration))

	const asked = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asked, namespace: default, labels: {test: " +
		"webhook, gatekeeper: ask}}\n"
	// The API server reads a new configuration within moments; until then it admits.
	eventually(t, time.Minute, func(ctx context.Context) error {
		if _, err := m1.try(ctx, asked, "create", "--dry-run=server", "-f", "-"); err == nil ||
			!strings.Contains(err.Error(), "the gatekeeper in the shoot says no") {
			return fmt.Errorf("want the webhook's refusal, got %v", err)
		}
		return nil
	})
	if _, err := m1.try(t.Context(), strings.Replace(asked, "gatekeeper: ask", "gatekeeper: leave", 1), "create",
		"--dry-run=server", "-f", "-"); err != nil {
		t.Errorf("what the webhook is not asked about must be admitted: %v", err)
	}
}

// selfSigned makes a certificate for a host and its key, both as base64 of PEM.
func selfSigned(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}
