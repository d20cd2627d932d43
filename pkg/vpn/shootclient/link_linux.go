package shootclient

import (
	"fmt"
	"os"
	"strings"

	"github.com/trellis-garden/trellis/pkg/vpn/netif"
)

const forwardingFile = "/proc/sys/net/ipv4/ip_forward"

// prepareNamespace removes an interface that an earlier run left and lets the kernel forward.
func prepareNamespace(interfaceName string) error {
	if err := netif.Delete(interfaceName); err != nil {
		return fmt.Errorf("%w (is NET_ADMIN granted?)", err)
	}
	return enableForwarding(forwardingFile)
}

func enableForwarding(file string) error {
	if content, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(content)) == "1" {
		return nil
	}
	if err := os.WriteFile(file, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enabling IP forwarding: %w; run the container privileged or set the sysctl "+
			"net.ipv4.ip_forward=1 on the pod", err)
	}
	return nil
}
