package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trellis-garden/trellis/pkg/errorcodes"
)

// StatusError is an answer of the cloud that is not a success.
type StatusError struct {
	// Code is the HTTP status.
	Code    int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("local cloud: %s (%d)", e.Message, e.Code)
}

// IsNotFound tells whether the cloud does not know the asked-for object.
func IsNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// IsUnauthorized tells whether the cloud refused the token.
func IsUnauthorized(err error) bool { return hasCode(err, http.StatusUnauthorized) }

// IsInvalid tells whether the cloud refused the request itself, so that repeating it is of no use.
func IsInvalid(err error) bool {
	return hasCode(err, http.StatusBadRequest) || hasCode(err, http.StatusConflict)
}

func hasCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// Client calls the API of a local cloud.
type Client struct {
	// Endpoint is the base URL, e.g. http://172.18.0.2:8090.
	Endpoint string
	// Token is the bearer token.
	Token string
	// HTTP defaults to a client with a time-out of 10 s.
	HTTP *http.Client
}

var defaultHTTP = &http.Client{Timeout: 10 * time.Second}

// PutNetwork creates or updates a network and returns it as the cloud has it.
func (c *Client) PutNetwork(ctx context.Context, network Network) (Network, error) {
	return call[Network](ctx, c, http.MethodPut, "/v1/networks/"+url.PathEscape(network.Name), network)
}

// GetNetwork reads a network.
func (c *Client) GetNetwork(ctx context.Context, name string) (Network, error) {
	return call[Network](ctx, c, http.MethodGet, "/v1/networks/"+url.PathEscape(name), nil)
}

// DeleteNetwork removes a network. A network that is not there is no error.
func (c *Client) DeleteNetwork(ctx context.Context, name string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodDelete, "/v1/networks/"+url.PathEscape(name), nil)
	return ignoreNotFound(err)
}

// PutRecord creates or replaces a DNS record set.
func (c *Client) PutRecord(ctx context.Context, record Record) error {
	record.FQDN = CanonicalName(record.FQDN)
	_, err := call[Record](ctx, c, http.MethodPut, "/v1/records/"+url.PathEscape(record.FQDN), record)
	return err
}

// DeleteRecord removes a DNS record set. One that is not there is no error.
func (c *Client) DeleteRecord(ctx context.Context, fqdn string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodDelete, "/v1/records/"+url.PathEscape(CanonicalName(fqdn)), nil)
	return ignoreNotFound(err)
}

// PutBastion creates or updates a bastion and returns it as the cloud has it.
func (c *Client) PutBastion(ctx context.Context, bastion Bastion) (Bastion, error) {
	return call[Bastion](ctx, c, http.MethodPut, "/v1/bastions/"+url.PathEscape(bastion.Name), bastion)
}

// DeleteBastion removes a bastion, and ends what leads through it. One that is not there is no error.
func (c *Client) DeleteBastion(ctx context.Context, name string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodDelete, "/v1/bastions/"+url.PathEscape(name), nil)
	return ignoreNotFound(err)
}

// PutBucket creates a bucket, and tells how it is reached. One that is there is no error.
func (c *Client) PutBucket(ctx context.Context, bucket string) (Bucket, error) {
	return call[Bucket](ctx, c, http.MethodPut, bucketPath(bucket), nil)
}

// DeleteBucket removes a bucket. One that is not there is no error; one with directories is refused.
func (c *Client) DeleteBucket(ctx context.Context, bucket string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodDelete, bucketPath(bucket), nil)
	return ignoreNotFound(err)
}

// PutDirectory creates a directory in a bucket. One that is there is no error.
func (c *Client) PutDirectory(ctx context.Context, bucket, directory string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodPut, directoryPath(bucket, directory), nil)
	return err
}

// DeleteDirectory removes a directory of a bucket with all that it holds. One that is not there is no error.
func (c *Client) DeleteDirectory(ctx context.Context, bucket, directory string) error {
	_, err := call[json.RawMessage](ctx, c, http.MethodDelete, directoryPath(bucket, directory), nil)
	return ignoreNotFound(err)
}

func bucketPath(bucket string) string { return "/v1/buckets/" + url.PathEscape(bucket) }

func directoryPath(bucket, directory string) string {
	return bucketPath(bucket) + "/directories/" + url.PathEscape(directory)
}

func ignoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

func call[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var result T
	request, err := c.newRequest(ctx, method, path, body)
	if err != nil {
		return result, err
	}
	client := c.HTTP
	if client == nil {
		client = defaultHTTP
	}
	response, err := client.Do(request)
	if err != nil {
		return result, fmt.Errorf("local cloud: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return result, fmt.Errorf("local cloud: reading the answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return result, statusError(response.StatusCode, data)
	}
	if len(data) == 0 {
		return result, nil
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return result, fmt.Errorf("local cloud: decoding the answer to %s %s: %w", method, path, err)
	}
	return result, nil
}

func (c *Client) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("local cloud: encoding the request %s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Endpoint, "/")+path, reader)
	if err != nil {
		return nil, fmt.Errorf("local cloud: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

func statusError(code int, body []byte) error {
	var answer Error
	if err := json.Unmarshal(body, &answer); err != nil || answer.Message == "" {
		answer.Message = strings.TrimSpace(string(body))
	}
	return &StatusError{Code: code, Message: answer.Message}
}

// MessageHasCode tells whether the text of an error comes from an answer with this HTTP status. It serves where errors
// are passed on as text, as Terraform does.
func MessageHasCode(message string, code int) bool {
	return strings.Contains(message, "local cloud: ") && strings.Contains(message, fmt.Sprintf("(%d)", code))
}

// refusals are the statuses with which the cloud refuses.
var refusals = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest, http.StatusConflict}

// WithCodes gives an error the codes of the cloud's answer, also where that was passed on as text.
func WithCodes(err error) error {
	if err == nil {
		return nil
	}
	for _, status := range refusals {
		if hasCode(err, status) || MessageHasCode(err.Error(), status) {
			return errorcodes.WithStatus(err, status)
		}
	}
	return err
}
