package nodeagent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	kubeletPath = "/opt/bin/kubelet"
	sysctlPath  = "/etc/sysctl.conf"
)

// configuration is one of a machine that is updated in place, for a version of Kubernetes.
func configuration(version string, change ...func(*desired)) *desired {
	d := &desired{
		Files: []extensionsv1alpha1.File{
			{Path: kubeletPath, Content: extensionsv1alpha1.FileContent{
				ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: version, FilePathInImage: "/kubelet"},
			}},
			file(KubeletCAPath, "authority"), file(sysctlPath, "same"), file(ClusterCAPath, "cluster"),
		},
		Units:   []extensionsv1alpha1.Unit{unit(kubeletUnit, "unit of "+version, kubeletPath, KubeletCAPath)},
		InPlace: &inPlace{Hash: "hash of " + version, Kubelet: version},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

// updated is a machine that runs Kubernetes 1.35.4, in a cluster with its node and, at times, pods.
type updated struct {
	agent  *Agent
	units  *recordedUnits
	client *kubernetesfake.Clientset
	// broken is why no file can be taken out of an image.
	broken error
}

func machineOf135(t *testing.T, pods ...runtime.Object) *updated {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	u := &updated{units: &recordedUnits{}, client: kubernetesfake.NewClientset(append(pods, node)...)}
	u.agent = &Agent{
		config: &Config{MachineName: "m1"}, log: logr.Discard(), applied: &desired{},
		machine: &machine{root: t.TempDir(), log: logr.Discard(), units: u.units, extract: u.extract},
	}
	if whole, err := u.agent.bringAbout(t.Context(), u.client, nil, configuration("1.35.4")); err != nil || !whole {
		t.Fatalf("got %v, %v", whole, err)
	}
	u.kubelet(t, "1.35.4")
	u.units.calls = nil
	return u
}

func (u *updated) extract(_ context.Context, ref extensionsv1alpha1.FileContentImageRef, target string,
	mode fs.FileMode) error {
	if u.broken != nil {
		return u.broken
	}
	return writeIfChanged(target, []byte(ref.Image), mode)
}

// kubelet reports that it runs.
func (u *updated) kubelet(t *testing.T, version string) {
	t.Helper()
	u.change(t, func(node *corev1.Node) {
		node.Status.NodeInfo.KubeletVersion = "v" + version
		ready := corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastHeartbeatTime: metav1.NewTime(time.Now().Add(time.Minute)),
		}
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions,
			func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }), ready)
	})
}

// manager is machine-controller-manager, which writes how far the update is.
func (u *updated) manager(t *testing.T, reason string) {
	t.Helper()
	u.change(t, func(node *corev1.Node) {
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions,
			func(c corev1.NodeCondition) bool { return c.Type == machinev1alpha1.NodeInPlaceUpdate }),
			corev1.NodeCondition{
				Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason,
			})
	})
}

func (u *updated) change(t *testing.T, change func(*corev1.Node)) {
	t.Helper()
	node := u.node(t)
	change(node)
	if _, err := u.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (u *updated) node(t *testing.T) *corev1.Node {
	t.Helper()
	node, err := u.client.CoreV1().Nodes().Get(t.Context(), "m1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func (u *updated) result(t *testing.T) string {
	t.Helper()
	return u.node(t).Labels[machinev1alpha1.LabelKeyNodeUpdateResult]
}

func (u *updated) round(t *testing.T, wanted *desired) (whole bool, err error) {
	t.Helper()
	return u.agent.bringAbout(t.Context(), u.client, u.node(t), wanted)
}

func (u *updated) content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(u.agent.machine.path(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Until its node is drained a machine keeps its kubelet, but takes over what does not need a drain. Then it gets the
// new kubelet, and says so when that has reported.
func TestAMachineIsUpdatedInPlaceOnceItIsDrained(t *testing.T) {
	u := machineOf135(t)
	wanted := func() *desired {
		return configuration("1.36.3", func(d *desired) {
			d.Files[1], d.Files[2] = file(KubeletCAPath, "both authorities"), file(sysctlPath, "changed")
		})
	}
	for _, reason := range []string{"", machinev1alpha1.CandidateForUpdate, machinev1alpha1.SelectedForUpdate,
		machinev1alpha1.DrainSuccessful, machinev1alpha1.UpdateSuccessful} {
		u.manager(t, reason)
		if whole, err := u.round(t, wanted()); err != nil || whole {
			t.Fatalf("%s: got %v, %v", reason, whole, err)
		}
		if u.content(t, kubeletPath) != "1.35.4" || u.content(t, unitPath(kubeletUnit)) != "unit of 1.35.4" {
			t.Fatalf("%s: the kubelet was replaced", reason)
		}
	}
	if u.content(t, KubeletCAPath) != "both authorities" || u.content(t, sysctlPath) != "changed" {
		t.Error("what needs no drain waits for one")
	}
	if got := strings.Join(u.units.calls, ","); strings.Count(got, "restart") != 1 { // for the authorities
		t.Errorf("got %s", got)
	}

	u.manager(t, machinev1alpha1.ReadyForUpdate)
	if _, err := u.round(t, wanted()); err == nil || !strings.Contains(err.Error(), "reports version v1.35.4") {
		t.Errorf("got %v", err)
	}
	if u.content(t, kubeletPath) != "1.36.3" || u.result(t) != "" {
		t.Errorf("got %s, %s", u.content(t, kubeletPath), u.result(t))
	}
	u.kubelet(t, "1.36.3")
	for range 2 {
		if whole, err := u.round(t, wanted()); err != nil || !whole || u.result(t) != "successful" {
			t.Fatalf("got %v, %v, %s", whole, err, u.result(t))
		}
	}
}

// A kubelet that was started again with other settings has to report after that: what it said before does not count.
func TestAKubeletReportsAfterItsStart(t *testing.T) {
	u := machineOf135(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	u.change(t, func(node *corev1.Node) {
		node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(-time.Minute))
	})
	wanted := configuration("1.35.4", func(d *desired) {
		d.InPlace.Hash, d.Units[0] = "other settings", unit(kubeletUnit, "other settings")
	})
	if _, err := u.round(t, wanted); err == nil || !strings.Contains(err.Error(), "has not reported since") {
		t.Errorf("got %v", err)
	}
	u.kubelet(t, "1.35.4")
	if _, err := u.round(t, wanted); err != nil || u.result(t) != "successful" {
		t.Errorf("got %v, %s", err, u.result(t))
	}
}

// Another policy for CPUs needs the notes of the old one gone while no kubelet runs; with other settings they stay.
func TestAnotherPolicyForCPUs(t *testing.T) {
	settings := func(text string) func(*desired) {
		return func(d *desired) {
			d.InPlace.Hash = text
			d.Files = append(d.Files, file(KubeletConfigPath, text))
			d.Units[0].FilePaths = append(d.Units[0].FilePaths, KubeletConfigPath)
		}
	}
	u := machineOf135(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	for _, test := range []struct {
		settings string
		stays    bool
	}{
		{"{maxPods: 1}", true}, {"{cpuManagerPolicy: none}", true}, {"{cpuManagerPolicy: static}", false},
		{"{cpuManagerPolicy: static, maxPods: 1}", true}, {"{maxPods: 1}", false},
	} {
		notes := u.agent.machine.path(cpuManagerState)
		if err := writeIfChanged(notes, []byte("notes"), 0o600); err != nil {
			t.Fatal(err)
		}
		u.units.calls = nil
		_, _ = u.round(t, configuration("1.35.4", settings(test.settings))) // no kubelet reports
		if _, err := os.Stat(notes); (err == nil) != test.stays {
			t.Errorf("%s: %v", test.settings, err)
		}
		want := "reload,enable kubelet.service,restart kubelet.service"
		if !test.stays {
			want = "stop kubelet.service," + want
		}
		if got := strings.Join(u.units.calls, ","); got != want {
			t.Errorf("%s: got %s, want %s", test.settings, got, want)
		}
	}
}

// An update that was cut off is done again by the next process. One that fails for long is said to have failed, and
// why; it is tried on, and may succeed yet.
func TestAnUpdateInPlaceThatFails(t *testing.T) {
	u := machineOf135(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	u.broken = errors.New("no such image")
	if _, err := u.round(t, configuration("1.36.3")); err == nil || u.result(t) != "" {
		t.Fatalf("got %v, %s", err, u.result(t))
	}
	next := &Agent{config: u.agent.config, log: logr.Discard(), applied: &desired{}, machine: u.agent.machine}
	next.recall()
	u.agent = next
	u.agent.patience = time.Nanosecond
	for range 2 {
		if _, err := u.round(t, configuration("1.36.3")); err == nil {
			t.Fatal("it works without an image")
		}
	}
	reason := machinev1alpha1.AnnotationKeyMachineUpdateFailedReason
	if got := u.node(t).Annotations[reason]; u.result(t) != "failed" || !strings.Contains(got, "no such image") {
		t.Fatalf("got %s, %s", u.result(t), got)
	}
	u.manager(t, machinev1alpha1.UpdateFailed)
	u.broken = nil
	u.kubelet(t, "1.36.3")
	if _, err := u.round(t, configuration("1.36.3")); err != nil || u.result(t) != "successful" {
		t.Fatalf("got %v, %s", err, u.result(t))
	}
	if got, there := u.node(t).Annotations[reason]; there {
		t.Errorf("it still tells %s", got)
	}
}

// A machine hears from its node that it may be updated, and not whenever the kubelet reports.
func TestAMachineHearsThatItIsDrained(t *testing.T) {
	u := machineOf135(t)
	heard := make(chan error, 1)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: "osc"}}
	node := u.node(t)
	go func() { heard <- u.agent.waitForChange(t.Context(), u.client, secret, node) }()
	watches := func() (count int) {
		for _, action := range u.client.Actions() {
			if action.GetVerb() == "watch" {
				count++
			}
		}
		return count
	}
	for watches() < 2 {
		select {
		case err := <-heard:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	u.kubelet(t, "1.35.4")
	u.manager(t, machinev1alpha1.SelectedForUpdate)
	if len(heard) > 0 {
		t.Fatalf("it did not wait: %v", <-heard)
	}
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	if err := <-heard; err != nil {
		t.Error(err)
	}
}

// A patch of Kubernetes needs no drain, as on machines that are replaced; nor does what is taken back.
func TestWhatNeedsNoDrain(t *testing.T) {
	u := machineOf135(t)
	patch := configuration("1.35.5", func(d *desired) { d.InPlace.Hash = "hash of 1.35.4" })
	if whole, err := u.round(t, patch); err != nil || !whole || u.content(t, kubeletPath) != "1.35.5" {
		t.Errorf("got %v, %v, %s", whole, err, u.content(t, kubeletPath))
	}
	if whole, err := u.round(t, configuration("1.36.3")); err != nil || whole {
		t.Errorf("got %v, %v", whole, err)
	}
	if whole, err := u.round(t, patch); err != nil || !whole {
		t.Errorf("got %v, %v", whole, err)
	}
}

func daemon(name, kind string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: name,
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "o", UID: "u", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "m1"},
	}
}

// A rotation gives the kubelet a certificate of the new authority, and has it trust that; pods that a drain leaves are
// made anew, once.
func TestARotationInPlace(t *testing.T) {
	u := machineOf135(t, daemon("proxy", "DaemonSet"), daemon("static", "Node"))
	issued := u.rotating(t)
	serving := u.agent.machine.path(filepath.Join(kubeletCertificates, servingCertificate))
	if err := writeIfChanged(serving, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	wanted := func() *desired {
		return configuration("1.35.4", func(d *desired) {
			d.InPlace = &inPlace{Hash: "rotated", Kubelet: "1.35.4", Authorities: "now", Key: "now"}
			d.Files[3] = file(ClusterCAPath, "old and new")
		})
	}
	if whole, err := u.round(t, wanted()); err != nil || whole || len(u.agent.applied.InPlace.Authorities) > 0 {
		t.Fatalf("got %v, %v", whole, err)
	}
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	u.units.calls = nil
	for range 2 {
		if _, err := u.round(t, wanted()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(u.units.calls, ","); strings.Count(got, "restart kubelet.service") != 1 {
		t.Errorf("got %s", got)
	}
	current := u.content(t, filepath.Join(kubeletCertificates, "kubelet-client-current.pem"))
	if len(*issued) != 1 || !strings.HasPrefix(current, (*issued)[0]) || !strings.Contains(current, "PRIVATE KEY") {
		t.Error("the kubelet does not have the new certificate")
	}
	if _, err := os.Stat(serving); !os.IsNotExist(err) {
		t.Errorf("the kubelet keeps its serving certificate: %v", err)
	}
	written, err := clientcmd.Load([]byte(u.content(t, KubeletKubeconfigPath)))
	if err != nil || string(written.Clusters["c"].CertificateAuthorityData) != "old and new" {
		t.Errorf("got %v, %v", written, err)
	}
	pods, err := u.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "static" || u.result(t) != "successful" {
		t.Errorf("got %v, %v, %s", pods, err, u.result(t))
	}
}

// rotating has the machine's kubelet joined, and its requests for certificates signed. It returns what was issued.
func (u *updated) rotating(t *testing.T) *[]string {
	t.Helper()
	issued := &[]string{}
	u.client.PrependReactor("create", "certificatesigningrequests",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			request := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
			request.Name, request.UID = "renewal", "renewal"
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
			}
			request.Status.Certificate = sign(t, request)
			*issued = append(*issued, string(request.Status.Certificate))
			return false, nil, nil
		})
	const kubeconfig = `
clusters: [{name: c, cluster: {server: https://a, certificate-authority-data: b2xk}}]
`
	if err := writeIfChanged(u.agent.machine.path(KubeletKubeconfigPath), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return issued
}

// An update that fails on after the kubelet has its certificate asks for no further one.
func TestARotationThatFailsAsksForOneCertificate(t *testing.T) {
	u := machineOf135(t)
	issued := u.rotating(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	u.broken = errors.New("no such image")
	for range 3 {
		_, err := u.round(t, configuration("1.36.3", func(d *desired) { d.InPlace.Authorities = "now" }))
		if err == nil || !strings.Contains(err.Error(), "no such image") {
			t.Fatalf("got %v", err)
		}
	}
	if len(*issued) != 1 {
		t.Errorf("got %d certificates", len(*issued))
	}
}

// A rotation of the key for tokens changes nothing of a kubelet. It is started again all the same, as one that runs on
// reports only after minutes.
func TestARotationOfTheKeyAlone(t *testing.T) {
	u := machineOf135(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	wanted := configuration("1.35.4", func(d *desired) {
		d.InPlace = &inPlace{Hash: "rotated", Kubelet: "1.35.4", Key: "now"}
	})
	_, _ = u.round(t, wanted) // the kubelet may not have reported yet
	u.kubelet(t, "1.35.4")
	if _, err := u.round(t, wanted); err != nil || u.result(t) != "successful" {
		t.Errorf("got %v, %s", err, u.result(t))
	}
	if got := strings.Join(u.units.calls, ","); strings.Count(got, "restart kubelet.service") != 1 {
		t.Errorf("got %s", got)
	}
}

// What is asked of a machine while it is updated is done before it says that it is updated.
func TestAnUpdateThatIsOvertaken(t *testing.T) {
	u := machineOf135(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: "osc"},
		Data: map[string][]byte{DataKey: []byte(`
metadata: {annotations: {worker.gardener.cloud/in-place-update: newer}}
spec: {inPlaceUpdates: {kubelet: 1.36.3, operatingSystemVersion: 12.11.0}}
`)},
	})
	u.agent.config.OperatingSystemConfigSecretName = "osc"
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	for _, test := range []struct{ hash, result string }{{"older", ""}, {"newer", "successful"}} {
		wanted := configuration("1.36.3", func(d *desired) { d.InPlace.Hash = test.hash })
		_, _ = u.round(t, wanted) // the kubelet may not have reported yet
		u.kubelet(t, "1.36.3")
		if _, err := u.round(t, wanted); err != nil || u.result(t) != test.result {
			t.Errorf("%s: got %v, %s", test.hash, err, u.result(t))
		}
	}
}

// sign checks that kube-controller-manager would approve a request, and signs it.
func sign(t *testing.T, request *certificatesv1.CertificateSigningRequest) []byte {
	t.Helper()
	block, _ := pem.Decode(request.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Subject.CommonName != "system:node:m1" ||
		!slices.Equal(parsed.Subject.Organization, []string{"system:nodes"}) ||
		request.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		len(request.Spec.Usages) != 2 {
		t.Errorf("got %v, %v", parsed.Subject, request.Spec)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: parsed.Subject,
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, parsed.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
}

// A rotation without the authorities that it is about ends with what is missing.
func TestARotationWithoutAuthorities(t *testing.T) {
	u := machineOf135(t)
	u.manager(t, machinev1alpha1.ReadyForUpdate)
	wanted := configuration("1.35.4", func(d *desired) {
		d.InPlace = &inPlace{Hash: "rotated", Kubelet: "1.35.4", Authorities: "now"}
		d.Files = d.Files[:3]
	})
	if _, err := u.round(t, wanted); err == nil || !strings.Contains(err.Error(), ClusterCAPath) {
		t.Errorf("got %v", err)
	}
}

// What the Secret tells of updates in place.
func TestDecodeUpdatesInPlace(t *testing.T) {
	got, err := decode([]byte(`
metadata: {annotations: {worker.gardener.cloud/in-place-update: abc}}
spec:
  inPlaceUpdates:
    kubelet: 1.36.3
    operatingSystemVersion: 12.11.0
    credentialsRotation:
      certificateAuthorities: {lastInitiationTime: "2026-01-01T00:00:00Z"}
`), "a")
	want := inPlace{Hash: "abc", Kubelet: "1.36.3", Authorities: "2026-01-01T00:00:00Z"}
	if err != nil || got.InPlace == nil || *got.InPlace != want {
		t.Errorf("got %+v, %v", got.InPlace, err)
	}
	if replaced, err := decode([]byte("spec: {}"), "a"); err != nil || replaced.InPlace != nil {
		t.Errorf("got %+v, %v", replaced, err)
	}
}
