package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	criclient "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/internal/quiet"
)

// Config configures [Dial]. Its zero value is the kubelet's.
type Config struct {
	// ImageEndpoint, if images are served elsewhere than containers.
	ImageEndpoint string

	// Timeout of a call that has none of its own: RunPodSandbox has twice
	// that, StopContainer and ExecSync have it on top of their own times, a
	// pull has none. It is also how long the runtime may take to answer
	// first. Zero: 2 minutes, the kubelet's runtimeRequestTimeout; a short
	// one makes calls fail that then succeed unseen.
	Timeout time.Duration

	// StreamLists has lists come in pieces, which have no limit of 16 MiB for
	// all. A runtime that does not know how is asked once, and then for whole
	// lists (rt-151). The kubelet's gate is CRIListStreaming.
	StreamLists bool

	// Logger gets what the client says of failed calls, at the debug level.
	// Nil discards.
	Logger *slog.Logger
}

// A Client is a connection to a CRI runtime: what cri.Config.Runtime and
// cri.Config.Images want.
type Client struct {
	Runtime internalapi.RuntimeService
	Images  internalapi.ImageManagerService

	// Name that the runtime gives itself: "containerd".
	Name string

	log *slog.Logger
}

// Dial connects to a CRI v1 runtime at a unix socket ("unix:///run/…", or a
// path). It fails unless the runtime answers a Version call in time; messages
// may be up to 16 MiB (rt-144).
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
			return nil, errors.New("remote: no endpoint to connect to")
		}
		if !strings.Contains(*e, "://") {
			*e = "unix://" + *e
		}
	}
	ctx = quiet.Context(ctx, cfg.Logger)
	rt, err := criclient.NewRemoteRuntimeServiceBuilder().
		WithEndpoint(endpoint).WithConnectionTimeout(cfg.Timeout).WithTracerProvider(nil).WithUseStreaming(cfg.StreamLists).Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("remote: connect to %s: %w", endpoint, err)
	}
	images, err := criclient.NewRemoteImageServiceBuilder().
		WithEndpoint(cfg.ImageEndpoint).WithConnectionTimeout(cfg.Timeout).WithTracerProvider(nil).Build(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remote: connect to %s: %w", cfg.ImageEndpoint, err), rt.Close(ctx))
	}
	client := &Client{Runtime: rt, Images: images, log: cfg.Logger}
	answer, err := rt.Version(ctx, version)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remote: ask %s for its name: %w", endpoint, err), client.Close(ctx))
	}
	client.Name = answer.RuntimeName
	return client, nil
}

// version is what the Version call asks for, for historical reasons the same
// through all versions of the CRI.
const version = "0.1.0"

// Close ends the connection. Pods go on running.
func (c *Client) Close(ctx context.Context) error {
	ctx = quiet.Context(ctx, c.log)
	return errors.Join(c.Runtime.Close(ctx), c.Images.Close(ctx))
}
