package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	// execProtocol is Kubernetes' protocol of streams in a WebSocket.
	execProtocol = "v5.channel.k8s.io"
	// chunk is how much Kubernetes' own client sends at once.
	chunk = 32 << 10
)

// shell is a process in the pod.
type shell struct {
	connection *websocket.Conn
	writing    sync.Mutex
}

// use has the terminal in the cluster until it ends.
func (p *place) use(k *socket) error {
	if err := k.await("Namespace " + p.namespace.Name); err != nil {
		return err
	}
	if err := p.sweep(k.ctx); err != nil {
		return err
	}
	if err := p.make(k.ctx); err != nil {
		return err
	}
	go p.keep(k)
	pod, err := p.podOf(k.ctx, k.await)
	if err != nil {
		return err
	}
	opened, err := p.exec(k.ctx, pod)
	if err != nil {
		return err
	}
	defer opened.connection.Close()
	stop := context.AfterFunc(k.ctx, func() { _ = opened.connection.Close() })
	defer stop()
	// Connected first: what the page sends once it is told is not lost.
	if err := errors.Join(k.connect(opened), k.opened(p.ends)); err != nil {
		return err
	}
	return opened.read(k.print)
}

// keep renews the terminal until it ends. It ends if that fails for as long as the lease.
func (p *place) keep(k *socket) {
	ticker := time.NewTicker(p.renewEvery)
	defer ticker.Stop()
	renewed := time.Now()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
		err := p.renew(k.ctx)
		switch {
		case err == nil:
			renewed = time.Now()
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			k.cancel(reply.Error(http.StatusGone, metav1.StatusReasonGone, "somebody has removed it"))
			return
		case time.Since(renewed) > lease:
			k.cancel(err)
			return
		}
	}
}

// exec starts a shell in the pod.
func (p *place) exec(ctx context.Context, pod string) (*shell, error) {
	query := url.Values{
		"container": {name}, "command": {"/bin/sh", "-l"}, "stdin": {"true"}, "stdout": {"true"}, "tty": {"true"},
	}
	path := namespacesPath + "/" + p.namespace.Name + "/pods/" + url.PathEscape(pod) + "/exec"
	connection, err := p.cluster.Dial(ctx, path, query, execProtocol)
	if err != nil {
		return nil, err
	}
	connection.SetReadLimit(maxMessage)
	return &shell{connection: connection}, nil
}

func (s *shell) resize(to size) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return s.write(channelSize, text)
}

// write sends to the shell, in pieces.
func (s *shell) write(channel byte, data []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for len(data) > 0 {
		piece := data[:min(chunk, len(data))]
		data = data[len(piece):]
		_ = s.connection.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := s.connection.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, piece...)); err != nil {
			return err
		}
	}
	return nil
}

// read prints what the shell writes until it ends; nil if it did so by itself, whatever its exit code is.
func (s *shell) read(print func([]byte) error) error {
	alive := func() { _ = s.connection.SetReadDeadline(time.Now().Add(silence)) }
	s.connection.SetPongHandler(func(string) error {
		alive()
		return nil
	})
	alive()
	stop := make(chan struct{})
	defer close(stop)
	go s.ping(stop)
	for {
		_, message, err := s.connection.ReadMessage()
		if err != nil {
			if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				return nil
			}
			return err
		}
		alive()
		if len(message) < 2 {
			continue
		}
		switch message[0] {
		case channelOutput:
			if err := print(message[1:]); err != nil {
				return err
			}
		case channelEnd:
			return endOf(message[1:])
		}
	}
}

// ping finds clusters that are gone without a word.
func (s *shell) ping(stop <-chan struct{}) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			_ = s.connection.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		}
	}
}

// endOf reads how a shell ended. That it gave an exit code is no error.
func endOf(text []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(text, &status); err != nil {
		return reply.Error(http.StatusBadGateway, reply.ReasonUnavailable, "the cluster ended the shell")
	}
	if status.Status == metav1.StatusSuccess || status.Reason == "NonZeroExitCode" {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: status}
}
