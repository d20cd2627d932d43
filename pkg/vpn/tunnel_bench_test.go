package vpn_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"
)

const transferSize = 16 << 20

// newBenchTunnel has one shoot behind a gateway, and a client that asks it over one connection.
func newBenchTunnel(b *testing.B) (*testShoot, *http.Client) {
	b.Helper()
	gateway := newTestGateway(b)
	shoot := newTestShoot(b, gateway, "member1")
	gateway.serve(shoot)
	shoot.eventuallyGet(b, podAddress)
	client := &http.Client{Transport: shoot.transport()}
	b.Cleanup(client.CloseIdleConnections)
	return shoot, client
}

// What `kubectl logs` and `kubectl cp` from a pod can reach: CONNECT proxy, both WireGuard devices and the gateway in
// one process.
func BenchmarkTunnelDownload(b *testing.B) {
	_, client := newBenchTunnel(b)
	b.SetBytes(transferSize)
	for b.Loop() {
		response, err := client.Get("http://" + podAddress.String() + "/download")
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || n != transferSize {
			b.Fatal(n, err)
		}
	}
}

// What `kubectl cp` into a pod can reach.
func BenchmarkTunnelUpload(b *testing.B) {
	_, client := newBenchTunnel(b)
	content := make([]byte, transferSize)
	b.SetBytes(transferSize)
	for b.Loop() {
		response, err := client.Post("http://"+podAddress.String()+"/upload", "", bytes.NewReader(content))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// One request and its answer on an open connection.
func BenchmarkTunnelRoundTrip(b *testing.B) {
	_, client := newBenchTunnel(b)
	for b.Loop() {
		response, err := client.Get("http://" + podAddress.String())
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// What each new connection of kube-apiserver to a kubelet costs before its own TLS: TCP, mutual TLS and CONNECT to the
// proxy, and TCP through the tunnel.
func BenchmarkTunnelConnect(b *testing.B) {
	shoot, _ := newBenchTunnel(b)
	for b.Loop() {
		conn, response, err := shoot.connect(context.Background(), podAddress.String()+":80")
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		_ = conn.Close()
	}
}

// Memory that the seed server keeps per open connection.
func BenchmarkTunnelMemoryPerConnection(b *testing.B) {
	shoot, _ := newBenchTunnel(b)
	before := heap()
	for b.Loop() {
		conn, response, err := shoot.connect(context.Background(), podAddress.String()+":80")
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		b.Cleanup(func() { _ = conn.Close() })
	}
	b.ReportMetric(float64(heap()-before)/float64(b.N), "heap-B/op")
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}
