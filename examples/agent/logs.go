package main

import (
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// rotation keeps the logs of containers from growing without end, as a
// KubeletConfiguration says.
func rotation(k kubeletconfig.KubeletConfiguration, rt logrotate.Runtime, logger *slog.Logger) (*logrotate.Rotator, error) {
	cfg := logrotate.Config{Runtime: rt, Logger: logger}
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
