package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/pkg/registry/core/pod"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// kubelets passes on requests for logs and streams to the kubelets of the nodes.
type kubelets struct {
	*chain

	kubelet func(node string) http.Handler
}

// connect implements Server.Connect.
func (k kubelets) connect(w http.ResponseWriter, r *http.Request, c apitest.Call) {
	at, err := k.locate(r.Context(), r, c)
	if err != nil {
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, v1.SchemeGroupVersion, w, r)
		return
	}
	if at == nil { // the pod has no node: there is no log
		w.WriteHeader(http.StatusNoContent)
		return
	}
	handler := k.kubelet(at.Hostname())
	if handler == nil {
		responsewriters.ErrorNegotiated(unserved(at.Hostname()), legacyscheme.Codecs, v1.SchemeGroupVersion, w, r)
		return
	}
	to := r.Clone(r.Context())
	to.URL, to.RequestURI = at, at.RequestURI()
	to.Header.Del("Authorization")
	if c.Subresource != "log" {
		handler.ServeHTTP(w, to)
		return
	}
	checked := &checkedResponse{ResponseWriter: w}
	handler.ServeHTTP(checked, to)
	if err := checked.err(c.Name); err != nil {
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, v1.SchemeGroupVersion, w, r)
	}
}

// locate returns the URL of a request at a kubelet, whose host is the name of the node. It is
// nil for the log of a pod without a node.
func (k kubelets) locate(ctx context.Context, r *http.Request, c apitest.Call) (*url.URL, error) {
	pods := podGetter{k.chain, c.Namespace}
	var at *url.URL
	var err error
	switch c.Resource + "/" + c.Subresource {
	case "pods/log":
		o := &core.PodLogOptions{}
		if err := parameters(r, o); err != nil {
			return nil, err
		}
		if o.Stream == nil {
			o.Stream = new(core.LogStreamAll)
		}
		if errs := validation.ValidatePodLogOptions(o, true); len(errs) > 0 {
			return nil, apierrors.NewInvalid(core.Kind("PodLogOptions"), c.Name, errs)
		}
		at, _, err = pod.LogLocation(ctx, pods, k, c.Name, o)
	case "pods/exec":
		o := &core.PodExecOptions{}
		if err := parameters(r, o); err != nil {
			return nil, err
		}
		at, _, err = pod.ExecLocation(ctx, pods, k, c.Name, o)
	case "pods/attach":
		o := &core.PodAttachOptions{}
		if err := parameters(r, o); err != nil {
			return nil, err
		}
		at, _, err = pod.AttachLocation(ctx, pods, k, c.Name, o)
	case "pods/portforward":
		o := &core.PodPortForwardOptions{}
		if err := parameters(r, o); err != nil {
			return nil, err
		}
		at, _, err = pod.PortForwardLocation(ctx, pods, k, c.Name, o)
	case "nodes/proxy":
		_, path, _ := strings.Cut(r.URL.Path, "/nodes/"+c.Name+"/proxy")
		at = &url.URL{Scheme: "http", Host: c.Name, Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: r.URL.RawQuery}
	default:
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReasonMethodNotAllowed,
			Message: fmt.Sprintf("apiserver: %s of %s is not implemented", c.Subresource, c.Resource),
		}}
	}
	return at, err
}

// parameters decodes the parameters of a request into options of the internal version.
func parameters(r *http.Request, into runtime.Object) error {
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), v1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// GetConnectionInfo returns where the kubelet of a node would listen: its host is the name of the node.
func (k kubelets) GetConnectionInfo(_ context.Context, node types.NodeName) (*client.ConnectionInfo, error) {
	return &client.ConnectionInfo{Scheme: "http", Hostname: string(node), Port: "10250"}, nil
}

func unserved(node string) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("there is no kubelet of node %q", node))
}

// podGetter reads the pods of a namespace.
type podGetter struct {
	*chain

	namespace string
}

func (g podGetter) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	o := &core.Pod{}
	return o, g.read(o, v1.SchemeGroupVersion.WithKind("Pod"), "pods", g.namespace, name)
}

// A checkedResponse passes on a response unless it is an error, which it keeps.
type checkedResponse struct {
	http.ResponseWriter

	code int // of an error
	text bytes.Buffer
}

func (c *checkedResponse) WriteHeader(code int) {
	if code >= http.StatusBadRequest {
		c.code = code
		return
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *checkedResponse) Write(data []byte) (int, error) {
	if c.code != 0 {
		return c.text.Write(data)
	}
	return c.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (c *checkedResponse) Flush() {
	if c.code == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
	}
}

// err returns the error of a kubelet for the log of a pod, as kube-apiserver reports it.
func (c *checkedResponse) err(name string) error {
	if c.code == 0 {
		return nil
	}
	return genericrest.NewGenericHttpResponseChecker(core.Resource("pods/log"), name).
		Check(&http.Response{StatusCode: c.code, Header: http.Header{}, Body: io.NopCloser(&c.text)})
}
