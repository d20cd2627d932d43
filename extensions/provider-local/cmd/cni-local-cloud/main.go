// cni-local-cloud is a CNI plugin: it attaches pods to the networks of the local cloud. Install it as "local-cloud" in
// the node's CNI plugin directory, beside bridge and host-local.
package main

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cni"
)

func main() {
	err := cni.Run(cni.EnvironmentFromOS(), os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	var delegated *cni.DelegateError
	if errors.As(err, &delegated) {
		os.Exit(delegated.Code)
	}
	// CNI leaves the error codes from 100 on to plugins.
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"cniVersion": "1.0.0", "code": 100, "msg": "local-cloud: " + err.Error(),
	})
	os.Exit(1)
}
