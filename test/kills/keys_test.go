package kills

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/secrets"
)

// rsaKey is one of those that are made once for all worlds.
type rsaKey struct {
	*rsa.PrivateKey
	pem []byte
}

// rsaKeys are by their bits. To make new ones in each world took a sixth of the processors' time.
var (
	rsaKeysLock sync.Mutex
	rsaKeys     = map[int][]rsaKey{}
)

// rsaKey is one that the seed of the world does not hold.
func (w *world) rsaKey(bits int) (*rsa.PrivateKey, error) {
	rsaKeysLock.Lock()
	defer rsaKeysLock.Unlock()
	for _, key := range rsaKeys[bits] {
		if !w.holds(key) {
			return key.PrivateKey, nil
		}
	}
	made, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		return nil, err
	}
	rsaKeys[bits] = append(rsaKeys[bits], rsaKey{made, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})})
	return made, nil
}

// holds says whether a Secret of the seed has a key.
func (w *world) holds(key rsaKey) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, stored := range w.seed.objects {
		secret, ok := stored.(*corev1.Secret)
		if ok && bytes.Equal(secret.Data[secrets.DataKeyRSAPrivateKey], key.pem) {
			return true
		}
	}
	return false
}
