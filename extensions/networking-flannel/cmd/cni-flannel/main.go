// cni-flannel is the CNI plugin flannel: install it as "flannel" in a node's CNI plugin directory, beside bridge and
// host-local.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"

	"github.com/trellis-garden/trellis/extensions/networking-flannel/pkg/cni"
)

func main() {
	err := cni.Run(os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	// A delegate that failed has described its error on stdout already, as CNI demands.
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
			"cniVersion": "1.0.0", "code": 100, "msg": "flannel: " + err.Error(),
		})
	}
	os.Exit(1)
}
