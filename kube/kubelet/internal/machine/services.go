package machine

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// dialTimeout bounds the first answer of a CRI runtime.
const dialTimeout = 20 * time.Second

// Services are the CRI services of the runtime.
type Services struct {
	options.Runtime
	Display string // for operators
	Ledger  *cri.Ledger
	close   func(context.Context) error
}

// NoResize returns why containers cannot be resized in place; "" if they can.
func (s Services) NoResize() string {
	if s.Processes {
		return "plain processes have no limits that could be changed"
	}
	return ""
}

// newServices returns the runtime of the Config, or connects to the one of the
// Configuration.
func newServices(ctx context.Context, b stores.Base) (Services, error) {
	s := Services{Runtime: b.Config.Runtime, close: func(context.Context) error { return nil }}
	if s.Service != nil {
		s.Display = s.Name
		return s, nil
	}
	if s.Processes {
		processes, err := process.Open(process.Config{Dir: filepath.Join(b.Config.RootDir, "process"), Logger: b.Logger})
		if err != nil {
			return s, fmt.Errorf("root directory %s: %w; choose another, or stop the process that uses it", b.Config.RootDir, err)
		}
		s.Display, s.Name, s.Service, s.Images, s.close = "plain processes", process.Name, processes, processes, processes.Close
		return s, nil
	}
	endpoint := b.Configuration.ContainerRuntimeEndpoint
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := remote.Dial(dialing, endpoint, remote.Config{
		ImageEndpoint: b.Configuration.ImageServiceEndpoint, Timeout: b.Configuration.RuntimeRequestTimeout.Duration,
		StreamLists: config.Enabled(b.Configuration, "CRIListStreaming"), TracerProvider: b.Traces.Provider, Logger: b.Logger,
	})
	if err != nil {
		return s, fmt.Errorf("connect to the runtime at %s: %w; is a CRI runtime listening there, and may this user access its socket?", endpoint, err)
	}
	s.Display, s.Name, s.Service, s.Images, s.close = endpoint, conn.Name, conn.Runtime, conn.Images, conn.Close
	return s, nil
}
