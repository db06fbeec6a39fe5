package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// dialTimeout bounds the first answer of a CRI runtime.
const dialTimeout = 20 * time.Second

// services are the CRI services of the runtime.
type services struct {
	Runtime
	display string // for operators
	ledger  *cri.Ledger
	close   func(context.Context) error
}

// noResize returns why containers cannot be resized in place; "" if they can.
func (s services) noResize() string {
	if s.Processes {
		return "plain processes have no limits that could be changed"
	}
	return ""
}

// newServices returns the runtime of the Config, or connects to the one of the
// Configuration.
func newServices(ctx context.Context, b base) (services, error) {
	s := services{Runtime: b.cfg.Runtime, close: func(context.Context) error { return nil }}
	if s.Service != nil {
		s.display = s.Name
		return s, nil
	}
	if s.Processes {
		processes, err := process.Open(process.Config{Dir: filepath.Join(b.cfg.RootDir, "process"), Logger: b.logger})
		if err != nil {
			return s, fmt.Errorf("root directory %s: %w; choose another, or stop the process that uses it", b.cfg.RootDir, err)
		}
		s.display, s.Name, s.Service, s.Images, s.close = "plain processes", process.Name, processes, processes, processes.Close
		return s, nil
	}
	endpoint := b.k.ContainerRuntimeEndpoint
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := remote.Dial(dialing, endpoint, remote.Config{
		ImageEndpoint: b.k.ImageServiceEndpoint, Timeout: b.k.RuntimeRequestTimeout.Duration,
		StreamLists: config.Enabled(b.k, "CRIListStreaming"), TracerProvider: b.traces.provider, Logger: b.logger,
	})
	if err != nil {
		return s, fmt.Errorf("connect to the runtime at %s: %w; is a CRI runtime listening there, and may this user access its socket?", endpoint, err)
	}
	s.display, s.Name, s.Service, s.Images, s.close = endpoint, conn.Name, conn.Runtime, conn.Images, conn.Close
	return s, nil
}
