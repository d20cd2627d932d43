package session

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

const (
	keySize = 32
	// maxKeys bounds what each forged cookie costs.
	maxKeys = 4
)

// ReadKeys reads a file with a key in each line, 32 bytes in base64. The first one is used for new sessions, the others
// for those that began before it came.
func ReadKeys(path string) (*Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keys of sessions: %w", err)
	}
	keys, err := ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("keys of sessions in %s: %w", path, err)
	}
	return keys, nil
}

// ParseKeys reads what a file of keys has.
func ParseKeys(text string) (*Keys, error) {
	result := &Keys{}
	for i, line := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("key %d: it must be %d random bytes in base64, as of `openssl rand -base64 %d`", i+1,
				keySize, keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		result.ciphers = append(result.ciphers, aead)
	}
	switch {
	case len(result.ciphers) == 0:
		return nil, fmt.Errorf("there is none: write %d random bytes in base64, as of `openssl rand -base64 %d`",
			keySize,
			keySize)
	case len(result.ciphers) > maxKeys:
		return nil, fmt.Errorf("there are %d, at most %d are of use: remove the last ones", len(result.ciphers),
			maxKeys)
	}
	return result, nil
}
