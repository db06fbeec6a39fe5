package podsapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// Config configures a [Server].
type Config struct {
	// Socket is the path of the socket. Required; its directory is created. Clients expect
	// /var/lib/kubelet/pods-api/pods-api.sock.
	Socket string

	// Pods has the pods of the node. Required.
	Pods Pods

	// QPS and Burst limit the calls of all clients together. Zero means 100 and 10.
	QPS   float64
	Burst int

	// MaxWatches is the largest number of concurrent calls of WatchPods. Zero means 100.
	MaxWatches int

	// Called is called after each call, including rejected ones, for metrics. It must not
	// block. May be nil.
	Called func(CallInfo)

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger
}

// Pods has the desired pods of a node and their statuses. It must be safe for concurrent use. The
// pods are not modified. A struct that embeds a *podworker.Table and a *status.Manager
// implements it.
type Pods interface {
	// Desired returns all pods, and Pod the one with a UID, nil if there is none, and its
	// mirror pod, which is not served.
	Desired() []*v1.Pod
	Pod(uid types.UID) (pod, mirror *v1.Pod)

	// Synced reports whether all sources of pods have synced. Calls fail until then.
	Synced() bool

	// Status returns the computed status of a pod; false if there is none.
	Status(uid types.UID) (v1.PodStatus, bool)
}

// A CallInfo is the result of one call.
type CallInfo struct {
	Method string // "/v1alpha1.Pods/ListPods"
	Err    error  // nil if the call succeeded
}

// A Server implements the pods API. Safe for concurrent use.
type Server struct {
	api.UnimplementedPodsServer
	cfg Config
	ran runonce.Guard

	mu      sync.Mutex // guards watches
	watches map[*changes]struct{}
}

// New returns a Server for cfg. It starts nothing.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Socket == "":
		return nil, errors.New("podsapi: Config.Socket is empty")
	case cfg.Pods == nil:
		return nil, errors.New("podsapi: Config.Pods is nil")
	case cfg.QPS < 0 || cfg.Burst < 0 || cfg.MaxWatches < 0:
		return nil, errors.New("podsapi: Config.QPS, Config.Burst or Config.MaxWatches is negative")
	}
	cfg.MaxWatches = cmp.Or(cfg.MaxWatches, 100)
	if cfg.Called == nil {
		cfg.Called = func(CallInfo) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, watches: map[*changes]struct{}{}}, nil
}

// Run serves until ctx is done, ends all watches, and returns nil. It returns an error if the
// socket cannot be served, if another server is listening on it, and on a second call.
func (s *Server) Run(ctx context.Context) error {
	if err := s.ran.Enter("podsapi: Server"); err != nil {
		return err
	}
	server := unixgrpc.Server{
		Socket: s.cfg.Socket, QPS: s.cfg.QPS, Burst: s.cfg.Burst, Admit: s.admit,
		Register: func(to *grpc.Server) { api.RegisterPodsServer(to, s) },
		Called:   func(method string, err error) { s.cfg.Called(CallInfo{method, err}) },
	}
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("podsapi: %w", err)
	}
	return nil
}

// admit returns the error of a call that is not served.
func (s *Server) admit() error {
	if !s.cfg.Pods.Synced() {
		return status.Error(codes.FailedPrecondition, "the sources of pods have not synced")
	}
	return nil
}

// ListPods returns all pods, in the order of their UIDs.
func (s *Server) ListPods(context.Context, *api.ListPodsRequest) (*api.ListPodsResponse, error) {
	out := &api.ListPodsResponse{}
	for _, pod := range s.sorted() {
		encoded, err := s.encode(pod)
		if err != nil {
			return nil, err
		}
		out.Pods = append(out.Pods, encoded)
	}
	return out, nil
}

// GetPod returns one pod.
func (s *Server) GetPod(_ context.Context, req *api.GetPodRequest) (*api.GetPodResponse, error) {
	pod, _ := s.cfg.Pods.Pod(types.UID(req.GetPodUID()))
	if pod == nil {
		return nil, status.Errorf(codes.NotFound, "pod with UID %q not found", req.GetPodUID())
	}
	encoded, err := s.encode(pod)
	return &api.GetPodResponse{Pod: encoded}, err
}

func (s *Server) sorted() []*v1.Pod {
	pods := slices.Clone(s.cfg.Pods.Desired())
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return pods
}

// encode returns a pod with its current status.
func (s *Server) encode(pod *v1.Pod) ([]byte, error) {
	current := *pod
	if computed, ok := s.cfg.Pods.Status(pod.UID); ok {
		current.Status = computed
	} else {
		current.Status = unverified(pod.Status)
	}
	encoded, err := current.Marshal()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encode pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
	return encoded, nil
}

// unverified returns the status of a pod that the node has not computed yet: that of its
// object, but not ready.
func unverified(in v1.PodStatus) v1.PodStatus {
	out := *in.DeepCopy()
	out.Phase = cmp.Or(out.Phase, v1.PodPending)
	for i := range out.Conditions {
		if c := &out.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			c.Status, c.Reason, c.Message = v1.ConditionFalse, "ContainersNotReady", "the node has not inspected the containers yet"
		}
	}
	return out
}
