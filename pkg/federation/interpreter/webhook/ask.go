package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

// webhook is one that can be asked.
type webhook struct {
	key, name string
	rules     []configv1alpha1.RuleWithOperations
	timeout   time.Duration
	url       *url.URL
	service   *admissionregistrationv1.ServiceReference
	services  client.Reader
	client    *http.Client
	// broken is why it cannot be asked.
	broken error
	// slots are taken by questions.
	slots chan struct{}
	now   func() time.Time

	mu       sync.Mutex
	failures int
	// rests is when it may be asked again.
	rests time.Time
	last  error
}

// ask asks about an object. more fills in what the operation needs besides.
func (h *webhook) ask(ctx context.Context, operation configv1alpha1.InterpreterOperation,
	object *unstructured.Unstructured,
	more func(*configv1alpha1.ResourceInterpreterRequest) error) (*configv1alpha1.ResourceInterpreterResponse, error) {
	response, err := h.question(ctx, operation, object, more)
	if err != nil {
		return nil, fmt.Errorf("webhook %s, %s: %w; %w", h.name, operation, err, interpreter.ErrTemporary)
	}
	return response, nil
}

func (h *webhook) question(ctx context.Context, operation configv1alpha1.InterpreterOperation,
	object *unstructured.Unstructured,
	more func(*configv1alpha1.ResourceInterpreterRequest) error) (*configv1alpha1.ResourceInterpreterResponse, error) {
	if h.broken != nil {
		return nil, h.broken
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	kind := object.GroupVersionKind()
	request := &configv1alpha1.ResourceInterpreterRequest{
		UID: uuid.NewUUID(), Kind: metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Name: object.GetName(), Namespace: object.GetNamespace(), Operation: operation,
		Object: runtime.RawExtension{Raw: raw},
	}
	if more != nil {
		if err := more(request); err != nil {
			return nil, err
		}
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer func() { <-h.slots }()
	response, err := h.send(ctx, request)
	h.note(err)
	return response, err
}

// take waits for a slot, but not for long: whoever asks has others to care for.
func (h *webhook) take(ctx context.Context) error {
	h.mu.Lock()
	rests, last := h.rests, h.last
	h.mu.Unlock()
	if h.now().Before(rests) {
		return fmt.Errorf("not asked for a while after %d failures, the last was: %w", maxFailures, last)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it is still busy with %d other questions", maxQuestions)
	}
}

// note counts failures in a row.
func (h *webhook) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.failures, h.last = 0, nil
		return
	}
	h.failures++
	h.last = err
	if h.failures >= maxFailures {
		h.failures, h.rests = 0, h.now().Add(pause)
	}
}

func (h *webhook) send(ctx context.Context,
	request *configv1alpha1.ResourceInterpreterRequest) (*configv1alpha1.ResourceInterpreterResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	address, err := h.address(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: "ResourceInterpreterContext"},
		Request:  request,
	})
	if err != nil {
		return nil, err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Accept", "application/json")
	response, err := h.client.Do(call)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("no answer within %s", h.timeout)
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers with status %d, want 200", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no complete answer within %s", h.timeout)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(data) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return decode(data, request)
}

// maxMessage is the length of an error's text that a webhook may choose.
const maxMessage = 512

func decode(data []byte,
	request *configv1alpha1.ResourceInterpreterRequest) (*configv1alpha1.ResourceInterpreterResponse, error) {
	var answer configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("the answer is no ResourceInterpreterContext: %w", err)
	}
	response := answer.Response
	switch {
	case response == nil:
		return nil, errors.New("the answer has no response")
	case response.UID != request.UID:
		return nil, errors.New("the answer belongs to another question: response.uid differs from request.uid")
	case !response.Successful && response.Status != nil:
		return nil, fmt.Errorf("it cannot answer: %.*s (code %d)", maxMessage, response.Status.Message,
			response.Status.Code)
	case !response.Successful:
		return nil, errors.New("it cannot answer, and does not say why")
	}
	return response, nil
}
