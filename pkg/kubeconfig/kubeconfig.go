// Package kubeconfig reads kubeconfigs: that of the cluster that a process works for, and those that others may have
// written than who uses them.
package kubeconfig

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// errContained says what is read. A file would be one of the process that reads the kubeconfig, for example the token
// of its service account, which then were sent to whom the kubeconfig names; a command would run with all that the
// process may do.
var errContained = errors.New("only credentials that are contained in it are used, no commands and no files")

// Contained reads the current context of a kubeconfig. One that names a command or a file there is refused, before any
// is looked at.
func Contained(data []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, err
	}
	for name, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" ||
			user.ClientKey != "" {
			return nil, fmt.Errorf("user %q: %w", name, errContained)
		}
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("cluster %q: %w", name, errContained)
		}
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}
