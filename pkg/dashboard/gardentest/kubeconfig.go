package gardentest

import (
	"crypto/x509"
	"encoding/pem"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// KubeconfigFor leads to the server with a token.
func (g *Garden) KubeconfigFor(token string, change ...func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	cluster := &clientcmdapi.Cluster{Server: g.Server.URL, CertificateAuthorityData: g.CA()}
	user := &clientcmdapi.AuthInfo{Token: token}
	for _, f := range change {
		f(cluster, user)
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "x", Clusters: map[string]*clientcmdapi.Cluster{"x": cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"x": user},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}},
	})
	if err != nil {
		panic(err)
	}
	return text
}
