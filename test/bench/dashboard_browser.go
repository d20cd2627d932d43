package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/dashboard/live"
)

// peopleGroup is what all people of the measurement are in.
const peopleGroup = "bench:people"

// person logs in with a token.
type person struct{ name, token string }

// newPeople are so many, with the file by which kube-apiserver knows their tokens.
func newPeople(count int) (people []person, tokens string) {
	text := &strings.Builder{}
	for number := range count {
		who := person{fmt.Sprintf("person-%03d", number), fmt.Sprintf("token-of-person-%03d", number)}
		people = append(people, who)
		fmt.Fprintf(text, "%s,%s,uid-%03d,%q\n", who.token, who.name, number, peopleGroup)
	}
	return people, text.String()
}

// browser is one on the wire: it logs in, keeps cookies, and speaks over the live connection as
// dashboard/src/live/client.ts does.
type browser struct {
	person
	server  *dashboardServer
	cookies string
	socket  *websocket.Conn
	// buffer has the message that was read last.
	buffer bytes.Buffer
}

// enter logs in.
func (s *dashboardServer) enter(ctx context.Context, who person) (*browser, error) {
	body, err := json.Marshal(map[string]string{"token": who.token})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/login/token", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", s.url)
	response, err := s.pages.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: log-in: %s: %.200s", who.name, response.Status, text), err)
	}
	var cookies []string
	for _, cookie := range response.Cookies() {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}
	return &browser{person: who, server: s, cookies: strings.Join(cookies, "; ")}, nil
}

// open connects, and hears whose connection it is.
func (b *browser) open(ctx context.Context) (err error) {
	dialer := websocket.Dialer{
		TLSClientConfig: b.server.tls, HandshakeTimeout: browserTimeout, Subprotocols: []string{live.Protocol},
		ReadBufferSize: 16 << 10,
	}
	header := http.Header{"Origin": {b.server.url}, "Cookie": {b.cookies}}
	address := "wss://" + strings.TrimPrefix(b.server.url, "https://") + "/api/live"
	var response *http.Response
	if b.socket, response, err = dialer.DialContext(ctx, address, header); err != nil {
		return fmt.Errorf("%s: connecting: %w", b.name, err)
	}
	_ = response.Body.Close()
	text, err := b.read(time.Now().Add(browserTimeout))
	if err != nil {
		return err
	}
	var hello struct{ Type, User string }
	if err := json.Unmarshal(text, &hello); err != nil || hello.Type != "hello" || hello.User != b.name {
		return errors.Join(fmt.Errorf("%s has the connection of %q: %.100s", b.name, hello.User, text), err)
	}
	return nil
}

func (b *browser) close() {
	if b != nil && b.socket != nil {
		_ = b.socket.Close()
	}
}

// read gives a message, until the next is read.
func (b *browser) read(until time.Time) ([]byte, error) {
	if err := b.socket.SetReadDeadline(until); err != nil {
		return nil, err
	}
	_, message, err := b.socket.NextReader()
	if err == nil {
		b.buffer.Reset()
		_, err = b.buffer.ReadFrom(message)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.name, err)
	}
	return b.buffer.Bytes(), nil
}

// listTimes are how long it took from before a browser connected.
type listTimes struct{ first, all time.Duration }

// list connects, and reads the list of all Shoots, which has to have so many rows.
func (b *browser) list(ctx context.Context, rows int) (listTimes, error) {
	start := time.Now()
	var took listTimes
	if err := b.open(ctx); err != nil {
		return took, err
	}
	if err := b.socket.WriteJSON(map[string]string{
		"type": "subscribe", "id": "s1", "cluster": "garden", "view": "row", "resource": "shoots",
		"apiVersion": gardencorev1beta1.SchemeGroupVersion.String(), "namespace": "", "name": "", "labelSelector": "",
		"fieldSelector": "", "filter": "", "resourceVersion": "",
	}); err != nil {
		return took, err
	}
	l := &listReader{}
	for !l.complete {
		text, err := b.read(start.Add(browserTimeout))
		if err != nil {
			return took, err
		}
		if err := l.take(text); err != nil {
			return took, fmt.Errorf("%s: %w", b.name, err)
		}
		if took.first == 0 && l.rows > 0 {
			took.first = time.Since(start)
		}
	}
	took.all = time.Since(start)
	if l.rows != rows {
		return took, fmt.Errorf("%s has a list of %d Shoots, not of %d", b.name, l.rows, rows)
	}
	return took, nil
}

// listReader counts the rows of a list. It parses no rows: hundreds of browsers on one machine would take more of it
// than the server.
type listReader struct {
	rows     int
	complete bool
}

// head is how far the type of a message is looked for.
const head = 200

func (l *listReader) take(text []byte) error {
	if bytes.Contains(text[:min(head, len(text))], []byte(`"type":"snapshot"`)) {
		l.rows += bytes.Count(text, []byte(`"uid":"`))
		return nil
	}
	var message struct {
		Type  string
		Total *int
		Error struct{ Message string }
	}
	if err := json.Unmarshal(text, &message); err != nil {
		return err
	}
	switch message.Type {
	case "sync":
		l.complete = true
		if message.Total != nil && *message.Total != l.rows {
			return fmt.Errorf("%d rows came of a list of %d", l.rows, *message.Total)
		}
	case "error":
		return fmt.Errorf("the dashboard says: %s", message.Error.Message)
	}
	return nil
}

// follow reads what comes until the connection ends.
func (b *browser) follow(receive func(text []byte)) error {
	for {
		text, err := b.read(time.Now().Add(browserTimeout))
		if err != nil {
			return err
		}
		receive(text)
	}
}

// keepAlive pings as pages do.
func (b *browser) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if b.socket.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping"}`)) != nil {
				return // Whoever reads is told.
			}
		}
	}
}

// wave is a change that comes to all browsers.
type wave struct {
	browsers int

	mutex   sync.Mutex
	text    []byte
	missing int
	err     error
	done    chan struct{}
}

// begin awaits a change with a text. What it returns is closed when all browsers have it, or one is lost.
func (w *wave) begin(text string) <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.text, w.missing, w.done = []byte(text), w.browsers, make(chan struct{})
	if w.err != nil {
		close(w.done)
		w.missing = 0
	}
	return w.done
}

// receive is told of each message of each browser.
func (w *wave) receive(text []byte) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.missing == 0 || !bytes.Contains(text, w.text) {
		return
	}
	if w.missing--; w.missing == 0 {
		close(w.done)
	}
}

// end is told that a browser reads no more.
func (w *wave) end(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // The measurement is over.
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.err = errors.Join(w.err, err)
	if w.missing > 0 {
		w.missing = 0
		close(w.done)
	}
}

func (w *wave) await(ctx context.Context, done <-chan struct{}) error {
	timeout := time.NewTimer(browserTimeout)
	defer timeout.Stop()
	select {
	case <-done:
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return w.err
	case <-timeout.C:
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return fmt.Errorf("%d browsers were not told", w.missing)
	case <-ctx.Done():
		return ctx.Err()
	}
}
