package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// client-go's side of the differential harness (tools/differential). It is a test because virtual
// time (testing/synctest) exists only in tests. The harness is on the other side of stdin and
// stdout: it sends a script's head, answers each request with a plan, and gets what was notified.
// A goroutine that waits for the harness stops the virtual clock, so an answer takes no time.

var resource = schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "widgets"}

// maxRequests ends the script of a client that repeats requests without a pause.
const maxRequests = 3000

// text is in every object; see TEXT in tools/differential/script.py.
const text = "é\u2028\u0085\u20ac \\\" {}[]"

type script struct {
	Seed     int64   `json:"seed"`
	Duration float64 `json:"duration"`
}

// plan is an answer; see Plan in tools/differential/server.py.
type plan struct {
	Delay   float64           `json:"delay"`
	Fails   string            `json:"fails"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Chunks  []chunk           `json:"chunks"`
	End     string            `json:"end"`
	Ends    float64           `json:"ends"`
}

type chunk struct {
	at   float64
	data []byte
}

func (c *chunk) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&c.at, &c.data})
}

type note struct {
	At    float64 `json:"at"`
	What  string  `json:"what"`
	Key   string  `json:"key"`
	State string  `json:"state"`
	Old   string  `json:"old"`

	// Unknown says that the final state of a deleted object is unknown.
	Unknown bool `json:"unknown"`
}

type outcome struct {
	Notes  []note            `json:"notes"`
	Cache  map[string]string `json:"cache"`
	Synced *float64          `json:"synced"`
	Error  string            `json:"error"`
}

// line is what goes to the harness: a question or the outcome.
type line struct {
	Ask     string   `json:"ask,omitempty"`
	At      float64  `json:"at"`
	Outcome *outcome `json:"outcome,omitempty"`
}

func TestDifferential(t *testing.T) {
	if os.Getenv("KINFORM_DIFFERENTIAL") == "" {
		t.Skip("the harness runs this")
	}
	klog.SetLogger(logr.Discard())
	// One of them sleeps until its last call is a millisecond ago: that was in another bubble,
	// whose clock may have been far ahead of this one's.
	utilruntime.ErrorHandlers = nil
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		var next script
		if err := read(in, &next); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		rand.Seed(next.Seed) // the jitter of back-offs and watch timeouts
		synctest.Test(t, func(t *testing.T) { play(t, in, next) })
	}
}

func read(in *bufio.Reader, into any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

func write(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// play runs one informer for the duration of a script.
func play(t *testing.T, in *bufio.Reader, s script) {
	ctx, cancel := context.WithTimeout(context.Background(), seconds(s.Duration))
	defer cancel()
	server := &harness{in: in, began: time.Now(), stop: cancel}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(
		client, resource, "", 0, cache.Indexers{}, nil,
	).Informer()
	rec := &recorder{began: server.began}
	if _, err := informer.AddEventHandler(rec); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	out := &outcome{Cache: map[string]string{}}
	select {
	case <-informer.HasSyncedChecker().Done():
		at := time.Since(server.began).Seconds()
		out.Synced = &at
	case <-ctx.Done():
	}
	<-ctx.Done()
	for _, obj := range informer.GetStore().List() {
		key, state := describe(obj)
		out.Cache[key] = state
	}
	<-done
	if server.asked > maxRequests {
		out.Error = "hot"
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	out.Notes = rec.notes
	if err := write(line{Outcome: out}); err != nil {
		t.Fatal(err)
	}
}

// recorder is the handler; it keeps every notification.
type recorder struct {
	mu    sync.Mutex
	began time.Time
	notes []note
}

func (r *recorder) add(what string, obj, old any) {
	n := note{At: time.Since(r.began).Seconds(), What: what}
	n.Key, n.State = describe(obj)
	if old != nil {
		_, n.Old = describe(old)
	}
	_, n.Unknown = obj.(cache.DeletedFinalStateUnknown)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
}

func (r *recorder) OnAdd(obj any, _ bool) { r.add("add", obj, nil) }
func (r *recorder) OnUpdate(old, obj any) { r.add("update", obj, old) }
func (r *recorder) OnDelete(obj any)      { r.add("delete", obj, nil) }
func seconds(s float64) time.Duration     { return time.Duration(s * float64(time.Second)) }

// describe returns the key and the state of an object, as Change.state in script.py has it.
func describe(obj any) (string, string) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return "", ""
	}
	n, _, _ := unstructured.NestedString(u.Object, "spec", "n")
	if content, _, _ := unstructured.NestedString(u.Object, "spec", "text"); content != text {
		n += "/wrong text"
	}
	return u.GetNamespace() + "/" + u.GetName(),
		string(u.GetUID()) + "/" + u.GetResourceVersion() + "/" + n
}

// harness is a RoundTripper that asks the other side of the pipe.
type harness struct {
	mu    sync.Mutex // a goroutine that waits for it is not durably blocked: time stands still
	in    *bufio.Reader
	began time.Time
	stop  func()
	asked int
}

func (h *harness) ask(r *http.Request) (*plan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked++; h.asked > maxRequests {
		h.stop()
		return nil, context.Canceled
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	at := time.Since(h.began).Seconds()
	if err := write(line{Ask: r.URL.RequestURI(), At: at}); err != nil {
		return nil, err
	}
	answer := &plan{}
	return answer, read(h.in, answer)
}

func (h *harness) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := h.ask(r)
	if err != nil {
		return nil, err
	}
	if err := wait(r.Context(), nil, seconds(p.Delay)); err != nil {
		return nil, err
	}
	if p.Fails == "silence" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	} else if p.Fails != "" {
		return nil, failure(p.Fails)
	}
	header := http.Header{}
	for name, value := range p.Headers {
		header.Set(name, value)
	}
	b := &body{ctx: r.Context(), plan: p, began: time.Now(), closed: make(chan struct{})}
	var content io.ReadCloser = b
	if header.Get("Content-Encoding") == "gzip" { // net/http's own transport does this too
		header.Del("Content-Encoding")
		content = &unpacked{body: b}
	}
	return &http.Response{
		StatusCode: p.Status, Status: http.StatusText(p.Status), Header: header, Body: content, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// body plays the chunks of a plan at their times.
type body struct {
	ctx    context.Context
	plan   *plan
	began  time.Time
	closed chan struct{}
	once   sync.Once
}

func (b *body) Read(into []byte) (int, error) {
	if len(b.plan.Chunks) == 0 {
		if err := b.until(b.plan.Ends); err != nil {
			return 0, err
		}
		if b.plan.End == "silence" {
			return 0, b.until(1e9)
		}
		return 0, failure(b.plan.End)
	}
	next := &b.plan.Chunks[0]
	if err := b.until(next.at); err != nil {
		return 0, err
	}
	n := copy(into, next.data)
	if next.data = next.data[n:]; len(next.data) == 0 {
		b.plan.Chunks = b.plan.Chunks[1:]
	}
	return n, nil
}

func (b *body) until(at float64) error {
	return wait(b.ctx, b.closed, seconds(at)-time.Since(b.began))
}

func (b *body) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// unpacked reads a compressed body, like the gzipReader of net/http.
type unpacked struct {
	*body
	reader *gzip.Reader
}

func (u *unpacked) Read(into []byte) (int, error) {
	if u.reader == nil {
		reader, err := gzip.NewReader(u.body)
		if err != nil {
			return 0, err
		}
		u.reader = reader
	}
	return u.reader.Read(into)
}

func wait(ctx context.Context, closed <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return errors.New("http: read on closed response body")
	}
}

// failure returns what net/http returns for such an end.
func failure(name string) error {
	switch name {
	case "refused":
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case "reset":
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case "cut":
		return io.ErrUnexpectedEOF
	default:
		return io.EOF
	}
}
