package apiserverconfig

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// permissions of a kubeconfig: to name a proxy, and to turn off the verification of certificates.
type permissions struct{ proxy, unverified bool }

func (r Rules) permissions() permissions {
	return permissions{proxy: r.InsecureKubeconfigs, unverified: r.InsecureKubeconfigs}
}

// permissionsOfPlugin are those of the kubeconfig of an admission plugin. That of ImagePolicyWebhook never names a
// proxy: the seed writes its own there, which is that plugin's only way out.
func (r Rules) permissionsOfPlugin(name string) permissions {
	allowed := r.permissions()
	allowed.proxy = allowed.proxy && name != "ImagePolicyWebhook"
	return allowed
}

// validateKubeconfig accepts kubeconfigs that hold everything themselves. They are used inside of kube-apiserver's
// container, where files are the control plane's, and programs would run in the seed.
func validateKubeconfig(data []byte, allowed permissions) error {
	config, err := clientcmd.Load(data)
	if err != nil {
		return inKey(KeyKubeconfig, err)
	}
	for name, cluster := range config.Clusters {
		if err := validateCluster(cluster, allowed); err != nil {
			return inKey(KeyKubeconfig, fmt.Errorf("cluster %q: %w", name, err))
		}
	}
	for name, user := range config.AuthInfos {
		if err := validateUser(user); err != nil {
			return inKey(KeyKubeconfig, fmt.Errorf("user %q: %w", name, err))
		}
	}
	// At last, because this opens the files that a kubeconfig names.
	return inKey(KeyKubeconfig, clientcmd.ConfirmUsable(*config, ""))
}

func validateCluster(cluster *clientcmdapi.Cluster, allowed permissions) error {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil:
		return fmt.Errorf("server: %w", err)
	case server.Scheme != "https" || server.Host == "":
		return fmt.Errorf("server %q must be an https URL", cluster.Server)
	case cluster.CertificateAuthority != "":
		return errors.New("certificate-authority names a file, which is not there; use certificate-authority-data")
	case cluster.ProxyURL != "" && !allowed.proxy:
		return errors.New("proxy-url would have the seed connect to whatever it names; give the address of the " +
			"webhook itself as server")
	case cluster.InsecureSkipTLSVerify && !allowed.unverified:
		return errors.New("insecure-skip-tls-verify would give what the webhook is told to whoever answers; use " +
			"certificate-authority-data")
	}
	return nil
}

func validateUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("exec would run a program; use a token or a client certificate")
	case user.AuthProvider != nil:
		return errors.New("auth-provider is not possible; use a token or a client certificate")
	case user.TokenFile != "":
		return errors.New("tokenFile names a file, which is not there; use token")
	case user.ClientCertificate != "":
		return errors.New("client-certificate names a file, which is not there; use client-certificate-data")
	case user.ClientKey != "":
		return errors.New("client-key names a file, which is not there; use client-key-data")
	}
	return nil
}
