package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	internalapi "k8s.io/cri-api/pkg/apis"
	criclient "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/logs"
)

// Config configures [Dial]. The zero value has the kubelet's defaults.
type Config struct {
	// ImageEndpoint is the endpoint of the image service. If empty, it is the endpoint of
	// the runtime service.
	ImageEndpoint string

	// Timeout is the time limit of calls without one of their own. It is doubled for
	// RunPodSandbox and added to the timeouts of StopContainer and ExecSync; a pull
	// has no limit. It also limits the first Version call. Zero means 2 minutes, the
	// kubelet's runtimeRequestTimeout. With a short one, calls fail that the runtime
	// completes nevertheless.
	Timeout time.Duration

	// StreamLists requests lists as streams, which have no limit of 16 MiB. If the
	// runtime does not support it, the first such call fails over to plain lists
	// (rule rt-151). The kubelet's feature gate is CRIListStreaming.
	StreamLists bool

	// TracerProvider creates a span for each call, whose context the runtime receives as
	// W3C trace context in the metadata traceparent. Spans contain neither requests nor
	// responses, nor the texts of errors. If nil, calls are not traced, and the runtime receives no trace context.
	TracerProvider trace.TracerProvider

	// Logger receives the messages of the client about failed calls at the debug
	// level. If nil, they are discarded.
	Logger *slog.Logger
}

// A Client is a connection to a CRI runtime, for cri.Config.Runtime and
// cri.Config.Images.
type Client struct {
	Runtime internalapi.RuntimeService
	Images  internalapi.ImageManagerService

	// Name is the name reported by the runtime, for example "containerd".
	Name string

	log *slog.Logger
}

// Dial connects to a CRI v1 runtime at a unix socket ("unix:///run/…" or a path). It
// returns an error if the runtime does not answer a Version call in time. Messages may
// have up to 16 MiB.
func Dial(ctx context.Context, endpoint string, cfg Config) (*Client, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Minute
	}
	if cfg.ImageEndpoint == "" {
		cfg.ImageEndpoint = endpoint
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for _, e := range []*string{&endpoint, &cfg.ImageEndpoint} {
		if *e == "" {
			return nil, errors.New("remote: endpoint is empty")
		}
		if !strings.Contains(*e, "://") {
			*e = "unix://" + *e
		}
	}
	if cfg.TracerProvider != nil {
		cfg.TracerProvider = terseProvider{provider: cfg.TracerProvider}
	}
	ctx = logs.Context(ctx, cfg.Logger)
	rt, err := criclient.NewRemoteRuntimeServiceBuilder().
		WithEndpoint(endpoint).WithConnectionTimeout(cfg.Timeout).WithTracerProvider(cfg.TracerProvider).WithUseStreaming(cfg.StreamLists).Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("remote: connect to %s: %w", endpoint, err)
	}
	images, err := criclient.NewRemoteImageServiceBuilder().
		WithEndpoint(cfg.ImageEndpoint).WithConnectionTimeout(cfg.Timeout).WithTracerProvider(cfg.TracerProvider).WithUseStreaming(cfg.StreamLists).Build(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remote: connect to %s: %w", cfg.ImageEndpoint, err), rt.Close(ctx))
	}
	client := &Client{Runtime: rt, Images: images, log: cfg.Logger}
	answer, err := rt.Version(ctx, version)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remote: get version from %s: %w", endpoint, err), client.Close(ctx))
	}
	client.Name = answer.RuntimeName
	return client, nil
}

// version is the argument of the Version call, which is the same for all versions of
// the CRI.
const version = "0.1.0"

// Close closes the connection. Pods continue to run.
func (c *Client) Close(ctx context.Context) error {
	ctx = logs.Context(ctx, c.log)
	return errors.Join(c.Runtime.Close(ctx), c.Images.Close(ctx))
}
