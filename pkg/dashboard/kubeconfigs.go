package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	defaultKubeconfig = time.Hour
	shortest, longest = 10 * time.Minute, 90 * 24 * time.Hour
)

// shootKubeconfig is a download of a kubeconfig of a shoot.
func (s *server) shootKubeconfig(w http.ResponseWriter, r *http.Request, current *session.Session) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	lifetime, err := downloadFor(r)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	level := clusters.Level(r.URL.Query().Get("level"))
	garden, err := s.clusters.Garden(current.Credential)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	raw, _, err := clusters.Kubeconfig(r.Context(), garden, namespace, name, level, lifetime)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	download(w, namespace+"-"+name, raw)
}

// downloadFor gives the lifetime that a navigation asks for. No script is given a credential: what scripts fetch does
// not navigate, which browsers say in a header that scripts cannot set.
func downloadFor(r *http.Request) (time.Duration, error) {
	if r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return 0, reply.Error(http.StatusForbidden, reply.ReasonNotProxied,
			"credentials are downloaded by following a link, not by scripts")
	}
	text := r.URL.Query().Get("expirationSeconds")
	if text == "" {
		return defaultKubeconfig, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	lifetime := time.Duration(seconds) * time.Second
	if err != nil || lifetime < shortest || lifetime > longest {
		return 0, reply.BadRequest("expirationSeconds must be from %.f to %.f", shortest.Seconds(), longest.Seconds())
	}
	return lifetime, nil
}

func download(w http.ResponseWriter, name string, text []byte) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "kubeconfig-"+name+".yaml"))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text)
}

// serviceAccountKubeconfig is a download of a kubeconfig of the garden for a service account of a project.
func (s *server) serviceAccountKubeconfig(w http.ResponseWriter, r *http.Request, current *session.Session) {
	lifetime, err := downloadFor(r)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		reply.Failure(w, reply.BadRequest("namespace and name must be those of a service account"))
		return
	}
	garden, err := s.clusters.Garden(current.Credential)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	seconds := int64(lifetime.Seconds())
	request := authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/serviceaccounts/" + url.PathEscape(name) + "/token"
	if err := garden.Do(r.Context(), http.MethodPost, path, nil, request, &request); err != nil {
		reply.Failure(w, err)
		return
	}
	text, err := s.gardenKubeconfig(namespace, name, request.Status.Token)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	download(w, namespace+"-"+name, text)
}

// gardenKubeconfig leads to the garden as users reach it.
func (s *server) gardenKubeconfig(namespace, user, token string) ([]byte, error) {
	ca, err := read(s.config.Garden.CAFile)
	if err != nil {
		return nil, err
	}
	address := s.config.Garden.Server
	if len(s.config.Garden.Addresses) > 0 {
		address = s.config.Garden.Addresses[0]
	}
	garden := s.config.Garden.Name
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: garden,
		Clusters:       map[string]*clientcmdapi.Cluster{garden: {Server: address, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: token}},
		Contexts: map[string]*clientcmdapi.Context{garden: {Cluster: garden, AuthInfo: user,
			Namespace: namespace}},
	})
}
