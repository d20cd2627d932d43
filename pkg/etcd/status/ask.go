package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// askTimeout bounds a question with its whole answer.
	askTimeout = 3 * time.Second
	// mostBytes of an answer are read, and mostHeader of what comes before.
	mostBytes, mostHeader = 64 << 10, 8 << 10
	// most of a list is kept.
	most = 16
)

// ErrNotServed says that a steward is there that does not tell its status: an older one.
var ErrNotServed = errors.New("it serves no status: it is of an older version, which the next reconciliation replaces")

// client neither goes elsewhere than it is told, nor keeps connections to so many etcds.
var client = &http.Client{
	Timeout: askTimeout,
	Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: mostHeader,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ask asks the steward at an address, host and port, for its status. It takes three seconds at most.
func Ask(ctx context.Context, address string) (*Status, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+Path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking etcd-steward: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking etcd-steward: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("asking etcd-steward at %s: %w", address, ErrNotServed)
	default:
		return nil, fmt.Errorf("asking etcd-steward at %s: it answers with status %d", address, response.StatusCode)
	}
	told, err := Read(response.Body)
	if err != nil {
		return nil, fmt.Errorf("asking etcd-steward at %s: %w", address, err)
	}
	return told, nil
}

// Read reads a status. Of whatever is told, it takes no more than 64 KiB, of lists the first 16 items, and of the
// recoveries the last ones; all texts become lines of 512 bytes at most.
func Read(from io.Reader) (*Status, error) {
	content, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	if len(content) > mostBytes {
		return nil, fmt.Errorf("the status is longer than %d bytes", mostBytes)
	}
	told := &Status{}
	if err := json.Unmarshal(content, told); err != nil {
		return nil, fmt.Errorf("the status is none: %w", err)
	}
	told.bound()
	return told, nil
}

// bound holds lists and texts to their bounds.
func (s *Status) bound() {
	s.Recoveries = s.Recoveries[max(0, len(s.Recoveries)-MostRecoveries):]
	s.Space = s.Space[:min(len(s.Space), most)]
	s.Skipped = s.Skipped[:min(len(s.Skipped), most)]
	texts := []*string{(*string)(&s.Phase), &s.ReadOnly}
	for i := range s.Recoveries {
		texts = append(texts, s.Recoveries[i].texts()...)
	}
	if s.Recovering != nil {
		texts = append(texts, s.Recovering.texts()...)
	}
	if s.Differs != nil {
		texts = append(texts, s.Differs.bound()...)
	}
	for i := range s.Space {
		texts = append(texts, &s.Space[i].Of)
	}
	for i := range s.Skipped {
		texts = append(texts, &s.Skipped[i].What, &s.Skipped[i].Message)
	}
	if s.Certificates != nil {
		texts = append(texts, &s.Certificates.Checksum, &s.Certificates.Refused)
	}
	if s.Store != nil {
		s.Store.Failures = s.Store.Failures[:min(len(s.Store.Failures), most)]
		for i := range s.Store.Failures {
			f := &s.Store.Failures[i]
			texts = append(texts, &f.Operation, &f.Reason, &f.Message)
		}
	}
	for _, text := range texts {
		*text = Text(*text)
	}
}

// bound holds the list to its bound, and returns the texts.
func (d *Difference) bound() []*string {
	d.Changed = d.Changed[:min(len(d.Changed), MostChanged)]
	texts := []*string{(*string)(&d.From), &d.Message, &d.Backup}
	for i := range d.Changed {
		texts = append(texts, &d.Changed[i].Key)
	}
	return texts
}

func (r *Recovery) texts() []*string {
	texts := []*string{(*string)(&r.Cause), &r.Reason, &r.Aside, &r.Missing}
	if r.Restored != nil {
		texts = append(texts, (*string)(&r.Restored.From), &r.Restored.Backup)
	}
	return texts
}
