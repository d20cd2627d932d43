package storetest

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// S3 is the part of an S3 server, in memory and over TLS, that a store needs. It checks no signatures but whose key
// they name, and refuses what a test wants refused. test/objectstores has a real server.
type S3 struct {
	// URL and CA of the server; Bucket is the one it has.
	URL    string
	CA     []byte
	Bucket string

	mu       sync.Mutex
	objects  map[string]s3Object
	uploads  map[string]map[int][]byte
	refuse   func(*http.Request) *S3Error
	accessID string
	seen     []*http.Request
}

// S3Error is an answer that refuses a request.
type S3Error struct {
	Status        int `xml:"-"`
	Code, Message string
	XMLName       xml.Name `xml:"Error"`
}

type s3Object struct {
	content  []byte
	modified time.Time
}

// pageSize is how many objects a listing has at most.
const pageSize = 10

// NewS3 starts a server with an empty bucket, which ends with the test.
func NewS3(t *testing.T) *S3 {
	t.Helper()
	s := &S3{Bucket: "backups", accessID: "id", objects: map[string]s3Object{}, uploads: map[string]map[int][]byte{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return s
}

// Options are those of a store in the server's bucket.
func (s *S3) Options() store.S3Options {
	return store.S3Options{
		Endpoint: s.URL, Bucket: s.Bucket, Region: "here", PathStyle: true, CA: s.CA,
		Credentials: func() (store.S3Credentials, error) {
			return store.S3Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		},
	}
}

// Refuse has requests refused for which the function returns an error.
func (s *S3) Refuse(refuse func(*http.Request) *S3Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// Rotate lets only requests pass that are signed with this key from now on.
func (s *S3) Rotate(accessKeyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accessID = accessKeyID
}

// Requests are those that came so far, without their bodies.
func (s *S3) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Uploads is how many uploads in parts are neither completed nor aborted.
func (s *S3) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// ServeHTTP implements http.Handler.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r)
	answer, err := s.answer(w.Header(), r, body)
	var refused *S3Error
	switch {
	case errors.As(err, &refused):
		w.WriteHeader(refused.Status)
		answer = refused
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	}
	switch answer := answer.(type) {
	case nil:
	case []byte:
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	default:
		_ = xml.NewEncoder(w).Encode(answer)
	}
}

func (e *S3Error) Error() string { return e.Code }

func (s *S3) answer(header http.Header, r *http.Request, body []byte) (any, error) {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.accessID+"/") {
		return nil, &S3Error{Status: http.StatusForbidden, Code: "InvalidAccessKeyId", Message: "who is this?"}
	}
	if s.refuse != nil {
		if refused := s.refuse(r); refused != nil {
			return nil, refused
		}
	}
	if bucket != s.Bucket {
		return nil, &S3Error{Status: http.StatusNotFound, Code: "NoSuchBucket", Message: "no such bucket"}
	}
	query := r.URL.Query()
	switch {
	case query.Has("uploads") || query.Has("uploadId"):
		return s.upload(header, r, name, body)
	case name == "":
		return s.list(query.Get("prefix"), query.Get("continuation-token")), nil
	}
	return s.object(header, r, name, body)
}

func (s *S3) object(header http.Header, r *http.Request, name string, body []byte) (any, error) {
	switch r.Method {
	case http.MethodPut:
		if err := checkMD5(r, body); err != nil {
			return nil, err
		}
		s.objects[name] = s3Object{body, time.Now()}
		header.Set("ETag", etag(body))
		return nil, nil
	case http.MethodDelete:
		delete(s.objects, name)
		return nil, nil
	}
	object, found := s.objects[name]
	if !found {
		return nil, &S3Error{Status: http.StatusNotFound, Code: "NoSuchKey", Message: "no such key"}
	}
	header.Set("ETag", etag(object.content))
	header.Set("Last-Modified", object.modified.UTC().Format(http.TimeFormat))
	if r.Method == http.MethodHead {
		header.Set("Content-Length", strconv.Itoa(len(object.content)))
		return nil, nil
	}
	return object.content, nil
}

// upload answers what belongs to an upload in parts. An upload's id is the object's name and a number.
func (s *S3) upload(header http.Header, r *http.Request, name string, body []byte) (any, error) {
	query := r.URL.Query()
	id := query.Get("uploadId")
	switch {
	case r.Method == http.MethodGet:
		return s.listUploads(), nil
	case query.Has("uploads"):
		id = fmt.Sprintf("%s %d", name, len(s.seen))
		s.uploads[id] = map[int][]byte{}
		return initiated{UploadID: id}, nil
	case s.uploads[id] == nil:
		return nil, &S3Error{Status: http.StatusNotFound, Code: "NoSuchUpload", Message: "no such upload"}
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		return nil, nil
	case r.Method == http.MethodPut:
		number, err := strconv.Atoi(query.Get("partNumber"))
		if err := errors.Join(err, checkMD5(r, body)); err != nil {
			return nil, err
		}
		s.uploads[id][number] = body
		header.Set("ETag", etag(body))
		return nil, nil
	}
	var whole []byte
	for _, number := range slices.Sorted(maps.Keys(s.uploads[id])) {
		whole = append(whole, s.uploads[id][number]...)
	}
	s.objects[name] = s3Object{whole, time.Now()}
	delete(s.uploads, id)
	return completed{Bucket: s.Bucket, Key: name, ETag: etag(whole)}, nil
}

type initiated struct {
	XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
	UploadID string   `xml:"UploadId"`
}

type completed struct {
	XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
	Bucket, Key, ETag string
}

type uploads struct {
	XMLName xml.Name `xml:"ListMultipartUploadsResult"`
	Upload  []listedUpload
}

type listedUpload struct {
	Key       string
	UploadID  string `xml:"UploadId"`
	Initiated string
}

func (s *S3) listUploads() uploads {
	var result uploads
	for id := range s.uploads {
		name, _, _ := strings.Cut(id, " ")
		result.Upload = append(result.Upload,
			listedUpload{Key: name, UploadID: id, Initiated: time.Now().UTC().Format(time.RFC3339)})
	}
	return result
}

type listed struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listedObject
}

type listedObject struct {
	Key, LastModified, ETag string
	Size                    int
}

func (s *S3) list(prefix, after string) listed {
	var result listed
	for _, name := range slices.SortedFunc(maps.Keys(s.objects), cmp.Compare[string]) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if len(result.Contents) == pageSize {
			result.IsTruncated, result.NextContinuationToken = true, result.Contents[pageSize-1].Key
			break
		}
		object := s.objects[name]
		result.Contents = append(result.Contents, listedObject{
			Key: name, LastModified: object.modified.UTC().Format(time.RFC3339), ETag: etag(object.content),
			Size: len(object.content),
		})
	}
	return result
}

func etag(content []byte) string {
	sum := md5.Sum(content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// checkMD5 holds a request to its checksum, which it must have.
func checkMD5(r *http.Request, body []byte) error {
	sum := md5.Sum(body)
	if r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) {
		return &S3Error{Status: http.StatusBadRequest, Code: "BadDigest", Message: "Content-MD5 is missing or wrong"}
	}
	return nil
}
