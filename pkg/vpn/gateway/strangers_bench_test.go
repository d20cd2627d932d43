package gateway

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/vpn/wireguard/demux"
)

// What BenchmarkStrangers measures against: from one source each, and all at once.
const (
	halfHellos      = 5000
	idleConnections = 20000
	junkPackets     = 50000 // each second
	attackedShoots  = 1000
	// attackTime is how long the attack lasts once it is complete.
	attackTime = 10 * time.Second
)

// roleVariable makes this program play a part of BenchmarkStrangers, as a process of its own: "gateway" with the URL of
// the seed's API, or a stranger with the gateway's address.
const roleVariable = "TRELLIS_GATEWAY_BENCH_ROLE"

func TestMain(m *testing.M) {
	role, target, _ := strings.Cut(os.Getenv(roleVariable), " ")
	switch role {
	case "":
		os.Exit(m.Run())
	case "gateway":
		exitWith(runGateway(target))
	case "hellos":
		exitWith(holdConnections(target, "127.0.0.2", halfHellos, []byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}))
	case "idle1", "idle2": // in two processes, as there may be few files for each
		hello, err := helloBytes("attacked.example.org")
		if err == nil {
			err = holdConnections(target, "127.0.0.3", idleConnections/2, hello)
		}
		exitWith(err)
	case "junk":
		exitWith(sendJunk(target))
	}
	os.Exit(2)
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// gatewayAt are the addresses of the gateway that is measured, one loopback address of its own.
const gatewayAt = "127.77.0.1"

func runGateway(api string) error {
	return Run(context.Background(), Config{
		TLSAddress: gatewayAt + ":4430", ProxyAddress: gatewayAt + ":8443", TunnelAddress: gatewayAt + ":51820",
		HealthAddress: gatewayAt + ":8080",
		Streams:       DefaultLimits, Tunnels: demux.DefaultLimits, OperatorNamespace: "garden", Log: logr.Discard(),
		Cluster: &rest.Config{Host: api},
	})
}

// holdConnections opens connections that send something and then nothing, and replaces the oldest by new ones until it
// is killed. It says when it has opened all.
func holdConnections(target, from string, count int, send []byte) error {
	dialer := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0)), Timeout: time.Second,
	}
	open := make([]net.Conn, count)
	for n := 0; ; n++ {
		if n == count {
			fmt.Println("complete")
		}
		if n >= count {
			time.Sleep(2 * time.Millisecond)
		}
		if old := open[n%count]; old != nil {
			_ = old.Close()
		}
		if conn, err := dialer.Dial("tcp", target+":4430"); err == nil {
			_, _ = conn.Write(send)
			open[n%count] = conn
		}
	}
}

// sendJunk sends initiations that are for nobody.
func sendJunk(target string) error {
	local := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.4:0"))
	conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(target+":51820")))
	if err != nil {
		return err
	}
	packet := make([]byte, 148)
	_, _ = rand.Read(packet)
	copy(packet, []byte{1, 0, 0, 0})
	fmt.Println("complete")
	const pause = 5 * time.Millisecond
	for tick := time.NewTicker(pause); ; <-tick.C {
		for range junkPackets / int(time.Second/pause) {
			_, _ = conn.Write(packet)
		}
	}
}

// play starts a part as a process of its own, and waits until it says that it is complete.
func play(b *testing.B, role, target string) *exec.Cmd {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+role+" "+target, "GOGC=50")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if role != "gateway" {
		if _, err := out.Read(make([]byte, 1)); err != nil {
			b.Fatalf("%s: %v", role, err)
		}
	}
	return command
}

// attackedSeed is the API of a seed with two hosts, of which one is attacked, and the WireGuard servers of many shoots.
func attackedSeed(port int32) http.Handler {
	list := metav1.ListMeta{ResourceVersion: "1"}
	routes := gatewayv1.TLSRouteList{
		TypeMeta: metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "TLSRouteList"}, ListMeta: list,
	}
	services := corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}, ListMeta: list}
	namespaces := corev1.NamespaceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}, ListMeta: list,
	}
	for _, name := range []string{"attacked", "other"} {
		routes.Items = append(routes.Items, *tlsRoute("shoot--"+name, 0, port, gatewayv1.Hostname(name+".example.org")))
		services.Items = append(services.Items, *service("shoot--"+name, "kube-apiserver", "127.0.0.1"))
		namespaces.Items = append(namespaces.Items,
			*namespace("shoot--"+name, map[string]string{vpnv1alpha1.AnnotationHosts: name + ".example.org"}))
	}
	for n := range attackedShoots {
		key := [32]byte{1, byte(n), byte(n >> 8)}
		text := base64.StdEncoding.EncodeToString(key[:])
		services.Items = append(services.Items, *tunnelService(fmt.Sprintf("shoot--%d", n), text, "127.0.0.1"))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Has("sendInitialEvents"):
			(&cluster{}).fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/tlsroutes"):
			_ = json.NewEncoder(w).Encode(routes)
		case strings.HasSuffix(r.URL.Path, "/namespaces"):
			_ = json.NewEncoder(w).Encode(namespaces)
		default:
			_ = json.NewEncoder(w).Encode(services)
		}
	})
}

// BenchmarkStrangers measures how long another shoot's /readyz takes, with a new connection each time, while a stranger
// holds 5,000 half-sent hellos, a second 20,000 idle connections to one shoot, and a third sends 50,000 junk packets a
// second to the WireGuard port of 1,000 shoots. The gateway is a process of its own; it must not end.
func BenchmarkStrangers(b *testing.B) {
	for b.Loop() {
		latencies, peak := underAttack(b)
		slices.Sort(latencies)
		b.ReportMetric(milliseconds(latencies[len(latencies)/2]), "p50-ms")
		b.ReportMetric(milliseconds(latencies[len(latencies)*99/100]), "p99-ms")
		b.ReportMetric(peak, "peak-MB")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func underAttack(b *testing.B) (latencies []time.Duration, peakMB float64) {
	var asked atomic.Int64
	backend := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "ok")
	}))
	defer backend.CloseClientConnections()
	api := httptest.NewServer(attackedSeed(int32(backend.Listener.Addr().(*net.TCPAddr).Port)))
	defer api.CloseClientConnections()

	gateway := play(b, "gateway", api.URL)
	address := gatewayAt + ":4430"
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := get(address, "other.example.org"); err == nil {
			break
		} else if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	for _, stranger := range []string{"junk", "hellos", "idle1", "idle2"} {
		play(b, stranger, gatewayAt)
	}
	for end := time.Now().Add(attackTime); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		begun := time.Now()
		if got, err := get(address, "other.example.org"); err != nil || got != "ok" {
			b.Fatalf("/readyz of another shoot: %q, %v", got, err)
		}
		latencies = append(latencies, time.Since(begun))
	}
	if int(asked.Load()) < len(latencies) {
		b.Fatal("the backend was asked too rarely")
	}
	return latencies, peakMemory(b, gateway.Process.Pid)
}

// peakMemory is the most memory that a process had resident, in MB. It fails when the process ended.
func peakMemory(b *testing.B, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kilobytes) / 1024
		}
	}
	b.Fatal("the gateway ended")
	return 0
}

// helloBytes is a whole ClientHello.
func helloBytes(host string) ([]byte, error) {
	client, server := net.Pipe()
	defer client.Close()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: host}).Handshake() }()
	buf := make([]byte, 16<<10)
	n, err := server.Read(buf)
	return buf[:n], err
}
