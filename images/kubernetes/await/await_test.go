package await

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigOf leads to a server, and trusts no authority of its own.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}},
		CurrentContext: "a",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// freePort is one of loopback that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// probe asks as kubelet does, which takes any certificate.
func probe(port int, path string) (int, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get("https://127.0.0.1:" + strconv.Itoa(port) + path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// An API server has no etcd, then knows no rights yet, then is ready: until then the program is alive and says what it
// waits for, and its port is free again afterwards.
func TestAPIServerIsWaitedFor(t *testing.T) {
	port := freePort(t)
	asked := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/readyz" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		switch asked.Add(1) {
		case 1:
			http.Error(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed",
				http.StatusInternalServerError)
		case 2:
			if code, err := probe(port, "/healthz"); code != http.StatusOK {
				t.Errorf("liveness: %d, %v", code, err)
			}
			if code, err := probe(port, "/metrics"); code != http.StatusNotFound {
				t.Errorf("metrics: %d, %v", code, err)
			}
			http.Error(w, "RBAC: not read yet", http.StatusForbidden)
		}
	}))
	defer server.Close()
	said := &bytes.Buffer{}
	err := APIServer(t.Context(), Program{
		Name: "manager", Port: 1, Log: said, Args: []string{
			"--bind-address=127.0.0.1", "--kubeconfig", kubeconfigOf(t, server.URL),
			"--secure-port=" + strconv.Itoa(port),
		},
	})
	if err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	for _, want := range []string{
		"manager: waiting until its API server is ready: GET " + server.URL + "/readyz: 500 Internal Server Error: " +
			"etcd failed: reason withheld\n",
		"manager: waiting no longer\n",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("got %q, want %q", said, want)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatalf("the program does not get its port: %v", err)
	}
	listener.Close()
}

// A program is not held up by what it has to say itself, nor makes itself heard before.
func TestNotWaitedFor(t *testing.T) {
	ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ready.Close()
	foreign := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not ready", http.StatusInternalServerError)
	}))
	defer foreign.Close()
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a server that is ready":       {[]string{"--kubeconfig=" + kubeconfigOf(t, ready.URL)}, ""},
		"no kubeconfig":                {[]string{"--version"}, ""},
		"a flag without a value":       {[]string{"--kubeconfig"}, ""},
		"another flag":                 {[]string{"--kubeconfig-of=" + broken}, ""},
		"a file that does not exist":   {[]string{"--kubeconfig=" + broken + "-not"}, "reading the kubeconfig"},
		"a file that is no kubeconfig": {[]string{"--kubeconfig=" + broken}, "reading the kubeconfig"},
		"a server that is not trusted": {[]string{"--kubeconfig=" + kubeconfigOf(t, foreign.URL)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := &bytes.Buffer{}
			err := APIServer(t.Context(), Program{Name: "manager", Args: test.args, Log: said})
			got := said.String()
			if err != nil || !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %v, %q", err, got)
			}
		})
	}
}

// A program that is told to end while its API server refuses connections does, and names the server.
func TestAWaitEndsWithItsProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := "127.0.0.1:" + strconv.Itoa(freePort(t))
	said := writer(func(string) { cancel() })
	err := APIServer(ctx, Program{
		Name: "manager", Log: said, Args: []string{"--kubeconfig=" + kubeconfigOf(t, "http://"+address),
			"--secure-port=0"},
	})
	var refused *net.OpError
	if err == nil || !errors.As(err, &refused) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}

// A port that another process has takes no program out of its wait.
func TestAWaitGoesOnWithoutItsPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	asked := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	said := &bytes.Buffer{}
	err = APIServer(t.Context(), Program{
		Name: "manager", Port: taken.Addr().(*net.TCPAddr).Port, Log: said,
		Args: []string{"--bind-address=127.0.0.1", "--kubeconfig=" + kubeconfigOf(t, server.URL)},
	})
	if err != nil || asked.Load() != 2 || !strings.Contains(said.String(), "probes get no answer") {
		t.Errorf("asked %d times: %v, %q", asked.Load(), err, said)
	}
}

// What answers probes has no more than the program itself to say, and its certificate is of use to nobody else.
func TestTheAnswerToProbesIsByTLS(t *testing.T) {
	port := freePort(t)
	end := Program{Port: port, Args: []string{"--bind-address=127.0.0.1"}, Log: &bytes.Buffer{}}.answerProbes()
	defer end()
	certificate, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	again, err := selfSigned()
	if err != nil || bytes.Equal(certificate.Certificate[0], again.Certificate[0]) {
		t.Errorf("two certificates are one: %v", err)
	}
	if _, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), &tls.Config{}); err == nil {
		t.Error("a client that verifies takes the certificate")
	}
	if response, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/healthz"); err == nil {
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
}

type writer func(string)

func (w writer) Write(line []byte) (int, error) {
	w(string(line))
	return len(line), nil
}
