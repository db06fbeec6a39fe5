package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// rotation keeps the logs of containers from growing without end, as a
// KubeletConfiguration says.
func (a *assembly) rotation(rt logrotate.Runtime) (*logrotate.Rotator, error) {
	k, cfg := a.opts.kubelet, logrotate.Config{Runtime: rt, Logger: a.logger}
	if k.ContainerLogMaxSize != "" {
		size, err := resource.ParseQuantity(k.ContainerLogMaxSize)
		if err != nil {
			return nil, fmt.Errorf("containerLogMaxSize %q: %w", k.ContainerLogMaxSize, err)
		}
		if cfg.MaxSize = size.Value(); cfg.MaxSize == 0 {
			cfg.MaxSize = -1 // no log could be that small
		}
	}
	if k.ContainerLogMaxFiles != nil {
		if cfg.MaxFiles = int(*k.ContainerLogMaxFiles); cfg.MaxFiles == 0 {
			return nil, fmt.Errorf("containerLogMaxFiles: invalid MaxFiles 0, must be > 1")
		}
	}
	if k.ContainerLogMaxWorkers != nil {
		cfg.Workers = int(*k.ContainerLogMaxWorkers)
	}
	if k.ContainerLogMonitorInterval != nil {
		cfg.Period = max(k.ContainerLogMonitorInterval.Duration, time.Second)
	}
	return logrotate.New(cfg)
}
