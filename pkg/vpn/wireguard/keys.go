package wireguard

import (
	"fmt"
	"os"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// Key is a private or a public key.
type Key = wgtypes.Key

// ReadKeyFile reads a base64 key as `wg genkey` and `wg pubkey` print it.
func ReadKeyFile(path string) (Key, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("reading WireGuard key: %w", err)
	}
	key, err := wgtypes.ParseKey(strings.TrimSpace(string(content)))
	if err != nil {
		return Key{}, fmt.Errorf("file %s is not a base64 WireGuard key: %w", path, err)
	}
	return key, nil
}
