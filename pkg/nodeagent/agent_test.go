package nodeagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	bootstrapToken = "abcdef.0123456789abcdef"
	kubeletToken   = "kubelet"
	osc            = "spec: {files: [{path: /etc/config, content: {inline: {data: x}}}], units: [{name: " +
		"kubelet.service, content: k}]}"
)

// shoot plays the API server of a cluster: it has one Secret and one Node, and notes who asked for what.
type shoot struct {
	server *httptest.Server

	mutex sync.Mutex
	osc   string
	node  *corev1.Node
	calls []string
}

func newShoot(t *testing.T) *shoot {
	t.Helper()
	s := &shoot{osc: osc}
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	return s
}

func (s *shoot) serve(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	watched := r.URL.Query().Get("watch") != ""
	s.calls = append(s.calls, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" "+r.Method+" "+r.URL.Path)
	var answer any
	switch {
	case watched:
		// The watch ends at once, which is to be taken for a change.
		return
	case r.URL.Path == "/api/v1/namespaces/kube-system/secrets/osc":
		answer = &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc", ResourceVersion: "1"},
			Data:       map[string][]byte{DataKey: []byte(s.osc)},
		}
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && s.node != nil:
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, s.node)
		}
		answer = s.node
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// asked tells whether somebody with a token made a call.
func (s *shoot) asked(token, call string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, made := range s.calls {
		if made == token+" "+call {
			return true
		}
	}
	return false
}

func (s *shoot) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// agent is one on a machine that has started for the first time.
func (s *shoot) agent(t *testing.T) (*Agent, *recordedUnits) {
	t.Helper()
	units := &recordedUnits{}
	return &Agent{
		config: &Config{
			APIServer:      APIServer{Server: s.server.URL, CABundle: base64.StdEncoding.EncodeToString(s.authority())},
			BootstrapToken: bootstrapToken, OperatingSystemConfigSecretName: "osc", MachineName: "m1",
		},
		log: logr.Discard(), applied: &desired{},
		machine: &machine{root: t.TempDir(), log: logr.Discard(), units: units},
	}, units
}

// kubeletJoins writes what kubelet does once it has its certificate.
func (s *shoot) kubeletJoins(t *testing.T, agent *Agent) {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters: map[string]*clientcmdapi.Cluster{
			"c": {Server: s.server.URL, CertificateAuthorityData: s.authority()},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: kubeletToken}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeIfChanged(agent.machine.path(KubeletKubeconfigPath), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The way of a machine: with the bootstrap token it gets its configuration and gives kubelet what that joins with;
// after that it acts as kubelet, and says on the Node which configuration it runs.
func TestAMachineJoins(t *testing.T) {
	s := newShoot(t)
	agent, units := s.agent(t)
	const secret = "GET /api/v1/namespaces/kube-system/secrets/osc"
	ctx, cancel := context.WithCancel(t.Context())
	// It would wait for kubelet, which is not there.
	cancel()
	client, joined, err := agent.client()
	if err != nil || joined {
		t.Fatalf("got %v, %v", joined, err)
	}
	fetched, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "osc", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.applySecret(t.Context(), fetched); err != nil {
		t.Fatal(err)
	}
	if err := agent.waitForKubelet(ctx); err != nil {
		t.Errorf("a machine that is shut down meanwhile: %v", err)
	}
	if !s.asked(bootstrapToken, secret) || len(units.calls) == 0 {
		t.Errorf("got %v, %v", s.calls, units.calls)
	}
	bootstrap, err := clientcmd.LoadFromFile(agent.machine.path(BootstrapKubeconfigPath))
	if err != nil || bootstrap.AuthInfos["kubelet-bootstrap"].Token != bootstrapToken ||
		bootstrap.Clusters["shoot"].Server != s.server.URL {
		t.Errorf("got %v, %v", bootstrap, err)
	}

	s.kubeletJoins(t, agent)
	if err := agent.waitForKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := agent.runOnce(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "Node m1 has not registered yet") {
		t.Errorf("got %v", err)
	}
	s.node = &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "m1"},
	}
	agent.machine.mustWrite(t, "/etc/ssh/ssh_host_ed25519_key.pub", "ssh-ed25519 AAAA m1\n")
	for range 2 {
		if err := agent.runOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if keys := s.node.Annotations[gardencorev1beta1.AnnotationNodeSSHHostKeys]; keys != "ssh-ed25519 AAAA" {
		t.Errorf("keys of the machine: %q", keys)
	}
	if s.node.Annotations[ChecksumAnnotation] != checksum([]byte(osc)) {
		t.Errorf("got %v", s.node.Annotations)
	}
	patches := 0
	for _, call := range s.calls {
		if call == kubeletToken+" PATCH /api/v1/nodes/m1" {
			patches++
		}
	}
	if !s.asked(kubeletToken, secret) || patches != 1 {
		t.Errorf("%d patches of the Node in %v", patches, s.calls)
	}
}

// A process that is started again knows what was applied, and touches nothing.
func TestWhatWasAppliedIsRemembered(t *testing.T) {
	s := newShoot(t)
	agent, units := s.agent(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"},
		Data:       map[string][]byte{DataKey: []byte(osc)},
	}
	if err := agent.applySecret(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	again := &Agent{config: agent.config, log: logr.Discard(), applied: &desired{}, machine: agent.machine}
	again.recall()
	units.calls = nil
	if err := again.applySecret(t.Context(), secret); err != nil || len(units.calls) != 0 {
		t.Errorf("got %v, %v", units.calls, err)
	}
	if err := os.WriteFile(agent.machine.path(AppliedPath), []byte("\tbroken"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := &Agent{config: agent.config, log: logr.Discard(), applied: &desired{}, machine: agent.machine}
	lost.recall()
	if err := lost.applySecret(t.Context(), secret); err != nil || len(units.calls) == 0 {
		t.Errorf("a record that is broken: got %v, %v", units.calls, err)
	}
}

// What went wrong half-way is not remembered as applied.
func TestAFailedConfigurationIsAppliedAgain(t *testing.T) {
	s := newShoot(t)
	agent, units := s.agent(t)
	agent.machine.extract = func(context.Context, extensionsv1alpha1.FileContentImageRef, string, fs.FileMode) error {
		return errors.New("no such image")
	}
	broken :=
		"spec: {files: [{path: /opt/bin/kubelet, content: {imageRef: {image: kubelet, filePathInImage: " +
			"/kubelet}}}], units: [{name: kubelet.service, content: k}]}"
	secret := &corev1.Secret{Data: map[string][]byte{DataKey: []byte(broken)}}
	for range 2 {
		units.calls = nil
		err := agent.applySecret(t.Context(), secret)
		if err == nil || !strings.Contains(err.Error(), "file /opt/bin/kubelet from image kubelet: no such image") ||
			len(units.calls) == 0 {
			t.Errorf("got %v, %v", err, units.calls)
		}
	}
	if _, err := os.Stat(agent.machine.path(AppliedPath)); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestSecretsThatAreNoConfiguration(t *testing.T) {
	s := newShoot(t)
	agent, units := s.agent(t)
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"without the key": {nil, "Secret kube-system/osc has no key osc.yaml"},
		"no YAML":         {map[string][]byte{DataKey: []byte("\t")}, "osc.yaml: "},
		"a file of the extension without content": {
			map[string][]byte{
				DataKey: []byte("{spec: {files: [{path: /a, content: {inline: {data: x}}}]}, status: " +
					"{extensionFiles: [{path: /b}]}}"),
			},
			"osc.yaml: status.extensionFiles[0].content (/b): must have inline or imageRef",
		},
		"a file without a path": {
			map[string][]byte{DataKey: []byte("{spec: {files: [{content: {inline: {data: x}}}]}}")},
			"osc.yaml: spec.files[0].path: must be set",
		},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"}, Data: test.data}
		if err := agent.applySecret(t.Context(), secret); err == nil || !strings.Contains(err.Error(), test.want) ||
			len(units.calls) > 0 {
			t.Errorf("%s: got %v, %v", name, err, units.calls)
		}
	}
}

// A unit that is to be off stays off when only a file that it reads changes.
func TestUnitsThatAreOffStayOff(t *testing.T) {
	off, stop := false, extensionsv1alpha1.CommandStop
	for name, test := range map[string]struct {
		unit extensionsv1alpha1.Unit
		want string
	}{
		"disabled": {
			extensionsv1alpha1.Unit{Name: "a.service", Enable: &off, FilePaths: []string{"/etc/a"}},
			"reload,disable a.service,stop a.service",
		},
		"stopped": {
			extensionsv1alpha1.Unit{Name: "a.service", Command: &stop, FilePaths: []string{"/etc/a"}},
			"reload,stop a.service",
		},
		"running": {
			extensionsv1alpha1.Unit{Name: "a.service", FilePaths: []string{"/etc/a"}},
			"reload,enable a.service,restart a.service",
		},
	} {
		units := &recordedUnits{}
		m := &machine{root: t.TempDir(), log: logr.Discard(), units: units}
		before := &desired{
			Files: []extensionsv1alpha1.File{file("/etc/a", "1")}, Units: []extensionsv1alpha1.Unit{test.unit},
		}
		after := &desired{Files: []extensionsv1alpha1.File{file("/etc/a", "2")}, Units: before.Units}
		if err := m.apply(t.Context(), diff(before, after)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(units.calls, ","); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Drop-ins and content that a unit has no longer would go on to change it; they are gone before systemd reads the
// files.
func TestWhatAUnitHasNoLongerGoes(t *testing.T) {
	content := "c"
	dropIn := func(name string) extensionsv1alpha1.DropIn {
		return extensionsv1alpha1.DropIn{Name: name, Content: name}
	}
	before := &desired{
		Units: []extensionsv1alpha1.Unit{
			{
				Name: "a.service", Content: &content,
				DropIns: []extensionsv1alpha1.DropIn{dropIn("1.conf"), dropIn("2.conf")},
			},
		},
	}
	after := &desired{
		Units: []extensionsv1alpha1.Unit{{Name: "a.service", DropIns: []extensionsv1alpha1.DropIn{dropIn("2.conf")}}},
	}
	root := t.TempDir()
	units := &recordedUnits{}
	m := &machine{root: root, log: logr.Discard(), units: units}
	if err := m.apply(t.Context(), diff(&desired{}, before)); err != nil {
		t.Fatal(err)
	}
	if err := m.apply(t.Context(), diff(before, after)); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{
		"a.service": false, "a.service.d/1.conf": false, "a.service.d/2.conf": true,
	} {
		if _, err := os.Stat(filepath.Join(root, unitDir, path)); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := m.apply(t.Context(), diff(after, &desired{})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, unitDir, "a.service.d")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// Permissions that a file loses are taken away, though its content stays.
func TestPermissionsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "file")
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o755} {
		if err := writeIfChanged(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("got %v, %v, want %v", info.Mode(), err, mode)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v", left, err)
	}
}

// applySecret applies what a Secret asks for.
func (a *Agent) applySecret(ctx context.Context, secret *corev1.Secret) error {
	wanted, err := wantedBy(secret)
	if err != nil {
		return err
	}
	return a.apply(ctx, wanted)
}
