package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// Channels of messages; the first five are those of Kubernetes, too.
const (
	channelInput   = 0
	channelOutput  = 1
	channelEnd     = 3
	channelSize    = 4
	channelAwaited = 5
	channelOpened  = 6
)

const (
	// maxMessage bounds messages of pages and of clusters.
	maxMessage = 1 << 20
	// Bytes in a second, on average. A message fits into what may come at once.
	inputRate, outputRate = 256 << 10, 4 << 20
	burst                 = 2 * maxMessage

	pingEvery = 30 * time.Second
	// silence is how long a browser may answer no ping.
	silence      = 90 * time.Second
	writeTimeout = 30 * time.Second
)

// size of a terminal, as Kubernetes takes it.
type size struct{ Width, Height uint16 }

// socket is the page's side of a terminal.
type socket struct {
	connection *websocket.Conn
	session    string
	ctx        context.Context
	// cancel ends the terminal, and says why.
	cancel        context.CancelCauseFunc
	input, output *rate.Limiter
	idle          *time.Timer
	idleAfter     time.Duration

	writing sync.Mutex

	mutex sync.Mutex
	size  *size
	// shell takes what is typed; nil until there is one. What is typed before is lost.
	shell *shell
}

func (k *socket) limit() {
	k.input, k.output = rate.NewLimiter(inputRate, burst), rate.NewLimiter(outputRate, burst)
}

// cause is why the terminal ended, which may be other than how that showed.
func (k *socket) cause(err error) error {
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	return err
}

// read does what the page says until the socket ends.
func (k *socket) read() {
	k.connection.SetReadLimit(maxMessage + 1)
	alive := func(string) error { return k.connection.SetReadDeadline(time.Now().Add(silence)) }
	k.connection.SetPongHandler(alive)
	_ = alive("")
	for {
		kind, message, err := k.connection.ReadMessage()
		if err != nil {
			k.cancel(errPage)
			return
		}
		if kind != websocket.BinaryMessage || len(message) == 0 {
			k.cancel(reply.BadRequest("messages are binary, and begin with a channel"))
			return
		}
		_ = alive("")
		if err := k.take(message); err != nil {
			k.cancel(err)
			return
		}
	}
}

// take passes a message on to the shell.
func (k *socket) take(message []byte) error {
	switch message[0] {
	case channelInput:
		k.idle.Reset(k.idleAfter)
		if err := k.input.WaitN(k.ctx, len(message)); err != nil {
			return err
		}
		if shell := k.shellNow(); shell != nil {
			return shell.write(channelInput, message[1:])
		}
		return nil
	case channelSize:
		var wanted size
		if err := json.Unmarshal(message[1:], &wanted); err != nil || wanted.Width == 0 || wanted.Height == 0 {
			return reply.BadRequest("the size is to be {\"Width\": 80, \"Height\": 24}")
		}
		k.mutex.Lock()
		k.size = &wanted
		k.mutex.Unlock()
		if shell := k.shellNow(); shell != nil {
			return shell.resize(wanted)
		}
		return nil
	}
	return reply.BadRequest("there is no channel %d", message[0])
}

func (k *socket) shellNow() *shell {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.shell
}

// connect has the shell get what the page sends from now on.
func (k *socket) connect(to *shell) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.shell = to
	if k.size == nil {
		return nil
	}
	return to.resize(*k.size)
}

// ping finds browsers that are gone without a word.
func (k *socket) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
			_ = k.connection.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		}
	}
}

// print shows output. It waits while the browser does not keep up.
func (k *socket) print(output []byte) error {
	if err := k.output.WaitN(k.ctx, len(output)); err != nil {
		return err
	}
	return k.send(channelOutput, output)
}

func (k *socket) await(what string) error { return k.send(channelAwaited, []byte(what)) }

func (k *socket) opened(ends time.Time) error {
	text, err := json.Marshal(map[string]metav1.Time{"expires": metav1.NewTime(ends)})
	if err != nil {
		return err
	}
	return k.send(channelOpened, text)
}

func (k *socket) send(channel byte, data []byte) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	_ = k.connection.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := k.connection.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, data...)); err != nil {
		return errors.Join(errPage, err)
	}
	return nil
}

// end tells why the terminal is over.
func (k *socket) end(err error) {
	text, failure := json.Marshal(statusOf(err))
	if failure != nil {
		panic(failure) // A Status can be written.
	}
	_ = k.send(channelEnd, text)
	_ = k.connection.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
}

// statusOf says in a Status why a terminal is over.
func statusOf(err error) metav1.Status {
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.Is(err, errLoggedOut):
		return reply.Error(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "%v", err).ErrStatus
	case errors.Is(err, errServerEnds), errors.Is(err, errLifetime), errors.Is(err, errIdle), errors.Is(err, errPage):
		return reply.Error(http.StatusGone, metav1.StatusReasonGone, "%v", err).ErrStatus
	}
	return reply.StatusOf(err)
}

// close frees what the socket holds. Whoever reads it ends then.
func (k *socket) close() {
	k.cancel(errPage)
	_ = k.connection.Close()
}
