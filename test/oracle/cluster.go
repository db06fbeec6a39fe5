package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/sim"
)

// The API servers.
const (
	apiMemory = "apitest"        // package kube/apitest
	apiReal   = "kube-apiserver" // with etcd
)

// A cluster is an API server behind a proxy, which the kubelet uses and the player does not.
type cluster struct {
	client     kubernetes.Interface // as administrator, without faults
	kubeconfig string               // of the kubelet
	recorder   *recorder
	upstream   http.Handler
	tap        *tap // nil: the kubelet is not recorded

	mu      sync.Mutex
	windows []window
	cancels map[int]context.CancelFunc // of the proxy's requests
	next    int
	pods    map[string]*v1.Pod // the newest version by name, without deleted ones
}

// newCluster starts an API server of a kind.
func newCluster(t testing.TB, kind, dir string, r *recorder) (*cluster, error) {
	c := &cluster{recorder: r, cancels: map[int]context.CancelFunc{}, pods: map[string]*v1.Pod{}}
	var config *rest.Config
	switch kind {
	case apiMemory:
		server := &apitest.Server{NoRecord: true}
		config, c.upstream = server.RESTConfig(), server
	case apiReal:
		control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", control.Kubeconfig); err != nil {
			return nil, err
		}
		if c.upstream, err = reverseProxy(control.NodeKubeconfig(nodeName)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("no API server %q; must be %s or %s", kind, apiMemory, apiReal)
	}
	config.QPS = -1
	var err error
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until Close
	t.Cleanup(func() { _ = server.Close() })
	c.kubeconfig = filepath.Join(dir, "kubeconfig")
	return c, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://%s"}}],`+
		`"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}],"current-context":"x"}`, listener.Addr()), 0o600)
}

// reverseProxy returns a proxy that authenticates with a kubeconfig file.
func reverseProxy(kubeconfig string) (http.Handler, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}, nil
}

// fail applies the fault of a step to the kubelet's requests. Those in progress are interrupted unless they
// are only delayed.
func (c *cluster) fail(s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.windows = append(c.windows, window{s, time.Now().Add(s.For)})
	if s.Kind == sim.Slow {
		return
	}
	for _, cancel := range c.cancels {
		cancel()
	}
}

// fault returns the fault of a request that begins now; nil: none.
func (c *cluster) fault(n int) *window {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.windows {
		if time.Now().Before(w.until) && roll(uint64(i), uint64(n)) < w.step.Percent {
			return &w
		}
	}
	return nil
}

// begin makes the context of a request. The caller must call end.
func (c *cluster) begin(ctx context.Context) (_ context.Context, n int, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	n = c.next
	c.cancels[n] = cancel
	return ctx, n, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, n)
	}
}

// ServeHTTP passes requests of the kubelet on.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, n, end := c.begin(r.Context())
	defer end()
	request := podRequest(r)
	answer := &responseWriter{ResponseWriter: w}
	if request != nil {
		c.recorder.add(Record{Request: request})
		defer func() { c.recorder.answered(request, answer.code) }()
	}
	if f := c.fault(n); f != nil {
		switch f.step.Kind {
		case sim.Slow:
			sleep(ctx, f.step.Delay)
		case sim.Hung:
			sleep(ctx, time.Until(f.until))
			panic(http.ErrAbortHandler)
		case sim.Lost:
			if r.Method != http.MethodGet { // a watch would be answered when it ends
				c.upstream.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			}
			panic(http.ErrAbortHandler)
		default:
			panic(http.ErrAbortHandler)
		}
	}
	c.upstream.ServeHTTP(answer, r.WithContext(ctx))
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler) // a watch must not end as if it were complete
	}
}

// podRequest returns the Request of an HTTP request, nil if it changes no pod.
func podRequest(r *http.Request) *Request {
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/default/pods/")
	if !ok || r.Method != http.MethodPatch && r.Method != http.MethodDelete && r.Method != http.MethodPut {
		return nil
	}
	name, _, _ := strings.Cut(rest, "/")
	return &Request{Verb: strings.ToLower(r.Method), Pod: name}
}

// A responseWriter keeps the code of a response.
type responseWriter struct {
	http.ResponseWriter
	code int
}

func (w *responseWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(data []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap makes http.ResponseController work.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *responseWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// watch records pods and events until ctx is done. It returns when it has started.
func (c *cluster) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	pods, events := factory.Core().V1().Pods().Informer(), factory.Core().V1().Events().Informer()
	handle := func(add func(o any, deleted bool)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { add(o, false) },
			UpdateFunc: func(_, o any) { add(o, false) },
			DeleteFunc: func(o any) { add(o, true) },
		}
	}
	_, errPods := pods.AddEventHandler(handle(c.addPod))
	_, errEvents := events.AddEventHandler(handle(c.addEvent))
	if err := errors.Join(errPods, errEvents); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, events.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func (c *cluster) addPod(object any, deleted bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	if c.tap != nil {
		c.tap.observe(context.Background(), pod, deleted)
	}
	pod = pod.DeepCopy()
	pod.ManagedFields = nil
	c.mu.Lock()
	if c.pods[pod.Name] = pod; deleted {
		delete(c.pods, pod.Name)
	}
	c.mu.Unlock()
	c.recorder.add(Record{Pod: &Version{Pod: pod, Deleted: deleted}})
}

func (c *cluster) addEvent(object any, deleted bool) {
	e, ok := object.(*v1.Event)
	if !ok || deleted || e.InvolvedObject.Kind != "Pod" {
		return
	}
	c.recorder.add(Record{Event: &Event{Pod: e.InvolvedObject.UID, Reason: e.Reason, Message: e.Message, Count: e.Count}})
}

// uid returns the UID of the pod of a name, empty if there is none.
func (c *cluster) uid(name string) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod := c.pods[name]; pod != nil {
		return pod.UID
	}
	return ""
}

// all returns all pods.
func (c *cluster) all() (out []*v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range c.pods {
		out = append(out, pod)
	}
	return out
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
