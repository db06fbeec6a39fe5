package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A PodCertificatesConfig configures a PodCertificates.
type PodCertificatesConfig struct {
	// Client creates and watches PodCertificateRequests, and reads service accounts. Its user
	// must be permitted to create PodCertificateRequests, to list and watch those of the node,
	// and to get service accounts, as the group system:nodes is. Required.
	Client kubernetes.Interface

	// Node returns a reference to the Node object, false if it is not known yet; see
	// node.Node.Owner. It must not block. Required.
	Node func() (node metav1.OwnerReference, ok bool)

	// NodeName is the name of the node. Required.
	NodeName string

	// Changed is called with "PodCertificateRequest", the namespace and the name of the pod
	// when a request of the pod was created, changed or deleted. It is called by the
	// goroutine of Run, and must not block. May be nil.
	Changed func(kind, namespace, podName string)

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger
}

// PodCertificates creates and watches the PodCertificateRequests of a node. It implements the
// Requests of volume/certificate. The API server must serve certificates.k8s.io/v1
// (Kubernetes 1.37). Safe for concurrent use.
//
// There is no watch before the first request is created, so that a node without podCertificate
// volumes requires neither the API nor the permission.
type PodCertificates struct {
	cfg     PodCertificatesConfig
	ran     atomic.Bool
	started chan struct{} // closed when the first request is created
	start   sync.Once

	mu       sync.Mutex // guards requests
	requests map[types.NamespacedName]*certificatesv1.PodCertificateRequest
}

// NewPodCertificates returns a PodCertificates, or an error if cfg is invalid.
func NewPodCertificates(cfg PodCertificatesConfig) (*PodCertificates, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: PodCertificatesConfig.Client is nil")
	case cfg.Node == nil:
		return nil, errors.New("client: PodCertificatesConfig.Node is nil")
	case cfg.NodeName == "":
		return nil, errors.New("client: PodCertificatesConfig.NodeName is empty")
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string, string, string) {}
	}
	cfg.Logger = quiet(cfg.Logger)
	return &PodCertificates{
		cfg: cfg, started: make(chan struct{}), requests: map[types.NamespacedName]*certificatesv1.PodCertificateRequest{},
	}, nil
}

// Run watches the requests of the node until ctx is done, and returns nil. It returns an error
// if it was called before.
func (p *PodCertificates) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("client: PodCertificates.Run was called before")
	}
	select {
	case <-p.started:
	case <-ctx.Done():
		return nil
	}
	requests := p.cfg.Client.CertificatesV1().PodCertificateRequests(metav1.NamespaceAll)
	follow(ctx, following[*certificatesv1.PodCertificateRequest]{
		selector: fields.OneTermEqualSelector("spec.nodeName", p.cfg.NodeName).String(),
		list:     lister(requests.List),
		watch:    requests.Watch,
		store:    p,
		failed: func(err error) {
			p.cfg.Logger.Warn("Failed to watch pod certificate requests; certificates are not received; will retry", "err", err)
		},
	})
	return nil
}

// CreatePodCertificateRequest creates a request of a pod and returns its name. The pod, its
// service account and the node are added to spec; the request is deleted with the pod.
func (p *PodCertificates) CreatePodCertificateRequest(ctx context.Context, pod *v1.Pod, spec certificatesv1.PodCertificateRequestSpec) (name string, err error) {
	node, ok := p.cfg.Node()
	if !ok {
		return "", errors.New("client: the Node object is not known yet")
	}
	account, err := p.cfg.Client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, or(pod.Spec.ServiceAccountName, "default"), metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("client: read service account: %w", err)
	}
	spec.PodName, spec.PodUID = pod.Name, pod.UID
	spec.ServiceAccountName, spec.ServiceAccountUID = account.Name, account.UID
	spec.NodeName, spec.NodeUID = types.NodeName(node.Name), node.UID
	created, err := p.cfg.Client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("client: create PodCertificateRequest: %w", err)
	}
	p.start.Do(func() { close(p.started) })
	return created.Name, nil
}

// PodCertificateRequest returns a request as last observed. The error is NotFound, as of the
// API server, if the request was deleted or not observed yet. The result must not be modified.
func (p *PodCertificates) PodCertificateRequest(namespace, name string) (*certificatesv1.PodCertificateRequest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	request := p.requests[types.NamespacedName{Namespace: namespace, Name: name}]
	if request == nil {
		return nil, apierrors.NewNotFound(certificatesv1.Resource("podcertificaterequests"), name)
	}
	return request, nil
}

// replace implements store.
func (p *PodCertificates) replace(list []*certificatesv1.PodCertificateRequest) {
	next := make(map[types.NamespacedName]*certificatesv1.PodCertificateRequest, len(list))
	for _, request := range list {
		next[nameOf(request)] = request
	}
	p.mu.Lock()
	was := p.requests
	p.requests = next
	p.mu.Unlock()
	for key, old := range was {
		if next[key] == nil {
			p.changed(old)
		}
	}
	for key, request := range next {
		if old := was[key]; old == nil || !same(old, request) {
			p.changed(request)
		}
	}
}

// put implements store.
func (p *PodCertificates) put(request *certificatesv1.PodCertificateRequest) {
	p.mu.Lock()
	p.requests[nameOf(request)] = request
	p.mu.Unlock()
	p.changed(request)
}

// drop implements store.
func (p *PodCertificates) drop(request *certificatesv1.PodCertificateRequest) {
	p.mu.Lock()
	delete(p.requests, nameOf(request))
	p.mu.Unlock()
	p.changed(request)
}

func (p *PodCertificates) changed(request *certificatesv1.PodCertificateRequest) {
	p.cfg.Changed("PodCertificateRequest", request.Namespace, request.Spec.PodName)
}
